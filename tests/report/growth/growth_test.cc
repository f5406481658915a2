// Growth verdicts: the labelled set, by which docs/growth.md's figures are checked, and by hand
// where a rule wants to be seen.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <random>
#include <sstream>
#include <string>

#include "report/analysis/analyzer.h"
#include "report/findings/lifetime_histogram.h"
#include "report/growth/late_frees.h"
#include "report/growth/shutdown.h"
#include "report/growth/site_series.h"
#include "report/growth/steady_flow.h"
#include "tests/report/growth/growth_figures.h"
#include "tests/report/growth/growth_scenarios.h"
#include "tests/report/history.h"
#include "tests/report/scan_builder.h"
#include "tests/report/test_util.h"
#include "tests/report/trace_builder.h"

namespace memtrace::report {
namespace {

using Verdict = Growth::Verdict;

void JudgeWorld(const World& world, GrowthFigures* figures) {
  const AnalyzedTrace trace = Analyze(world.trace);
  EXPECT_EQ(trace.analysis.coverage.unknown_frees, 0u);
  size_t judged = 0;
  for (const Site& site : trace.analysis.sites) {
    const size_t index = (trace.stacks->node(site.stack).pc - PcOfScenario(0)) / 64;
    const LabelledSite& label = world.sites.at(index);
    figures->Add(label.scenario, label.verdict, site.growth.verdict);
    if (label.held) {
      EXPECT_TRUE(site.growth.held_until_exit) << label.scenario;
    } else {
      EXPECT_FALSE(site.growth.held_until_exit) << label.scenario;
    }
    if (site.growth.verdict == Verdict::kGrowing) {
      EXPECT_GT(site.growth.bytes_per_s, 0) << label.scenario;
      EXPECT_LE(site.growth.bytes_per_s_low, site.growth.bytes_per_s) << label.scenario;
      EXPECT_GE(site.growth.bytes_per_s_high, site.growth.bytes_per_s) << label.scenario;
      EXPECT_GT(site.growth.confidence, 0.9) << label.scenario;
      EXPECT_LE(site.growth.confidence, 1) << label.scenario;
    }
    ++judged;
  }
  EXPECT_EQ(judged, world.sites.size());
}

TEST(GrowthTest, TheLabelledSetIsJudgedAsWellAsTheDocumentSays) {
  GrowthFigures figures;
  const char* seeds = std::getenv("MEMTRACE_GROWTH_SEED");  // to look at others
  const uint64_t first = seeds != nullptr ? std::strtoull(seeds, nullptr, 10) : 5000;
  for (uint64_t seed = first; seed < first + 4; ++seed) {
    JudgeWorld(MakeWorld(seed, 5, /*shutdown=*/true), &figures);
    JudgeWorld(MakeWorld(seed + 50, 5, /*shutdown=*/false), &figures);
  }
  std::printf("%s", figures.Table().c_str());
  figures.ExpectAsPublished("synthetic");
}

// What must hold for any site: its series adds up to what else is known of it.
TEST(GrowthTest, SeriesAndLifetimesAddUpToTheSites) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 300; ++round) {
    HistoryOptions options;
    options.actions = 1 + static_cast<int>(random() % 400);
    options.longest_step_ns = 1 + random() % 100'000;
    const AnalyzedTrace trace = Analyze(TraceOf(MakeHistory(options, random), {}, random));
    ASSERT_GT(trace.analysis.series_interval_ns, 0u);
    for (const Site& site : trace.analysis.sites) {
      uint64_t allocations = 0, frees = 0, high = 0;
      uint32_t last = 0;
      ASSERT_FALSE(site.series.empty());
      for (const SeriesPoint& point : site.series) {
        EXPECT_TRUE(&point == &site.series.front() || point.interval > last);
        last = point.interval;
        EXPECT_LT(last, SiteSeries::kMostIntervals);
        EXPECT_LE(point.low_bytes, point.live_bytes);
        EXPECT_GE(point.high_bytes, point.live_bytes);
        allocations += point.allocations;
        frees += point.frees;
        high = std::max(high, point.high_bytes);
      }
      EXPECT_EQ(allocations, site.allocations);
      EXPECT_EQ(frees, site.frees);
      EXPECT_EQ(high, site.peak_bytes);
      EXPECT_EQ(site.series.back().live_bytes, site.live_bytes);
      EXPECT_EQ(site.series.back().live_blocks, site.live_blocks);
      EXPECT_EQ(site.lifetimes.total(), site.frees);
    }
    if (HasFailure()) FAIL() << "round " << round;
  }
}

TEST(GrowthTest, ABlockThatIsReallocatedDoesNotFallInBetween) {
  TraceBuilder trace;
  auto& thread = trace.Thread(1).At(1).Node(1, 0x401000).Realloc(0, 0x1010, 100, 1);
  for (uint32_t i = 1; i < 50; ++i) {
    thread.At(i * 1000).Realloc(0x1010 * i, 0x1010 * (i + 1), 100 + i, 1);
  }
  thread.At(60'000);
  const AnalyzedTrace analyzed = Analyze(trace.Build());
  const Site* site = FindSite(analyzed, 0x401000);
  ASSERT_NE(site, nullptr);
  ASSERT_GT(site->series.size(), 5u);
  for (size_t i = 1; i < site->series.size(); ++i) EXPECT_GE(site->series[i].low_bytes, 100u);
}

// Busy to the end, the program gives back what it has within the last interval of its timeline.
TEST(GrowthTest, AShutdownIsFoundWithinAnInterval) {
  constexpr uint64_t kMs = 1'000'000;
  TraceBuilder trace;
  auto& t = trace.Thread(1).At(1).Node(1, 0x401000).Node(2, 0x402000);
  for (uint64_t i = 1; i <= 100; ++i) t.Malloc(0x100000 * i, 5000, 1);
  for (uint64_t i = 1; i <= 20'000; ++i) t.At(i * kMs / 10).Malloc(0x20, 48, 2).Free(0x20);
  for (uint64_t i = 1; i <= 100; ++i) t.Free(0x100000 * i);
  t.At(20'000 * kMs / 10 + 1000);
  const AnalyzedTrace analyzed = Analyze(trace.Build());
  EXPECT_NEAR(static_cast<double>(analyzed.analysis.shutdown_ns), 2000.0 * kMs, 1.0 * kMs);
  const Site* site = FindSite(analyzed, 0x401000);
  ASSERT_NE(site, nullptr);
  EXPECT_EQ(site->growth.verdict, Verdict::kHeld);
  EXPECT_TRUE(site->growth.held_until_exit);
}

// The shutdown is the program's: one site that gives all back while others go on is none, whatever is looked at.
TEST(GrowthTest, AShutdownIsNotThatOfAChoiceOfSites) {
  constexpr uint64_t kMs = 1'000'000;
  TraceBuilder trace;
  auto& t = trace.Thread(1).At(1).Node(1, 0x401000).Node(2, 0x402000);
  for (uint64_t i = 1; i <= 1000; ++i) {
    t.At(i * kMs);
    for (int k = 0; k < 3; ++k) t.Malloc(0x10, 48, 2).Free(0x10);
    if (i < 930) t.Malloc(0x1000 * i, 500, 1);
    if (i == 930) {
      for (uint64_t k = 1; k < 930; ++k) t.Free(0x1000 * k);
    }
  }
  t.At(1001 * kMs);
  for (const bool chosen : {false, true}) {
    AnalyzeOptions options;
    StackId stack;
    if (chosen) {
      const AnalyzedTrace all = Analyze(trace.Build());
      stack = FindSite(all, 0x401000)->stack;
      options.filter.sites = [stack](StackId each) { return each == stack; };
    }
    const AnalyzedTrace analyzed = Analyze(trace.Build(), options);
    EXPECT_EQ(analyzed.analysis.sites.size(), chosen ? 1u : 2u);
    EXPECT_EQ(analyzed.analysis.shutdown_ns, UINT64_MAX);
    const Growth& growth = FindSite(analyzed, 0x401000)->growth;
    EXPECT_NE(growth.verdict, Verdict::kGrowing) << VerdictName(growth.verdict);
    EXPECT_FALSE(growth.held_until_exit);
  }
}

// Between the old and the new nothing is left, for a moment: what grows is found all the same, and what is as
// large as before is not said to grow.
TEST(GrowthTest, WhatIsFreedAndBuiltLargerGrows) {
  constexpr uint64_t kMs = 1'000'000;
  for (const bool grows : {false, true}) {
    TraceBuilder trace;
    auto& t = trace.Thread(1).At(1).Node(1, 0x401000).Node(2, 0x402000);
    uint64_t table = 0;  // its blocks
    for (uint64_t i = 1; i <= 200; ++i) {
      const uint64_t more = grows ? i : 100;
      uint64_t now = 5 * i * kMs;
      const auto at = [&]() -> auto& { return t.At(now += 100); };
      if (i > 1) at().Free(0x10);
      at().Malloc(0x10, 1000 + 100 * more, 1);
      if (i % 4 != 0) continue;
      for (; table > 0; --table) at().Free(0x1000 * table);
      while (table < 50 + more) at().Malloc(0x1000 * ++table, 100, 2);
    }
    trace.End(0, 1005 * kMs);
    const AnalyzedTrace analyzed = Analyze(trace.Build());
    for (const uint64_t site : {0x401000, 0x402000}) {
      EXPECT_EQ(FindSite(analyzed, site)->growth.verdict == Verdict::kGrowing, grows)
          << site << ": " << VerdictName(FindSite(analyzed, site)->growth.verdict);
    }
  }
}

// While memtrace scans the memory the program does nothing: its sites have not stopped to grow.
TEST(GrowthTest, TheScanAtTheExitIsNoRestOfTheSites) {
  constexpr uint64_t kMs = 1'000'000;
  for (const bool scanned : {false, true}) {
    TraceBuilder trace;
    auto& t = trace.Thread(1).At(1).Node(1, 0x401000);
    for (uint64_t i = 1; i <= 1000; ++i) t.At(i * kMs).Malloc(0x1000 * i, 100, 1);
    if (scanned) ScanBuilder(1, trace.TicksAt(1001 * kMs)).Done().AddTo(&trace);
    trace.End(0, 3000 * kMs);
    const AnalyzedTrace analyzed = Analyze(trace.Build());
    const ProcessInfo& process = analyzed.analysis.process;
    EXPECT_EQ(process.duration_ns / kMs, 3000u);
    EXPECT_EQ(process.exit_work_ns / kMs, scanned ? 1999u : 0u);
    EXPECT_EQ(process.own_duration_ns() / kMs, scanned ? 1001u : 3000u);
    EXPECT_EQ(FindSite(analyzed, 0x401000)->growth.verdict,
              scanned ? Verdict::kGrowing : Verdict::kBounded);
  }
}

// `basename` allocates while it sets itself up, and ends: that is no growth without end.
TEST(GrowthTest, OfAMomentNothingIsCalledGrowing) {
  constexpr uint64_t kMs = 1'000'000;
  for (const uint64_t end_ms : {60, 99, 101}) {
    for (const bool scanned : {false, true}) {
      TraceBuilder trace;
      auto& t = trace.Thread(1).At(1).Node(1, 0x401000);
      for (uint64_t i = 1; i <= 1000; ++i) t.At(i * end_ms * kMs / 1000).Malloc(0x1000 * i, 100, 1);
      // memtrace's own work makes no run longer.
      if (scanned) ScanBuilder(1, trace.TicksAt(end_ms * kMs)).Done().AddTo(&trace);
      trace.End(0, (end_ms + (scanned ? 500 : 0)) * kMs);
      const AnalyzedTrace analyzed = Analyze(trace.Build());
      EXPECT_EQ(analyzed.analysis.too_short_for_growth(), end_ms < 100) << end_ms;
      EXPECT_EQ(FindSite(analyzed, 0x401000)->growth.verdict,
                end_ms < 100 ? Verdict::kUnknown : Verdict::kGrowing)
          << end_ms << (scanned ? " scanned" : "");
    }
  }
}

// A table that is set up once, as the work of three seconds ends: with a rate over its own moment it would be the
// most urgent of all leaks.
TEST(GrowthTest, WhatIsSetUpAtTheVeryEndDoesNotGrow) {
  constexpr uint64_t kMs = 1'000'000, kEntries = 1000;
  for (const bool freed : {false, true}) {
    for (const uint64_t before_the_end_ms : {0, 40, 80}) {
      TraceBuilder trace;
      auto& t = trace.Thread(1).At(1).Node(1, 0x401000).Node(2, 0x402000);
      uint64_t now = 0;
      for (uint64_t i = 0; i < 6000; ++i) {
        if (i >= 100) t.At(now).Free(0x100000 + i % 100 * 0x1000);
        t.At(now += kMs / 2).Malloc(0x100000 + i % 100 * 0x1000, 100, 1);
      }
      for (uint64_t i = 0; i < kEntries; ++i) t.At(now += 250).Malloc(0x10000000 + i * 0x100, 200, 2);
      now += before_the_end_ms * kMs;
      for (uint64_t i = 0; freed && i < kEntries; ++i) t.At(now += 50).Free(0x10000000 + i * 0x100);
      for (uint64_t i = 0; freed && i < 100; ++i) t.At(now += 50).Free(0x100000 + i * 0x1000);
      trace.End(0, now + kMs);
      const AnalyzedTrace analyzed = Analyze(trace.Build());
      EXPECT_NE(FindSite(analyzed, 0x402000)->growth.verdict, Verdict::kGrowing)
          << before_the_end_ms << (freed ? " freed" : "");
    }
  }
}

TEST(GrowthTest, AScanBeforeTheDestructorsTellsOfTheShutdown) {
  LeakScan early = {.reason = format::ScanReason::kExitEarly, .time_ns = 950};
  early.cost.elapsed_ns = 500;
  const auto called = [&](uint64_t end) { return ExitCalled(std::vector<LeakScan>{early}, 0, end); };
  EXPECT_EQ(called(1550), 950u) << "of a run of 1050 without the scan";
  EXPECT_EQ(called(1700), UINT64_MAX) << "much more came behind it";
  early.reason = format::ScanReason::kRequest;
  EXPECT_EQ(called(1550), UINT64_MAX);
}

TEST(GrowthTest, FreesAmongAllocationsAreNoShutdown) {
  const auto begin = [](std::vector<SiteEnds> sites) { return ShutdownBegin(std::move(sites), 0, 1000); };
  EXPECT_EQ(begin({{950, 5, 960, 10}}), 950u);
  EXPECT_EQ(begin({{950, 5, 960, 9}}), UINT64_MAX) << "too few to tell";
  EXPECT_EQ(begin({{950, 5, 940, 100}}), UINT64_MAX) << "it freed before its last allocation";
  EXPECT_EQ(begin({{850, 5, 960, 100}}), UINT64_MAX) << "not at the end";
  // Two allocations behind 950 by a site that the teardown uses.
  EXPECT_EQ(begin({{950, 5, 955, 40}, {970, 2, 980, 2}}), 950u);
  EXPECT_EQ(begin({{950, 5, 955, 20}, {970, 2, 980, 2}}), UINT64_MAX);
}

// The last tenth is that of the run: what a late range begins with is no shutdown the later.
TEST(GrowthTest, TheShutdownIsTheProgramsWhereverARangeBegins) {
  std::vector<TimelinePoint> timeline(10);  // from 600 to 1000; the program frees from 920 on
  for (size_t i = 0; i < timeline.size(); ++i) {
    timeline[i].time_ns = 600 + 40 * (i + 1);
    (i < 8 ? timeline[i].allocations : timeline[i].frees) = 100;
  }
  EXPECT_EQ(ShutdownBegin(timeline, 600, 1000), 920u);
  EXPECT_EQ(ShutdownBegin({{920, 5, 925, 100}}, 600, 1000), 920u);
  EXPECT_EQ(ShutdownBegin({{920, 5, 925, 100}}, 950, 1000), UINT64_MAX) << "it began before";
  LeakScan early;
  early.reason = format::ScanReason::kExitEarly;
  early.time_ns = 920;
  EXPECT_EQ(ExitCalled(std::vector<LeakScan>{early}, 600, 1000), 920u);
}

// A cache that was full before the range: the new blocks take the places of old ones. Those that
// the shutdown frees leave places to none, and those that go now and then to few: what grows does
// so whenever the range begins.
TEST(GrowthTest, OfARangeBlocksThatTakeThePlacesOfOthersAreNoGrowth) {
  constexpr uint64_t kMs = 1'000'000, kSteps = 8000, kLastMs = 4001;
  constexpr uint64_t kCache = 0x401000, kGrows = 0x402000, kFreesSome = 0x403000;
  const auto cached = [](uint64_t slot) { return 0x10000 * (slot + 1); };
  const auto kept = [](uint64_t i) { return 0x10000000 + 256 * i; };
  const auto some = [](uint64_t i) { return 0x20000000 + 256 * i; };
  for (const bool freed_at_exit : {false, true}) {
    std::mt19937_64 random(7);
    TraceBuilder trace;
    auto& t = trace.Thread(1).At(1).Node(1, kCache).Node(2, kGrows).Node(3, kFreesSome);
    std::vector<bool> used(300), gone(kSteps + 1);
    for (uint64_t i = 1; i <= kSteps; ++i) {
      const uint64_t slot = random() % used.size();
      t.At(i * kMs / 2);
      if (used[slot]) t.Free(cached(slot));
      used[slot] = true;
      t.Malloc(cached(slot), 100, 1).Malloc(kept(i), 100, 2).Malloc(some(i), 100, 3);
      if (i < kSteps * 31 / 32 || i % 50 != 0) continue;
      t.Free(some(i / 50));
      gone[i / 50] = true;
    }
    t.At(kLastMs * kMs);
    if (freed_at_exit) {
      for (uint64_t slot = 0; slot < used.size(); ++slot) {
        if (used[slot]) t.Free(cached(slot));
      }
      for (uint64_t i = 1; i <= kSteps; ++i) {
        t.Free(kept(i));
        if (!gone[i]) t.Free(some(i));
      }
      t.At(kLastMs * kMs + kMs / 10);
    }
    for (const uint64_t from_ms : {0, 2000, 3600, 3800}) {
      const AnalyzedTrace analyzed = Analyze(trace.Build(), RangeOf(from_ms * kMs, UINT64_MAX));
      const auto growth = [&](uint64_t site) { return FindSite(analyzed, site)->growth; };
      const std::string when =
          std::to_string(from_ms) + (freed_at_exit ? " freed at the exit" : "");
      EXPECT_EQ(growth(kCache).verdict, Verdict::kBounded) << when;
      EXPECT_EQ(growth(kGrows).verdict, Verdict::kGrowing) << when;
      EXPECT_EQ(growth(kGrows).held_until_exit, freed_at_exit) << when;
      if (from_ms == 0) continue;  // what went so late is of the range, and lived as long as any
      EXPECT_EQ(growth(kFreesSome).verdict, Verdict::kGrowing) << when;
    }
  }
}

TEST(GrowthTest, BlocksThatWereChosenByTheirEndAreNotJudged) {
  TraceBuilder trace;
  auto& t = trace.Thread(1).At(1).Node(1, 0x401000);
  for (uint64_t i = 1; i < 100; ++i) t.At(i * 1'000'000).Malloc(0x100 * i, 100, 1);
  t.At(100'000'000);
  AnalyzeOptions options;
  options.filter.ages = {0, 50'000'000};
  const AnalyzedTrace analyzed = Analyze(trace.Build(), options);
  ASSERT_NE(FindSite(analyzed, 0x401000), nullptr);
  EXPECT_EQ(FindSite(analyzed, 0x401000)->growth.verdict, Verdict::kUnknown);
}

// What chance does to a level is done by the blocks that the sample has: a few of a pool that never
// changes, and each stands for hundreds.
TEST(GrowthTest, TheNoiseOfASampleIsNoSawtooth) {
  constexpr uint64_t kSampleBytes = 65536, kSize = 500, kPool = 2000, kStep = 1'000'000;
  for (const bool leaks : {false, true}) {
    TraceBuilder trace({.sample_bytes = kSampleBytes});
    auto& t = trace.Thread(1).At(1).Node(1, 0x401000).Node(2, 0x402000);
    std::mt19937_64 random(3);
    const auto is_sampled = [&random] {
      return std::bernoulli_distribution(1 - std::exp(-double{kSize} / kSampleBytes))(random);
    };
    std::vector<bool> sampled(kPool);
    for (uint64_t i = 0; i < 100'000; ++i) {
      const uint64_t slot = i % kPool;
      t.At((i + 1) * kStep / 10);
      if (sampled[slot]) t.Free(0x10000 * (slot + 1));
      sampled[slot] = is_sampled();
      if (sampled[slot]) t.Malloc(0x10000 * (slot + 1), kSize, 1);
      if (leaks && is_sampled()) t.Malloc(0x100000000 + 0x1000 * i, kSize, 2);
    }
    t.At(10'001 * kStep);
    const AnalyzedTrace analyzed = Analyze(trace.Build());
    ASSERT_NE(FindSite(analyzed, 0x401000), nullptr);
    EXPECT_EQ(FindSite(analyzed, 0x401000)->growth.verdict, Verdict::kBounded);
    if (!leaks) continue;
    const Growth& growth = FindSite(analyzed, 0x402000)->growth;
    EXPECT_EQ(growth.verdict, Verdict::kGrowing);
    EXPECT_NEAR(growth.bytes_per_allocation, double{kSize}, kSize * 0.1);
  }
}

TEST(LateFreesTest, AreTheLongOnesAndNeverMoreThanTheirRoom) {
  LateFrees late;
  EXPECT_FALSE(late.IsLong(UINT64_MAX - 1)) << "nothing is known of the run yet";
  late.SetRun(3200);
  EXPECT_TRUE(late.IsLong(100));
  EXPECT_FALSE(late.IsLong(99));
  // What is older than a tenth of the run goes first.
  const auto add = [&](uint64_t freed_ns) { late.Add({freed_ns - 100, freed_ns, 16, 1}); };
  for (size_t i = 0; i < LateFrees::kMost; ++i) add(1000 + 2 * i / LateFrees::kMost);
  for (size_t i = 0; i < 100; ++i) add(3200);
  EXPECT_EQ(late.frees().size(), 100u);
  EXPECT_EQ(late.weight(), 1u);
  // Then every second one stands for two.
  const size_t more = 3 * LateFrees::kMost;
  for (size_t i = 0; i < more; ++i) add(3200);
  EXPECT_LE(late.frees().size(), LateFrees::kMost);
  EXPECT_NEAR(static_cast<double>(late.frees().size() * late.weight()), static_cast<double>(more + 100), 8);
}

// As many as come in a life's time, from then on; and as chance moves a Poisson number.
TEST(SteadyFlowTest, LivesOfOneLengthAreALevel) {
  constexpr double kSeen = 1e9, kLife = 0.26e9;
  LifetimeHistogram lives;
  for (int i = 0; i < 1000; ++i) {
    // One each millisecond; the end is before the lives of the last.
    if (i * 1e6 + kLife <= kSeen) lives.Add(static_cast<uint64_t>(kLife));
  }
  const SteadyFlow flow(lives, kSeen);
  EXPECT_NEAR(flow.OutlivingPerNs(0.05e9) * 1e6, 1, 0.04);
  EXPECT_EQ(flow.OutlivingPerNs(0.5e9), 0);
  EXPECT_NEAR(flow.Level(0.1e9), 100, 4);
  // Within the class, which is half as wide as its begin.
  EXPECT_NEAR(flow.Level(0.5e9), 260, 60);
  EXPECT_NEAR(flow.Level(1e9), flow.Level(0.5e9), 1e-6);
  EXPECT_NEAR(flow.Covariance(0.9e9, 0.9e9), flow.Level(0.9e9), 1e-6);
  EXPECT_NEAR(flow.Covariance(0.9e9, 0.8e9), flow.Level(0.9e9) - 100, 4);
  EXPECT_NEAR(flow.Covariance(0.4e9, 0.9e9), 0, 1e-6);
}

TEST(SteadyFlowTest, OfLivesThatAreCutOffByTheEnd) {
  std::mt19937_64 random(4);
  std::exponential_distribution<double> life(1 / 0.2e9);
  LifetimeHistogram lives;
  int freed = 0;
  for (int i = 0; i < 100'000; ++i) {
    const double ns = life(random);
    if (i * 1e4 + ns >= 1e9) continue;
    lives.Add(static_cast<uint64_t>(ns));
    ++freed;
  }
  EXPECT_LT(freed, 85'000) << "a fifth is live at the end";
  const SteadyFlow flow(lives, 1e9);
  // Rate and mean: 20,000, of which all but 1/e^5 are there at the end.
  EXPECT_NEAR(flow.Level(1e9), 20'000 * (1 - std::exp(-5)), 600);
  EXPECT_NEAR(flow.Level(0.2e9), 20'000 * (1 - std::exp(-1)), 600);
  EXPECT_NEAR(flow.OutlivingPerNs(0.4e9), 1e-4 * std::exp(-2), 1e-6);
}

TEST(SiteSeriesTest, IsThatOfTheIntervalsHoweverOftenTheyAreMerged) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 100; ++round) {
    SiteSeries series;
    SiteSeries::Now now{};
    struct Truth {
      uint64_t low = UINT64_MAX, high = 0, live = 0, allocations = 0;
    };
    std::map<uint64_t, Truth> truth;  // by interval as it was before any merge
    uint64_t step = 0, factor = 1, intervals = 0;
    bool open = false;
    const uint64_t steps = 1 + random() % 3000;
    for (; step < steps; ++step) {
      if (random() % 4 == 0) {  // an event
        if (!open) {
          series.Open(3, now);
          now.low_bytes = now.high_bytes = now.live_bytes;
          open = true;
        }
        Truth& at = truth[step];
        at.low = std::min(at.low, now.live_bytes);
        now.live_bytes = random() % 1000;
        ++now.allocations;
        now.low_bytes = std::min(now.low_bytes, now.live_bytes);
        now.high_bytes = std::max(now.high_bytes, now.live_bytes);
        at.low = std::min(at.low, now.live_bytes);
        at.high = std::max(at.high, now.live_bytes);
        at.live = now.live_bytes;
        ++at.allocations;
      }
      if ((step + 1) % factor != 0) continue;
      series.NextInterval();
      open = false;
      if (++intervals == SiteSeries::kMostIntervals) {
        series.MergePairs();
        intervals /= 2;
        factor *= 2;
      }
    }
    std::map<uint64_t, Truth> merged;
    for (const auto& [at, one] : truth) {
      Truth& all = merged[at / factor];
      all.low = std::min(all.low, one.low);
      all.high = std::max(all.high, one.high);
      all.live = one.live;
      all.allocations += one.allocations;
    }
    const SeriesPoints points = series.Take(3, now);
    ASSERT_EQ(points.size(), merged.size());
    size_t i = 0;
    for (const auto& [at, is] : merged) {
      const SeriesPoint& point = points[i++];
      EXPECT_EQ(point.interval, at);
      EXPECT_EQ(point.low_bytes, is.low);
      EXPECT_EQ(point.live_bytes, is.live);
      EXPECT_EQ(point.allocations, is.allocations);
      EXPECT_GE(point.high_bytes, is.high);  // it also has what was live when it began
    }
    if (HasFailure()) FAIL() << "round " << round;
  }
}

TEST(LifetimeHistogramTest, EachClassBeginsWhereTheOneBeforeItEnds) {
  // Of one nanosecond there are no halves: the classes from 4 on are whole.
  for (size_t i = 4; i < LifetimeHistogram::kClasses; ++i) {
    const uint64_t begin = LifetimeHistogram::BeginOf(i);
    EXPECT_GT(begin, LifetimeHistogram::BeginOf(i - 1));
    EXPECT_EQ(LifetimeHistogram::ClassOf(begin | 1), i);
    EXPECT_LT(LifetimeHistogram::ClassOf(begin - 1), i);
  }
  EXPECT_EQ(LifetimeHistogram::ClassOf(UINT64_MAX), LifetimeHistogram::kClasses - 1);
  EXPECT_EQ(LifetimeHistogram::ClassOf(0), LifetimeHistogram::ClassOf(1));
  EXPECT_EQ(LifetimeHistogram::ClassOf(2), 2u);
  EXPECT_EQ(LifetimeHistogram::ClassOf(3), 3u);
}

TEST(LifetimeHistogramTest, QuantilesAreWithinHalfAnOctave) {
  LifetimeHistogram histogram;
  EXPECT_EQ(histogram.Quantile(0.5), 0);
  for (uint64_t ns = 1000; ns <= 100'000; ns += 10) histogram.Add(ns);
  EXPECT_NEAR(histogram.Quantile(0.5), 50'000, 10'000);
  EXPECT_NEAR(histogram.Quantile(0.9), 90'000, 10'000);
  EXPECT_NEAR(histogram.ShareAbove(50'000), 0.5, 0.1);
  EXPECT_EQ(histogram.ShareAbove(1e9), 0);
  EXPECT_EQ(histogram.ShareAbove(0), 1);
}

TEST(LifetimeHistogramTest, OneBlockHasOneLifetime) {
  LifetimeHistogram one;
  one.Add(200'200'000);
  for (const double q : {0.0, 0.5, 0.9, 0.99, 1.0}) {
    EXPECT_EQ(one.Quantile(q), one.Quantile(0.5)) << q;
    EXPECT_EQ(one.Quantile(q, 200'200'000), 200'200'000) << q;
  }
  one.Add(200'000'000);
  EXPECT_EQ(one.Quantile(0.99, 400'200'000), 200'100'000);
  one.Add(5);  // of another class: which of them lived how long the sum does not say
  EXPECT_LT(one.Quantile(0.3, 400'200'005), 10);
  EXPECT_GT(one.Quantile(0.5, 400'200'005), 134e6);
}

}  // namespace
}  // namespace memtrace::report
