// Kernels that lack what the library cannot do without: the program runs, untraced, and
// one line says why.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/e2e/check_command.h"
#include "tests/e2e/harness.h"

namespace memtrace::e2e {
namespace {

using ::testing::HasSubstr;

// The library is preloaded by the program behind a wrapper's filter alone.
void RunBelow(const std::string& wrapper, Command* command) {
  Words& words = command->arguments;
  words.insert(words.begin(), {TraceePath(wrapper), "/usr/bin/env"});
  for (auto it = command->environment.begin(); it != command->environment.end();) {
    if (it->first == "LD_PRELOAD") {
      words.insert(words.begin() + 2, "LD_PRELOAD=" + it->second);
      it = command->environment.erase(it);
    } else {
      ++it;
    }
  }
}

// What the loader was given is a path from a directory that the program has left.
TEST(OldKernelTest, ARelativePathIsWholeWithAndWithoutTheQueryOfAMapping) {
  for (const bool old : {false, true}) {
    TempDir directory;
    Compile(directory, "libplug.so", "#include <stdlib.h>\nvoid* Work(void) { return malloc(4321); }\n",
            {"-shared", "-fPIC"});
    const std::string program = Compile(directory, "opens", R"(#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>
int main(void) {
  void* plug = dlopen("./libplug.so", RTLD_NOW);
  if (plug == 0 || chdir("/") != 0) return 4;
  return ((void* (*)(void))dlsym(plug, "Work"))() == 0;
})");
    Command command = Traced({.arguments = {program}}, directory.path());
    command.directory = directory.path();
    if (old) RunBelow("without_mapping_query", &command);
    ASSERT_EQ(RunCommand(command).Outcome(), "exit 0");
    const Words traces = FilesIn(directory.path(), ".mtr");
    std::string all;
    for (const std::string& trace : traces) {
      all += RunCommand({.arguments = {ToolPath(), "report", directory / trace, "--format", "json"}}).out;
    }
    EXPECT_THAT(all, HasSubstr("\"" + directory.path() + "/libplug.so\"")) << (old ? "old" : "new");
  }
}

TEST(OldKernelTest, WithoutWipeOnForkAProgramThatForksRunsUntraced) {
  TempDir traces;
  Command command = Traced({.arguments = {ExamplePath("fork_child")}}, traces.path());
  RunBelow("without_wipeonfork", &command);
  const Result run = RunCommand(command);
  ASSERT_NE(run.Outcome(), "exit 3") << "a filter of system calls cannot be set here";
  EXPECT_EQ(run.Outcome(), "exit 0");
  EXPECT_THAT(run.err, HasSubstr("MADV_WIPEONFORK"));
  EXPECT_THAT(run.err, HasSubstr("runs untraced"));
  EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
  EXPECT_EQ(FilesIn(traces.path(), ".mtr"), Words{});
}

}  // namespace
}  // namespace memtrace::e2e
