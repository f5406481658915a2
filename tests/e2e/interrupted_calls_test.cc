// What a scan's signal interrupts, and the program must not notice: calls of the kernel that are done in part, or wait.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/uio.h>
#include <unistd.h>

#include <sstream>
#include <string>

#include "tests/e2e/harness.h"

namespace memtrace::e2e {
namespace {

// Before Linux 6.4 the rest of what a pipe takes is not written.
bool PipesAreWrittenWhole() {
  int ends[2];
  char byte = 0;
  const iovec part = {&byte, 1};
  if (pipe(ends) != 0) return false;
  const bool can = pwritev2(ends[1], &part, 1, -1, RWF_NOWAIT) == 1;
  close(ends[0]);
  close(ends[1]);
  return can;
}

std::string WithoutPipes(const std::string& text) {
  std::string rest;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("write")) rest += line + "\n";
  }
  return rest;
}

// The calls take as long as hundred scans and more: done in part and made again with all of their time they would
// return less, and never.
TEST(InterruptedCallsTest, CallsReturnWhatTheyWouldWithoutScans) {
  TempDir directory;
  const Command command{.arguments = {TraceePath("gone_on_with")}};
  const Result plain = RunCommand(command);
  ASSERT_EQ(plain.Outcome(), "exit 0") << plain.err;
  const Result traced = RunCommand(Traced(command, directory.path()));
  EXPECT_EQ(traced.Outcome(), "exit 0") << traced.err;
  if (PipesAreWrittenWhole()) {
    EXPECT_EQ(traced.out, plain.out);
  } else {
    EXPECT_THAT(WithoutPipes(traced.out), ::testing::EndsWith(WithoutPipes(plain.out)));  // behind how many arrived
  }
  EXPECT_EQ(traced.err, "");
  const Json report = Report(TraceOf(directory.path(), "gone_on_with"));
  size_t done = 0;
  for (const Json& scan : report["leak_scans"]) {
    done += scan["state"] == "done";
    EXPECT_EQ(scan["notes"].dump().find("did not stop"), std::string::npos) << scan["notes"].dump();
  }
  EXPECT_EQ(done, report["leak_scans"].size());
  EXPECT_GT(done, 10u);
}

// What a handler of ours goes on with ends by what would have ended the call itself.
TEST(InterruptedCallsTest, CallsEndAsTheyWouldWithoutScans) {
  TempDir directory;
  const Command command{.arguments = {TraceePath("ended_as_it_would")}};
  const Result plain = RunCommand(command);
  ASSERT_EQ(plain.Outcome(), "exit 0") << plain.err;
  const Result traced = RunCommand(Traced(command, directory.path()));
  EXPECT_EQ(traced.Outcome(), "exit 0") << traced.err;
  EXPECT_EQ(traced.out, plain.out);
  EXPECT_EQ(traced.err, "");
  EXPECT_GT(Report(TraceOf(directory.path(), "ended_as_it_would", traced.pid))["leak_scans"].size(), 10u);
}

}  // namespace
}  // namespace memtrace::e2e
