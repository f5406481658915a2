// The order of events of several threads: exact where the stamps suffice, and where
// they do not, still an order in which every allocation and free is counted once.

#include "report/trace/event_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/report/history.h"
#include "tests/report/test_util.h"
#include "tests/report/trace_builder.h"

namespace memtrace::report {
namespace {

struct Score {
  uint64_t events = 0;
  uint64_t misplaced = 0;  // unordered, unknown or unseen
  uint64_t wrong_addresses = 0;  // live in one, not in the other
};

// Histories with these stamps; what holds for any of them is checked here.
Score Play(const HistoryOptions& history_options, const TraceOptions& trace_options, int rounds,
           uint64_t seed) {
  std::mt19937_64 random(seed);
  AnalyzeOptions options;
  options.keep_live_blocks = true;
  Score score;
  for (int round = 0; round < rounds; ++round) {
    const std::vector<Action> history = MakeHistory(history_options, random);
    const Truth truth = TruthOf(history);
    const Analysis a = Analyze(TraceOf(history, trace_options, random), options).analysis;
    EXPECT_EQ(a.totals.allocations, truth.allocations);
    EXPECT_EQ(a.totals.bytes_allocated, truth.bytes_allocated);
    EXPECT_EQ(a.totals.failed_allocations, truth.failed);
    EXPECT_EQ(a.totals.live_blocks, a.totals.allocations - a.totals.frees);
    // Whatever is taken for lost on one side is missing on the other.
    const uint64_t counted = a.totals.frees + a.coverage.unknown_frees;
    EXPECT_GE(counted, truth.frees + a.coverage.unseen_frees);
    EXPECT_LE(counted, truth.frees + a.coverage.unseen_frees + a.coverage.unordered_events);
    score.events += a.coverage.events;
    score.misplaced += a.coverage.unknown_frees + a.coverage.unseen_frees +
                       a.coverage.unordered_events;
    std::vector<uint64_t> found, is, differ;
    for (const LiveBlock& block : a.live) found.push_back(block.address);
    for (const auto& [address, block] : truth.live) is.push_back(address);
    std::set_symmetric_difference(found.begin(), found.end(), is.begin(), is.end(),
                                  std::back_inserter(differ));
    score.wrong_addresses += differ.size();
    if (testing::Test::HasFailure()) {
      ADD_FAILURE() << "round " << round;
      break;
    }
  }
  return score;
}

TEST(EventOrderTest, IsExactWhereStampsSuffice) {
  HistoryOptions history;
  history.threads = 8;
  history.actions = 2000;
  history.addresses = 10;  // every one passes through all threads
  const Score score = Play(history, {1, 1, 0.05}, 100, 1);
  EXPECT_EQ(score.misplaced, 0u);
  EXPECT_EQ(score.wrong_addresses, 0u);
}

TEST(EventOrderTest, IsExactWhereStampsAreAtChangesOfOwner) {
  for (const double stamp : {0.0, 1.0 / 16}) {
    for (const int addresses : {2, 10, 300}) {
      HistoryOptions history;
      history.threads = 8;
      history.actions = 2000;
      history.addresses = addresses;
      history.sleep_chance = 0.002;
      const Score score = Play(history, {stamp, 0, 0.02, true}, 60, 5);
      EXPECT_EQ(score.misplaced, 0u) << addresses;
      EXPECT_EQ(score.wrong_addresses, 0u) << addresses;
    }
  }
}

// By the time of its stamp, not by what the address was.
TEST(EventOrderTest, AFreeOfAnotherProcesssBlockIsNotTakenForTheNextOne) {
  TraceBuilder::Options options;
  options.stamp_rule = format::StampRule::kChangeOfOwner;
  TraceBuilder trace(options);
  trace.Thread(1).At(1000).Free(0x1010);
  trace.Thread(2).At(1001).Malloc(0x1010, 10);
  const Analysis analysis = Analyze(trace.Build()).analysis;
  EXPECT_EQ(analysis.coverage.unknown_frees, 1u);
  EXPECT_EQ(analysis.totals.live_blocks, 1u);
}

// A realloc moved the block, and its old address was another's before the result was written.
TEST(EventOrderTest, AnAddressThatAReallocLeftIsAnothersAtOnce) {
  TraceBuilder::Options options;
  options.stamp_rule = format::StampRule::kChangeOfOwner;
  TraceBuilder trace(options);
  auto& a = trace.Thread(1);
  auto& b = trace.Thread(2);
  a.At(100).Malloc(0x1010, 10).ReallocIntent(0x1010);
  b.At(1000).Malloc(0x1010, 5).Free(0x1010).Malloc(0x1010, 6);
  a.At(2000).ReallocResult(0x2010, 50);
  const Analysis analysis = Analyze(trace.Build()).analysis;
  EXPECT_EQ(analysis.totals.live_bytes, 56u);
  EXPECT_EQ(analysis.totals.frees, 2u);
  EXPECT_EQ(analysis.coverage.unordered_events + analysis.coverage.unseen_frees, 0u);
}

TEST(EventOrderTest, AlternationReplacesMostStamps) {
  HistoryOptions history;
  history.awkward_reallocs = false;
  history.threads = 4;
  history.actions = 3000;
  history.addresses = 300;
  const Score score = Play(history, {0.125, 0, 0.01}, 100, 2);
  RecordProperty("misplaced", static_cast<int>(score.misplaced));
  RecordProperty("wrong_addresses", static_cast<int>(score.wrong_addresses));
  EXPECT_LE(score.misplaced, score.events / 500);
  EXPECT_LE(score.wrong_addresses, 60u);
}

TEST(EventOrderTest, SurvivesThreadsThatSleepBetweenStamps) {
  HistoryOptions history;
  history.awkward_reallocs = false;
  history.threads = 4;
  history.actions = 3000;
  history.addresses = 300;
  history.sleep_chance = 0.002;
  const Score score = Play(history, {0.125, 0, 0.01}, 100, 3);
  RecordProperty("misplaced", static_cast<int>(score.misplaced));
  RecordProperty("wrong_addresses", static_cast<int>(score.wrong_addresses));
  EXPECT_LE(score.misplaced, score.events / 200);
}

TEST(EventOrderTest, FinishesWithHardlyAnyStamps) {
  HistoryOptions history;
  history.awkward_reallocs = false;
  history.threads = 6;
  history.actions = 500;
  history.addresses = 6;
  const Score score = Play(history, {0.002, 0, 0.002}, 300, 4);
  RecordProperty("misplaced", static_cast<int>(score.misplaced));
  EXPECT_GT(score.events, 0u);
}

TEST(EventOrderTest, RepairsAFreeThatCameFirst) {
  TraceBuilder trace;
  auto& a = trace.Thread(1);
  auto& b = trace.Thread(2);
  b.At(1000).Free(0x1010).At(9000);    // its likely time is before the alloc's
  a.At(5000).Malloc(0x1010, 10).At(6000);
  const Analysis analysis = Analyze(trace.Build()).analysis;
  EXPECT_EQ(analysis.totals.frees, 1u);
  EXPECT_EQ(analysis.totals.live_blocks, 0u);
  EXPECT_EQ(analysis.coverage.unknown_frees, 0u);
}

TEST(EventOrderTest, RepairsAnAllocThatCameFirst) {
  TraceBuilder trace;
  auto& a = trace.Thread(1);
  auto& b = trace.Thread(2);
  a.At(100).Malloc(0x1010, 10).At(200);
  b.At(1000).Malloc(0x1010, 20).At(9000);
  a.At(5000).Free(0x1010).At(6000);
  const Analysis analysis = Analyze(trace.Build()).analysis;
  EXPECT_EQ(analysis.totals.live_bytes, 20u);
  EXPECT_EQ(analysis.coverage.unseen_frees, 0u);
  EXPECT_EQ(analysis.coverage.unordered_events, 0u);
}

TEST(EventOrderTest, DoesNotWaitForWhatCannotCome) {
  TraceBuilder trace;
  auto& a = trace.Thread(1);
  auto& b = trace.Thread(2);
  b.At(1000).Free(0x1010).At(2000);
  a.At(5000).Malloc(0x1010, 10).At(6000);  // surely later: another block
  const Analysis analysis = Analyze(trace.Build()).analysis;
  EXPECT_EQ(analysis.coverage.unknown_frees, 1u);
  EXPECT_EQ(analysis.totals.live_bytes, 10u);
}

TEST(EventOrderTest, AnAddressInTheMiddleOfAReallocIsNobodysElse) {
  TraceBuilder trace;
  auto& a = trace.Thread(1);
  auto& b = trace.Thread(2);
  a.At(100).Malloc(0x1010, 10).At(200);
  a.At(1000).ReallocIntent(0x1010).At(1100);
  b.At(1000).Malloc(0x1010, 5).At(3000);
  a.At(2000).ReallocResult(0x2010, 50).At(2100);
  const Analysis analysis = Analyze(trace.Build()).analysis;
  EXPECT_EQ(analysis.totals.live_bytes, 55u);
  EXPECT_EQ(analysis.coverage.unordered_events + analysis.coverage.unseen_frees, 0u);
}

TEST(EventOrderTest, AThreadMayBeFlushedLongAfterItsEvents) {
  TraceBuilder trace;
  auto& slow = trace.Thread(1);
  auto& fast = trace.Thread(2);
  slow.At(1000).Malloc(0x1010, 10).At(1100);
  for (int i = 0; i < 1000; ++i) fast.At(2000 + 10 * i).Malloc(0x100000 + 16 * i, 1).Flush();
  fast.Free(0x1010).Flush(20'000);
  slow.Flush(30'000);
  const Analysis analysis = Analyze(trace.Build()).analysis;
  EXPECT_EQ(analysis.coverage.unknown_frees, 0u);
  EXPECT_EQ(analysis.totals.live_blocks, 1000u);
}

TEST(EventOrderTest, ManyThreadsThatComeAndGo) {
  TraceBuilder trace;
  for (uint32_t i = 1; i <= 3000; ++i) {
    auto& t = trace.Thread(i, 1000 + i, "t", i * 1000);
    t.At(i * 1000).Malloc(0x10000 + i * 16, i).At(i * 1000 + 10);
    if (i > 1) t.Free(0x10000 + (i - 1) * 16);  // of the thread before
    t.Flush(i * 1000 + 500);
  }
  const Analysis analysis = Analyze(trace.Build()).analysis;
  EXPECT_EQ(analysis.totals.live_blocks, 1u);
  EXPECT_EQ(analysis.totals.peak_live_blocks, 2u);
  EXPECT_EQ(analysis.coverage.unknown_frees, 0u);
  EXPECT_EQ(analysis.threads.size(), 3000u);
}

TEST(EventOrderTest, EventsBeginAtTheirStampAndFollowAtThePaceBefore) {
  TraceBuilder trace;
  auto& t = trace.Thread(1);
  t.At(0);
  for (int i = 0; i < 10; ++i) t.Malloc(0x1010 + 16 * i, 1);
  t.At(1000);  // 100 ns each
  t.Malloc(0x2010, 1).At(5'000'000'000);  // then it slept
  AnalyzeOptions options;
  options.keep_live_blocks = true;
  const Analysis a = Analyze(trace.Build(), options).analysis;
  ASSERT_EQ(a.live.size(), 11u);
  EXPECT_EQ(a.live[0].time_ns, 0u);
  EXPECT_EQ(a.live[9].time_ns, 900u);
  EXPECT_EQ(a.live[10].time_ns, 1000u);  // and not in the middle of its sleep
}

}  // namespace
}  // namespace memtrace::report
