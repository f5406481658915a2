// What a process has had allocated up to an instant: the union of ranges against a model, and the
// events that are taken for it.

#include "report/leak/allocated_ranges.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "tests/report/test_util.h"
#include "tests/report/trace_builder.h"

namespace memtrace::report {
namespace {

using format::AllocFunction;
using leak::AllocatedRanges;
using leak::AllocationHistory;

TEST(AllocatedRangesTest, HaveTheWordsThatOneOfThemHasWholly) {
  AllocatedRanges ranges;
  EXPECT_FALSE(ranges.HasWord(0x1000));
  ranges.Add(0x1000, 20);
  EXPECT_FALSE(ranges.HasWord(0xff8));
  EXPECT_TRUE(ranges.HasWord(0x1000));
  EXPECT_TRUE(ranges.HasWord(0x1008));
  EXPECT_FALSE(ranges.HasWord(0x1010)) << "half of it";
  ranges.Add(0x1014, 12);
  EXPECT_FALSE(ranges.HasWord(0x1010)) << "half of it, and half in another";
  EXPECT_TRUE(ranges.HasWord(0x1018));
  ranges.Add(0x2000, 0);
  ranges.Add(0x2001, 14);
  EXPECT_FALSE(ranges.HasWord(0x2000));
  EXPECT_FALSE(ranges.HasWord(0x2008));
}

TEST(AllocatedRangesTest, MayBeAsLargeAsTheAddressSpace) {
  AllocatedRanges ranges;
  ranges.Add(0x10000, UINT64_MAX);
  EXPECT_FALSE(ranges.HasWord(0xfff8));
  EXPECT_TRUE(ranges.HasWord(0x10000));
  EXPECT_TRUE(ranges.HasWord(format::kAddressMask - 7));
  EXPECT_FALSE(ranges.HasWord(format::kAddressMask + 1));
  ranges.Add(UINT64_MAX - 7, 8);
  EXPECT_FALSE(ranges.HasWord(UINT64_MAX - 7)) << "that is no address";
}

TEST(AllocatedRangesTest, AreTheModelsUnionInRandomOrder) {
  constexpr uint64_t kBase = 0x7f0000000000, kWords = 16 * 512;  // 16 pages
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    AllocatedRanges ranges;
    std::vector<bool> model(kWords);
    for (uint64_t i = 1 + random() % 40; i > 0; --i) {
      const uint64_t most = random() % 3 == 0 ? 5 * 4096 : 200;
      const uint64_t begin = random() % (8 * kWords - most), size = random() % most;
      // Ends of pages are where mistakes are.
      const uint64_t start = random() % 4 == 0 ? begin & ~uint64_t{4095} : begin;
      ranges.Add(kBase + start, size);
      for (uint64_t word = (start + 7) / 8; 8 * word + 8 <= start + size; ++word)
        model[word] = true;
    }
    for (uint64_t word = 0; word < kWords; ++word) {
      ASSERT_EQ(ranges.HasWord(kBase + 8 * word), model[word]) << word;
    }
    EXPECT_FALSE(ranges.HasWord(kBase - 8));
    EXPECT_FALSE(ranges.HasWord(kBase + 8 * kWords));
  }
}

constexpr uint64_t kAt = 0x10000000;

class AllocationHistoryTest : public ::testing::Test {
 protected:
  void Open() {
    auto reader = Read(trace_.Build());
    ASSERT_TRUE(reader.ok()) << reader.status();
    reader_ = *std::move(reader);
    history_.emplace(reader_.get(), stop_);
  }
  // Whether the block at `address` was allocated by then.
  bool Has(uint64_t address, uint64_t ns) {
    const AllocatedRanges* ranges = history_->UpTo(trace_.TicksAt(ns));
    EXPECT_NE(ranges, nullptr);
    return ranges != nullptr && ranges->HasWord(address);
  }

  TraceBuilder trace_;
  std::function<bool()> stop_;
  std::unique_ptr<TraceReader> reader_;
  std::optional<AllocationHistory> history_;
};

TEST_F(AllocationHistoryTest, TakesAllThatGivesABlockOfTheHeap) {
  trace_.Thread(1, 4242, "main")
      .At(1000)
      .Malloc(kAt, 16)
      .Calloc(kAt + 0x100, 16)
      .Realloc(kAt, kAt + 0x200, 32)
      .ReallocIntent(kAt + 0x300)
      .ReallocResult(0, 64)
      .Malloc(kAt + 0x400, 16, format::kStoppedSlot)
      .Malloc(kAt + 0x500, 8, 0, 16)
      .Free(kAt + 0x600)
      .Wide(AllocFunction::kAlignedAlloc, kAt + 0x700, 16, 24, 0, 8)
      .Wide(AllocFunction::kMalloc, kAt + 0x10000, 1 << 20, 0, 0, 0, format::kWideMapped)
      .Extended(format::ExtendedType::kCustomAlloc, {kAt + 0x800, 16, 0, 0});
  trace_.End(0, 3000);
  Open();
  EXPECT_TRUE(Has(kAt, 2000)) << "though it was freed";
  EXPECT_TRUE(Has(kAt + 0x100, 2000));
  EXPECT_TRUE(Has(kAt + 0x200 + 24, 2000));
  EXPECT_FALSE(Has(kAt + 0x300, 2000)) << "the realloc failed";
  EXPECT_TRUE(Has(kAt + 0x400, 2000)) << "while the recording was stopped";
  EXPECT_TRUE(Has(kAt + 0x500 + 16, 2000)) << "of it what may be used";
  EXPECT_FALSE(Has(kAt + 0x500 + 24, 2000));
  EXPECT_FALSE(Has(kAt + 0x600, 2000)) << "it was another's";
  EXPECT_TRUE(Has(kAt + 0x700 + 16, 2000));
  EXPECT_FALSE(Has(kAt + 0x10000, 2000)) << "it had a mapping of its own";
  EXPECT_FALSE(Has(kAt + 0x800, 2000)) << "the allocator did not give that out";
}

// Of several blocks and threads, one of them in a ring; spans that begin later are for a later
// call.
TEST_F(AllocationHistoryTest, EndsAtTheInstant) {
  trace_.Thread(1, 4242, "main")
      .At(1000)
      .Malloc(kAt, 16)
      .At(2000)
      .Malloc(kAt + 0x100, 16)
      .Flush(2500);
  trace_.Thread(1).At(3000).Malloc(kAt + 0x200, 16).At(5000).Malloc(kAt + 0x300, 16);
  trace_.Thread(2, 4243, "second", 1500).At(4000).Malloc(kAt + 0x400, 16).LeaveInRing();
  trace_.End(0, 9000);
  Open();
  const auto count = [&](uint64_t ns) {
    int all = 0;
    for (uint64_t i = 0; i < 5; ++i) all += Has(kAt + 0x100 * i, ns);
    return all;
  };
  EXPECT_EQ(count(500), 0);
  EXPECT_EQ(count(1000), 1);
  EXPECT_EQ(count(1999), 1);
  EXPECT_EQ(count(2000), 2);
  EXPECT_EQ(count(3500), 3);
  EXPECT_EQ(count(4500), 4);
  EXPECT_EQ(count(4500), 4);
  EXPECT_EQ(count(8000), 5);
}

TEST_F(AllocationHistoryTest, OfAReadingThatWasStoppedNothingIsKnown) {
  bool stop = false;
  stop_ = [&] { return stop; };
  trace_.Thread(1, 4242, "main").At(1000).Malloc(kAt, 16).At(2000).Malloc(kAt + 0x100, 16);
  trace_.End(0, 9000);
  Open();
  EXPECT_TRUE(Has(kAt, 1500));
  EXPECT_FALSE(history_->stopped());
  stop = true;
  EXPECT_EQ(history_->UpTo(trace_.TicksAt(3000)), nullptr);
  EXPECT_TRUE(history_->stopped());
  stop = false;
  EXPECT_EQ(history_->UpTo(trace_.TicksAt(4000)), nullptr) << "what came before is missing";
}

TEST_F(AllocationHistoryTest, OfADamagedTraceNothingIsKnown) {
  trace_.Thread(1, 4242, "main").At(1000).Malloc(kAt, 16).Word(0).Malloc(kAt + 0x100, 16);
  trace_.End(0, 9000);
  Open();
  EXPECT_EQ(history_->UpTo(trace_.TicksAt(3000)), nullptr);
  EXPECT_FALSE(history_->stopped());
}

}  // namespace
}  // namespace memtrace::report
