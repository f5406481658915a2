// What a program tells by memtrace.h, in the analysis: custom blocks and what they lie in,
// ignored blocks, phases, a stopped recording.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <tuple>
#include <vector>

#include "report/model/phases.h"
#include "tests/report/test_util.h"
#include "tests/report/trace_builder.h"

namespace memtrace::report {
namespace {

using format::AllocFunction;
using format::ExtendedType;
using format::PhaseEdge;
using testing::HasSubstr;

constexpr uint64_t kArena = 0x100000, kPool = 0x900000;
constexpr uint64_t kMallocPc = 0x401000, kPoolPc = 0x402000, kBlockPc = 0x403000;
constexpr uint64_t kTwinPc = 0x404000, kReallocPc = 0x405000;

// A thread that moves on a microsecond with each event, as the library's does; and others in its
// place, for On().
class Program {
 public:
  Program() { On(1); }
  // What follows is by this thread.
  Program& On(uint32_t serial) {
    const bool known = threads_.contains(serial);
    ThreadScript*& thread = threads_[serial];
    thread_ = thread = known ? thread : &trace_.Thread(serial, 4241 + serial, "main", now_);
    if (!known) {
      thread_->Node(1, kMallocPc).Node(2, kPoolPc).Node(3, kBlockPc);
      thread_->Node(4, kTwinPc).Node(5, kReallocPc);
    }
    return *this;
  }
  Program& Wait(uint64_t ns) {
    now_ += ns;
    return *this;
  }
  Program& Malloc(uint64_t address, uint32_t size) {
    Tick().Malloc(address, size, 1);
    return *this;
  }
  Program& Free(uint64_t address) {
    Tick().Free(address);
    return *this;
  }
  Program& Realloc(uint64_t old, uint64_t address, uint32_t size) {
    Tick().Realloc(old, address, size, 1);
    return *this;
  }
  Program& CreatePool(uint64_t pool, std::string_view name) {
    return Tell(ExtendedType::kPoolCreate, {pool, 2}, name);
  }
  Program& DestroyPool(uint64_t pool) { return Tell(ExtendedType::kPoolDestroy, {pool, 2}); }
  Program& PoolAlloc(uint64_t pool, uint64_t address, uint64_t size) {
    return Tell(ExtendedType::kCustomAlloc, {address, size, pool, 2});
  }
  Program& PoolFree(uint64_t pool, uint64_t address) {
    return Tell(ExtendedType::kCustomFree, {address, pool});
  }
  // A block of the pool, and one of malloc far from it that has the same life.
  Program& AllocBoth(uint64_t address, uint32_t size) {
    PoolAlloc(kPool, address, size);
    thread_->At(now_).Malloc(TwinOf(address), size, 4);
    return *this;
  }
  Program& FreeBoth(uint64_t address) { return PoolFree(kPool, address).FreeTwin(address); }
  // Of a block that ended with the event before.
  Program& FreeTwin(uint64_t address) {
    thread_->At(now_).Free(TwinOf(address));
    return *this;
  }
  static uint64_t TwinOf(uint64_t address) { return address + 0x40000000; }
  Program& BlockAlloc(uint64_t address, uint64_t size) {
    return Tell(ExtendedType::kCustomAlloc, {address, size, 0, 3});
  }
  Program& BlockFree(uint64_t address) { return PoolFree(0, address); }
  Program& Phase(PhaseEdge edge, std::string_view name) {
    return Tell(ExtendedType::kPhase, {static_cast<uint64_t>(edge), 0}, name);
  }
  Program& Tell(ExtendedType type, const std::vector<uint64_t>& words, std::string_view text = "") {
    Tick().Extended(type, words, text);
    return *this;
  }
  ThreadScript& Tick() { return thread_->At(now_ += 1000); }

  AnalyzedTrace Analyzed(const AnalyzeOptions& options = {}) { return Analyze(Bytes(), options); }
  std::string Bytes() {
    if (!ended_) trace_.End(0, now_ + 1000);
    ended_ = true;
    return trace_.Build();
  }
  uint64_t now() const { return now_; }

 private:
  TraceBuilder trace_;
  std::map<uint32_t, ThreadScript*> threads_;
  ThreadScript* thread_ = nullptr;
  uint64_t now_ = 0;
  bool ended_ = false;
};

// What must hold of every analysis.
void ExpectConsistent(const Analysis& a) {
  uint64_t live = 0, blocks = 0, at_peak = 0, allocations = 0, of_threads = 0, of_classes = 0;
  for (const Site& site : a.sites) {
    live += site.live_bytes;
    blocks += site.live_blocks;
    at_peak += site.bytes_at_peak;
    allocations += site.allocations;
  }
  for (const ThreadSummary& thread : a.threads) of_threads += thread.live_bytes;
  for (const uint64_t bytes : a.sizes.live_bytes) of_classes += bytes;
  EXPECT_EQ(live, a.totals.live_bytes);
  EXPECT_EQ(blocks, a.totals.live_blocks);
  EXPECT_EQ(at_peak, a.totals.peak_live_bytes);
  EXPECT_EQ(allocations, a.totals.allocations);
  EXPECT_EQ(of_threads, a.totals.live_bytes);
  EXPECT_EQ(of_classes, a.totals.live_bytes);
  EXPECT_EQ(a.totals.allocations - a.totals.frees, a.totals.live_blocks);
  // Over time the threads have what the sites have.
  std::vector<uint64_t> of_sites(a.held_intervals);
  for (const Site& site : a.sites) {
    EXPECT_GE(site.peak_bytes, std::max(site.live_bytes, site.bytes_at_peak));
    auto point = site.series.begin();
    uint64_t held = 0;
    for (size_t k = 0; k < of_sites.size(); ++k) {
      if (point != site.series.end() && point->interval == k) {
        EXPECT_LE(point->low_bytes, point->live_bytes);
        EXPECT_GE(point->high_bytes, point->live_bytes);
        EXPECT_LE(point->high_bytes, site.peak_bytes);
        held = (point++)->live_bytes;
      }
      of_sites[k] += held;
    }
  }
  for (size_t k = 0; k < of_sites.size(); ++k) {
    uint64_t held = 0;
    for (const ThreadSummary& thread : a.threads) held += thread.held.At(k);
    EXPECT_EQ(held, of_sites[k]) << "interval " << k;
  }
}

const Site& SiteAt(const AnalyzedTrace& trace, uint64_t pc) {
  static const Site none;
  const Site* site = FindSite(trace, pc);
  EXPECT_NE(site, nullptr) << pc;
  return site != nullptr ? *site : none;
}

const ThreadSummary& ThreadOf(const Analysis& a, uint32_t serial) {
  static const ThreadSummary none;
  for (const ThreadSummary& thread : a.threads) {
    if (thread.id.value == serial) return thread;
  }
  ADD_FAILURE() << "no thread " << serial;
  return none;
}

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
  Program program;
  program.Malloc(kArena, 1000).CreatePool(kPool, "nodes");
  program.PoolAlloc(kPool, kArena, 100).PoolAlloc(kPool, kArena + 112, 50);
  const AnalyzedTrace t = program.Analyzed();
  const Analysis& a = t.analysis;
  ExpectConsistent(a);
  EXPECT_EQ(a.totals.live_bytes, 1000u);
  EXPECT_EQ(a.totals.live_blocks, 3u);
  EXPECT_EQ(a.totals.allocations, 3u);
  EXPECT_EQ(a.totals.bytes_allocated, 1150u);
  EXPECT_EQ(FindSite(t, kMallocPc)->live_bytes, 850u);
  const Site* site = FindSite(t, kPoolPc);
  EXPECT_EQ(site->live_bytes, 150u);
  EXPECT_EQ(site->function, AllocFunction::kPoolAlloc);
  ASSERT_EQ(a.pools.size(), 1u);
  EXPECT_EQ(a.pools[0].name, "nodes");
  EXPECT_EQ(a.pools[0].live_bytes, 150u);
  EXPECT_EQ(a.pools[0].created, 1u);
  EXPECT_EQ(a.pools[0].destroyed, 0u);
}

TEST(CustomBlocksTest, OutsideOfMallocsBlocksTheirBytesAreNew) {
  Program program;
  program.Malloc(kArena, 1000).BlockAlloc(0x500000, 64).BlockAlloc(kArena + 990, 20);
  const AnalyzedTrace t = program.Analyzed();
  ExpectConsistent(t.analysis);
  EXPECT_EQ(t.analysis.totals.live_bytes, 1084u) << "one is nowhere, one reaches over the end";
  EXPECT_EQ(FindSite(t, kBlockPc)->function, AllocFunction::kBlockAlloc);
}

TEST(CustomBlocksTest, AFreeGivesTheBytesBackToTheHolder) {
  Program program;
  program.Malloc(kArena, 1000).CreatePool(kPool, "").PoolAlloc(kPool, kArena + 16, 100);
  program.PoolFree(kPool, kArena + 16);
  const AnalyzedTrace t = program.Analyzed();
  ExpectConsistent(t.analysis);
  EXPECT_EQ(FindSite(t, kMallocPc)->live_bytes, 1000u);
  EXPECT_EQ(FindSite(t, kPoolPc)->frees, 1u);
  EXPECT_EQ(t.analysis.coverage.unknown_frees, 0u);
}

TEST(CustomBlocksTest, ADestroyedPoolFreesAllOfItsBlocks) {
  Program program;
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
  Program program;
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

TEST(CustomBlocksTest, ABlockEndsWithTheMemoryItLiesIn) {
  Program program;
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
  Program program;
  program.Malloc(kArena, 1000).CreatePool(kPool, "").PoolAlloc(kPool, kArena, 200);
  program.BlockAlloc(kArena, 50).BlockAlloc(kArena + 64, 60);
  AnalyzeOptions options;
  options.keep_live_blocks = true;
  const AnalyzedTrace t = program.Analyzed(options);
  ExpectConsistent(t.analysis);
  EXPECT_EQ(FindSite(t, kMallocPc)->live_bytes, 800u);
  EXPECT_EQ(FindSite(t, kPoolPc)->live_bytes, 90u);
  EXPECT_EQ(FindSite(t, kBlockPc)->live_bytes, 110u);
  ASSERT_EQ(t.analysis.live.size(), 4u);
  EXPECT_TRUE(t.analysis.live[0].holds_blocks);
  EXPECT_EQ(t.analysis.live[0].bytes, 1000u);
  EXPECT_TRUE(t.analysis.live[1].holds_blocks);
  EXPECT_EQ(t.analysis.live[1].pool, 1u);
  EXPECT_FALSE(t.analysis.live[2].holds_blocks);
  EXPECT_EQ(t.analysis.live[2].bytes, 50u);
}

TEST(CustomBlocksTest, AReallocThatStaysKeepsThem) {
  Program program;
  program.Malloc(kArena, 100).CreatePool(kPool, "").PoolAlloc(kPool, kArena, 80);
  program.Realloc(kArena, kArena, 1000).PoolAlloc(kPool, kArena + 500, 500);
  program.Realloc(kArena, kArena, 400);
  AnalyzedTrace t = program.Analyzed();
  ExpectConsistent(t.analysis);
  EXPECT_EQ(t.analysis.totals.live_bytes, 400u);
  EXPECT_EQ(t.analysis.totals.live_blocks, 2u) << "the second no longer fits";
  EXPECT_EQ(FindSite(t, kPoolPc)->live_bytes, 80u);
}

TEST(CustomBlocksTest, AReallocThatStaysChangesNothingOfThePeakBefore) {
  Program program;
  program.Malloc(kArena, 3000).CreatePool(kPool, "").PoolAlloc(kPool, kArena + 16, 1000);
  program.BlockAlloc(0x500000, 500);  // the peak
  program.Realloc(kArena, kArena, 2999).Free(kArena);
  const AnalyzedTrace t = program.Analyzed();
  ExpectConsistent(t.analysis);
  EXPECT_EQ(t.analysis.totals.peak_live_bytes, 3500u);
  EXPECT_EQ(FindSite(t, kMallocPc)->bytes_at_peak, 2000u);
  EXPECT_EQ(FindSite(t, kPoolPc)->bytes_at_peak, 1000u);
}

TEST(CustomBlocksTest, AReallocThatStaysWhileTheRecordingIsStoppedLeavesThemTheirBytes) {
  Program program;
  program.Malloc(kArena, 1000).CreatePool(kPool, "").PoolAlloc(kPool, kArena, 100);
  program.Tell(ExtendedType::kRecordingStopped, {1, 0});
  program.Tick().Realloc(kArena, kArena, 2000, format::kStoppedSlot);
  program.Tell(ExtendedType::kRecordingStopped, {0, 0});
  const AnalyzedTrace t = program.Analyzed();
  ExpectConsistent(t.analysis);
  EXPECT_EQ(t.analysis.totals.live_bytes, 100u);
  EXPECT_EQ(FindSite(t, kPoolPc)->live_bytes, 100u);
}

TEST(CustomBlocksTest, AReallocThatMovesEndsThem) {
  Program program;
  program.Malloc(kArena, 100).BlockAlloc(kArena, 80).Realloc(kArena, kArena + 4096, 1000);
  const AnalyzedTrace t = program.Analyzed();
  ExpectConsistent(t.analysis);
  EXPECT_EQ(t.analysis.totals.live_bytes, 1000u);
  EXPECT_EQ(t.analysis.totals.live_blocks, 1u);
}

TEST(CustomBlocksTest, WhatIsNotInTheTraceIsCountedAsSuch) {
  Program program;
  program.PoolAlloc(kPool, 0x500000, 10).PoolFree(kPool, 0x700000);
  program.PoolAlloc(kPool, 0x500000, 20);
  const AnalyzedTrace t = program.Analyzed();
  ExpectConsistent(t.analysis);
  EXPECT_EQ(t.analysis.coverage.unknown_frees, 1u);
  EXPECT_EQ(t.analysis.coverage.unseen_frees, 1u);
  ASSERT_EQ(t.analysis.pools.size(), 1u);
  EXPECT_EQ(t.analysis.pools[0].created, 0u) << "its creation was not seen";
  EXPECT_EQ(t.analysis.pools[0].live_bytes, 20u);
}

TEST(CustomBlocksTest, ARangeSelectsThemByThemselves) {
  Program program;
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
  Program program;
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
  const Site& pool = SiteAt(t, kPoolPc);
  ExpectAlike(pool, SiteAt(t, kTwinPc));
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
  Program program;
  program.Malloc(kArena, 1000).CreatePool(kPool, "");
  program.AllocBoth(kArena, 100).Wait(5000).AllocBoth(kArena + 200, 7).AllocBoth(kArena + 300, 0);
  const AnalyzedTrace t = program.Analyzed();
  ExpectConsistent(t.analysis);
  ExpectAlike(SiteAt(t, kPoolPc), SiteAt(t, kTwinPc));
  EXPECT_GT(SiteAt(t, kPoolPc).live_time_sum_ns, 0);
}

TEST(CustomBlocksTest, AreTakenOffTheThreadOfWhatTheyLieIn) {
  Program program;
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
  Program program;
  program.PoolAlloc(kPool, 0x500000, 10).On(2).PoolAlloc(kPool, 0x500000, 10);
  const AnalyzedTrace t = program.Analyzed();
  EXPECT_EQ(t.analysis.coverage.unseen_frees, 1u);
  EXPECT_EQ(SiteAt(t, kPoolPc).freed_by_other_thread, 0u);
  EXPECT_TRUE(t.analysis.exchanges.empty());
}

TEST(CustomBlocksTest, TheSiteOfTheirHolderIsAsHighAsItWasWithoutThem) {
  Program program;
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
  EXPECT_EQ(SiteAt(t, kMallocPc).peak_bytes, 2500u);
  EXPECT_EQ(SiteAt(t, kMallocPc).blocks_at_own_peak, 2u);
  EXPECT_EQ(SiteAt(t, kReallocPc).peak_bytes, 3000u);
  EXPECT_EQ(SiteAt(t, kReallocPc).live_bytes, 1100u);
}

// The holder is from before the range; what a realloc makes of it is of the range.
TEST(CustomBlocksTest, AReallocMakesTheirHolderOneOfTheRange) {
  Program program;
  program.Malloc(kArena, 1000).CreatePool(kPool, "");
  AnalyzeOptions options;
  options.range.from_ns = program.now() + 1;
  program.PoolAlloc(kPool, kArena, 10).PoolAlloc(kPool, kArena + 900, 20);
  program.Realloc(kArena, kArena, 500);
  const AnalyzedTrace t = program.Analyzed(options);
  ExpectConsistent(t.analysis);
  EXPECT_EQ(t.analysis.totals.live_bytes, 500u);
  EXPECT_EQ(t.analysis.totals.peak_live_bytes, 500u);
  EXPECT_EQ(SiteAt(t, kMallocPc).live_bytes, 490u);
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
      .Extended(ExtendedType::kCustomAlloc, {kArena + 16, 100, 0, 0});
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
    Program program;
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
    EXPECT_EQ(SiteAt(t, kMallocPc).peak_bytes, most[0]);
    EXPECT_EQ(SiteAt(t, kReallocPc).peak_bytes, most[1]);
    ExpectAlike(SiteAt(t, kPoolPc), SiteAt(t, kTwinPc));
    if (HasFailure()) break;
  }
}

std::vector<uint64_t> Ignored(const Analysis& a) {
  std::vector<uint64_t> addresses;
  for (const LiveBlock& block : a.live) {
    if (block.ignored) addresses.push_back(block.address);
  }
  return addresses;
}

TEST(IgnoredBlocksTest, ByAddressByInnerAddressAndByThread) {
  Program program;
  program.Malloc(0x10000, 64).Malloc(0x20000, 64).Malloc(0x30000, 64);
  program.Tell(ExtendedType::kIgnoreBlock, {0x10000}).Tell(ExtendedType::kIgnoreBlock, {0x20010});
  program.Tell(ExtendedType::kIgnoreBlock, {0x30040});  // one past its end
  program.Tell(ExtendedType::kLeaksDisabled, {1}).Malloc(0x40000, 64).BlockAlloc(0x500000, 1);
  program.Tell(ExtendedType::kLeaksDisabled, {0}).Malloc(0x50000, 64).BlockAlloc(0x600000, 9);
  program.Tell(ExtendedType::kIgnoreBlock, {0x600004});
  program.Malloc(0x60000, 64).Tell(ExtendedType::kIgnoreBlock, {0x60000}).Free(0x60000);
  program.Malloc(0x60000, 64);
  AnalyzeOptions options;
  options.keep_live_blocks = true;
  EXPECT_THAT(Ignored(program.Analyzed(options).analysis),
              testing::ElementsAre(0x10000, 0x20000, 0x40000, 0x500000, 0x600000));
}

TEST(StoppedRecordingTest, BlocksOfThatTimeAreInNoFigure) {
  Program program;
  program.Malloc(0x10000, 64).Malloc(0x20000, 64);
  program.Tell(ExtendedType::kRecordingStopped, {1, 0});
  program.Tick().Malloc(0x30000, 1000, format::kStoppedSlot);
  program.Tick().Malloc(0x40000, 1000, format::kStoppedSlot);
  program.Free(0x10000).Free(0x30000);
  program.Tell(ExtendedType::kRecordingStopped, {0, 0});
  program.Free(0x40000).Malloc(0x50000, 10);
  const AnalyzedTrace t = program.Analyzed();
  const Analysis& a = t.analysis;
  ExpectConsistent(a);
  EXPECT_EQ(a.totals.allocations, 3u);
  EXPECT_EQ(a.totals.live_bytes, 74u);
  EXPECT_EQ(a.totals.peak_live_bytes, 128u);
  EXPECT_EQ(a.totals.earlier_frees, 0u);
  EXPECT_EQ(a.coverage.unknown_frees, 0u);
  EXPECT_EQ(a.coverage.marked_stacks, 0u);
  EXPECT_EQ(a.coverage.stops, 1u);
  EXPECT_EQ(a.coverage.stopped_ns, 5000u);
  EXPECT_EQ(a.coverage.stopped_allocations, 2u);
  EXPECT_EQ(a.coverage.stopped_frees, 2u);
}

// A fork child of a process that was stopped says so by its events alone.
TEST(StoppedRecordingTest, MayHaveBeenStoppedSinceTheBegin) {
  Program program;
  program.Tick().Malloc(0x10000, 1000, format::kStoppedSlot).Malloc(0x20000, 1000, format::kStoppedSlot);
  const AnalyzedTrace all = program.Analyzed();
  EXPECT_EQ(all.analysis.coverage.stops, 1u);
  EXPECT_EQ(all.analysis.coverage.stopped_allocations, 2u);
  EXPECT_GT(all.analysis.coverage.stopped_ns, 0u);
  program.Tell(ExtendedType::kRecordingStopped, {0, 0}).Malloc(0x30000, 10);
  const AnalyzedTrace part = program.Analyzed();
  EXPECT_EQ(part.analysis.coverage.stops, 1u);
  EXPECT_EQ(part.analysis.totals.allocations, 1u);
}

TEST(PhasesTest, TheLargestGrowthMayBeNothing) {
  Program program;
  program.Malloc(0x10000, 5).Phase(PhaseEdge::kBegin, "turn").Phase(PhaseEdge::kEnd, "turn");
  program.Phase(PhaseEdge::kBegin, "turn").Free(0x10000).Phase(PhaseEdge::kEnd, "turn");
  const AnalyzedTrace t = program.Analyzed();
  ASSERT_EQ(t.analysis.phases.size(), 1u);
  EXPECT_EQ(t.analysis.phases[0].growth_bytes, -5);
  EXPECT_EQ(t.analysis.phases[0].largest_growth_bytes, 0);
}

TEST(PhasesTest, CountWhatHappensInThem) {
  Program program;
  program.Malloc(0x10000, 100).Phase(PhaseEdge::kBegin, "load").Malloc(0x20000, 50);
  program.Phase(PhaseEdge::kBegin, "parse").Malloc(0x30000, 7).Phase(PhaseEdge::kMark, "half");
  program.Phase(PhaseEdge::kEnd, "parse").Free(0x10000).Phase(PhaseEdge::kEnd, "load");
  program.Phase(PhaseEdge::kBegin, "parse").Malloc(0x40000, 30).Phase(PhaseEdge::kEnd, "parse");
  program.Phase(PhaseEdge::kEnd, "never begun").Phase(PhaseEdge::kBegin, "open");
  program.Malloc(0x50000, 1);
  const AnalyzedTrace t = program.Analyzed();
  const Analysis& a = t.analysis;
  ASSERT_EQ(a.phases.size(), 3u);
  const Phase& load = a.phases[0];
  EXPECT_EQ(load.name, "load");
  EXPECT_EQ(load.times, 1u);
  EXPECT_EQ(load.first_begin.live_bytes, 100u);
  EXPECT_EQ(load.last_end.live_bytes, 57u);
  EXPECT_EQ(load.growth_bytes, -43);
  EXPECT_EQ(load.largest_growth_bytes, -43);
  EXPECT_EQ(load.growth_blocks, 1);
  EXPECT_EQ(load.allocations, 2u);
  EXPECT_EQ(load.frees, 1u);
  EXPECT_EQ(load.bytes_allocated, 57u);
  EXPECT_EQ(load.total_ns, 7000u);
  const Phase& parse = a.phases[1];
  EXPECT_EQ(parse.times, 2u);
  EXPECT_EQ(parse.growth_bytes, 37);
  EXPECT_EQ(parse.largest_growth_bytes, 30);
  EXPECT_EQ(parse.allocations, 2u);
  EXPECT_EQ(a.phases[2].open, 1u);
  EXPECT_EQ(a.phases[2].growth_bytes, 1);
  ASSERT_EQ(a.marks.size(), 1u);
  EXPECT_EQ(a.marks[0].name, "half");
  EXPECT_EQ(a.marks[0].live_bytes, 157u);
}

TEST(PhasesTest, NameInstants) {
  Program program;
  program.Phase(PhaseEdge::kBegin, "a").Phase(PhaseEdge::kBegin, "a").Phase(PhaseEdge::kEnd, "a");
  program.Phase(PhaseEdge::kMark, "m").Phase(PhaseEdge::kEnd, "a").Phase(PhaseEdge::kBegin, "b#2");
  auto reader = Read(program.Bytes());
  ASSERT_TRUE(reader.ok());
  const auto at = [&](const char* name, bool end) { return FindInstant(**reader, name, end); };
  EXPECT_EQ(*at("phase:a", false), 1000u);
  EXPECT_EQ(*at("phase:a", true), 5000u) << "the inner one ends first";
  EXPECT_EQ(*at("phase:a#2", false), 2000u);
  EXPECT_EQ(*at("phase:a#2", true), 3000u);
  EXPECT_EQ(*at("mark:m", false), 4000u);
  EXPECT_EQ(*at("mark:m", true), 4000u);
  EXPECT_EQ(*at("phase:b#2", false), 6000u);
  EXPECT_EQ(*at("phase:b#2", true), UINT64_MAX) << "it does not end";
  EXPECT_THAT(at("phase:m", false).status().message(),
              HasSubstr("has no 'phase:m'; there are: phase:a, mark:m, phase:b#2"));
  EXPECT_FALSE(at("phase:a#3", false).ok());
}

TEST(PhasesTest, SelectARange) {
  Program program;
  program.Phase(PhaseEdge::kBegin, "before").Phase(PhaseEdge::kMark, "early");
  program.Phase(PhaseEdge::kEnd, "before").Phase(PhaseEdge::kBegin, "all").Malloc(0x10000, 100);
  program.Phase(PhaseEdge::kBegin, "load").Malloc(0x20000, 50).Phase(PhaseEdge::kMark, "in it");
  program.Phase(PhaseEdge::kEnd, "load").Malloc(0x30000, 7);
  AnalyzeOptions options;
  options.from_name = options.to_name = "phase:load";
  const AnalyzedTrace t = program.Analyzed(options);
  EXPECT_EQ(t.analysis.totals.bytes_allocated, 50u);
  std::vector<std::string> names;  // of what has something of the range
  for (const auto& phase : t.analysis.phases) names.push_back(phase.name);
  EXPECT_THAT(names, testing::UnorderedElementsAre("all", "load"));
  ASSERT_EQ(t.analysis.marks.size(), 1u);
  EXPECT_EQ(t.analysis.marks[0].name, "in it");
}

// What is left out is counted, and a later begin has later ones.
TEST(PhasesTest, TheFirstTenThousandAreTold) {
  Program program;
  for (int i = 0; i < 12'000; ++i) program.Phase(PhaseEdge::kMark, std::to_string(i));
  for (int i = 0; i < 10'003; ++i) program.Phase(PhaseEdge::kBegin, std::to_string(i));
  const std::string bytes = program.Bytes();
  const AnalyzedTrace whole = Analyze(bytes);
  ASSERT_EQ(whole.analysis.marks.size(), 10'000u);
  EXPECT_EQ(whole.analysis.marks.back().name, "9999");
  EXPECT_EQ(whole.analysis.marks_left_out, 2000u);
  EXPECT_EQ(whole.analysis.phases.size(), 10'000u);
  EXPECT_EQ(whole.analysis.phases_left_out, 3u);
  const auto has_note = [&](const char* text) {
    return std::ranges::any_of(whole.analysis.coverage.notes, [&](const CoverageNote& note) {
      return note.text == text && note.harmless;
    });
  };
  EXPECT_TRUE(has_note("2000 marks behind the first 10000 are not told: --from TIME has later "
                       "ones."));
  EXPECT_TRUE(has_note("The program named more phases than are told apart: 3 of others are not "
                       "told."));
  AnalyzeOptions options;
  options.from_name = "mark:5000";
  const AnalyzedTrace later = program.Analyzed(options);
  ASSERT_EQ(later.analysis.marks.size(), 7000u);
  EXPECT_EQ(later.analysis.marks.front().name, "5000");
  EXPECT_EQ(later.analysis.marks_left_out, 0u);
}

}  // namespace
}  // namespace memtrace::report
