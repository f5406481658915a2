// Growth that no call site has alone: through a function that calls itself, where each way to an allocation is
// a call site, and of a buffer that several places make larger.

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <random>
#include <vector>

#include "report/growth/site_families.h"
#include "tests/report/test_util.h"
#include "tests/report/trace_builder.h"

namespace memtrace::report {
namespace {

constexpr uint64_t kMain = 0x401000, kLeft = 0x402000, kRight = 0x402040, kInsert = 0x403000;
constexpr uint64_t kLastNs = 2'000'000'000, kStepNs = 1'000'000, kBytes = 100;

enum class Way { kRecursion, kDistinctCallers };

// A block each kStepNs, from a depth of up to 12; `held` at a time at most, 0 until the exit.
AnalyzedTrace Inserts(Way way, size_t held, bool freed_at_exit = false, uint64_t from_ns = 0) {
  TraceBuilder trace;
  ThreadScript& thread = trace.Thread(1);
  std::mt19937 random(5);
  std::deque<uint64_t> live;
  uint32_t slot = 1;
  for (uint64_t now = kStepNs, i = 0; now < kLastNs; now += kStepNs, ++i) {
    thread.At(now);
    thread.Node(slot, kMain);
    for (uint32_t depth = random() % 12; depth > 0; --depth, ++slot) {
      const uint64_t pc = way == Way::kDistinctCallers ? 0x500000 + 64 * slot
                          : random() % 2 == 0          ? kLeft
                                                       : kRight;
      thread.Node(slot + 1, pc, slot);
    }
    thread.Node(slot + 1, kInsert, slot);
    ++slot;
    const uint64_t address = 0x10000 + 256 * i;
    thread.Malloc(address, kBytes, slot, 8);
    ++slot;
    live.push_back(address);
    if (held != 0 && live.size() > held) {
      thread.Free(live.front());
      live.pop_front();
    }
  }
  if (freed_at_exit) {
    thread.At(kLastNs - kStepNs / 2);
    for (const uint64_t address : live) thread.Free(address);
  }
  thread.At(kLastNs);
  trace.End(0, kLastNs);
  return Analyze(trace.Build(), RangeOf(from_ns, UINT64_MAX));
}

struct Judged {
  double bytes_per_s = 0;
  size_t growing = 0;
};
Judged Growing(const AnalyzedTrace& trace) {
  Judged judged;
  for (const Site& site : trace.analysis.sites) {
    if (site.growth.verdict != Growth::Verdict::kGrowing) continue;
    ++judged.growing;
    judged.bytes_per_s += site.growth.bytes_per_s;
    EXPECT_NEAR(site.growth.bytes_per_allocation, kBytes, kBytes * 0.4);
  }
  return judged;
}

TEST(GrowthFamiliesTest, WaysOfOneRecursionGrowTogether) {
  const AnalyzedTrace trace = Inserts(Way::kRecursion, 0);
  ASSERT_GT(trace.analysis.sites.size(), 500u);
  const Judged judged = Growing(trace);
  EXPECT_GT(judged.growing, 500u);
  const double rate = 1e9 / kStepNs * kBytes;
  EXPECT_GT(judged.bytes_per_s, 0.7 * rate);
  EXPECT_LT(judged.bytes_per_s, 1.2 * rate);
}

// Earlier blocks of the same ways, that are freed with all others, left no places for these.
TEST(GrowthFamiliesTest, OfARangeWaysOfOneRecursionGrowUntilTheExit) {
  for (const uint64_t from_ns : {uint64_t{0}, kLastNs / 2}) {
    const Judged judged = Growing(Inserts(Way::kRecursion, 0, /*freed_at_exit=*/true, from_ns));
    EXPECT_GT(judged.growing, 250u) << from_ns;
    const double rate = 1e9 / kStepNs * kBytes;
    EXPECT_GT(judged.bytes_per_s, 0.5 * rate) << from_ns;  // of half a run fewer ways are judged
    EXPECT_LT(judged.bytes_per_s, 1.2 * rate) << from_ns;
  }
  const AnalyzedTrace level = Inserts(Way::kRecursion, 100, /*freed_at_exit=*/true, kLastNs / 2);
  EXPECT_EQ(Growing(level).growing, 0u);
}

TEST(GrowthFamiliesTest, WhatOnlyChangesPlacesDoesNotGrow) {
  EXPECT_EQ(Growing(Inserts(Way::kRecursion, 100)).growing, 0u);
}

// A block each of a thousand functions is what a program sets up.
TEST(GrowthFamiliesTest, OtherCallSitesAreJudgedAlone) {
  const AnalyzedTrace trace = Inserts(Way::kDistinctCallers, 0);
  EXPECT_LT(Growing(trace).growing, 5u);
  EXPECT_EQ(SiteFamilies::ByRecursion(trace.analysis.sites, *trace.stacks).size(), 0u);
}

TEST(GrowthFamiliesTest, AFamilyHasWhatItsMembersHaveTogether) {
  const AnalyzedTrace trace = Inserts(Way::kRecursion, 100);
  const std::vector<Site>& sites = trace.analysis.sites;
  const SiteFamilies families = SiteFamilies::ByRecursion(sites, *trace.stacks);
  ASSERT_GT(families.size(), 0u);
  for (size_t f = 0; f < families.size(); ++f) {
    const Site all = families.Together(f, sites);
    uint64_t allocations = 0, frees = 0, live = 0;
    for (const uint32_t member : families.members(f)) {
      EXPECT_EQ(families.Of(member), f);
      allocations += sites[member].allocations;
      frees += sites[member].frees;
      live += sites[member].live_bytes;
    }
    EXPECT_EQ(all.allocations, allocations);
    EXPECT_EQ(all.frees, frees);
    EXPECT_EQ(all.live_bytes, live);
    EXPECT_EQ(all.lifetimes.total(), frees);
    uint64_t of_series = 0, freed = 0;
    for (const SeriesPoint& point : all.series) {
      of_series += point.allocations;
      freed += point.frees;
      EXPECT_LE(point.low_bytes, point.live_bytes);
      EXPECT_GE(point.high_bytes, point.live_bytes);
    }
    EXPECT_EQ(of_series, allocations);
    EXPECT_EQ(freed, frees);
    EXPECT_EQ(all.series.back().live_bytes, live);
  }
}

// A buffer that `sites` places make larger, in turn or by chance; below it a pool that stays as it is.
AnalyzedTrace OneBuffer(uint32_t sites, bool grows) {
  TraceBuilder trace;
  ThreadScript& thread = trace.Thread(1);
  std::mt19937 random(7);
  for (uint32_t site = 1; site <= sites; ++site) thread.Node(site, 0x401000 + 64 * site);
  uint32_t bytes = 512;
  uint64_t address = 0x10000;
  thread.At(kStepNs).Malloc(address, bytes, 1, 8);
  for (uint64_t now = 2 * kStepNs; now < kLastNs; now += kStepNs) {
    bytes = grows ? bytes + 512 : 512 + static_cast<uint32_t>(random() % 4096);
    const uint64_t next = 0x10000 + 0x1000000 * (now / kStepNs % 2);
    thread.At(now).Realloc(address, next, bytes, 1 + random() % sites, 8);
    address = next;
  }
  thread.At(kLastNs);
  trace.End(0, kLastNs);
  return Analyze(trace.Build());
}

TEST(GrowthFamiliesTest, ABufferOfSeveralPlacesGrows) {
  for (const uint32_t sites : {2u, 5u}) {
    double rate = 0;
    for (const Site& site : OneBuffer(sites, true).analysis.sites) {
      if (site.growth.verdict == Growth::Verdict::kGrowing) rate += site.growth.bytes_per_s;
    }
    EXPECT_NEAR(rate, 512e9 / kStepNs, 100e9 / kStepNs) << sites;
  }
}

TEST(GrowthFamiliesTest, ABufferThatStaysDoesNotGrow) {
  EXPECT_EQ(Growing(OneBuffer(3, false)).growing, 0u);
}

TEST(GrowthFamiliesTest, SitesThatAreConnectedAreOneFamily) {
  const std::pair<uint32_t, uint32_t> moves[] = {{1, 4}, {6, 4}, {2, 3}, {9, 9}};
  const SiteFamilies families = SiteFamilies::ByReallocs(10, moves);
  ASSERT_EQ(families.size(), 2u);
  EXPECT_EQ(families.members(0), (std::vector<uint32_t>{1, 4, 6}));
  EXPECT_EQ(families.members(1), (std::vector<uint32_t>{2, 3}));
  EXPECT_EQ(families.Of(9), SiteFamilies::kNone);
  EXPECT_EQ(SiteFamilies::ByReallocs(10, {}).Of(3), SiteFamilies::kNone);
}

}  // namespace
}  // namespace memtrace::report
