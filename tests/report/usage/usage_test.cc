// Filters of blocks against brute force; how blocks move and change hands.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <vector>

#include "report/analysis/analyzer.h"
#include "report/findings/class_counts.h"
#include "report/usage/block_filter.h"
#include "report/usage/usage_fold.h"
#include "tests/report/test_util.h"
#include "tests/report/trace_builder.h"

namespace memtrace::report {
namespace {

TEST(ClassCountsTest, KeepsWhatIsBetweenTheFirstAndTheLastClassThatIsUsed) {
  std::array<uint32_t, 6> all{};
  EXPECT_TRUE(ClassCounts<6>::Of(all).counts.empty());
  EXPECT_EQ(ClassCounts<6>::Of(all).total(), 0u);
  EXPECT_EQ(ClassCounts<6>::Of(all)[0], 0u);
  for (int bits = 0; bits < 1 << 6; ++bits) {
    for (size_t i = 0; i < 6; ++i) all[i] = (bits >> i & 1) != 0 ? static_cast<uint32_t>(i + 7) : 0;
    const auto counts = ClassCounts<6>::Of(all);
    EXPECT_TRUE(bits == 0 || (counts.counts.front() != 0 && counts.counts.back() != 0));
    std::array<uint32_t, 6> again{};
    uint64_t total = 0;
    for (size_t i = 0; i < 6; ++i) {
      EXPECT_EQ(counts[i], all[i]) << bits;
      total += all[i];
    }
    EXPECT_EQ(counts[6], 0u);
    counts.AddTo(&again);
    EXPECT_EQ(again, all) << bits;
    EXPECT_EQ(counts.total(), total);
  }
}

// As a damaged file may have it.
TEST(ClassCountsTest, ClassesThatThereAreNotAreLeftOut) {
  std::array<uint32_t, 3> all{};
  ClassCounts<3>{2, {1, 1, 1}}.AddTo(&all);
  EXPECT_EQ(all, (std::array<uint32_t, 3>{0, 0, 1}));
  ClassCounts<3>{UINT32_MAX, {1}}.AddTo(&all);
  EXPECT_EQ(all, (std::array<uint32_t, 3>{0, 0, 1}));
}

struct Life {
  uint64_t address, begin, end;  // end 0: never freed
  uint32_t size, site;
};

// One thread; every event has a stamp, so that its time is known.
std::vector<Life> MakeLives(std::mt19937_64& random, TraceBuilder* trace, uint64_t* end) {
  std::vector<Life> lives;
  std::vector<size_t> live;
  std::vector<uint64_t> unused;
  for (uint64_t i = 1; i <= 40; ++i) unused.push_back(0x1000 * i);
  ThreadScript& thread = trace->Thread(1);
  thread.At(1);
  for (uint32_t site = 1; site <= 4; ++site) thread.Node(site, 0x400000 + 64 * site);
  uint64_t now = 10;
  const int events = 20 + static_cast<int>(random() % 300);
  for (int i = 0; i < events; ++i) {
    now += 1 + (random() % 8 == 0 ? random() % 100'000 : random() % 50);
    thread.At(now);
    if ((random() % 2 == 0 && !unused.empty()) || live.empty()) {
      std::swap(unused[random() % unused.size()], unused.back());
      const Life life{unused.back(), now, 0, static_cast<uint32_t>(random() % 2000),
                      static_cast<uint32_t>(1 + random() % 4)};
      unused.pop_back();
      thread.Malloc(life.address, life.size, life.site, 8);
      live.push_back(lives.size());
      lives.push_back(life);
    } else {
      std::swap(live[random() % live.size()], live.back());
      Life& life = lives[live.back()];
      live.pop_back();
      life.end = now;
      unused.push_back(life.address);
      thread.Free(life.address);
    }
  }
  *end = now + 5;
  thread.At(*end);
  trace->End(0, *end);
  return lives;
}

struct Sums {
  uint64_t allocations = 0, frees = 0, bytes = 0, live_bytes = 0, live_blocks = 0, peak = 0;
  bool operator==(const Sums&) const = default;
};

template <typename Chosen>
Sums SumsOf(const std::vector<Life>& lives, Chosen chosen) {
  Sums sums;
  std::map<std::pair<uint64_t, bool>, int64_t> changes;  // frees do not meet allocations in time
  for (const Life& life : lives) {
    if (!chosen(life)) continue;
    ++sums.allocations;
    sums.bytes += life.size;
    changes[{life.begin, true}] += life.size;
    if (life.end != 0) {
      ++sums.frees;
      changes[{life.end, false}] -= life.size;
    } else {
      ++sums.live_blocks;
      sums.live_bytes += life.size;
    }
  }
  int64_t now = 0;
  for (const auto& [time, change] : changes) {
    now += change;
    sums.peak = std::max(sums.peak, static_cast<uint64_t>(now));
  }
  return sums;
}

Sums SumsOf(const Analysis& a) {
  return {a.totals.allocations, a.totals.frees,       a.totals.bytes_allocated,
          a.totals.live_bytes,  a.totals.live_blocks, a.totals.peak_live_bytes};
}

TEST(BlockFilterTest, EveryFigureIsOfTheChosenBlocks) {
  std::mt19937_64 random(77);
  for (int round = 0; round < 300; ++round) {
    TraceBuilder trace;
    uint64_t end = 0;
    const std::vector<Life> lives = MakeLives(random, &trace, &end);
    const std::string bytes = trace.Build();
    AnalyzeOptions options;
    StackTable table;
    BlockFilter& filter = options.filter;
    if (random() % 2 == 0) filter.sizes = {random() % 500, 500 + random() % 1500};
    if (random() % 3 == 0) {
      filter.lifetimes.low = random() % 1000;
      if (random() % 2 == 0) filter.lifetimes.high = filter.lifetimes.low + random() % 100'000;
    }
    if (random() % 3 == 0) filter.ages.low = random() % 500'000 + 1;
    if (random() % 3 == 0) {
      options.stacks = &table;
      filter.sites = [&](StackId stack) { return table.node(stack).pc / 64 % 2 == 1; };
    }
    const AnalyzedTrace analyzed = Analyze(bytes, options);
    const Sums expected = SumsOf(lives, [&](const Life& life) {
      if (!filter.sizes.Contains(life.size)) return false;
      if (filter.sites && life.site % 2 == 0) return false;
      const uint64_t lived = (life.end != 0 ? life.end : end) - life.begin;
      if (life.end == 0 && filter.lifetimes.high != UINT64_MAX) return false;
      if (!filter.lifetimes.Contains(lived)) return false;
      return filter.ages.all() || (life.end == 0 && filter.ages.Contains(lived));
    });
    const Sums found = SumsOf(analyzed.analysis);
    EXPECT_EQ(found.allocations, expected.allocations);
    EXPECT_EQ(found.frees, expected.frees);
    EXPECT_EQ(found.bytes, expected.bytes);
    EXPECT_EQ(found.live_bytes, expected.live_bytes);
    EXPECT_EQ(found.live_blocks, expected.live_blocks);
    EXPECT_EQ(found.peak, expected.peak);
    uint64_t in_sizes = 0, in_sites = 0, in_timeline = 0, in_threads = 0;
    for (const uint64_t n : analyzed.analysis.sizes.allocations) in_sizes += n;
    for (const Site& site : analyzed.analysis.sites) in_sites += site.allocations;
    for (const TimelinePoint& point : analyzed.analysis.timeline) in_timeline += point.allocations;
    for (const ThreadSummary& thread : analyzed.analysis.threads) in_threads += thread.allocations;
    EXPECT_EQ(in_sizes, expected.allocations);
    EXPECT_EQ(in_sites, expected.allocations);
    EXPECT_EQ(in_timeline, expected.allocations);
    EXPECT_EQ(in_threads, expected.allocations);
    if (HasFailure()) FAIL() << "round " << round;
  }
}

TEST(UsageTest, ReallocsMakeChains) {
  TraceBuilder trace;
  ThreadScript& thread = trace.Thread(1).At(1).Node(1, 0x401000).Node(2, 0x402000);
  thread.Malloc(0x1010, 100, 1);
  thread.Realloc(0x1010, 0x1010, 200, 2);  // in place
  thread.Realloc(0x1010, 0x2010, 400, 2);  // moved
  thread.Realloc(0x2010, 0x3010, 300, 2);  // moved, smaller
  thread.Free(0x3010).Malloc(0x3010, 10, 1).Realloc(0x3010, 0x4010, 20, 2).At(2);
  const AnalyzedTrace analyzed = Analyze(trace.Build());
  const Site* site = FindSite(analyzed, 0x402000);
  ASSERT_NE(site, nullptr);
  EXPECT_EQ(site->moves->reallocations, 4u);
  EXPECT_EQ(site->moves->grown, 3u);
  EXPECT_EQ(site->moves->moved, 3u);
  EXPECT_EQ(site->moves->copied_bytes, 200u + 300 + 10);
  EXPECT_EQ(site->moves->longest_chain, 3u) << "the free ended the first chain";
  ASSERT_EQ(analyzed.analysis.block_ends.size(), 1u);
  EXPECT_EQ(analyzed.analysis.block_ends[0].times, 2u);
  EXPECT_EQ(analyzed.analysis.block_ends[0].from, FindSite(analyzed, 0x401000)->stack);
}

// That it ended so is told of the selected block, though what it became is not selected.
TEST(UsageTest, AReallocEndsABlockOfTheSelectionWhateverItGives) {
  TraceBuilder trace;
  ThreadScript& thread = trace.Thread(1).At(1).Node(1, 0x401000).Node(2, 0x402000);
  thread.Malloc(0x1010, 4, 1).Realloc(0x1010, 0x2010, 500, 2).Realloc(0x2010, 0x1010, 900, 2);
  thread.Malloc(0x3010, 4, 1).Realloc(0x3010, 0x4010, 50, 2).Free(0x4010);
  thread.Malloc(0x5010, 4, 1).Free(0x5010).At(2);
  const std::string bytes = trace.Build();
  const AnalyzedTrace whole = Analyze(bytes);
  ASSERT_EQ(whole.analysis.block_ends.size(), 1u);
  const BlockEnds expected = whole.analysis.block_ends[0];
  EXPECT_EQ(expected.times, 2u);
  std::vector<AnalyzeOptions> some(4);
  some[0].filter.sizes = {4, 4};
  some[1].filter.sizes = {4, 50};  // and one of the two results
  some[2].filter.lifetimes = {0, UINT64_MAX - 1};  // what is live at the end is not
  some[3].filter.sites = [&](StackId stack) { return stack == expected.from; };
  for (const AnalyzeOptions& options : some) {
    const AnalyzedTrace part = Analyze(bytes, options);
    ASSERT_EQ(part.analysis.block_ends.size(), 1u);
    const BlockEnds& ends = part.analysis.block_ends[0];
    EXPECT_EQ(part.stacks->node(ends.from).pc, 0x401000u);
    EXPECT_EQ(part.stacks->node(ends.to).pc, 0x402000u);
    EXPECT_EQ(ends.by, BlockEnds::By::kRealloc);
    EXPECT_EQ(ends.times, 2u);
    const Site* const from = FindSite(part, 0x401000);
    ASSERT_NE(from, nullptr);
    EXPECT_EQ(from->frees, 3u);
    EXPECT_EQ(from->moves->reallocations, 0u);
  }
}

// glibc moves a block that has a mapping of its own by mremap.
TEST(UsageTest, WhatMremapMovesIsNotCopied) {
  using format::AllocFunction;
  for (const bool exact : {true, false}) {
    TraceBuilder::Options options;
    if (exact) options.stamp_rule = format::StampRule::kChangeOfOwner;
    TraceBuilder trace(options);
    ThreadScript& thread = trace.Thread(1).At(1).Node(1, 0x401000);
    const auto realloc = [&](uint64_t from, uint64_t to, uint64_t size, uint8_t flags) {
      thread.ReallocIntent(from).Wide(AllocFunction::kRealloc, to, size, size, 1, 0, flags);
    };
    thread.Malloc(0x1010, 1000, 1);
    realloc(0x1010, 0x7f0000000010, 1 << 20, format::kWideMapped);            // from the heap: copied
    realloc(0x7f0000000010, 0x7f0000800010, 2 << 20, format::kWideMapped);    // mremap
    realloc(0x7f0000800010, 0x5010, 100, 0);                                  // back into the heap: copied
    thread.At(2);
    const AnalyzedTrace analyzed = Analyze(trace.Build());
    bool any = false;
    for (const Site& site : analyzed.analysis.sites) {
      if (site.moves->reallocations == 0) continue;
      any = true;
      EXPECT_EQ(site.moves->reallocations, 3u) << exact;
      EXPECT_EQ(site.moves->moved, 2u) << exact;
      EXPECT_EQ(site.moves->copied_bytes, 1000u + 100) << exact;
    }
    EXPECT_TRUE(any) << exact;
  }
}

// A block keeps the length of a short chain itself.
TEST(UsageTest, ChainsOfAnyLengthAreCounted) {
  for (const bool exact : {true, false}) {
    for (const uint32_t length : {1022u, 1023u, 1024u, 3000u}) {
      TraceBuilder::Options options;
      if (exact) options.stamp_rule = format::StampRule::kChangeOfOwner;
      TraceBuilder trace(options);
      ThreadScript& thread =
          trace.Thread(1).At(1).Node(1, 0x401000).Node(2, 0x402000).Node(3, 0x403000);
      thread.Malloc(0x1010, 8, 1);
      const auto place = [](uint32_t i) { return 0x1010 + i % 2 * uint64_t{0x1000}; };
      for (uint32_t i = 0; i < length; ++i) thread.Realloc(place(i), place(i + 1), 8 + i, 2);
      thread.Free(place(length)).Malloc(place(length), 8, 1);
      thread.Realloc(place(length), 0x5010, 16, 3).At(2);
      const AnalyzedTrace analyzed = Analyze(trace.Build());
      EXPECT_EQ(FindSite(analyzed, 0x402000)->moves->longest_chain, length) << exact;
      EXPECT_EQ(FindSite(analyzed, 0x403000)->moves->longest_chain, 1u) << exact << length;
    }
  }
}

TEST(UsageTest, FreesWithStacksEndTheBlocksOfTheirSites) {
  TraceBuilder trace;
  ThreadScript& thread = trace.Thread(1).At(1).Node(1, 0x401000).Node(2, 0x402000).Node(3, 0x403000);
  for (int i = 0; i < 3; ++i) thread.Malloc(0x1010, 100, 1).FreeWithStack(0x1010, 3);
  thread.Malloc(0x1010, 100, 2).FreeWithStack(0x1010, 3);
  thread.Malloc(0x1010, 100, 2).Free(0x1010);
  thread.FreeWithStack(0x9010, 3).At(2);  // of nobody knows what
  const AnalyzedTrace analyzed = Analyze(trace.Build());
  const Analysis& a = analyzed.analysis;
  EXPECT_EQ(a.frees_with_stack, 5u);
  EXPECT_EQ(a.totals.frees, 5u);
  ASSERT_EQ(a.block_ends.size(), 2u);
  EXPECT_EQ(a.block_ends[0].from, FindSite(analyzed, 0x401000)->stack);
  EXPECT_EQ(a.block_ends[0].times, 3u);
  EXPECT_EQ(a.block_ends[0].by, BlockEnds::By::kFree);
  EXPECT_EQ(analyzed.stacks->node(a.block_ends[0].to).pc, 0x403000u);
  EXPECT_EQ(a.block_ends[1].from, FindSite(analyzed, 0x402000)->stack);
  EXPECT_EQ(a.block_ends[1].times, 1u);
  EXPECT_EQ(a.block_ends[1].to, a.block_ends[0].to);
}

TEST(UsageTest, ContainersReplaceTheirBlocksByLargerOnes) {
  TraceBuilder trace;
  ThreadScript& thread = trace.Thread(1).At(1).Node(1, 0x401000).Node(2, 0x402000);
  uint64_t address = 0x1010;
  thread.Malloc(address, 100, 1);
  for (uint32_t size = 200; size <= 1600; size *= 2, address += 0x1000) {
    thread.Malloc(address + 0x1000, size, 1).Free(address);
  }
  // A list that takes nodes and gives them back is none; nor are blocks of different sites.
  thread.Malloc(0x91010, 50, 2).Malloc(0x92010, 50, 2).Free(0x91010).Free(0x92010);
  thread.Malloc(0x93010, 50, 1).Malloc(0x94010, 100, 2).Free(0x93010).At(2);
  const AnalyzedTrace analyzed = Analyze(trace.Build());
  EXPECT_EQ(FindSite(analyzed, 0x401000)->moves->container_growths, 4u);
  EXPECT_EQ(FindSite(analyzed, 0x401000)->moves->container_copied_bytes, 100u + 200 + 400 + 800);
  EXPECT_EQ(FindSite(analyzed, 0x402000)->moves->container_growths, 0u);
}

TEST(UsageTest, BlocksFreedByOthersAreCountedByPairsOfThreads) {
  TraceBuilder trace;
  ThreadScript& maker = trace.Thread(1, 11, "maker");
  ThreadScript& user = trace.Thread(2, 12, "user");
  maker.At(1000).Malloc(0x1010, 100).Malloc(0x2010, 50).Malloc(0x3010, 7).At(2000);
  user.At(1'000'000).Free(0x1010).Free(0x2010).At(1'001'000);
  maker.At(2'000'000).Free(0x3010).At(2'001'000);
  const Analysis a = Analyze(trace.Build()).analysis;
  ASSERT_EQ(a.exchanges.size(), 1u);
  EXPECT_EQ(a.exchanges[0].from.value, 1u);
  EXPECT_EQ(a.exchanges[0].to.value, 2u);
  EXPECT_EQ(a.exchanges[0].blocks, 2u);
  EXPECT_EQ(a.exchanges[0].bytes, 150u);
}

TEST(UsageTest, PairsOfThreadsAreBounded) {
  UsageFold fold;
  for (int turn = 0; turn < 2; ++turn) {
    for (size_t from = 0; from < 300; ++from) {
      for (size_t by = 0; by < 300; ++by) fold.FreedByOther(from, by, 1, 10);
    }
  }
  EXPECT_EQ(fold.exchanges().size(), UsageFold::kMostExchanges);
  for (const auto& [threads, exchange] : fold.exchanges()) ASSERT_EQ(exchange.blocks, 2u);
  EXPECT_EQ(fold.other_exchanges().blocks, 2 * (300 * 300 - UsageFold::kMostExchanges));
  EXPECT_EQ(fold.other_exchanges().bytes, 20 * (300 * 300 - UsageFold::kMostExchanges));
}

TEST(UsageTest, ASeriesIsWhatAThreadHeldWhereverItBeginsAndEnds) {
  for (uint32_t first = 0; first < 5; ++first) {
    for (uint32_t end = first; end < first + 6; ++end) {
      std::vector<uint64_t> plain(12);
      HeldSeries series;
      for (uint32_t i = 0; i < plain.size(); ++i) {
        plain[i] = i >= first && i < end && i != first + 1 ? 100 + i : 0;
        series.Set(i, plain[i]);
      }
      for (size_t step = 1; step <= 4; step *= 2) {
        for (size_t i = 0; i < plain.size() / step; ++i) {
          ASSERT_EQ(series.At(i), plain[step * (i + 1) - 1]) << first << " " << end << " " << step;
        }
        ASSERT_LE(series.values.size(), 6u);
        series.MergePairs();
      }
    }
  }
}

TEST(UsageTest, WhatThreadsHoldAddsUpToWhatIsLive) {
  TraceBuilder trace;
  for (uint32_t serial = 1; serial <= 3; ++serial) {
    ThreadScript& thread = trace.Thread(serial, 10 + serial, "t");
    for (uint64_t i = 0; i < 400; ++i) {
      thread.At(1000 * serial + i * 5000).Malloc(serial << 20 | i << 8 | 0x10, 100);
      if (i % 3 == 0) thread.Free(serial << 20 | i << 8 | 0x10);
    }
    thread.At(3'000'000);
  }
  const Analysis a = Analyze(trace.Build()).analysis;
  const size_t intervals = a.held_intervals;
  ASSERT_GT(intervals, 40u);
  for (size_t i = 0; i < intervals; ++i) {
    uint64_t by_threads = 0, by_sites = 0;
    for (const ThreadSummary& thread : a.threads) {
      by_threads += thread.held.At(i);
    }
    for (const Site& site : a.sites) {
      uint64_t live = 0;
      for (const SeriesPoint& point : site.series) {
        if (point.interval <= i) live = point.live_bytes;
      }
      by_sites += live;
    }
    EXPECT_EQ(by_threads, by_sites) << i;
  }
  uint64_t at_last = 0;
  for (const ThreadSummary& thread : a.threads) at_last += thread.held.At(intervals - 1);
  EXPECT_EQ(at_last, a.totals.live_bytes);
}

TEST(UsageTest, SizesOfASiteAndUsableBytes) {
  TraceBuilder trace;
  trace.Thread(1)
      .At(1)
      .Node(1, 0x401000)
      .Malloc(0x1010, 0, 1, 24)
      .Malloc(0x2010, 1, 1, 23)
      .Malloc(0x3010, 100, 1, 4)
      .Malloc(0x4010, 120, 1, 0)
      .Free(0x4010)
      .At(2'000'000);
  const AnalyzedTrace analyzed = Analyze(trace.Build());
  const Site* site = FindSite(analyzed, 0x401000);
  EXPECT_EQ(site->sizes[0], 1u);
  EXPECT_EQ(site->sizes[1], 1u);
  EXPECT_EQ(site->sizes[7], 2u);
  EXPECT_EQ(analyzed.analysis.timeline.back().usable_bytes, 101u + 24 + 23 + 4);
}

}  // namespace
}  // namespace memtrace::report
