#include "preload/segments.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace memtrace {
namespace {

constexpr uint64_t kRing = 68 << 10;

class SegmentsTest : public testing::Test {
 protected:
  void SetUp() override { status_.area() = TraceStatus::NewArea(); }
  void Init(uint64_t bytes) { segments_.Init(bytes, kRing, &status_.area(), 1); }

  TraceStatus status_;
  Segments segments_;
};

TEST_F(SegmentsTest, TheirLayoutFitsAndIsHalfOfTheFileOrMore) {
  for (uint64_t bytes = Segments::kSmallestFile; bytes < uint64_t{1} << 36; bytes = bytes * 3 + 777) {
    Init(bytes);
    const format::StatusArea& area = status_.area();
    EXPECT_GE(segments_.metadata_end(), 64u << 10);
    EXPECT_GE(area.segments_begin, segments_.metadata_end() + 3 * kRing);
    EXPECT_LE(area.segments_begin + Segments::kCount * area.segment_bytes, bytes);
    EXPECT_GE(3 * area.segment_bytes * 100, bytes * 45) << "what is kept at the least";
    EXPECT_GE(area.segment_bytes, 2 * (64u << 10)) << "a segment holds blocks of a full ring";
  }
}

TEST_F(SegmentsTest, AreBegunInTurnAndToldToTheReader) {
  Init(Segments::kSmallestFile);
  const format::StatusArea& area = status_.area();
  const uint64_t half = area.segment_bytes / 2;
  EXPECT_EQ(area.segments_begun, Segments::kCount);
  for (uint32_t i = 0; i < 40; ++i) {
    Segments::Place place;
    ASSERT_TRUE(segments_.Reserve(half, status_, &place));
    EXPECT_EQ(place.index, i / 2 % Segments::kCount);
    EXPECT_EQ(place.offset, area.segments_begin + place.index * area.segment_bytes + i % 2 * half);
    EXPECT_EQ(place.began, i % 2 == 0 && i > 0);
    EXPECT_EQ(area.segments_begun, Segments::kCount + i / 2);
    EXPECT_EQ(area.segment_beginning, area.segments_begun);
    EXPECT_EQ(segments_.begun(), area.segments_begun);
    segments_.Finished(place);
  }
  Segments::Place place;
  EXPECT_FALSE(segments_.Reserve(area.segment_bytes + 64, status_, &place));
}

TEST_F(SegmentsTest, OneThatIsBeingWrittenIsNotBegunAnew) {
  Init(Segments::kSmallestFile);
  const uint64_t whole = status_.area().segment_bytes;
  Segments::Place slow, place;
  ASSERT_TRUE(segments_.Reserve(whole, status_, &slow));
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(segments_.Reserve(whole, status_, &place));
    segments_.Finished(place);
  }
  EXPECT_FALSE(segments_.Reserve(whole, status_, &place));
  EXPECT_FALSE(segments_.Reserve(whole, status_, &place));
  segments_.Finished(slow);
  ASSERT_TRUE(segments_.Reserve(whole, status_, &place));
  EXPECT_EQ(place.offset, slow.offset);
}

// No two places that are being written overlap, whatever the threads do.
TEST_F(SegmentsTest, PlacesOfThreadsNeverOverlap) {
  Init(Segments::kSmallestFile);
  constexpr int kThreads = 4, kTimes = 20'000;
  std::vector<std::atomic<int>> in_use(Segments::kSmallestFile / 64);
  std::atomic<int> overlaps{0}, refused{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      uint64_t random = static_cast<uint64_t>(t) * 7919 + 1;
      for (int i = 0; i < kTimes; ++i) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        const uint64_t bytes = 64 * (1 + (random >> 40) % 900);
        Segments::Place place;
        if (!segments_.Reserve(bytes, status_, &place)) {
          ++refused;
          continue;
        }
        // The first and the last piece stand for all of it.
        const uint64_t first = place.offset / 64, last = (place.offset + bytes) / 64 - 1;
        overlaps += in_use[first].fetch_add(1) != 0;
        if (last != first) overlaps += in_use[last].fetch_add(1) != 0;
        in_use[first].fetch_sub(1);
        if (last != first) in_use[last].fetch_sub(1);
        segments_.Finished(place);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(overlaps, 0);
  EXPECT_LT(refused, kThreads * kTimes);
}

}  // namespace
}  // namespace memtrace
