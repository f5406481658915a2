// What a pass over a trace finds of a part of the run: a range of time, one thread.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/analysis/analyzer.h"
#include "tests/report/test_util.h"
#include "tests/report/trace_builder.h"

namespace memtrace::report {
namespace {

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

// One that was killed while it slept: its run is as long as it was seen.
TEST(AnalyzerTest, OfAKilledRunAShareIsOfWhatWasSeenOfIt) {
  TraceBuilder trace;
  trace.Thread(1, 100, "main").At(1'000'000'000).Malloc(0x1010, 10).At(2'000'000'000);
  trace.ObservedEnd(format::ObservedEndKind::kSignal, 9, 8'000'000'000);
  AnalyzeOptions options;
  options.to_share = 0.5;
  const Analysis a = Analyze(trace.Build(), options).analysis;
  EXPECT_EQ(a.process.duration_ns, 8'000'000'000u);
  EXPECT_EQ(a.range.to_ns, 4'000'000'000u);
}

// Not of the range: it would read as if the process had hung.
TEST(AnalyzerTest, TheLastEventIsThatOfTheRun) {
  const Analysis a = Analyze(FourSeconds(/*ends=*/false), RangeOf(0, 2'500'000'000)).analysis;
  EXPECT_EQ(a.process.last_event_ns, 4'000'000'000u);
  EXPECT_EQ(a.process.duration_ns, 4'000'000'000u);
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
  trace.Thread(3, 102, "idle").At(500).Malloc(0x4010, 40).Free(0x4010).At(600);
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
  // And the threads that freed such blocks.
  ASSERT_EQ(worker.threads.size(), 2u);
  EXPECT_EQ(worker.threads[0].tid, 100u);
  EXPECT_EQ(worker.threads[0].allocations, 0u);
  EXPECT_EQ(worker.threads[0].frees, 1u);
  EXPECT_EQ(worker.threads[1].name, "worker");
  EXPECT_EQ(worker.threads[1].allocations, 1u);
  EXPECT_EQ(worker.threads[1].frees, 0u) << "what it freed is the other thread's";
  ASSERT_EQ(worker.exchanges.size(), 1u);
  EXPECT_EQ(worker.exchanges[0].from, worker.threads[1].id);
  EXPECT_EQ(worker.exchanges[0].to, worker.threads[0].id);
  options.thread_name = "100";
  EXPECT_EQ(Analyze(bytes, options).analysis.totals.live_bytes, 20u) << "by tid";
  options.thread_name = "main";
  EXPECT_EQ(Analyze(bytes, options).analysis.totals.allocations, 3u) << "both had that name";
  options.thread_name = "nobody";
  auto reader = Read(bytes);
  EXPECT_EQ(AnalyzeTrace(**reader, options).status().message(),
            "test.mtr has no thread 'nobody'; its threads are: idle, main, worker");
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

}  // namespace
}  // namespace memtrace::report
