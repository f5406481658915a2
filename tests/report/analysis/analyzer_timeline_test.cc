// What a pass over a trace finds of the run's course: samples of what was used, and the page faults between them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "report/analysis/analyzer.h"
#include "tests/report/test_util.h"
#include "tests/report/trace_builder.h"

namespace memtrace::report {
namespace {

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

// The program's start is before the first sample, and of each range that begins with it.
TEST(AnalyzerTest, FaultsOfARangeFromTheBeginningAreCountedFromThere) {
  constexpr uint64_t kMs = 1'000'000;
  TraceBuilder trace;
  auto& t = trace.Thread(1, 100, "main");
  t.At(1 * kMs).Usage(110, 1, 4 << 20, 20).Malloc(0x1010, 5).At(1 * kMs);
  t.At(2 * kMs).Usage(210, 1, 4 << 20, 40).At(2 * kMs);
  trace.Counter("tool_minor_faults", 70).End(0, 3 * kMs);  // of 300 minor, 2 major
  const auto faults = [bytes = trace.Build()](uint64_t from_ns, uint64_t to_ns) {
    const Faults f = Analyze(bytes, RangeOf(from_ns, to_ns)).analysis.faults;
    return std::vector<double>{static_cast<double>(f.minor), static_cast<double>(f.tool_minor)};
  };
  using ::testing::DoubleNear;
  using ::testing::ElementsAre;
  constexpr uint64_t kSecond = 2 * kMs + 1000;  // behind the second sample
  EXPECT_THAT(faults(0, kSecond), ElementsAre(DoubleNear(170, 1), DoubleNear(40, 1)));
  // Between the last sample that was read and the end.
  EXPECT_THAT(faults(0, 5 * kMs / 2), ElementsAre(DoubleNear(200, 1), DoubleNear(55, 1)));
  EXPECT_THAT(faults(0, 4 * kMs), ElementsAre(230, 70)) << "all of the run";
  EXPECT_THAT(faults(3 * kMs / 2, kSecond), ElementsAre(DoubleNear(40, 1), DoubleNear(10, 1)));
  EXPECT_THAT(faults(1, kSecond), ElementsAre(DoubleNear(80, 1), DoubleNear(20, 1)));
}

// In a damaged trace the tracer's own may become fewer: of a part of the time there are then none.
TEST(AnalyzerTest, OwnFaultsOfAPartOfTheTimeAreNotLessThanNone) {
  TraceBuilder trace;
  auto& t = trace.Thread(1, 100, "main");
  t.At(1000).Usage(100, 1, 4 << 20, 20).Malloc(0x1010, 5);
  t.At(2000).Usage(200, 1, 4 << 20, 10).At(3000);
  const Analysis part = Analyze(trace.Build(), RangeOf(500, 2500)).analysis;
  ASSERT_EQ(part.faults.samples.size(), 2u);
  EXPECT_EQ(part.faults.tool_minor, 0u);
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
  EXPECT_GT(a.fault_details.correlation.bins, 0u);

  // The heap of some blocks is not what the process's faults go with. A range has the heap of all.
  AnalyzeOptions options;
  options.filter.sizes.low = 4096;
  const Analysis some = Analyze(trace.Build(), options).analysis;
  EXPECT_TRUE(some.of_some_blocks());
  EXPECT_EQ(some.faults.minor, a.faults.minor) << "they are the process's";
  EXPECT_FALSE(some.faults.correlation_known);
  EXPECT_EQ(some.fault_details.correlation.bins, 0u);
  AnalyzeOptions one_thread;
  one_thread.thread = ThreadId{1};
  EXPECT_FALSE(Analyze(trace.Build(), one_thread).analysis.faults.correlation_known);
  EXPECT_TRUE(Analyze(trace.Build(), RangeOf(20'000, 45'000)).analysis.faults.correlation_known);
}

}  // namespace
}  // namespace memtrace::report
