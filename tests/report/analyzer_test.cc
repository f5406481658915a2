// What a pass over a trace finds, field by field, on traces small enough to count by hand.

#include "report/analyzer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/report/test_util.h"
#include "tests/report/trace_builder.h"

namespace memtrace::report {
namespace {

using format::AllocFunction;

TEST(AnalyzerTest, CountsTwoLeakingSites) {
  TraceBuilder builder;
  auto& main = builder.Thread(1, 4242, "main");
  main.At(1000);
  const uint32_t outer = main.Stack({0x401000, 0x402000});
  const uint32_t other = main.Stack({0x401000, 0x403000});
  main.Malloc(0x10010, 100, outer, 4).Malloc(0x10090, 100, outer, 4).Calloc(0x20010, 256, other, 8);
  main.At(9000);
  builder.End(3, 10000);
  const AnalyzedTrace trace = Analyze(builder.Build());
  const Analysis& a = trace.analysis;
  EXPECT_EQ(a.totals.allocations, 3u);
  EXPECT_EQ(a.totals.frees, 0u);
  EXPECT_EQ(a.totals.live_bytes, 456u);
  EXPECT_EQ(a.totals.live_blocks, 3u);
  EXPECT_EQ(a.totals.bytes_allocated, 456u);
  EXPECT_EQ(a.totals.peak_live_bytes, 456u);
  EXPECT_EQ(a.totals.wasted_bytes, 16u);
  EXPECT_EQ(a.coverage.events, 3u);
  EXPECT_EQ(a.coverage.marked_stacks, 0u);
  ASSERT_EQ(a.sites.size(), 2u);
  const Site* site = FindSite(trace, 0x402000);
  ASSERT_NE(site, nullptr);
  EXPECT_EQ(site->live_bytes, 200u);
  EXPECT_EQ(site->live_blocks, 2u);
  EXPECT_EQ(site->live_wasted_bytes, 8u);
  EXPECT_EQ(site->bytes_at_peak, 200u);
  EXPECT_EQ(trace.stacks->node(trace.stacks->node(site->stack).parent).pc, 0x401000u);
  EXPECT_EQ(FindSite(trace, 0x403000)->function, AllocFunction::kCalloc);
  EXPECT_EQ(a.process.end, ProcessInfo::End::kExit);
  EXPECT_EQ(a.process.exit_status, 3);
  EXPECT_EQ(a.process.duration_ns, 10000u);
  EXPECT_THAT(a.process.command, testing::ElementsAre("./app", "--fast"));
  EXPECT_EQ(a.process.build_id, "0102ab");
  ASSERT_EQ(a.threads.size(), 1u);
  EXPECT_EQ(a.threads[0].name, "main");
  EXPECT_EQ(a.threads[0].tid, 4242u);
  EXPECT_EQ(a.threads[0].live_bytes, 456u);
}

}  // namespace
}  // namespace memtrace::report
