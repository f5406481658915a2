// Events that are lost in the midst of a thread's, and what its stacks mean behind them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tests/report/test_util.h"
#include "tests/report/trace_builder.h"

namespace memtrace::report {
namespace {

using testing::Each;
using testing::ElementsAre;

TEST(StacksBehindHolesTest, AHoleInTheSequenceIsCountedAndItsStacksAreLost) {
  TraceBuilder trace;
  auto& a = trace.Thread(1, 100, "main");
  a.At(1000).Node(1, 0x401000).Malloc(0x1010, 10, 1).Flush();
  a.SkipBlocks(3).At(2000).Malloc(0x2010, 20, 2).Malloc(0x3010, 30, 1).Flush();
  const AnalyzedTrace t = Analyze(trace.Build());
  EXPECT_EQ(t.analysis.coverage.lost_blocks, 3u);
  EXPECT_EQ(t.analysis.totals.allocations, 3u);
  EXPECT_EQ(t.analysis.coverage.marked_stacks, 1u) << "slot 1 is what it was";
  for (const Site& site : t.analysis.sites) {
    const bool lost = t.stacks->MarkerOf(site.stack) == format::StackMarker::kLost;
    EXPECT_EQ(site.live_bytes, lost ? 20u : 40u);
  }
}

// Whether each of `slots` means the same behind a hole as before it. `last`: the slot that was
// defined last before the hole; `next`: first behind it, 0 none.
std::vector<bool> OutliveHole(uint32_t last, uint32_t blocks, uint32_t next,
                              const std::vector<uint32_t>& slots) {
  TraceBuilder trace;
  auto& a = trace.Thread(1, 100, "main");
  for (const uint32_t slot : slots) a.Node(slot, 0x400000 + slot);
  a.Node(last, 0x400000 + last).At(1000).Malloc(0x1010, 1).Flush();
  a.SkipBlocks(blocks).At(2000);
  for (size_t i = 0; i < slots.size(); ++i) a.Malloc(0x2010 + 0x1000 * i, 10, slots[i]);
  if (next != 0) a.Node(next, 0x500000);
  const AnalyzedTrace t = Analyze(trace.Build());
  EXPECT_EQ(t.analysis.totals.allocations, 1 + slots.size());
  std::vector<bool> same(slots.size());
  for (const Site& site : t.analysis.sites) {
    if (t.stacks->size() == 0 || site.stack == StackId{}) continue;
    const uint64_t pc = t.stacks->node(site.stack).pc;
    for (size_t i = 0; i < slots.size(); ++i) same[i] = same[i] || pc == 0x400000 + slots[i];
  }
  return same;
}

// Slots are given out in turn, from 1 to 2^18, and a block has no more than 8192 words.
TEST(StacksBehindHolesTest, StacksThatNobodyCanHaveDefinedAnewOutliveAHole) {
  constexpr uint32_t kTurn = 1 << 18;
  EXPECT_THAT(OutliveHole(100, 1, 0, {5, 100, 101, 12'387, 12'388, kTurn}),
              ElementsAre(true, true, false, false, true, true));
  EXPECT_THAT(OutliveHole(100, 1, 105, {5, 100, 101, 104, 105, kTurn}),
              ElementsAre(true, true, false, false, true, true));
  EXPECT_THAT(OutliveHole(100, 1, 101, {100, 101, 102}), Each(true));
  EXPECT_THAT(OutliveHole(kTurn - 4, 1, 3, {kTurn - 4, kTurn - 3, kTurn, 1, 2, 3, 9}),
              ElementsAre(true, false, false, false, false, true, true));
  EXPECT_THAT(OutliveHole(kTurn - 4, 1, 0, {kTurn - 4, kTurn, 1, 5'000, 50'000}),
              ElementsAre(true, false, false, false, true));
  EXPECT_THAT(OutliveHole(100, 32, 105, {5, 104, 105}), ElementsAre(true, false, true));
  EXPECT_THAT(OutliveHole(100, 32, 0, {5, 104, kTurn}), Each(false));
  EXPECT_THAT(OutliveHole(100, 33, 105, {5, 104, 105}), Each(false)) << "perhaps around again";
  EXPECT_THAT(OutliveHole(kTurn + 9, 33, 0, {5, kTurn + 9, kTurn + 10}), Each(true))
      << "a writer that goes beyond never comes back";
}

// What was lost in several holes since a slot was last defined counts together.
TEST(StacksBehindHolesTest, HolesAddUp) {
  TraceBuilder trace;
  auto& a = trace.Thread(1, 100, "main");
  for (const uint32_t slot : {14'000, 30'000, 100}) a.Node(slot, 0x400000 + slot);
  a.At(1000).Malloc(0x1010, 1, 100).Flush();
  a.SkipBlocks(1).At(2000).Malloc(0x2010, 2, 14'000).Malloc(0x3010, 2, 30'000).Flush();
  a.SkipBlocks(1).At(3000).Malloc(0x4010, 3, 14'000).Malloc(0x5010, 3, 30'000).Flush();
  EXPECT_EQ(Analyze(trace.Build()).analysis.coverage.marked_stacks, 1u);
  a.SkipBlocks(30).At(4000).Malloc(0x6010, 4, 30'000).Flush();
  EXPECT_EQ(Analyze(trace.Build()).analysis.coverage.marked_stacks, 2u);
  a.SkipBlocks(1).At(5000).Malloc(0x7010, 5, 100).Node(101, 0x500000).Flush();
  EXPECT_EQ(Analyze(trace.Build()).analysis.coverage.marked_stacks, 3u) << "perhaps around again";
  a.SkipBlocks(1).At(6000).Malloc(0x8010, 6, 101).Flush();
  EXPECT_EQ(Analyze(trace.Build()).analysis.coverage.marked_stacks, 3u);
}

// What is left out of a block may have defined stacks.
TEST(StacksBehindHolesTest, ABadEventIsAHole) {
  TraceBuilder trace;
  auto& a = trace.Thread(1, 100, "main");
  a.Node(1, 0x401000).At(1000).Malloc(0x1010, 10, 1).Node(2, 0x402000).Word(0);
  a.Node(2, 0x403000).Malloc(0x2010, 20, 2).Flush();
  a.At(2000).Malloc(0x3010, 30, 1).Malloc(0x4010, 40, 3).Flush();
  const AnalyzedTrace t = Analyze(trace.Build());
  EXPECT_EQ(t.analysis.totals.allocations, 3u);
  EXPECT_EQ(t.analysis.coverage.marked_stacks, 1u);
}

}  // namespace
}  // namespace memtrace::report
