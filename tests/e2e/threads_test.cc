// Threads by the thousand: at once, and one after another. What they free as they end is
// free, their memory serves others, and their names are known.

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <set>
#include <string>

#include "tests/e2e/harness.h"
#include "tests/e2e/told.h"

namespace memtrace::e2e {
namespace {

constexpr uint64_t kBudgetBytes = 2 << 20;
constexpr uint64_t kThreadBudgetBytes = 256 << 10;

class ThreadsTest : public ::testing::Test {
 protected:
  // False: this machine does not let it have so many.
  bool Run(const Words& arguments) {
    Words words = {TraceePath("many_threads")};
    words.insert(words.end(), arguments.begin(), arguments.end());
    const Result run = RunCommand(
        Traced({.arguments = words, .timeout_seconds = 1500}, directory_.path()));
    if (run.exit_status == 77) return false;
    EXPECT_EQ(run.Outcome(), "exit 0") << run.err;
    trace_ = TraceOf(directory_.path(), "many_threads");
    report_ = Report(trace_);
    ExpectStacks(report_, Parse(run.out).expected);
    for (const char* none : {"unordered_events", "unknown_frees", "unseen_frees",
                             "dropped_events", "marked_stacks"}) {
      EXPECT_EQ(report_.at("coverage").at(none), 0) << none;
    }
    // glibc keeps its own for the threads to come: of these stacks nothing is live.
    for (const Json& site : report_.at("sites")) {
      for (const Json& frame : site.at("stack")) {
        if (IsFunction(frame, "Early") || IsFunction(frame, "OnThreadEnd")) {
          EXPECT_EQ(site.at("live_blocks"), 0) << Names(site.at("stack"));
        }
      }
    }
    const auto counters = Counters(trace_);
    EXPECT_EQ(counters.at("missed_events"), 0u);
    EXPECT_EQ(counters.at("private_rings"), 0u);
    tool_bytes_ = counters.at("tool_memory_bytes");
    return true;
  }
  uint64_t FileBytes() const {
    struct stat info = {};
    stat(trace_.c_str(), &info);
    return static_cast<uint64_t>(info.st_blocks) * 512;
  }

  TempDir directory_;
  std::string trace_;
  Json report_;
  uint64_t tool_bytes_ = 0;
};

// `how_many`, and ten names that they gave themselves after their first event.
void ExpectThreads(const Json& report, size_t how_many) {
  std::set<std::string> names;
  size_t named = 0;
  for (const Json& thread : report.at("threads")) {
    const std::string name = thread.at("name");
    if (!name.starts_with("one of all ")) continue;
    names.insert(name);
    ++named;
    EXPECT_EQ(thread.at("allocations"), 14) << name;
    EXPECT_EQ(thread.at("live_blocks"), 0) << name;
  }
  EXPECT_EQ(named, how_many);
  EXPECT_EQ(names.size(), 10u);
}

TEST_F(ThreadsTest, AThousandAtOnce) {
  if (!Run({"at_once", "1000"})) GTEST_SKIP() << "no 1,000 threads here";
  ExpectThreads(report_, 1000);
  EXPECT_LE(tool_bytes_, kBudgetBytes + 1001 * kThreadBudgetBytes);
  // A small ring each, not one of 64 KiB.
  EXPECT_LE(FileBytes(), uint64_t{1000} * (20 << 10));
}

TEST_F(ThreadsTest, DISABLED_TenThousandAtOnce) {
  if (!Run({"at_once", "10000"})) GTEST_SKIP() << "no 10,000 threads here";
  ExpectThreads(report_, 10'000);
  EXPECT_LE(tool_bytes_, kBudgetBytes + 10'001 * kThreadBudgetBytes);
  EXPECT_LE(FileBytes(), uint64_t{10'000} * (20 << 10));
}

// Joined, detached, cancelled, exiting while others exit: those that come use the memory of
// those that went.
TEST_F(ThreadsTest, FiveThousandInTurn) {
  ASSERT_TRUE(Run({"in_turn", "5000", "8"}));
  EXPECT_EQ(report_.at("threads").size(), 5001u);
  // Some end a little after the program knows of it.
  EXPECT_LE(tool_bytes_, kBudgetBytes + 32 * kThreadBudgetBytes);
}

TEST_F(ThreadsTest, DISABLED_AMillionInTurn) {
  ASSERT_TRUE(Run({"in_turn", "1000000", "8"}));
  EXPECT_EQ(report_.at("threads").size(), 1'000'001u);
  EXPECT_LE(tool_bytes_, kBudgetBytes + 32 * kThreadBudgetBytes);
}

}  // namespace
}  // namespace memtrace::e2e
