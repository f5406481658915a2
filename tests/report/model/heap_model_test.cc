// The heap model against the slow one, on thousands of random histories; and by
// hand where a rule wants to be seen.

#include "report/model/heap_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "report/analysis/coverage.h"
#include "report/model/blocks_by_address.h"
#include "tests/report/history.h"
#include "tests/report/test_util.h"
#include "tests/report/trace_builder.h"
#include "tests/report/truth_check.h"

namespace memtrace::report {
namespace {

TEST(HeapModelTest, AgreesWithTheSlowModelOnRandomHistories) {
  std::mt19937_64 random(20240501);
  AnalyzeOptions options;
  options.keep_live_blocks = true;
  for (int round = 0; round < 2000; ++round) {
    HistoryOptions history_options;
    history_options.actions = 1 + static_cast<int>(random() % 300);
    history_options.threads = 1 + static_cast<int>(random() % 4);
    history_options.addresses = 2 + static_cast<int>(random() % 60);
    const std::vector<Action> history = MakeHistory(history_options, random);
    const AnalyzedTrace trace = Analyze(TraceOf(history, {}, random), options);
    ExpectIs(trace, TruthOf(history));
    if (HasFailure()) FAIL() << "round " << round;
  }
}

TEST(HeapModelTest, AFailedReallocKeepsTheBlock) {
  TraceBuilder trace;
  trace.Thread(1).At(1).Malloc(0x1010, 100).Realloc(0x1010, 0, 500).At(2);
  const Analysis a = Analyze(trace.Build()).analysis;
  EXPECT_EQ(a.totals.live_bytes, 100u);
  EXPECT_EQ(a.totals.failed_allocations, 1u);
  EXPECT_EQ(a.totals.allocations, 1u);
  EXPECT_EQ(a.totals.frees, 0u);
}

TEST(HeapModelTest, ReallocToZeroIsAFree) {
  TraceBuilder trace;
  trace.Thread(1).At(1).Malloc(0x1010, 100).Realloc(0x1010, 0, 0).At(2);
  const Analysis a = Analyze(trace.Build()).analysis;
  EXPECT_EQ(a.totals.live_blocks, 0u);
  EXPECT_EQ(a.totals.frees, 1u);
  EXPECT_EQ(a.totals.failed_allocations, 0u);
}

TEST(HeapModelTest, WhatReallocFreesBeforeTheNextAllocationWasTemporary) {
  TraceBuilder trace;
  auto& t = trace.Thread(1).At(1);
  t.Malloc(0x1010, 50).Realloc(0x1010, 0, 0);                        // temporary
  t.Malloc(0x1010, 50).Malloc(0x2010, 5).Realloc(0x1010, 0, 0);      // not
  t.Malloc(0x3010, 50).Realloc(0x3010, 0x4010, 60).Free(0x4010).At(2);  // the second of two
  EXPECT_EQ(Analyze(trace.Build()).analysis.totals.temporary_allocations, 2u);
}

TEST(HeapModelTest, ReallocOfNothingIsAnAllocation) {
  TraceBuilder trace;
  trace.Thread(1).At(1).ReallocResult(0x1010, 100).At(2);
  const Analysis a = Analyze(trace.Build()).analysis;
  EXPECT_EQ(a.totals.live_bytes, 100u);
  EXPECT_EQ(a.totals.reallocations, 0u);
}

TEST(HeapModelTest, AReallocThatIsNeverFinishedKeepsTheBlock) {
  TraceBuilder trace;
  trace.Thread(1).At(1).Malloc(0x1010, 100).ReallocIntent(0x1010);
  const Analysis a = Analyze(trace.Build()).analysis;
  EXPECT_EQ(a.totals.live_bytes, 100u);
  EXPECT_EQ(a.totals.frees, 0u);
}

TEST(HeapModelTest, AGrowingChainOfReallocsHasNoPeakOfTwoBlocks) {
  TraceBuilder trace;
  auto& t = trace.Thread(1).At(1).Malloc(0x1010, 100);
  t.Realloc(0x1010, 0x2010, 200).Realloc(0x2010, 0x3010, 400).At(2);
  const Analysis a = Analyze(trace.Build()).analysis;
  EXPECT_EQ(a.totals.peak_live_bytes, 400u);
  EXPECT_EQ(a.totals.peak_live_blocks, 1u);
  EXPECT_EQ(a.totals.allocations, 3u);
  EXPECT_EQ(a.totals.frees, 2u);
}

TEST(HeapModelTest, WideAllocationsAndFailures) {
  TraceBuilder trace;
  using format::AllocFunction;
  auto& t = trace.Thread(1).At(1);
  t.Wide(AllocFunction::kMalloc, 0x7f0000000010, uint64_t{5} << 30, (uint64_t{5} << 30) + 4080, 0,
         0, format::kWideMapped);
  t.Wide(AllocFunction::kPosixMemalign, 0x2000, 1000, 1016, 0, 12);
  t.Wide(AllocFunction::kMalloc, 0, uint64_t{1} << 62);
  t.At(2);
  const AnalyzedTrace trace_ = Analyze(trace.Build());
  const Analysis& a = trace_.analysis;
  EXPECT_EQ(a.totals.live_bytes, (uint64_t{5} << 30) + 1000);
  EXPECT_EQ(a.totals.failed_allocations, 1u);
  EXPECT_EQ(a.totals.wasted_bytes, 4080u + 16);
  EXPECT_EQ(a.sites.size(), 2u) << "one stack, two functions";
  ASSERT_EQ(a.mappings.size(), 1u);
  EXPECT_EQ(a.mappings[0].kind, MappingSite::Kind::kMappedBlock);
  EXPECT_EQ(a.mappings[0].live_bytes, (uint64_t{5} << 30) + 4096);
  EXPECT_EQ(a.memory_map.mapped_blocks_bytes, (uint64_t{5} << 30) + 4096);
}

TEST(HeapModelTest, AFreeOfABlockNobodyKnowsIsCountedApart) {
  TraceBuilder trace;
  trace.Thread(1).At(1).Free(0x1010).Malloc(0x1010, 5).Free(0).At(2);
  const Analysis a = Analyze(trace.Build()).analysis;
  EXPECT_EQ(a.coverage.unknown_frees, 1u);
  EXPECT_EQ(a.coverage.inherited_frees, 0u);
  EXPECT_EQ(a.totals.frees, 0u);
  EXPECT_EQ(a.totals.live_blocks, 1u);
}

TEST(HeapModelTest, AForkChildInheritsBlocks) {
  TraceBuilder::Options options;
  options.file_flags = format::kFileForked;
  TraceBuilder trace(options);
  trace.Thread(1).At(1).Free(0x1010).Malloc(0x1010, 5).Realloc(0x2010, 0x3010, 7).At(2);
  const Analysis a = Analyze(trace.Build()).analysis;
  EXPECT_TRUE(a.process.forked);
  EXPECT_EQ(a.coverage.inherited_frees, 2u);
  EXPECT_EQ(a.coverage.unknown_frees, 0u);
  EXPECT_EQ(a.totals.live_bytes, 12u);
}

TEST(HeapModelTest, AnAddressAllocatedTwiceWasFreedInBetween) {
  TraceBuilder trace;
  trace.Thread(1).At(1).Malloc(0x1010, 5).Malloc(0x1010, 7).At(2);
  const Analysis a = Analyze(trace.Build()).analysis;
  EXPECT_EQ(a.coverage.unseen_frees, 1u);
  EXPECT_EQ(a.coverage.unordered_events, 0u);
  EXPECT_EQ(a.totals.live_bytes, 7u);
  EXPECT_EQ(a.totals.frees, 1u);
  EXPECT_THAT(CoverageNotes(a), ::testing::Contains(::testing::HasSubstr("RTLD_DEEPBIND")));
}

// Where events are missing that is why, and no library need be looked for.
TEST(HeapModelTest, AFreeThatIsAmongLostEventsIsNoLibrarys) {
  TraceBuilder trace;
  trace.Thread(1).At(1).Malloc(0x1010, 5).Dropped(3).Malloc(0x1010, 7).At(2);
  const Analysis a = Analyze(trace.Build()).analysis;
  EXPECT_EQ(a.coverage.unseen_frees, 1u);
  EXPECT_THAT(CoverageNotes(a), ::testing::Contains(::testing::HasSubstr("among what is missing")));
  EXPECT_THAT(CoverageNotes(a), ::testing::Not(::testing::Contains(::testing::HasSubstr("RTLD_DEEPBIND"))));
}

// How far apart the blocks are: crowded, as most are, on pages of their own.
class LiveTableTest : public ::testing::TestWithParam<uint64_t> {};

TEST_P(LiveTableTest, AgreesWithAMap) {
  LiveTable table;
  std::map<uint64_t, uint64_t> model;
  std::mt19937_64 random(3);
  for (int i = 0; i < 600'000; ++i) {
    // First it grows, beyond what is small, then it shrinks; addresses collide in long runs.
    const uint64_t address = GetParam() * (1 + random() % (i < 400'000 ? 120'000 : 500));
    if (random() % 3 != 0) {
      bool inserted;
      HeldBlock* block = table.FindOrInsert(address, &inserted);
      EXPECT_EQ(inserted, !model.contains(address));
      if (inserted) block->time_ns = model[address] = random();
      EXPECT_EQ(block->time_ns, model[address]);
    } else {
      HeldBlock* block = table.Find(address);
      ASSERT_EQ(block != nullptr, model.contains(address));
      if (block != nullptr) {
        EXPECT_EQ(block->time_ns, model[address]);
        table.Erase(block);
        model.erase(address);
      }
    }
    ASSERT_EQ(table.size(), model.size());
  }
  size_t seen = 0;
  table.ForEach([&](const HeldBlock& block) {
    ++seen;
    EXPECT_EQ(model.at(block.address()), block.time_ns);
  });
  EXPECT_EQ(seen, model.size());
}

INSTANTIATE_TEST_SUITE_P(Spacings, LiveTableTest, ::testing::Values(1, 16, 64, 112, 4096));

// In some of these heaps blocks that belong at the table's end lie at its begin when it grows.
TEST(LiveTableTest, FindsAllWhereverTheyLie) {
  std::mt19937_64 random(7);
  for (int heap = 0; heap < 500; ++heap) {
    LiveTable table;
    std::vector<uint64_t> all;
    while (all.size() < 5'000) {
      const uint64_t address = random() >> 17 << 4 & format::kAddressMask;
      bool inserted = false;
      if (address != 0) table.FindOrInsert(address, &inserted);
      if (inserted) all.push_back(address);
    }
    for (const uint64_t each : all) ASSERT_TRUE(table.Contains(each)) << "heap " << heap;
  }
}

// What is at the same address comes in the same order each time.
void ExpectSorted(std::vector<HeldBlock> blocks) {
  std::vector<HeldBlock> again = blocks, sorted = blocks;
  SortByAddress(blocks);
  SortByAddress(again);
  std::stable_sort(sorted.begin(), sorted.end(), [](const HeldBlock& a, const HeldBlock& b) {
    return a.address() < b.address();
  });
  std::vector<bool> seen(blocks.size());
  for (size_t i = 0; i < blocks.size(); ++i) {
    ASSERT_EQ(blocks[i].address_flags, sorted[i].address_flags) << i;
    ASSERT_EQ(blocks[i].time_ns, again[i].time_ns) << i;
    ASSERT_FALSE(seen[blocks[i].time_ns]) << "twice";
    seen[blocks[i].time_ns] = true;
  }
}

// Of every size, close together and in stretches far apart.
TEST(BlocksByAddressTest, AgreesWithASort) {
  std::mt19937_64 random(5);
  for (const size_t count : {0, 1, 2, 100, 5'000, 200'000}) {
    for (const int bits : {4, 12, 20, 30, 47}) {
      SCOPED_TRACE(testing::Message() << count << " blocks, " << bits << " bits");
      std::vector<HeldBlock> blocks(count);
      for (size_t i = 0; i < count; ++i) {
        const uint64_t far = random() % 3 << 45;
        blocks[i].address_flags = ((random() >> (64 - bits)) ^ far) & format::kAddressMask;
        blocks[i].set(HeldBlock::kMapped);
        blocks[i].time_ns = i;
      }
      ExpectSorted(blocks);
    }
  }
}

// As heaps are: no two at the same address, all of them multiples of something; and one that is not,
// or that is there twice.
TEST(BlocksByAddressTest, AgreesWithASortOfAHeap) {
  std::mt19937_64 random(6);
  for (const uint64_t step : {1, 8, 16, 64, 4096}) {
    for (const int heaps : {1, 3}) {
      SCOPED_TRACE(testing::Message() << "a multiple of " << step << ", heaps: " << heaps);
      std::vector<HeldBlock> blocks;
      for (int heap = 0; heap < heaps; ++heap) {
        uint64_t address = (0x555500000000 + (random() % 0x2aaa'0000'0000)) / step * step;
        for (int i = 0; i < 50'000; ++i) {
          // The first ones lie side by side.
          address += i < 10'000 ? step : step * (1 + random() % (random() % 50 == 0 ? 5'000 : 5));
          HeldBlock& block = blocks.emplace_back();
          block.address_flags = address;
          if (random() % 8 == 0) block.set(HeldBlock::kIgnored);
        }
      }
      std::shuffle(blocks.begin(), blocks.end(), random);
      for (size_t i = 0; i < blocks.size(); ++i) blocks[i].time_ns = i;
      ExpectSorted(blocks);
      blocks[7].address_flags = blocks[20'000].address_flags;
      ExpectSorted(blocks);
      blocks[30'000].address_flags += step / 2;
      ExpectSorted(blocks);
    }
  }
}

// Through many growths.
TEST(LiveTableTest, FindsAllAfterManyGrowths) {
  LiveTable table;
  uint64_t address = 0;
  std::vector<uint64_t> all;
  for (int i = 0; i < 200'000; ++i) {
    address += i < 2'000 ? 32 : 80;
    bool inserted;
    table.FindOrInsert(address, &inserted)->time_ns = address * 3;
    ASSERT_TRUE(inserted);
    all.push_back(address);
    if (i % 7 == 0) {
      table.Erase(table.Find(all[all.size() / 2]));
      all.erase(all.begin() + static_cast<long>(all.size() / 2));
    }
  }
  EXPECT_EQ(table.size(), all.size());
  for (const uint64_t each : all) {
    const HeldBlock* const block = table.Find(each);
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(block->time_ns, each * 3);
  }
}

}  // namespace
}  // namespace memtrace::report
