// What memtrace.h says of leaks, through a real scan: see tests/tracees/client_leaks.c.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

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

}  // namespace
}  // namespace memtrace::e2e
