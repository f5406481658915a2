#include "preload/sampled_set.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <random>
#include <set>
#include <thread>
#include <vector>

namespace memtrace {
namespace {

const void* Address(uint64_t number) { return reinterpret_cast<const void*>(number); }

class SampledSetTest : public ::testing::Test {
 protected:
  SampledSetTest() : set_(new SampledSet()) { set_->Begin(); }
  const std::unique_ptr<SampledSet> set_;
};

TEST(SampledSetBeforeItBeginsTest, EveryFreeLooksFurther) {
  const auto set = std::make_unique<SampledSet>();
  for (uint64_t at = 0; at < 1 << 22; at += 16) EXPECT_TRUE(set->MayHold(Address(at)));
}

TEST_F(SampledSetTest, HoldsNothingAtFirst) {
  for (uint64_t at = 0; at < 1 << 22; at += 16) {
    EXPECT_FALSE(set_->MayHold(Address(at)));
    EXPECT_FALSE(set_->Remove(Address(at)));
  }
}

TEST_F(SampledSetTest, AgreesWithAModel) {
  std::mt19937_64 random(1);
  std::set<uint64_t> model;
  for (int i = 0; i < 300000; ++i) {
    const uint64_t address = 0x7f0000000000 + random() % 60000 * 16;
    if (i % 3 != 0) {
      ASSERT_EQ(set_->Remove(Address(address)), model.erase(address) > 0);
    } else if (model.insert(address).second) {
      ASSERT_TRUE(set_->Insert(Address(address)));
      ASSERT_TRUE(set_->MayHold(Address(address)));
    }
  }
  for (const uint64_t address : model) ASSERT_TRUE(set_->MayHold(Address(address)));
  for (const uint64_t address : model) ASSERT_TRUE(set_->Remove(Address(address)));
  for (const uint64_t address : model) ASSERT_FALSE(set_->Remove(Address(address)));
}

// As many as fill the first levels, and more than 255 in a byte of the filter.
TEST_F(SampledSetTest, GrowsAndStaysExact) {
  constexpr uint64_t kBlocks = 300000, kStep = 48;
  for (uint64_t i = 1; i <= kBlocks; ++i) ASSERT_TRUE(set_->Insert(Address(i * kStep)));
  for (uint64_t i = 1; i <= kBlocks; ++i) {
    ASSERT_TRUE(set_->MayHold(Address(i * kStep)));
    ASSERT_FALSE(set_->Remove(Address(i * kStep + 16)));
  }
  for (uint64_t i = 1; i <= kBlocks; ++i) ASSERT_TRUE(set_->Remove(Address(i * kStep)));
  for (uint64_t i = 1; i <= kBlocks; ++i) ASSERT_FALSE(set_->Remove(Address(i * kStep)));
  ASSERT_TRUE(set_->Insert(Address(kStep)));
  ASSERT_TRUE(set_->Remove(Address(kStep)));
}

TEST_F(SampledSetTest, AByteOfTheFilterIsFreeAgainWhenItsBlocksAre) {
  const void* const here = Address(0x10040);
  const void* const wrapped = Address(0x10040 + (16 << 10) * 64);
  ASSERT_TRUE(set_->Insert(here));
  EXPECT_TRUE(set_->MayHold(wrapped));  // the same byte
  EXPECT_FALSE(set_->Remove(wrapped));
  EXPECT_TRUE(set_->MayHold(here));
  EXPECT_TRUE(set_->Remove(here));
  EXPECT_FALSE(set_->MayHold(wrapped));
}

TEST_F(SampledSetTest, WatchesARangeForEver) {
  const char* const begin = static_cast<const char*>(Address(0x50010));
  set_->Watch(begin, begin + 1000);
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(set_->MayHold(begin + i));
  ASSERT_TRUE(set_->Insert(begin + 64));
  ASSERT_TRUE(set_->Remove(begin + 64));
  EXPECT_TRUE(set_->MayHold(begin + 64));
  EXPECT_FALSE(set_->MayHold(begin + 1000 + 64));
}

// Blocks are sampled by one thread and freed by another, while all have others in the
// same groups and bytes.
TEST_F(SampledSetTest, IsExactBetweenThreads) {
  constexpr int kThreads = 4, kRounds = 40000, kSlots = 64;
  std::vector<std::atomic<const void*>> slots(kSlots);
  std::atomic<int> wrong{0};
  const auto work = [&](uint64_t number) {
    std::mt19937_64 random(number);
    for (uint64_t i = 0; i < kRounds; ++i) {
      // An address of this thread's, used once.
      const void* mine = Address(0x100000000 + (i * kThreads + number) * 16);
      if (set_->Remove(mine)) ++wrong;
      if (!set_->Insert(mine)) ++wrong;
      // Handed over as a program hands over a block.
      const void* theirs =
          slots[random() % kSlots].exchange(mine, std::memory_order_acq_rel);
      if (theirs == nullptr) continue;
      if (!set_->MayHold(theirs)) ++wrong;
      if (!set_->Remove(theirs)) ++wrong;
    }
  };
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < kThreads; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  for (const auto& slot : slots) EXPECT_TRUE(slot == nullptr || set_->Remove(slot));
  for (uint64_t i = 0; i < uint64_t{kThreads} * kRounds; ++i) {
    ASSERT_FALSE(set_->MayHold(Address(0x100000000 + i * 16)));
  }
}

}  // namespace
}  // namespace memtrace
