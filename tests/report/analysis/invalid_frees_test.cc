// What is told of frees of what was no live block.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "report/analysis/analyzer.h"
#include "report/analysis/coverage.h"
#include "tests/report/test_util.h"
#include "tests/report/trace_builder.h"

namespace memtrace::report {
namespace {

uint64_t PcOf(const AnalyzedTrace& trace, const InvalidFree::Moment& moment) {
  return moment.stack ? trace.stacks->node(moment.stack).pc : 0;
}

class InvalidFreesTest : public ::testing::Test {
 protected:
  InvalidFreesTest() {
    thread_.At(1).Node(1, 0x401000).Node(2, 0x402000).Node(3, 0x403000);
  }
  const InvalidFrees& Find() {
    thread_.At(1000);
    trace_.End(0, 1000);
    analyzed_ = Analyze(trace_.Build());
    return analyzed_.analysis.invalid_frees;
  }
  uint64_t Pc(const InvalidFree::Moment& moment) { return PcOf(analyzed_, moment); }

  TraceBuilder trace_;
  ThreadScript& thread_ = trace_.Thread(1, 4242, "main");
  AnalyzedTrace analyzed_;
};

TEST_F(InvalidFreesTest, ADoubleFreeHasThreeStacks) {
  thread_.At(10).Malloc(0x10010, 18, 1);
  thread_.At(20).FreeWithStack(0x10010, 2);
  thread_.At(30).FreeWithStack(0x10010, 3);
  const InvalidFrees& found = Find();
  ASSERT_EQ(found.stories.size(), 1u);
  const InvalidFree& story = found.stories[0];
  EXPECT_EQ(story.kind, InvalidFree::Kind::kFreedBefore);
  EXPECT_EQ(story.times, 1u);
  EXPECT_EQ(story.address, 0x10010u);
  EXPECT_EQ(story.block_bytes, 18u);
  EXPECT_EQ(Pc(story.allocated), 0x401000u);
  EXPECT_EQ(Pc(story.freed), 0x402000u);
  EXPECT_EQ(Pc(story.again), 0x403000u);
  EXPECT_EQ(story.allocated.time_ns, 10u);
  EXPECT_EQ(story.freed.time_ns, 20u);
  EXPECT_EQ(story.again.time_ns, 30u);
  EXPECT_EQ(found.told, 1u);
  EXPECT_TRUE(found.looked_for);
}

TEST_F(InvalidFreesTest, TheLatestBlockAtTheAddressCounts) {
  thread_.At(10).Malloc(0x10010, 18, 1);
  thread_.At(20).Free(0x10010);
  thread_.At(30).Malloc(0x10010, 40, 2);
  thread_.At(40).Free(0x10010);
  thread_.At(50).Free(0x10010);
  const InvalidFrees& found = Find();
  ASSERT_EQ(found.stories.size(), 1u);
  EXPECT_EQ(found.stories[0].block_bytes, 40u);
  EXPECT_EQ(Pc(found.stories[0].allocated), 0x402000u);
  EXPECT_EQ(found.stories[0].freed.time_ns, 40u);
  EXPECT_FALSE(found.stories[0].freed.stack);
}

TEST_F(InvalidFreesTest, AddressesInsideOfBlocks) {
  thread_.At(10).Malloc(0x10010, 100, 1);
  thread_.At(20).Free(0x10018);
  thread_.At(30).Free(0x10010);
  thread_.At(40).Free(0x10020);
  const InvalidFrees& found = Find();
  ASSERT_EQ(found.stories.size(), 2u);
  EXPECT_EQ(found.stories[0].kind, InvalidFree::Kind::kInsideLive);
  EXPECT_EQ(found.stories[0].offset, 8u);
  EXPECT_EQ(found.stories[1].kind, InvalidFree::Kind::kInsideFreed);
  EXPECT_EQ(found.stories[1].offset, 16u);
  EXPECT_EQ(found.stories[1].freed.time_ns, 30u);
}

TEST_F(InvalidFreesTest, OfWhatTheTraceDoesNotHaveNothingIsTold) {
  thread_.At(10).Malloc(0x10010, 100, 1);
  thread_.At(20).Free(0x20010);
  const InvalidFrees& found = Find();
  EXPECT_TRUE(found.stories.empty());
  EXPECT_TRUE(found.looked_for);
  EXPECT_EQ(analyzed_.analysis.coverage.unknown_frees, 1u);
}

TEST_F(InvalidFreesTest, SameStacksAreToldTogetherMostFirst) {
  thread_.At(5).Malloc(0x90010, 8, 2).Free(0x90010).Free(0x90010);
  for (uint64_t i = 0; i < 5; ++i) {
    thread_.At(10 + 10 * i).Malloc(0x10010 + 0x100 * i, 18, 1);
    thread_.At(12 + 10 * i).Free(0x10010 + 0x100 * i);
    thread_.At(14 + 10 * i).Free(0x10010 + 0x100 * i);
  }
  const InvalidFrees& found = Find();
  ASSERT_EQ(found.stories.size(), 2u);
  EXPECT_EQ(found.stories[0].times, 5u);
  EXPECT_EQ(found.stories[0].again.time_ns, 14u);
  EXPECT_EQ(found.stories[1].times, 1u);
  EXPECT_EQ(found.told, 6u);
}

TEST_F(InvalidFreesTest, ReallocOfWhatWasFreedAndFreeOfWhatReallocMoved) {
  thread_.At(10).Malloc(0x10010, 18, 1);
  thread_.At(20).Realloc(0x10010, 0x20010, 50, 2);
  thread_.At(30).FreeWithStack(0x10010, 3);
  const InvalidFrees& found = Find();
  ASSERT_EQ(found.stories.size(), 1u);
  EXPECT_TRUE(found.stories[0].freed.by_realloc);
  EXPECT_EQ(found.stories[0].freed.time_ns, 20u);
  EXPECT_EQ(Pc(found.stories[0].again), 0x403000u);
}

TEST_F(InvalidFreesTest, AReallocThatFailedLeavesTheBlock) {
  thread_.At(10).Malloc(0x10010, 18, 1);
  thread_.At(20).Realloc(0x10010, 0, 50, 2);
  thread_.At(30).Free(0x10010);
  thread_.At(40).Free(0x10010);
  const InvalidFrees& found = Find();
  ASSERT_EQ(found.stories.size(), 1u);
  EXPECT_EQ(found.stories[0].freed.time_ns, 30u);
  EXPECT_FALSE(found.stories[0].freed.by_realloc);
}

TEST_F(InvalidFreesTest, AnotherThreadFreesAgain) {
  thread_.At(10).Malloc(0x10010, 18, 1);
  thread_.At(20).Free(0x10010);
  ThreadScript& other = trace_.Thread(2, 4243, "other");
  other.At(500).Node(4, 0x404000).FreeWithStack(0x10010, 4).At(600);
  const InvalidFrees& found = Find();
  ASSERT_EQ(found.stories.size(), 1u);
  EXPECT_EQ(found.stories[0].freed.thread, ThreadId{1});
  EXPECT_EQ(found.stories[0].again.thread, ThreadId{2});
  EXPECT_EQ(Pc(found.stories[0].again), 0x404000u);
}

// Beyond the first ones nothing is looked up, and that is said.
TEST_F(InvalidFreesTest, OnlyTheFirstAreLookedFor) {
  for (uint64_t i = 0; i < 300; ++i) {
    thread_.At(10 + 3 * i).Malloc(0x10010 + 0x100 * i, 18, 1);
    thread_.At(11 + 3 * i).Free(0x10010 + 0x100 * i);
    thread_.At(12 + 3 * i).Free(0x10010 + 0x100 * i);
  }
  const InvalidFrees& found = Find();
  ASSERT_EQ(found.stories.size(), 1u);
  EXPECT_EQ(found.stories[0].times, 256u);
  EXPECT_EQ(found.not_looked_for, 44u);
}

// What is missing may be the allocation in between.
TEST_F(InvalidFreesTest, WhereEventsWereLostNothingIsTold) {
  thread_.At(10).Malloc(0x10010, 18, 1);
  thread_.At(20).Free(0x10010).Flush();
  thread_.Dropped(3).At(30).Free(0x10010);
  const InvalidFrees& found = Find();
  EXPECT_TRUE(found.stories.empty());
  EXPECT_FALSE(found.looked_for);
}

// Whenever that is: among the events, or in the second pass, when all of them were read.
TEST_F(InvalidFreesTest, WhenItIsStoppedBeforeTheyAreKnownItSaysSo) {
  for (uint64_t i = 1; i <= 20'000; ++i) {
    thread_.At(10 * i).Malloc(0x10010, 18, 1).At(10 * i + 5).Free(0x10010);
    if (i % 500 == 0) thread_.Flush();
  }
  thread_.At(300'000).Free(0x10010).At(300'010);
  trace_.End(0, 300'010);
  const std::string bytes = trace_.Build();
  AnalyzeOptions options;
  options.jobs = 1;
  int all = 0;
  options.stop = [&] {
    ++all;
    return false;
  };
  const AnalyzedTrace whole = Analyze(bytes, options);
  EXPECT_EQ(whole.analysis.invalid_frees.told, 1u);
  EXPECT_FALSE(whole.analysis.coverage.interrupted);
  int behind_the_events = 0;
  for (int stop_at = 1; stop_at <= all; ++stop_at) {
    int asked = 0;
    options.stop = [&] { return ++asked >= stop_at; };
    const AnalyzedTrace part = Analyze(bytes, options);
    const Analysis& a = part.analysis;
    EXPECT_FALSE(a.invalid_frees.looked_for) << stop_at;
    EXPECT_TRUE(a.coverage.interrupted) << stop_at;
    EXPECT_EQ(InterruptedBehindTheEvents(a), a.range.whole()) << stop_at;
    behind_the_events += a.range.whole();
    EXPECT_THAT(InterruptionText(a),
                testing::StartsWith(
                    a.range.whole()
                        ? "the reading was interrupted before it was known which frees were of "
                          "blocks that had been freed before"
                        : "the reading was interrupted: this is of the first "));
  }
  EXPECT_GT(behind_the_events, 0);
  EXPECT_LT(behind_the_events, all);
}

TEST(InvalidFreesOfAPartTest, OfARangeNothingIsTold) {
  TraceBuilder trace;
  trace.Thread(1).At(10).Malloc(0x10010, 18).At(20).Free(0x10010).At(30).Free(0x10010).At(40);
  trace.End(0, 50);
  AnalyzeOptions options;
  options.range.from_ns = 25;
  EXPECT_FALSE(Analyze(trace.Build(), options).analysis.invalid_frees.looked_for);
}

}  // namespace
}  // namespace memtrace::report
