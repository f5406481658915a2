// What memtrace.h says of leaks, through a real scan: see tests/tracees/client_leaks.c.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "report/analysis/analyzer.h"
#include "tests/e2e/harness.h"

namespace memtrace::e2e {
namespace {

using report::LeakKind;

TEST(ClientLeaksTest, KnowsWhatIsLostAndWhatIsMeantToStay) {
  TempDir directory;
  const Result traced =
      RunCommand(Traced({.arguments = {TraceePath("client_leaks")}}, directory.path()));
  ASSERT_EQ(traced.Outcome(), "exit 0") << traced.err;
  const auto trace = report::AnalyzeTrace(
      TraceOf(directory.path(), "client_leaks", traced.pid), report::AnalyzeOptions());
  ASSERT_TRUE(trace.ok()) << trace.status();
  ASSERT_FALSE(trace->analysis.leak_scans.empty());
  const report::LeakScan& scan = trace->analysis.leak_scans.front();
  ASSERT_EQ(scan.state, report::LeakScan::State::kDone) << scan.failure;
  EXPECT_EQ(scan.label, "known blocks");
  std::map<LeakKind, std::set<uint64_t>> found;  // sizes
  for (const report::LossRecord& record : scan.records) {
    // Others are libc's own.
    if (record.bytes <= 1000 && record.blocks == 1) found[record.kind].insert(record.bytes);
  }
  EXPECT_THAT(found[LeakKind::kDefinite], testing::ElementsAre(49, 61, 104, 400));
  EXPECT_THAT(found[LeakKind::kIndirect], testing::ElementsAre(50));
  EXPECT_THAT(found[LeakKind::kPossible], testing::IsEmpty());
  EXPECT_THAT(found[LeakKind::kReachable], testing::ElementsAre(48, 60, 102, 105, 106, 107));
}

// What the end of a block means to those within it is known where another thread had to do with
// these: no address of the two is the same.
class HoldersOfOthersTest : public testing::TestWithParam<std::string> {};

TEST_P(HoldersOfOthersTest, EndWhenTheyDid) {
  TempDir traces;
  const Command command = {.arguments = {TraceePath("holders_of_others"), GetParam()}};
  ASSERT_EQ(RunCommand(command).Outcome(), "exit 0");
  const Result traced = RunCommand(Traced(command, traces.path()));
  ASSERT_EQ(traced.Outcome(), "exit 0") << traced.err;
  const Json report = Report(TraceOf(traces.path(), "holders_of_others", traced.pid));
  const Json& coverage = report.at("coverage");
  EXPECT_EQ(coverage.at("unknown_frees"), 0);
  EXPECT_EQ(coverage.at("unseen_frees"), 0);
  EXPECT_EQ(coverage.at("unordered_events"), 0);
  const bool ignores = GetParam() == "ignore";
  uint64_t live = 0;
  for (const Json& site : report.at("sites")) {
    const uint64_t bytes = site.at("bytes_allocated"), each = ignores ? 1000 : 100;
    if (bytes == each * site.at("allocations").get<uint64_t>()) {
      live += site.at("live_blocks").get<uint64_t>();
    }
  }
  EXPECT_EQ(live, ignores ? 1000u : 0u);
  const bool gives_back = GetParam() == "give-back" || GetParam() == "destroy";
  ASSERT_EQ(report.at("threads").size(), 2u);
  EXPECT_EQ(report.at("threads").at(1).at("frees"), gives_back ? 1000 : 0);
  const uint64_t lost = report.at("leak_scans").at(0).at("totals").at("definite").at("blocks");
  EXPECT_GE(lost, ignores ? 999u : 0u) << "a word of main's may still lead to the last one";
  EXPECT_LE(lost, live);
}

INSTANTIATE_TEST_SUITE_P(Hows, HoldersOfOthersTest,
                         testing::Values("cut", "give-back", "destroy", "ignore"),
                         [](const auto& how) {
                           std::string name = how.param;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace memtrace::e2e
