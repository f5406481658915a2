// Kernels that lack what the library cannot do without: the program runs, untraced, and
// one line says why.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/e2e/harness.h"

namespace memtrace::e2e {
namespace {

using ::testing::HasSubstr;

TEST(OldKernelTest, WithoutWipeOnForkAProgramThatForksRunsUntraced) {
  TempDir traces;
  // The library is preloaded by the second program, in which madvise fails already.
  Command command = Traced({.arguments = {ExamplePath("fork_child")}}, traces.path());
  Words& words = command.arguments;
  words.insert(words.begin(), {TraceePath("without_wipeonfork"), "/usr/bin/env"});
  for (auto it = command.environment.begin(); it != command.environment.end();) {
    if (it->first == "LD_PRELOAD") {
      words.insert(words.begin() + 2, "LD_PRELOAD=" + it->second);
      it = command.environment.erase(it);
    } else {
      ++it;
    }
  }
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
