// Blocks of pools and of other allocators of the program (memtrace.h), in the analysis: their own
// figures, and those of the blocks that they lie in.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <tuple>
#include <vector>

#include "tests/report/client_program.h"

namespace memtrace::report {
namespace {

using format::AllocFunction;

constexpr uint64_t kArena = 0x100000, kPool = ClientProgram::kPool;

// Of two sites whose blocks had the same lives, one a pool's: in all figures that are not of
// malloc's blocks alone.
void ExpectAlike(const Site& pool, const Site& twin) {
  EXPECT_EQ(pool.function, AllocFunction::kPoolAlloc);
  EXPECT_EQ(twin.function, AllocFunction::kMalloc);
  EXPECT_EQ(pool.allocations, twin.allocations);
  EXPECT_EQ(pool.frees, twin.frees);
  EXPECT_EQ(pool.bytes_allocated, twin.bytes_allocated);
  EXPECT_EQ(pool.live_bytes, twin.live_bytes);
  EXPECT_EQ(pool.live_blocks, twin.live_blocks);
  EXPECT_EQ(pool.peak_bytes, twin.peak_bytes);
  EXPECT_EQ(pool.blocks_at_own_peak, twin.blocks_at_own_peak);
  EXPECT_EQ(pool.bytes_at_peak, twin.bytes_at_peak);
  EXPECT_EQ(pool.blocks_at_peak, twin.blocks_at_peak);
  EXPECT_EQ(pool.freed_by_other_thread, twin.freed_by_other_thread);
  EXPECT_EQ(pool.largest_bytes, twin.largest_bytes);
  EXPECT_EQ(pool.first_time_ns, twin.first_time_ns);
  EXPECT_EQ(pool.last_time_ns, twin.last_time_ns);
  EXPECT_EQ(pool.live_first_time_ns, twin.live_first_time_ns);
  EXPECT_EQ(pool.live_last_time_ns, twin.live_last_time_ns);
  EXPECT_EQ(pool.freed_lifetime_ns, twin.freed_lifetime_ns);
  EXPECT_EQ(pool.live_time_sum_ns, twin.live_time_sum_ns);
  EXPECT_EQ(pool.growth.verdict, twin.growth.verdict);
  for (size_t i = 0; i < LifetimeHistogram::kClasses; ++i) {
    EXPECT_EQ(pool.lifetimes[i], twin.lifetimes[i]) << "lifetimes of class " << i;
  }
  for (size_t i = 0; i < kSiteSizeClasses; ++i) {
    EXPECT_EQ(pool.sizes[i], twin.sizes[i]) << "sizes of class " << i;
  }
  const auto told = [](const SeriesPoint& p) {
    return std::tuple(p.interval, p.allocations, p.frees, p.live_blocks, p.low_bytes, p.high_bytes,
                      p.live_bytes, p.bytes_allocated);
  };
  ASSERT_EQ(pool.series.size(), twin.series.size());
  for (size_t i = 0; i < pool.series.size(); ++i) {
    EXPECT_EQ(told(pool.series[i]), told(twin.series[i])) << "point " << i;
  }
}

TEST(CustomBlocksTest, ALiveByteIsTheInnermostBlocks) {
  ClientProgram program;
  program.Malloc(kArena, 1000).CreatePool(kPool, "nodes");
  program.PoolAlloc(kPool, kArena, 100).PoolAlloc(kPool, kArena + 112, 50);
  const AnalyzedTrace t = program.Analyzed();
  const Analysis& a = t.analysis;
  ExpectConsistent(a);
  EXPECT_EQ(a.totals.live_bytes, 1000u);
  EXPECT_EQ(a.totals.live_blocks, 3u);
  EXPECT_EQ(a.totals.allocations, 3u);
  EXPECT_EQ(a.totals.bytes_allocated, 1150u);
  EXPECT_EQ(FindSite(t, ClientProgram::kMallocPc)->live_bytes, 850u);
  const Site* site = FindSite(t, ClientProgram::kPoolPc);
  EXPECT_EQ(site->live_bytes, 150u);
  EXPECT_EQ(site->function, AllocFunction::kPoolAlloc);
  ASSERT_EQ(a.pools.size(), 1u);
  EXPECT_EQ(a.pools[0].name, "nodes");
  EXPECT_EQ(a.pools[0].live_bytes, 150u);
  EXPECT_EQ(a.pools[0].created, 1u);
  EXPECT_EQ(a.pools[0].destroyed, 0u);
}

TEST(CustomBlocksTest, OutsideOfMallocsBlocksTheirBytesAreNew) {
  ClientProgram program;
  program.Malloc(kArena, 1000).BlockAlloc(0x500000, 64).BlockAlloc(kArena + 990, 20);
  const AnalyzedTrace t = program.Analyzed();
  ExpectConsistent(t.analysis);
  EXPECT_EQ(t.analysis.totals.live_bytes, 1084u) << "one is nowhere, one reaches over the end";
  EXPECT_EQ(FindSite(t, ClientProgram::kBlockPc)->function, AllocFunction::kBlockAlloc);
}

TEST(CustomBlocksTest, AFreeGivesTheBytesBackToTheHolder) {
  ClientProgram program;
  program.Malloc(kArena, 1000).CreatePool(kPool, "").PoolAlloc(kPool, kArena + 16, 100);
  program.PoolFree(kPool, kArena + 16);
  const AnalyzedTrace t = program.Analyzed();
  ExpectConsistent(t.analysis);
  EXPECT_EQ(FindSite(t, ClientProgram::kMallocPc)->live_bytes, 1000u);
  EXPECT_EQ(FindSite(t, ClientProgram::kPoolPc)->frees, 1u);
  EXPECT_EQ(t.analysis.coverage.unknown_frees, 0u);
}

TEST(CustomBlocksTest, ADestroyedPoolFreesAllOfItsBlocks) {
  ClientProgram program;
  program.Malloc(kArena, 1000).CreatePool(kPool, "p").CreatePool(kPool + 8, "q");
  for (uint64_t i = 0; i < 10; ++i) program.PoolAlloc(kPool + i % 2 * 8, kArena + 64 * i, 64);
  program.DestroyPool(kPool);
  const AnalyzedTrace t = program.Analyzed();
  ExpectConsistent(t.analysis);
  EXPECT_EQ(t.analysis.totals.live_blocks, 6u);
  EXPECT_EQ(t.analysis.pools[0].frees, 5u);
  EXPECT_EQ(t.analysis.pools[0].destroyed, 1u);
  EXPECT_EQ(t.analysis.pools[1].live_blocks, 5u);
}

TEST(CustomBlocksTest, PoolsOfOneNameAndPlaceAreOne) {
  ClientProgram program;
  for (uint64_t i = 0; i < 3; ++i) {
    program.CreatePool(kPool + 64 * i, "request").PoolAlloc(kPool + 64 * i, 0x500000 + 64 * i, 10);
    if (i != 2) program.DestroyPool(kPool + 64 * i);
  }
  const AnalyzedTrace t = program.Analyzed();
  ExpectConsistent(t.analysis);
  ASSERT_EQ(t.analysis.pools.size(), 1u);
  EXPECT_EQ(t.analysis.pools[0].created, 3u);
  EXPECT_EQ(t.analysis.pools[0].destroyed, 2u);
  EXPECT_EQ(t.analysis.pools[0].peak_bytes, 10u);
}

// As in a fork child, which knows its parent's pools by their addresses.
TEST(CustomBlocksTest, PoolsWhoseCreationIsNotInTheTraceAreApart) {
  constexpr uint64_t kOther = kPool + 0x10;
  ClientProgram program;
  for (uint64_t i = 0; i < 10; ++i) program.PoolAlloc(kPool, kArena + i * 100, 100);
  for (uint64_t i = 0; i < 5; ++i) program.PoolAlloc(kOther, kArena + 5000 + i * 300, 300);
  program.CreatePool(kPool + 0x20, "").PoolAlloc(kPool + 0x20, kArena + 8000, 7);
  program.DestroyPool(kPool).PoolAlloc(kPool, kArena, 20);
  program.CreatePool(kOther, "known").PoolAlloc(kOther, kArena + 5000, 30);
  const AnalyzedTrace t = program.Analyzed();
  ExpectConsistent(t.analysis);
  const std::vector<Pool>& pools = t.analysis.pools;
  ASSERT_EQ(pools.size(), 4u);
  EXPECT_EQ(pools[0].name, "pool at 0x900000");
  EXPECT_EQ(pools[0].allocations, 11u);
  EXPECT_EQ(pools[0].bytes_allocated, 1020u);
  EXPECT_EQ(pools[0].live_bytes, 20u);
  EXPECT_EQ(pools[0].created, 0u);
  EXPECT_EQ(pools[0].destroyed, 1u);
  EXPECT_EQ(pools[0].stack, StackId{});
  EXPECT_EQ(pools[1].name, "pool at 0x900010");
  EXPECT_EQ(pools[1].allocations, 5u);
  EXPECT_EQ(pools[1].bytes_allocated, 1500u);
  EXPECT_EQ(pools[1].live_bytes, 0u);
  EXPECT_EQ(pools[2].name, "");
  EXPECT_EQ(pools[2].created, 1u);
  EXPECT_EQ(pools[3].name, "known");
  EXPECT_EQ(pools[3].live_bytes, 30u);
}

TEST(CustomBlocksTest, ABlockEndsWithTheMemoryItLiesIn) {
  ClientProgram program;
  program.Malloc(kArena, 1000).CreatePool(kPool, "").PoolAlloc(kPool, kArena + 16, 200);
  program.BlockAlloc(kArena + 32, 50).BlockAlloc(kArena + 82, 50).BlockAlloc(kArena + 500, 7);
  program.Free(kArena);
  const AnalyzedTrace t = program.Analyzed();
  ExpectConsistent(t.analysis);
  EXPECT_EQ(t.analysis.totals.live_blocks, 0u);
  EXPECT_EQ(t.analysis.totals.live_bytes, 0u);
  EXPECT_EQ(t.analysis.totals.peak_live_bytes, 1000u);
}

TEST(CustomBlocksTest, ABlockInABlockOfAPoolTakesItsBytesFromThat) {
  ClientProgram program;
  program.Malloc(kArena, 1000).CreatePool(kPool, "").PoolAlloc(kPool, kArena, 200);
  program.BlockAlloc(kArena, 50).BlockAlloc(kArena + 64, 60);
  AnalyzeOptions options;
  options.keep_live_blocks = true;
  const AnalyzedTrace t = program.Analyzed(options);
  ExpectConsistent(t.analysis);
  EXPECT_EQ(FindSite(t, ClientProgram::kMallocPc)->live_bytes, 800u);
  EXPECT_EQ(FindSite(t, ClientProgram::kPoolPc)->live_bytes, 90u);
  EXPECT_EQ(FindSite(t, ClientProgram::kBlockPc)->live_bytes, 110u);
  ASSERT_EQ(t.analysis.live.size(), 4u);
  EXPECT_TRUE(t.analysis.live[0].holds_blocks);
  EXPECT_EQ(t.analysis.live[0].bytes, 1000u);
  EXPECT_TRUE(t.analysis.live[1].holds_blocks);
  EXPECT_EQ(t.analysis.live[1].pool, 1u);
  EXPECT_FALSE(t.analysis.live[2].holds_blocks);
  EXPECT_EQ(t.analysis.live[2].bytes, 50u);
}

TEST(CustomBlocksTest, AReallocThatStaysKeepsThem) {
  ClientProgram program;
  program.Malloc(kArena, 100).CreatePool(kPool, "").PoolAlloc(kPool, kArena, 80);
  program.Realloc(kArena, kArena, 1000).PoolAlloc(kPool, kArena + 500, 500);
  program.Realloc(kArena, kArena, 400);
  AnalyzedTrace t = program.Analyzed();
  ExpectConsistent(t.analysis);
  EXPECT_EQ(t.analysis.totals.live_bytes, 400u);
  EXPECT_EQ(t.analysis.totals.live_blocks, 2u) << "the second no longer fits";
  EXPECT_EQ(FindSite(t, ClientProgram::kPoolPc)->live_bytes, 80u);
}

TEST(CustomBlocksTest, AReallocThatStaysChangesNothingOfThePeakBefore) {
  ClientProgram program;
  program.Malloc(kArena, 3000).CreatePool(kPool, "").PoolAlloc(kPool, kArena + 16, 1000);
  program.BlockAlloc(0x500000, 500);  // the peak
  program.Realloc(kArena, kArena, 2999).Free(kArena);
  const AnalyzedTrace t = program.Analyzed();
  ExpectConsistent(t.analysis);
  EXPECT_EQ(t.analysis.totals.peak_live_bytes, 3500u);
  EXPECT_EQ(FindSite(t, ClientProgram::kMallocPc)->bytes_at_peak, 2000u);
  EXPECT_EQ(FindSite(t, ClientProgram::kPoolPc)->bytes_at_peak, 1000u);
}

TEST(CustomBlocksTest, AReallocThatStaysWhileTheRecordingIsStoppedLeavesThemTheirBytes) {
  ClientProgram program;
  program.Malloc(kArena, 1000).CreatePool(kPool, "").PoolAlloc(kPool, kArena, 100);
  program.Tell(format::ExtendedType::kRecordingStopped, {1, 0});
  program.Tick().Realloc(kArena, kArena, 2000, format::kStoppedSlot);
  program.Tell(format::ExtendedType::kRecordingStopped, {0, 0});
  const AnalyzedTrace t = program.Analyzed();
  ExpectConsistent(t.analysis);
  EXPECT_EQ(t.analysis.totals.live_bytes, 100u);
  EXPECT_EQ(FindSite(t, ClientProgram::kPoolPc)->live_bytes, 100u);
}

TEST(CustomBlocksTest, TakeTheirBytesFromTheNextHolderThatCounts) {
  ClientProgram program;
  program.Malloc(kArena, 1000).StoppedBlockAlloc(kArena + 100, 800);
  program.BlockAlloc(kArena + 200, 600).Malloc(0x500000, 1);
  const AnalyzedTrace held = program.Analyzed();
  ExpectConsistent(held.analysis);
  EXPECT_EQ(held.analysis.totals.live_bytes, 1001u);
  EXPECT_EQ(held.analysis.totals.peak_live_bytes, 1001u);
  EXPECT_EQ(SiteAt(held, ClientProgram::kMallocPc).live_bytes, 401u);
  EXPECT_EQ(SiteAt(held, ClientProgram::kBlockPc).live_bytes, 600u);

  ClientProgram freed;
  freed.Malloc(kArena, 1000).StoppedBlockAlloc(kArena + 100, 800).BlockAlloc(kArena + 200, 600);
  freed.BlockFree(kArena + 100);
  const AnalyzedTrace t = freed.Analyzed();
  ExpectConsistent(t.analysis);
  EXPECT_EQ(t.analysis.totals.live_bytes, 1000u);
  EXPECT_EQ(SiteAt(t, ClientProgram::kMallocPc).live_bytes, 1000u);
  EXPECT_EQ(SiteAt(t, ClientProgram::kMallocPc).peak_bytes, 1000u);
}

TEST(CustomBlocksTest, ASelectionLeavesOutAHolderAndNotWhatLiesInIt) {
  ClientProgram program;
  program.Malloc(kArena, 1000).On(2).PoolAlloc(kPool, kArena, 800);
  program.On(1).BlockAlloc(kArena + 100, 300).On(2).PoolAlloc(kPool, kArena + 150, 200);
  program.On(1).BlockAlloc(kArena + 160, 100);
  AnalyzeOptions options;
  options.thread = ThreadId{1};
  const AnalyzedTrace t = program.Analyzed(options);
  ExpectConsistent(t.analysis);
  EXPECT_EQ(t.analysis.totals.live_bytes, 1000u);
  EXPECT_EQ(SiteAt(t, ClientProgram::kMallocPc).live_bytes, 700u);
  EXPECT_EQ(SiteAt(t, ClientProgram::kBlockPc).live_bytes, 300u);
}

TEST(CustomBlocksTest, AReallocThatMovesEndsThem) {
  ClientProgram program;
  program.Malloc(kArena, 100).BlockAlloc(kArena, 80).Realloc(kArena, kArena + 4096, 1000);
  const AnalyzedTrace t = program.Analyzed();
  ExpectConsistent(t.analysis);
  EXPECT_EQ(t.analysis.totals.live_bytes, 1000u);
  EXPECT_EQ(t.analysis.totals.live_blocks, 1u);
}

TEST(CustomBlocksTest, WhatIsNotInTheTraceIsCountedAsSuch) {
  ClientProgram program;
  program.PoolAlloc(kPool, 0x500000, 10).PoolFree(kPool, 0x700000);
  program.PoolAlloc(kPool, 0x500000, 20);
  const AnalyzedTrace t = program.Analyzed();
  ExpectConsistent(t.analysis);
  EXPECT_EQ(t.analysis.coverage.unknown_frees, 1u);
  EXPECT_EQ(t.analysis.coverage.unseen_frees, 1u);
  ASSERT_EQ(t.analysis.pools.size(), 1u);
  EXPECT_EQ(t.analysis.pools[0].name, "pool at 0x900000");
  EXPECT_EQ(t.analysis.pools[0].created, 0u) << "its creation was not seen";
  EXPECT_EQ(t.analysis.pools[0].live_bytes, 20u);
}

TEST(CustomBlocksTest, ARangeSelectsThemByThemselves) {
  ClientProgram program;
  program.Malloc(kArena, 1000);
  const uint64_t from = program.now() + 1;
  program.CreatePool(kPool, "").PoolAlloc(kPool, kArena, 100);
  const uint64_t to = program.now() + 1;
  program.PoolAlloc(kPool, kArena + 200, 100);
  AnalyzeOptions options;
  options.range = {from, to};
  const AnalyzedTrace t = program.Analyzed(options);
  ExpectConsistent(t.analysis);
  EXPECT_EQ(t.analysis.totals.live_bytes, 100u);
}

TEST(CustomBlocksTest, HaveTheFiguresOfMallocsBlocksOfTheSameLife) {
  ClientProgram program;
  program.Malloc(kArena, 100000).CreatePool(kPool, "arena");
  for (uint64_t i = 0; i < 20; ++i) program.AllocBoth(kArena + 112 * i, 100);
  program.Wait(50'000'000).On(2);
  for (uint64_t i = 0; i < 10; ++i) program.FreeBoth(kArena + 112 * i);
  program.On(1);
  for (uint64_t i = 10; i < 15; ++i) program.FreeBoth(kArena + 112 * i);
  program.Wait(20'000'000).DestroyPool(kPool);
  for (uint64_t i = 15; i < 20; ++i) program.FreeTwin(kArena + 112 * i);
  const AnalyzedTrace t = program.Analyzed();
  const Analysis& a = t.analysis;
  ExpectConsistent(a);
  const Site& pool = SiteAt(t, ClientProgram::kPoolPc);
  ExpectAlike(pool, SiteAt(t, ClientProgram::kTwinPc));
  EXPECT_EQ(pool.sizes[7], 20u);
  EXPECT_EQ(pool.freed_by_other_thread, 10u);
  EXPECT_EQ(pool.frees, 20u);
  EXPECT_GE(pool.freed_lifetime_ns, 20 * 50e6);
  ASSERT_EQ(a.exchanges.size(), 1u);
  EXPECT_EQ(a.exchanges[0].from.value, 1u);
  EXPECT_EQ(a.exchanges[0].to.value, 2u);
  EXPECT_EQ(a.exchanges[0].blocks, 20u);
  EXPECT_EQ(a.exchanges[0].bytes, 2000u);
}

TEST(CustomBlocksTest, ThatAreLiveHaveTheFiguresOfMallocs) {
  ClientProgram program;
  program.Malloc(kArena, 1000).CreatePool(kPool, "");
  program.AllocBoth(kArena, 100).Wait(5000).AllocBoth(kArena + 200, 7).AllocBoth(kArena + 300, 0);
  const AnalyzedTrace t = program.Analyzed();
  ExpectConsistent(t.analysis);
  ExpectAlike(SiteAt(t, ClientProgram::kPoolPc), SiteAt(t, ClientProgram::kTwinPc));
  EXPECT_GT(SiteAt(t, ClientProgram::kPoolPc).live_time_sum_ns, 0);
}

TEST(CustomBlocksTest, AreTakenOffTheThreadOfWhatTheyLieIn) {
  ClientProgram program;
  program.Malloc(kArena, 1000).CreatePool(kPool, "").On(2).PoolAlloc(kPool, kArena, 300);
  const uint64_t given = program.Wait(100'000).now();
  program.On(1).BlockAlloc(kArena, 50).Wait(100'000);  // in the block of the other
  const uint64_t inner = program.now();
  program.On(3).Realloc(kArena, kArena, 2000).Tick();  // which tells when its result was
  program.Wait(100'000);
  const uint64_t moved = program.now();
  program.On(1).PoolFree(kPool, kArena).Wait(100'000);
  const uint64_t freed = program.now();
  program.On(2).PoolAlloc(kPool, kArena, 1).Wait(100'000).Free(kArena);
  const AnalyzedTrace t = program.Analyzed();
  const Analysis& a = t.analysis;
  ExpectConsistent(a);
  const auto held = [&](uint64_t at) {
    std::vector<uint64_t> bytes;  // by thread, before the next event
    const size_t interval = at / a.series_interval_ns - 1;
    for (uint32_t serial = 1; serial <= 3; ++serial) {
      bytes.push_back(ThreadOf(a, serial).held.At(interval));
    }
    return bytes;
  };
  EXPECT_THAT(held(given), testing::ElementsAre(700, 300, 0));
  EXPECT_THAT(held(inner), testing::ElementsAre(750, 250, 0));
  EXPECT_THAT(held(moved), testing::ElementsAre(50, 250, 1700));
  EXPECT_THAT(held(freed), testing::ElementsAre(0, 0, 2000));
}

TEST(CustomBlocksTest, WhatALostFreeEndsNoOtherThreadFreed) {
  ClientProgram program;
  program.PoolAlloc(kPool, 0x500000, 10).On(2).PoolAlloc(kPool, 0x500000, 10);
  const AnalyzedTrace t = program.Analyzed();
  EXPECT_EQ(t.analysis.coverage.unseen_frees, 1u);
  EXPECT_EQ(SiteAt(t, ClientProgram::kPoolPc).freed_by_other_thread, 0u);
  EXPECT_TRUE(t.analysis.exchanges.empty());
}

TEST(CustomBlocksTest, TheSiteOfTheirHolderIsAsHighAsItWasWithoutThem) {
  ClientProgram program;
  program.Malloc(kArena, 1000).PoolAlloc(kPool, kArena, 900);                      // 100
  program.Malloc(kArena + 0x10000, 1500);                                          // 1600
  program.PoolFree(kPool, kArena);                                                 // 2500
  program.PoolAlloc(kPool, kArena, 900).PoolAlloc(kPool, kArena + 0x10000, 1400);  // 200
  program.Malloc(kArena + 0x20000, 2000);                                          // 2200
  program.Free(kArena).Free(kArena + 0x10000);  // no bytes of the arena: they end with it
  program.Tick().Realloc(kArena + 0x20000, kArena + 0x20000, 3000, 5);
  program.PoolAlloc(kPool, kArena + 0x20000, 2900);
  program.Tick().Realloc(kArena + 0x20000, kArena + 0x20000, 4000, 5);
  const AnalyzedTrace t = program.Analyzed();
  ExpectConsistent(t.analysis);
  EXPECT_EQ(SiteAt(t, ClientProgram::kMallocPc).peak_bytes, 2500u);
  EXPECT_EQ(SiteAt(t, ClientProgram::kMallocPc).blocks_at_own_peak, 2u);
  EXPECT_EQ(SiteAt(t, ClientProgram::kReallocPc).peak_bytes, 3000u);
  EXPECT_EQ(SiteAt(t, ClientProgram::kReallocPc).live_bytes, 1100u);
}

// What a block gives back to one that ends in the same event is at no moment that one's own.
TEST(CustomBlocksTest, TheSiteInTheMiddleIsAsHighAsItWasWithoutThem) {
  constexpr uint64_t kOther = kPool + 8;
  // Outer blocks of site kPoolPc: one of 10000 that gives out 9900, and 50 of 100.
  const auto nest = [](ClientProgram& program, uint64_t of_first, uint64_t of_inner,
                       uint64_t of_others) {
    program.Malloc(kArena, 20000).CreatePool(kPool, "p").CreatePool(kOther, "q");
    program.PoolAlloc(of_first, kArena + 8000, 10000);
    program.Tell(format::ExtendedType::kCustomAlloc, {kArena + 8010, 9900, of_inner, 3});
    for (uint64_t i = 0; i < 50; ++i) program.PoolAlloc(of_others, kArena + i * 100, 100);
  };
  const auto expect = [](ClientProgram& program, uint64_t live) {
    const AnalyzedTrace t = program.Analyzed();
    ExpectConsistent(t.analysis);
    EXPECT_EQ(SiteAt(t, ClientProgram::kPoolPc).peak_bytes, 10000u);
    EXPECT_EQ(SiteAt(t, ClientProgram::kPoolPc).blocks_at_own_peak, 1u);
    EXPECT_EQ(SiteAt(t, ClientProgram::kPoolPc).live_bytes, live);
    EXPECT_EQ(SiteAt(t, ClientProgram::kBlockPc).live_bytes, 0u);
  };
  ClientProgram freed, destroyed, all_but_the_first;
  nest(freed, kPool, 0, kPool);
  expect(freed.Free(kArena), 0);
  nest(destroyed, kPool, kPool, kOther);
  expect(destroyed.DestroyPool(kPool), 5000);
  nest(all_but_the_first, kOther, kPool, kPool);
  expect(all_but_the_first.DestroyPool(kPool), 10000);
}

TEST(CustomBlocksTest, ADestroyedPoolEndsWhatLiesInItsBlocks) {
  ClientProgram program;
  program.Malloc(kArena, 1000).CreatePool(kPool, "p").PoolAlloc(kPool, kArena, 200);
  program.PoolAlloc(kPool, kArena, 150)
      .BlockAlloc(kArena + 8, 100)
      .PoolAlloc(kPool, kArena + 10, 50);
  program.BlockAlloc(kArena + 500, 10).DestroyPool(kPool);
  const AnalyzedTrace t = program.Analyzed();
  ExpectConsistent(t.analysis);
  EXPECT_EQ(t.analysis.totals.live_blocks, 2u);
  EXPECT_EQ(SiteAt(t, ClientProgram::kMallocPc).live_bytes, 990u);
  EXPECT_EQ(t.analysis.pools[0].frees, 3u);
}

// The holder is from before the range; what a realloc makes of it is of the range.
TEST(CustomBlocksTest, AReallocMakesTheirHolderOneOfTheRange) {
  ClientProgram program;
  program.Malloc(kArena, 1000).CreatePool(kPool, "");
  AnalyzeOptions options;
  options.range.from_ns = program.now() + 1;
  program.PoolAlloc(kPool, kArena, 10).PoolAlloc(kPool, kArena + 900, 20);
  program.Realloc(kArena, kArena, 500);
  const AnalyzedTrace t = program.Analyzed(options);
  ExpectConsistent(t.analysis);
  EXPECT_EQ(t.analysis.totals.live_bytes, 500u);
  EXPECT_EQ(t.analysis.totals.peak_live_bytes, 500u);
  EXPECT_EQ(SiteAt(t, ClientProgram::kMallocPc).live_bytes, 490u);
}

// Another block at the address of one in the midst of a realloc, which then gives the same address.
TEST(CustomBlocksTest, AReallocThatStaysMayFindThemGone) {
  TraceBuilder::Options options;
  options.stamp_rule = format::StampRule::kChangeOfOwner;
  TraceBuilder trace(options);
  auto& one = trace.Thread(1, 4242);
  auto& two = trace.Thread(2, 4243);
  one.At(1000)
      .Malloc(kArena, 1000)
      .At(2000)
      .Extended(format::ExtendedType::kCustomAlloc, {kArena + 16, 100, 0, 0});
  one.At(3000).ReallocIntent(kArena);
  two.At(4000).Malloc(kArena, 1000).At(4500).Malloc(kArena + 0x10000, 10);
  one.At(5000).ReallocResult(kArena, 2000);
  trace.End(0, 6000);
  EXPECT_EQ(Analyze(trace.Build()).analysis.totals.live_bytes, 2010u);
}

// Nesting of any shape, against a count of bytes by hand, and against blocks of malloc that have
// the same lives.
TEST(CustomBlocksTest, RandomArenasKeepTheBooks) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 20; ++round) {
    SCOPED_TRACE(round);
    ClientProgram program;
    struct Arena {
      uint64_t at;
      uint32_t size;
      bool reallocated = false;
      std::map<uint64_t, uint32_t> given;  // slots of 64 bytes
    };
    std::vector<Arena> arenas;
    uint64_t next = kArena;
    uint64_t most[2] = {};  // that arenas of malloc and of realloc kept to themselves
    for (int step = 0; step < 300; ++step) {
      const uint64_t dice = random() % 100;
      program.On(static_cast<uint32_t>(1 + random() % 3));
      if (dice < 10 || arenas.empty()) {
        arenas.push_back({next, static_cast<uint32_t>(64 * (8 + random() % 8)), false, {}});
        next += 0x10000;
        program.Malloc(arenas.back().at, arenas.back().size);
      } else if (dice < 12) {
        program.DestroyPool(kPool);
        for (Arena& arena : arenas) {
          for (const auto& [at, size] : arena.given) program.FreeTwin(at);
          arena.given.clear();
        }
      } else {
        Arena& arena = arenas[random() % arenas.size()];
        if (dice < 20) {
          program.Free(arena.at);
          for (const auto& [at, size] : arena.given) program.FreeTwin(at);
          std::swap(arena, arenas.back());
          arenas.pop_back();
        } else if (dice < 30) {
          arena.size = static_cast<uint32_t>(64 * (8 + random() % 8));
          arena.reallocated = true;
          program.Tick().Realloc(arena.at, arena.at, arena.size, 5);
          std::erase_if(arena.given, [&](const auto& block) {
            if (block.first < arena.at + arena.size) return false;
            program.FreeTwin(block.first);
            return true;
          });
        } else if (dice < 60 || arena.given.empty()) {
          const uint64_t at = arena.at + 64 * (random() % (arena.size / 64));
          const auto size = static_cast<uint32_t>(1 + random() % 64);
          if (arena.given.emplace(at, size).second) program.AllocBoth(at, size);
        } else {
          const auto block =
              std::next(arena.given.begin(), static_cast<long>(random() % arena.given.size()));
          program.FreeBoth(block->first);
          arena.given.erase(block);
        }
      }
      uint64_t own[2] = {};
      for (const Arena& arena : arenas) {
        own[arena.reallocated] += arena.size;
        for (const auto& [at, size] : arena.given) own[arena.reallocated] -= size;
      }
      for (const int i : {0, 1}) most[i] = std::max(most[i], own[i]);
    }
    uint64_t bytes = 0, blocks = 0;
    for (const Arena& arena : arenas) {
      bytes += arena.size;
      blocks += 1 + 2 * arena.given.size();
      for (const auto& [at, size] : arena.given) bytes += size;  // of the twin
    }
    const AnalyzedTrace t = program.Analyzed();
    ExpectConsistent(t.analysis);
    EXPECT_EQ(t.analysis.totals.live_bytes, bytes);
    EXPECT_EQ(t.analysis.totals.live_blocks, blocks);
    EXPECT_EQ(t.analysis.coverage.unknown_frees, 0u);
    EXPECT_EQ(SiteAt(t, ClientProgram::kMallocPc).peak_bytes, most[0]);
    EXPECT_EQ(SiteAt(t, ClientProgram::kReallocPc).peak_bytes, most[1]);
    ExpectAlike(SiteAt(t, ClientProgram::kPoolPc), SiteAt(t, ClientProgram::kTwinPc));
    if (HasFailure()) break;
  }
}

// Nests of any depth, of blocks that count and blocks that do not, against a painted map: each byte
// is the innermost block's that counts.
TEST(CustomBlocksTest, RandomNestsWithGapsKeepTheBooks) {
  struct Nested {
    uint32_t from, to;  // in the arena
    uint64_t pc;        // of its site; 0: it does not count
    std::vector<Nested> inner;
  };
  constexpr uint32_t kMost = 512;
  std::mt19937_64 random(11);
  const auto any = [&](uint64_t below) { return static_cast<uint32_t>(random() % below); };
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE(round);
    ClientProgram program;
    std::map<uint64_t, Nested> arenas;        // by address; the arena itself is the outermost
    std::map<uint64_t, uint64_t> live, most;  // by pc; 0: in all
    uint64_t next = kArena;
    const auto paint = [](auto self, const Nested& block, std::vector<uint64_t>* pcs) -> void {
      if (block.pc != 0) std::fill(pcs->begin() + block.from, pcs->begin() + block.to, block.pc);
      for (const Nested& each : block.inner) self(self, each, pcs);
    };
    const auto count = [&] {
      live.clear();
      for (const auto& [address, block] : arenas) {
        std::vector<uint64_t> pcs(kMost);
        paint(paint, block, &pcs);
        for (const uint64_t pc : pcs) live[pc] += pc != 0;
        for (const uint64_t pc : pcs) live[0] += pc != 0;
      }
      for (const auto& [pc, bytes] : live) most[pc] = std::max(most[pc], bytes);
    };
    for (int step = 0; step < 100; ++step) {
      program.On(1 + any(3));
      if (arenas.empty() || any(10) == 0) {
        arenas[next += 0x1000] = {0, 1 + any(kMost), ClientProgram::kMallocPc, {}};
        program.Malloc(next, arenas[next].to);
        count();
        continue;
      }
      auto arena = std::next(arenas.begin(), any(arenas.size()));
      const uint64_t at = arena->first;
      Nested* outer = nullptr;
      Nested* in = &arena->second;
      for (; !in->inner.empty() && any(4) != 0; in = &in->inner[any(in->inner.size())]) outer = in;
      const uint32_t dice = any(10);
      if (dice < 6) {
        const uint32_t from = in->from + 1 + any(kMost), to = from + 1 + any(kMost / 2);
        const bool free = std::none_of(in->inner.begin(), in->inner.end(), [&](const Nested& each) {
          return each.from < to && from < each.to;
        });
        if (to > in->to || !free) continue;
        const bool counts = any(2) == 0;
        if (counts) {
          program.BlockAlloc(at + from, to - from);
        } else {
          program.StoppedBlockAlloc(at + from, to - from);
        }
        in->inner.push_back({from, to, counts ? ClientProgram::kBlockPc : 0, {}});
      } else if (outer != nullptr) {
        program.BlockFree(at + in->from);
        std::erase_if(outer->inner,
                      [from = in->from](const Nested& each) { return each.from == from; });
      } else if (dice < 7) {
        program.Free(at);
        arenas.erase(arena);
      } else {
        in->to = 1 + any(kMost);
        in->pc = any(2) == 0 ? ClientProgram::kReallocPc : 0;
        program.Tick().Realloc(at, at, in->to, in->pc != 0 ? 5 : format::kStoppedSlot);
        std::erase_if(in->inner, [in](const Nested& each) { return each.to > in->to; });
      }
      count();
    }
    const AnalyzedTrace t = program.Analyzed();
    ExpectConsistent(t.analysis);
    EXPECT_EQ(t.analysis.totals.live_bytes, live[0]);
    EXPECT_EQ(t.analysis.totals.peak_live_bytes, most[0]);
    EXPECT_EQ(t.analysis.coverage.unknown_frees, 0u);
    for (const auto& [pc, bytes] : most) {
      if (pc == 0) continue;
      EXPECT_EQ(SiteAt(t, pc).live_bytes, live[pc]) << pc;
      EXPECT_EQ(SiteAt(t, pc).peak_bytes, bytes) << pc;
    }
    if (HasFailure()) break;
  }
}

}  // namespace
}  // namespace memtrace::report
