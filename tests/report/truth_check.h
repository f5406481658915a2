// What an analysis says against what the slow model of history.h knows.

#ifndef MEMTRACE_TESTS_REPORT_TRUTH_CHECK_H_
#define MEMTRACE_TESTS_REPORT_TRUTH_CHECK_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <map>

#include "report/analysis/analyzer.h"
#include "tests/report/history.h"

namespace memtrace::report {

inline std::map<uint64_t, uint64_t> LiveSizes(const Analysis& analysis) {
  std::map<uint64_t, uint64_t> live;
  for (const LiveBlock& block : analysis.live) live[block.address] = block.bytes;
  return live;
}

// Totals, peak, every site and every live block. The trace has a stamp at each event, and its
// analysis has kept the live blocks.
inline void ExpectIs(const AnalyzedTrace& trace, const Truth& truth) {
  const Analysis& a = trace.analysis;
  EXPECT_EQ(a.coverage.unordered_events, 0u);
  EXPECT_EQ(a.coverage.unknown_frees, 0u);
  EXPECT_EQ(a.coverage.unseen_frees, 0u);
  EXPECT_EQ(a.totals.allocations, truth.allocations);
  EXPECT_EQ(a.totals.frees, truth.frees);
  EXPECT_EQ(a.totals.bytes_allocated, truth.bytes_allocated);
  EXPECT_EQ(a.totals.failed_allocations, truth.failed);
  EXPECT_EQ(a.totals.reallocations, truth.reallocations);
  EXPECT_EQ(a.totals.peak_live_bytes, truth.peak_bytes);
  EXPECT_EQ(a.totals.peak_live_blocks, truth.peak_blocks);
  EXPECT_EQ(a.totals.peak_time_ns, truth.peak_time_ns);
  EXPECT_EQ(a.totals.wasted_bytes, truth.wasted);
  EXPECT_EQ(a.totals.temporary_allocations, truth.temporary);
  std::map<uint64_t, uint64_t> live;
  for (const auto& [address, block] : truth.live) live[address] = block.size;
  EXPECT_EQ(LiveSizes(a), live);
  ASSERT_EQ(a.sites.size(), truth.sites.size());
  for (const Site& site : a.sites) {
    const uint64_t pc = trace.stacks->node(site.stack).pc;
    const auto at = truth.sites.find(
        {static_cast<uint32_t>((pc - PcOf(0)) / 16), static_cast<int>(site.function)});
    ASSERT_NE(at, truth.sites.end());
    const TrueSite& is = at->second;
    EXPECT_EQ(site.allocations, is.allocations);
    EXPECT_EQ(site.frees, is.frees);
    EXPECT_EQ(site.bytes_allocated, is.bytes_allocated);
    EXPECT_EQ(site.live_bytes, is.live_bytes);
    EXPECT_EQ(site.live_blocks, is.live_blocks);
    EXPECT_EQ(site.peak_bytes, is.peak_bytes);
    EXPECT_EQ(site.bytes_at_peak, is.bytes_at_peak);
    EXPECT_EQ(site.blocks_at_peak, is.blocks_at_peak);
    EXPECT_EQ(site.wasted_bytes, is.wasted);
    EXPECT_EQ(site.live_wasted_bytes, is.live_wasted);
    EXPECT_EQ(site.temporary, is.temporary);
    EXPECT_EQ(site.freed_by_other_thread, is.freed_by_other);
    EXPECT_EQ(site.largest_bytes, is.largest);
  }
  uint64_t histogram = 0, histogram_live = 0, thread_live = 0;
  for (const uint64_t n : a.sizes.allocations) histogram += n;
  for (const uint64_t n : a.sizes.live_bytes) histogram_live += n;
  for (const ThreadSummary& thread : a.threads) thread_live += thread.live_bytes;
  EXPECT_EQ(histogram, truth.allocations);
  EXPECT_EQ(histogram_live, a.totals.live_bytes);
  EXPECT_EQ(thread_live, a.totals.live_bytes);
}

}  // namespace memtrace::report

#endif  // MEMTRACE_TESTS_REPORT_TRUTH_CHECK_H_
