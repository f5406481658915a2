// What a pass over a trace finds, field by field, on traces small enough to count by hand.

#include "report/analyzer.h"
#include "report/coverage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/report/test_util.h"
#include "tests/report/trace_builder.h"

namespace memtrace::report {
namespace {

using format::AllocFunction;

TEST(MemoryMapTest, ReservedAndSharedMemoryIsNoGrowth) {
  TraceBuilder trace;
  trace.MemoryMap(format::MapReason::kStart, "00500000-00521000 rw-p 00000000 00:00 0 [heap]\n");
  trace.Thread(1, 100, "main").At(1)
      .Mmap(0x7f0000000000, 0x40000000).Mmap(0x7f1000000000, 0x20000).Mmap(0x7f2000000000, 0x3000);
  trace.MemoryMap(format::MapReason::kEnd,
                  "00500000-00521000 rw-p 00000000 00:00 0 [heap]\n"
                  "7f0000000000-7f0000010000 rw-p 00000000 00:00 0 \n"
                  "7f0000010000-7f0040000000 ---p 00000000 00:00 0 \n"
                  "7f1000000000-7f1000020000 rw-s 00000000 00:01 99 /dev/zero (deleted)\n"
                  "7f2000000000-7f2000003000 rw-p 00000000 00:00 0 \n", 2);
  trace.End(0, 3);
  const MemoryMapSummary map = Analyze(trace.Build()).analysis.memory_map;
  EXPECT_EQ(map.program_mmap_bytes, 0x13000u);
  EXPECT_EQ(map.program_other_mmap_bytes, 0x40000000u - 0x10000 + 0x20000);
  EXPECT_EQ(map.unexplained_bytes, 0);
}

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

AnalyzeOptions RangeOf(uint64_t from, uint64_t to) {
  AnalyzeOptions options;
  options.range = {from, to};
  return options;
}

std::string FourSeconds(bool ends = true) {
  TraceBuilder trace;
  auto& t = trace.Thread(1, 100, "main");
  constexpr uint64_t kS = 1'000'000'000;
  t.Node(1, 0x401000).Node(2, 0x402000);
  t.At(1 * kS).Malloc(0x1010, 100, 1).At(1 * kS);
  t.At(2 * kS).Malloc(0x2010, 200, 2).Malloc(0x3010, 50, 2).Free(0x3010).At(2 * kS);
  t.At(3 * kS).Free(0x1010).Malloc(0x4010, 400, 1).At(3 * kS);
  t.At(4 * kS).Free(0x2010).At(4 * kS);
  if (ends) trace.End(0, 4 * kS);
  return trace.Build();
}

TEST(AnalyzerTest, ARangeSelectsTheBlocksAllocatedInIt) {
  const AnalyzedTrace t = Analyze(FourSeconds(), RangeOf(1'500'000'000, 3'500'000'000));
  const Analysis& a = t.analysis;
  EXPECT_EQ(a.totals.allocations, 3u);
  EXPECT_EQ(a.totals.frees, 1u) << "of the block of 50 bytes";
  EXPECT_EQ(a.totals.earlier_frees, 1u) << "of the block allocated before";
  EXPECT_EQ(a.totals.live_bytes, 600u);
  EXPECT_EQ(a.totals.peak_live_bytes, 600u);
  EXPECT_EQ(FindSite(t, 0x401000)->live_bytes, 400u);
  EXPECT_EQ(FindSite(t, 0x401000)->allocations, 1u);
  EXPECT_EQ(a.coverage.events, 5u);
  EXPECT_FALSE(a.memory_map.known);
  EXPECT_GE(a.timeline.front().time_ns, 1'500'000'000u);
  EXPECT_LE(a.timeline.back().time_ns, 3'500'000'000u + a.timeline_interval_ns);
  EXPECT_EQ(a.process.duration_ns, 4'000'000'000u) << "the process ended when it did";
}

TEST(AnalyzerTest, ARangeMayBeGivenInShares) {
  AnalyzeOptions options;
  options.from_share = 0.375;
  options.to_share = 0.875;
  const Analysis a = Analyze(FourSeconds(), options).analysis;
  EXPECT_EQ(a.range.from_ns, 1'500'000'000u);
  EXPECT_EQ(a.range.to_ns, 3'500'000'000u);
  EXPECT_EQ(a.totals.live_bytes, 600u);
}

// A killed process, an imported log.
TEST(AnalyzerTest, OfARunWithoutAnEndAShareIsOfWhatItCameTo) {
  AnalyzeOptions options;
  options.from_share = 0.375;
  options.to_share = 0.875;
  const Analysis a = Analyze(FourSeconds(/*ends=*/false), options).analysis;
  EXPECT_EQ(a.range.from_ns, 1'500'000'000u);
  EXPECT_EQ(a.range.to_ns, 3'500'000'000u);
  EXPECT_EQ(a.totals.live_bytes, 600u);
  options.from_share.reset();
  options.to_share = 1;
  EXPECT_EQ(Analyze(FourSeconds(/*ends=*/false), options).analysis.totals.allocations, 4u);
}

TEST(AnalyzerTest, ARangeThatEndsBeforeItBeginsIsRefused) {
  auto reader = Read(FourSeconds());
  EXPECT_FALSE(AnalyzeTrace(**reader, RangeOf(5, 4)).ok());
}

TEST(AnalyzerTest, ARangeMayEndButNotBeginBehindTheEnd) {
  TraceBuilder trace;
  trace.Thread(1, 100, "main").At(1000).Malloc(0x1010, 10).At(2'000'000'000);
  trace.End(0, 2'500'000'000);
  const std::string bytes = trace.Build();
  EXPECT_TRUE(Analyze(bytes, RangeOf(0, 2'600'000'000)).analysis.range.whole());
  EXPECT_FALSE(Analyze(bytes, RangeOf(0, 2'400'000'000)).analysis.range.whole());
  EXPECT_EQ(Analyze(bytes, RangeOf(2'400'000'000, 2'600'000'000)).analysis.totals.allocations, 0u);
  auto reader = Read(bytes);
  EXPECT_EQ(AnalyzeTrace(**reader, RangeOf(2'600'000'000, UINT64_MAX)).status().message(),
            "--from lies behind the end of test.mtr, which ran for 2.500000 s");
}

// Of a process that was killed the last event is all that is known.
TEST(AnalyzerTest, ARangeDoesNotBeginBehindTheLastEventWhereThereIsNoEnd) {
  TraceBuilder trace;
  trace.Thread(1, 100, "main").At(1000).Malloc(0x1010, 10).At(2'000'000'000).Malloc(0x2010, 20);
  const std::string bytes = trace.Build();
  EXPECT_EQ(Analyze(bytes, RangeOf(1'500'000'000, UINT64_MAX)).analysis.totals.allocations, 1u);
  auto reader = Read(bytes);
  EXPECT_EQ(AnalyzeTrace(**reader, RangeOf(3'600'000'000'000, UINT64_MAX)).status().message(),
            "--from lies behind the last event of test.mtr, at 2.000000 s");
}

TEST(AnalyzerTest, NothingIsInARangeWithoutEvents) {
  const Analysis a = Analyze(FourSeconds(), RangeOf(3'500'000'000, 3'600'000'000)).analysis;
  EXPECT_EQ(a.totals.allocations, 0u);
  EXPECT_EQ(a.totals.earlier_frees, 0u);
  EXPECT_TRUE(a.sites.empty());
}

TEST(AnalyzerTest, AThreadSelectsTheBlocksItAllocated) {
  TraceBuilder trace;
  auto& a = trace.Thread(1, 100, "main");
  auto& b = trace.Thread(2, 101, "main");
  b.At(500).Name("worker");
  a.At(1000).Malloc(0x1010, 10).Malloc(0x2010, 20).At(1100);
  b.At(2000).Malloc(0x3010, 30).Free(0x1010).At(2100);
  a.At(3000).Free(0x3010).At(3100);
  const std::string bytes = trace.Build();
  AnalyzeOptions options;
  options.thread_name = "worker";
  const Analysis worker = Analyze(bytes, options).analysis;
  EXPECT_EQ(worker.totals.allocations, 1u);
  EXPECT_EQ(worker.totals.frees, 1u);
  EXPECT_EQ(worker.totals.earlier_frees, 0u) << "nothing is before a whole run";
  ASSERT_EQ(worker.threads.size(), 1u);
  EXPECT_EQ(worker.threads[0].name, "worker");
  options.thread_name = "100";
  EXPECT_EQ(Analyze(bytes, options).analysis.totals.live_bytes, 20u) << "by tid";
  options.thread_name = "main";
  EXPECT_EQ(Analyze(bytes, options).analysis.totals.allocations, 3u) << "both had that name";
  options.thread_name = "nobody";
  auto reader = Read(bytes);
  EXPECT_EQ(AnalyzeTrace(**reader, options).status().message(),
            "test.mtr has no thread 'nobody'; its threads are: main, worker");
}

// Failures and reallocations are of the selection, and what is earlier is earlier than the range.
TEST(AnalyzerTest, EveryTotalIsOfTheSelection) {
  TraceBuilder trace;
  auto& a = trace.Thread(1, 100, "main");
  auto& b = trace.Thread(2, 101, "worker");
  constexpr uint64_t kS = 1'000'000'000;
  a.At(1 * kS).Node(1, 0x401000).Node(2, 0x402000);
  a.Malloc(0x1010, 100, 1).Malloc(0x2010, 20, 2).Malloc(0, 30, 1).At(1 * kS);
  b.At(2 * kS).Node(1, 0x403000).Malloc(0, 40, 1).Malloc(0x3010, 50, 1).At(2 * kS);
  a.At(3 * kS).Realloc(0x1010, 0x4010, 200, 1).Free(0x2010).At(3 * kS);
  b.At(4 * kS).Realloc(0x3010, 0x5010, 60, 1).Free(0x5010).At(4 * kS);
  trace.End(0, 4 * kS);
  const std::string bytes = trace.Build();
  struct Expected {
    uint64_t failed, reallocations, earlier;
  };
  const auto expect = [&bytes](const AnalyzeOptions& options, const Expected& expected) {
    const Totals totals = Analyze(bytes, options).analysis.totals;
    EXPECT_EQ(totals.failed_allocations, expected.failed);
    EXPECT_EQ(totals.reallocations, expected.reallocations);
    EXPECT_EQ(totals.earlier_frees, expected.earlier);
  };
  expect({}, {2, 2, 0});
  expect(RangeOf(2'500'000'000, UINT64_MAX), {0, 2, 3});
  AnalyzeOptions options = RangeOf(2'500'000'000, UINT64_MAX);
  options.filter.sizes = {50, 1000};
  expect(options, {0, 2, 2});
  options = {};
  options.thread_name = "worker";
  expect(options, {1, 1, 0});
  options = {};
  options.filter.sizes = {35, 55};
  expect(options, {1, 0, 0});
  options = {};
  options.filter.sites = [](StackId) { return false; };
  expect(options, {0, 0, 0});
}

TEST(AnalyzerTest, TheTimelineAddsUpAtAnyLength) {
  for (const uint64_t step : {uint64_t{100}, uint64_t{1'000'000}, uint64_t{100'000'000'000}}) {
    TraceBuilder trace;
    auto& t = trace.Thread(1, 100, "main");
    for (uint64_t i = 1; i <= 3000; ++i) {
      t.At(i * step).Malloc(i * 16, 10);
      if (i % 3 == 0) t.Free(i * 16);
      t.At(i * step);
    }
    const Analysis a = Analyze(trace.Build()).analysis;
    EXPECT_LE(a.timeline.size(), 1024u);
    EXPECT_GE(a.timeline.size(), step == 100 ? 300u : 512u);
    uint64_t allocations = 0, frees = 0, bytes = 0, max = 0, last = 0;
    for (const TimelinePoint& point : a.timeline) {
      allocations += point.allocations;
      frees += point.frees;
      bytes += point.bytes_allocated;
      max = std::max(max, point.max_live_bytes);
      EXPECT_EQ(point.time_ns, last + a.timeline_interval_ns);
      last = point.time_ns;
    }
    EXPECT_EQ(allocations, 3000u);
    EXPECT_EQ(frees, 1000u);
    EXPECT_EQ(bytes, 30'000u);
    EXPECT_EQ(max, a.totals.peak_live_bytes);
    EXPECT_EQ(a.timeline.back().live_bytes, a.totals.live_bytes);
    EXPECT_GE(last, 3000 * step);
  }
}

// Reading the resident size costs more than the rest of a sample: most go without.
TEST(AnalyzerTest, ResidentBytesStandUntilTheNextSampleThatHasThem) {
  TraceBuilder trace;
  auto& t = trace.Thread(1, 100, "main");
  constexpr uint64_t kMs = 1'000'000;
  t.At(1 * kMs).Malloc(0x10010, 10).At(1 * kMs);
  t.At(2 * kMs).Usage(100, 0, 4 << 20, 0).At(2 * kMs);
  t.At(3 * kMs).Usage(101, 0, 0, 0).At(3 * kMs);
  t.At(4 * kMs).Usage(102, 0, 6 << 20, 0).At(4 * kMs);
  t.At(5 * kMs).Usage(103, 0, 0, 0).At(6 * kMs);
  for (const TimelinePoint& point : Analyze(trace.Build()).analysis.timeline) {
    EXPECT_EQ(point.rss_bytes >> 20, point.time_ns < 2 * kMs   ? 0u
                                     : point.time_ns < 4 * kMs ? 4u
                                                               : 6u)
        << "at " << point.time_ns << " ns";
  }
}

TEST(AnalyzerTest, FaultsOfTheToolThatAreCountedTooEarlyTakeNothingAway) {
  constexpr uint64_t kMs = 1'000'000;
  TraceBuilder trace;
  trace.Thread(1, 100, "main")
      .At(1 * kMs).Usage(100, 0, 4096, 10).Malloc(0x1010, 10)
      .At(2 * kMs).Usage(101, 0, 4096, 40)  // 30 of these the kernel tells of next time
      .At(3 * kMs).Usage(140, 0, 4096, 40).Malloc(0x2010, 10).At(4 * kMs);
  const Analysis a = Analyze(trace.Build()).analysis;
  uint64_t minor = 0;
  for (const TimelinePoint& point : a.timeline) {
    EXPECT_LE(point.minor_faults, 10u);
    minor += point.minor_faults;
  }
  EXPECT_EQ(minor, 10u) << "of 90 at the first sample, 100 in the end";
}

// The library's work at the exit is behind the last sample.
TEST(AnalyzerTest, FaultsAddUpToThoseOfTheEnd) {
  TraceBuilder trace;
  trace.Thread(1, 100, "main").At(1000).Usage(110, 1, 4 << 20, 20).Malloc(0x1010, 5).At(2000);
  trace.Counter("tool_minor_faults", 70).End(0, 3000);  // of 300 minor, 2 major
  const Analysis whole = Analyze(trace.Build()).analysis;
  EXPECT_EQ(whole.faults.tool_minor, 70u);
  EXPECT_EQ(whole.faults.minor, 230u);
  EXPECT_EQ(whole.faults.major, 2u);
  EXPECT_EQ(whole.coverage.tool_minor_faults, 70u);

  // Of its own one more than the kernel had counted: the program does not take one back.
  TraceBuilder ahead;
  ahead.Thread(1, 100, "main").At(1000).Usage(300, 1, 4 << 20, 20).Malloc(0x1010, 5).At(2000);
  ahead.Counter("tool_minor_faults", 21).End(0, 3000);
  const Analysis last = Analyze(ahead.Build()).analysis;
  EXPECT_EQ(last.faults.minor, 280u);
  EXPECT_EQ(last.faults.tool_minor, 20u);
}

TEST(AnalyzerTest, FaultsAreSeenWhenTheyHappenWithoutTheTracersOwn) {
  TraceBuilder trace;
  auto& t = trace.Thread(1, 100, "main");
  constexpr uint64_t kMs = 1'000'000;
  // A buffer of 1 MiB: 256 faults when it is first written, none the second time.
  t.At(1 * kMs).Usage(100, 1, 4 << 20, 10);
  t.At(1 * kMs).Malloc(0x10010, 1 << 20).At(1 * kMs);
  t.At(2 * kMs).Usage(110, 1, 4 << 20, 20).At(2 * kMs);
  t.At(3 * kMs).Usage(366, 1, 5 << 20, 20).At(3 * kMs);
  t.At(4 * kMs).Usage(366, 1, 5 << 20, 20).At(4 * kMs);
  const Analysis a = Analyze(trace.Build()).analysis;
  EXPECT_EQ(a.faults.minor, 346u);
  EXPECT_EQ(a.faults.major, 1u);
  EXPECT_EQ(a.faults.tool_minor, 20u);
  EXPECT_EQ(a.faults.peak_rss_bytes, uint64_t{5} << 20);
  uint64_t before = 0, within = 0, after = 0;
  for (const TimelinePoint& point : a.timeline) {
    (point.time_ns <= 2 * kMs + 2000 ? before
     : point.time_ns <= 3 * kMs + 2000 ? within : after) += point.minor_faults;
  }
  EXPECT_LE(before, 2u);
  EXPECT_GE(within, 254u);
  EXPECT_EQ(after, 0u);
  EXPECT_EQ(a.timeline.back().rss_bytes, uint64_t{5} << 20);
  const Analysis range = Analyze(trace.Build(), RangeOf(2 * kMs + 5000, 5 * kMs)).analysis;
  EXPECT_NEAR(static_cast<double>(range.faults.minor), 256, 3);
}

TEST(AnalyzerTest, FaultsGoWithWhatTheProgramAllocates) {
  TraceBuilder trace;
  auto& t = trace.Thread(1, 100, "main");
  uint64_t faults = 0;
  for (uint64_t i = 0; i < 50; ++i) {
    const uint32_t pages = i * 7 % 13;
    t.At(i * 1000 + 10).Malloc(0x100000 * (i + 1), pages * 4096).At(i * 1000 + 20);
    faults += pages;
    t.At(i * 1000 + 30).Usage(faults, 0, 0).At(i * 1000 + 40);
  }
  const Analysis a = Analyze(trace.Build()).analysis;
  EXPECT_TRUE(a.faults.correlation_known);
  EXPECT_NEAR(a.faults.correlation_live, 1, 1e-9);
  EXPECT_NEAR(a.faults.correlation_allocated, 1, 1e-9);
}

TEST(AnalyzerTest, MappingsAreFollowedThroughPartialUnmapsAndMoves) {
  TraceBuilder trace;
  auto& t = trace.Thread(1, 100, "main");
  t.At(1).Node(1, 0x401000).Node(2, 0x402000).Node(3, 0x403000);
  t.Mmap(0x100000, 0x10000, 1).Munmap(0x104000, 0x4000);           // a hole of 16 KiB
  t.Mmap(0x200000, 0x8000, 2, "/etc/some file");
  t.Munmap(0x200000, 0x8000).MunmapFailed(0x200000, 0x8000);       // taken back
  t.Mremap(0x108000, 0x8000, 0x300000, 0x20000, 3);                // grows by 96 KiB
  t.Brk(0x500000, 0x520000, 1).Brk(0x520000, 0x510000, 1);
  t.ArenaGrowth(0x7f0000000000, 0x21000, 2).ArenaGrowth(0x7f0000000000, 0x42000, 3);
  t.Shmat(0x600000, 0x1000, 5, 2).Shmdt(0x600000).MunmapFailed(0x600000, 0).Shmdt(0x600000);
  t.Shmat(0x700000, 0x3000, 6, 3).Shmdt(0x700000).MunmapFailed(0x700000, 0).At(2);  // taken back
  const AnalyzedTrace trace_ = Analyze(trace.Build());
  const auto find = [&](MappingSite::Kind kind, uint64_t pc) {
    for (const MappingSite& site : trace_.analysis.mappings) {
      if (site.kind == kind && trace_.stacks->node(site.stack).pc == pc) return site;
    }
    ADD_FAILURE() << "no such mapping";
    return MappingSite();
  };
  using Kind = MappingSite::Kind;
  EXPECT_EQ(find(Kind::kShm, 0x403000).live_bytes, 0x3000u);
  EXPECT_EQ(find(Kind::kMmap, 0x401000).live_bytes, 0xc000u) << "moved, but still its";
  EXPECT_EQ(find(Kind::kMmap, 0x401000).bytes, 0x10000u);
  EXPECT_EQ(find(Kind::kMmap, 0x402000).live_bytes, 0x8000u);
  EXPECT_EQ(find(Kind::kMmap, 0x402000).file, "/etc/some file");
  EXPECT_EQ(find(Kind::kMmap, 0x403000).live_bytes, 0x18000u);
  EXPECT_EQ(find(Kind::kBrk, 0x401000).live_bytes, 0x10000u);
  EXPECT_EQ(find(Kind::kBrk, 0x401000).calls, 1u);
  EXPECT_EQ(find(Kind::kArenaGrowth, 0x402000).live_bytes, 0x21000u);
  EXPECT_EQ(find(Kind::kArenaGrowth, 0x403000).live_bytes, 0x21000u);
  EXPECT_EQ(find(Kind::kShm, 0x402000).live_bytes, 0u);
  EXPECT_EQ(trace_.analysis.memory_map.program_mmap_bytes, 0xc000u + 0x18000);
  EXPECT_EQ(trace_.analysis.memory_map.heap_growth_seen_bytes, 0x10000u);
}

TEST(AnalyzerTest, AMoveMayLeaveTheOldMappingWhereItWas) {
  constexpr uint32_t kMayMove = 1, kDontUnmap = 4;
  TraceBuilder trace;
  auto& t = trace.Thread(1, 100, "main");
  t.At(1).Node(1, 0x401000).Node(2, 0x402000);
  t.Mmap(0x100000, 0x10000, 1).Mremap(0x100000, 0x10000, 0x300000, 0x10000, 2, kMayMove | kDontUnmap);
  t.Mremap(0x100000, 0, 0x500000, 0x4000, 2, kMayMove).At(2);  // a second mapping of its pages
  t.Munmap(0x100000, 0x8000).At(3);
  const Analysis a = Analyze(trace.Build()).analysis;
  ASSERT_EQ(a.mappings.size(), 2u);
  for (const MappingSite& site : a.mappings) {
    EXPECT_EQ(site.live_bytes, site.calls == 1 ? 0x8000u : 0x14000u);
  }
  EXPECT_EQ(a.memory_map.program_mmap_bytes, 0x1c000u);
}

TEST(AnalyzerTest, ExplainsTheMemoryMap) {
  TraceBuilder trace;
  trace.MemoryMap(format::MapReason::kStart,
                  "00400000-00401000 r-xp 00000000 08:01 1234 /usr/bin/app\n"
                  "00500000-00521000 rw-p 00000000 00:00 0 [heap]\n"
                  "7f0000000000-7f0000010000 rw-p 00000000 00:00 0 \n"
                  "7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0 [stack]\n");
  auto& t = trace.Thread(1, 100, "main");
  t.At(1).HeapGrowth(0x521000, 0x542000).Mmap(0x7f1000000000, 0x30000);
  t.Wide(format::AllocFunction::kMalloc, 0x7f2000000010, 0x1fff0 - 0x100, 0x1fff0, 0, 0,
         format::kWideMapped);
  t.At(2);
  trace.MemoryMap(format::MapReason::kEnd,
                  "00400000-00401000 r-xp 00000000 08:01 1234 /usr/bin/app\n"
                  "00500000-00542000 rw-p 00000000 00:00 0 [heap]\n"
                  "7f0000000000-7f0000010000 rw-p 00000000 00:00 0 \n"
                  "7f1000000000-7f1000030000 rw-p 00000000 00:00 0 \n"
                  "7f2000000000-7f2000020000 rw-p 00000000 00:00 0 \n"
                  "7f3000000000-7f3000001000 ---p 00000000 00:00 0 \n"
                  "7f3000001000-7f3000801000 rw-p 00000000 00:00 0 \n"
                  "7f4000000000-7f4000005000 rw-p 00000000 00:00 0 \n"
                  "7f5000000000-7f5000010000 rw-s 00010000 08:01 99 /tmp/app.mtr\n"
                  "nonsense\n", 2);
  trace.End(0, 3);
  const MemoryMapSummary map = Analyze(trace.Build()).analysis.memory_map;
  EXPECT_TRUE(map.known);
  EXPECT_EQ(map.heap_at_start_bytes, 0x21000u);
  EXPECT_EQ(map.heap_bytes, 0x42000u);
  EXPECT_EQ(map.heap_growth_seen_bytes, 0x21000u);
  EXPECT_EQ(map.anonymous_at_start_bytes, 0x10000u);
  EXPECT_EQ(map.thread_stack_bytes, 0x800000u);
  EXPECT_EQ(map.mapped_blocks_bytes, 0x20000u);
  EXPECT_EQ(map.program_mmap_bytes, 0x30000u);
  EXPECT_EQ(map.tool_bytes, 0x10000u);
  EXPECT_EQ(map.unexplained_bytes, 0x5000);
}

TEST(AnalyzerTest, TellsHowTheProcessEnded) {
  const auto end = [](auto fill) {
    TraceBuilder trace;
    trace.Thread(1, 100, "main").At(1000).Malloc(0x1010, 1).At(1000);
    fill(trace);
    return Analyze(trace.Build()).analysis.process;
  };
  using End = ProcessInfo::End;
  using format::ObservedEndKind;
  EXPECT_EQ(end([](TraceBuilder&) {}).end, End::kCut);
  EXPECT_EQ(end([](TraceBuilder& t) { t.End(7, 2000); }).exit_status, 7);
  EXPECT_EQ(end([](TraceBuilder& t) { t.End(0, 2000, format::EndReason::kExec); }).end, End::kExec);
  EXPECT_EQ(end([](TraceBuilder& t) { t.End(0, 1, format::EndReason::kExec); }).end, End::kCut)
      << "it went on: the exec failed";
  const ProcessInfo killed =
      end([](TraceBuilder& t) { t.ObservedEnd(ObservedEndKind::kSignal, 9); });
  EXPECT_EQ(killed.end, End::kSignal);
  EXPECT_EQ(killed.end_signal, 9);
  EXPECT_EQ(end([](TraceBuilder& t) {
              t.End(0, 2000);
              t.ObservedEnd(ObservedEndKind::kExit, 3);
            }).exit_status, 3) << "what the parent saw outranks";
  EXPECT_EQ(end([](TraceBuilder& t) {
              t.End(0, 2000, format::EndReason::kExec);
              t.ObservedEnd(ObservedEndKind::kSignal, 11);
            }).end, End::kExec) << "it was the next program that crashed";
}

// A child by vfork() in a process with a seccomp filter may have written it.
TEST(AnalyzerTest, BelievesADoubtfulEndOnlyWhereNothingFollows) {
  using End = ProcessInfo::End;
  for (const uint64_t end_ns : {2000, 1}) {
    TraceBuilder trace;
    trace.Thread(1, 100, "main").At(1000).Malloc(0x1010, 1).At(1000);
    trace.End(7, end_ns, format::EndReason::kUnderscoreExit, /*doubtful=*/true);
    const Analysis analysis = Analyze(trace.Build()).analysis;
    EXPECT_EQ(analysis.process.end, end_ns == 1 ? End::kCut : End::kExit);
    EXPECT_EQ(analysis.process.exit_status, end_ns == 1 ? 0 : 7);
    const auto is_told = testing::Contains(testing::HasSubstr("vfork()"));
    if (end_ns == 1) {
      EXPECT_THAT(analysis.coverage.notes, testing::Not(is_told));
    } else {
      EXPECT_THAT(analysis.coverage.notes, is_told);
    }
  }
}

TEST(AnalyzerTest, RecordsBecomeModulesCountersAndNotes) {
  TraceBuilder trace;
  trace.Module(1, format::kModulePermanent | format::kModuleExecutable, 0x400000, 0x500000, 0x1000,
               "/usr/bin/app", "\xab\xcd", 0);
  trace.Module(2, 0, 0x7f0000, 0x7f8000, 0x7f0000, "/usr/lib/plugin.so", "", 500)
      .ModuleUnload(2, 900);
  trace.Counter("cross_checked", 5)
      .Counter("cross_checked", 50)
      .Counter("cross_check_differences", 1);
  trace.Note("One thing was strange.");
  for (const char* file : {"/usr/lib/php/a.so", "b.so", "/c.so", "/d/d.so"}) {
    trace.Note(std::string(file) + " was opened with RTLD_DEEPBIND: what it allocates and frees by libc's malloc "
               "is not in this trace");
  }
  trace.Stopped(format::RecordingStop::kMaxBytes, 0, 1000);
  trace.Thread(1, 100, "main").At(1000).Malloc(0x1010, 1).At(1000);
  const Analysis a = Analyze(trace.Build()).analysis;
  ASSERT_EQ(a.modules.size(), 2u);
  EXPECT_EQ(a.modules[0].path, "/usr/bin/app");
  EXPECT_EQ(a.modules[0].build_id, "\xab\xcd");
  EXPECT_EQ(a.modules[0].unload_time_ns, 0u);
  EXPECT_EQ(a.modules[1].load_time_ns, 500u);
  EXPECT_EQ(a.modules[1].unload_time_ns, 900u);
  EXPECT_EQ(a.coverage.cross_checked, 50u);
  EXPECT_EQ(a.coverage.cross_check_differences, 1u);
  EXPECT_THAT(a.coverage.notes, testing::Contains("One thing was strange."));
  EXPECT_THAT(a.coverage.notes, testing::Contains(testing::HasSubstr("at the size limit")));
  EXPECT_THAT(a.coverage.notes, testing::Contains("a.so, b.so, c.so and 1 more were opened with RTLD_DEEPBIND: what they "
                                                  "allocate and free by libc's malloc is not in this trace"));
}

// Of which the library tells the first sixteen.
TEST(AnalyzerTest, AUserChangedToAndFroIsOneNote) {
  const auto notes = [](int changes) {
    TraceBuilder trace;
    for (int i = 0; i < changes; ++i) {
      trace.Record([&](format::RecordEncoder& record) {
        record.Begin(format::RecordTag::kConfined);
        record.Number(static_cast<uint64_t>(format::Confinement::kPathLost));
        record.Number(trace.TicksAt(1'000'000 * static_cast<uint64_t>(i + 1)));
        record.Bytes(i == 1 ? "chroot" : "seteuid");
        record.Number(4096);
        record.Number(8192);
        record.End();
      });
    }
    trace.Thread(1, 100, "main").At(1000).Malloc(0x1010, 1).At(20'000'000);
    return Analyze(trace.Build()).analysis.coverage.notes;
  };
  using testing::StartsWith;
  EXPECT_THAT(notes(1), testing::ElementsAre(
                            StartsWith("The program gave up rights by seteuid at 0.001 s: the trace")));
  EXPECT_THAT(notes(5),
              testing::ElementsAre(
                  StartsWith("The program gave up rights by seteuid at 0.001 s and 3 times more until "
                             "0.005 s, by chroot at 0.002 s: the trace went on")));
  EXPECT_THAT(notes(16), testing::Contains(testing::HasSubstr("at least 14 times more until 0.016 s")));
}

TEST(AnalyzerTest, RightsThatWereGivenUpHideNothingWhereTheTraceGoesOn) {
  const auto all_recorded = [](format::Confinement what, uint64_t reserve_end) {
    TraceBuilder trace;
    trace.Record([&](format::RecordEncoder& record) {
      record.Begin(format::RecordTag::kConfined);
      record.Number(static_cast<uint64_t>(what));
      record.Number(trace.TicksAt(1'000'000));
      record.Bytes("seteuid");
      record.Number(4096);
      record.Number(reserve_end);
      record.End();
    });
    trace.Thread(1, 100, "main").At(1000).Malloc(0x1010, 1);
    trace.End(0, 20'000'000);
    const Coverage coverage = Analyze(trace.Build()).analysis.coverage;
    EXPECT_EQ(coverage.notes.size(), 1u);
    return AllRecorded(coverage);
  };
  EXPECT_TRUE(all_recorded(format::Confinement::kPathLost, 8192));
  EXPECT_FALSE(all_recorded(format::Confinement::kPathLost, 0));
  EXPECT_FALSE(all_recorded(format::Confinement::kMemoryCallsOnly, 8192));
}

TEST(AnalyzerTest, SizesGoToTheirClasses) {
  TraceBuilder trace;
  auto& t = trace.Thread(1, 100, "main").At(1);
  t.Malloc(0x1010, 0).Malloc(0x1020, 1).Malloc(0x1030, 2).Malloc(0x1040, 3).Malloc(0x1050, 1024);
  t.Free(0x1050).At(2);
  const SizeHistogram sizes = Analyze(trace.Build()).analysis.sizes;
  EXPECT_EQ(sizes.allocations[0], 1u);
  EXPECT_EQ(sizes.allocations[1], 1u);
  EXPECT_EQ(sizes.allocations[2], 2u);
  EXPECT_EQ(sizes.bytes[2], 5u);
  EXPECT_EQ(sizes.allocations[11], 1u);
  EXPECT_EQ(sizes.live_blocks[11], 0u);
  EXPECT_EQ(sizes.live_bytes[2], 5u);
}

TEST(AnalyzerTest, ReportsItsProgress) {
  TraceBuilder trace;
  auto& t = trace.Thread(1, 100, "main").At(1);
  for (int i = 0; i < 1'000'000; ++i) {
    t.Malloc(0x1010, 1).Free(0x1010);
    if (i % 20'000 == 0) t.Flush();
  }
  std::vector<uint64_t> done;
  AnalyzeOptions options;
  uint64_t events = 0;
  options.progress = [&](const ReadProgress& progress) {
    EXPECT_LE(progress.done, progress.total);
    EXPECT_GE(progress.events, events);
    events = progress.events;
    done.push_back(progress.done);
  };
  Analyze(trace.Build(), options);
  EXPECT_EQ(events, 2'000'000u);
  EXPECT_GE(done.size(), 4u);
  EXPECT_TRUE(std::is_sorted(done.begin(), done.end()));
}

}  // namespace
}  // namespace memtrace::report
