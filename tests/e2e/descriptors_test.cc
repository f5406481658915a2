// Whose table the trace's descriptors are in: in no child's, and where the program may take the number for a file of
// its own not in the program's.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/e2e/harness.h"

namespace memtrace::e2e {
namespace {

constexpr char kTracee[] = "descriptors_of_others";

Result RunTraced(const Words& arguments, const std::string& traces) {
  Command command = Traced({.arguments = arguments}, traces);
  command.environment.emplace_back("MEMTRACE_LEAK_CHECK", "off");
  return RunCommand(command);
}

TEST(DescriptorsTest, AForkedChildHasNoneOfItsParentsTrace) {
  TempDir traces;
  const Result run = RunTraced({TraceePath(kTracee), "forks", "200"}, traces.path());
  ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
  EXPECT_EQ(run.out, "0\n");
  EXPECT_EQ(BriefReport(TraceOf(traces.path(), kTracee, run.pid)).at("coverage").at("dropped_events"), 0);
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

}  // namespace
}  // namespace memtrace::e2e
