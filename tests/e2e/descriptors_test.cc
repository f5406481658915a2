// Whose table the trace's descriptors are in: in no child's, and where the program may take the number for a file of
// its own not in the program's.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>

#include "tests/e2e/check_command.h"
#include "tests/e2e/harness.h"

namespace memtrace::e2e {
namespace {

using ::testing::HasSubstr;

constexpr char kTracee[] = "descriptors_of_others";

Result RunTraced(const Words& arguments, const std::string& traces) {
  Command command = Traced({.arguments = arguments}, traces);
  command.environment.emplace_back("MEMTRACE_LEAK_CHECK", "off");
  return RunCommand(command);
}

void ExpectForkedChildrenHaveNone(const std::string& children, const std::string& forks) {
  TempDir traces;
  Command command = Traced({.arguments = {TraceePath(kTracee), "forks", forks}}, traces.path());
  command.environment.emplace_back("MEMTRACE_LEAK_CHECK", "off");
  command.environment.emplace_back("MEMTRACE_CHILDREN", children);
  const Result run = RunCommand(command);
  ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
  EXPECT_EQ(run.out, "0\n");
  EXPECT_EQ(BriefReport(TraceOf(traces.path(), kTracee, run.pid)).at("coverage").at("dropped_events"), 0);
}

TEST(DescriptorsTest, AForkedChildHasNoneOfItsParentsTrace) {
  ExpectForkedChildrenHaveNone("follow", "200");
}

// Most of what is open for a moment is a file of /proc.
TEST(DescriptorsTest, AForkedChildThatIsNotTracedHasNoneEither) {
  ExpectForkedChildrenHaveNone("off", "2000");
}

// A thread that closes what it does not know and opens files would get the trace's number, and its file what was meant
// for the trace.
TEST(DescriptorsTest, WhereNumbersAreFewTheTraceIsWrittenFromAnotherTable) {
  TempDir traces;
  const std::string looks = TraceePath(kTracee) + " looks 3000";
  const Result usual = RunTraced({"sh", "-c", "exec " + looks}, traces.path());
  ASSERT_EQ(usual.Outcome(), "exit 0") << usual.err;
  EXPECT_NE(usual.out, "0\n") << "the program cannot see what it looks for";
  const Result few = RunTraced({"sh", "-c", "ulimit -n 200; exec " + looks}, traces.path());
  ASSERT_EQ(few.Outcome(), "exit 0") << few.err;
  EXPECT_EQ(few.out, "0\n");
  EXPECT_EQ(BriefReport(TraceOf(traces.path(), kTracee, few.pid)).at("coverage").at("dropped_events"), 0);
}

// Its file is looked up at the kernel's, when its first frame is met: the loader has the name that it was given, of a
// directory that the program was in then.
TEST(DescriptorsTest, APluginIsNamedWhereAllAreUsed) {
  TempDir directory, traces;
  const std::string elsewhere = directory / "plugins";
  ASSERT_EQ(mkdir(elsewhere.c_str(), 0755), 0);
  Compile(directory, "plugins/plugin.so", R"(#include <stdlib.h>
void *Plugin(void) { void *volatile p = malloc(4242); return p; }
)", {"-shared", "-fPIC", "-O0"});
  const std::string host = Compile(directory, "host", R"(#include <dlfcn.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>
int main(int argc, char **argv) {
  const struct rlimit few = {64, 64};
  if (argc < 2 || chdir(argv[1]) != 0) return 2;
  void *library = dlopen("./plugin.so", RTLD_NOW);
  void *(*plugin)(void) = library != NULL ? (void *(*)(void))dlsym(library, "Plugin") : NULL;
  if (plugin == NULL || setrlimit(RLIMIT_NOFILE, &few) != 0) return 3;
  while (open("/dev/null", O_RDONLY) >= 0) {}
  return plugin() == NULL;
}
)", {"-ldl"});
  const Result run = RunTraced({host, elsewhere}, traces.path());
  ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
  const Json report = Report(TraceOf(traces.path(), "host", run.pid));
  EXPECT_TRUE(NamesFunction(report, "^Plugin$"));
  EXPECT_THAT(report.at("modules").dump(), HasSubstr(elsewhere + "/plugin.so"));
}

}  // namespace
}  // namespace memtrace::e2e
