#include "report/model/slot_sites.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "format/event_words.h"

namespace memtrace::report {
namespace {

using format::EventKind;

class SlotSitesTest : public ::testing::Test {
 protected:
  SlotSites::Allocation Alloc(size_t stream, uint32_t slot, uint32_t size, uint32_t waste = 0,
                              EventKind kind = EventKind::kMalloc) {
    const std::array<uint64_t, 2> words = {format::Head(kind, 0x1000, waste),
                                           size | uint64_t{slot} << 32};
    return {sites_->KeyOf(stream), words.data()};
  }
  // 0: not known.
  uint32_t SiteOf(const SlotSites::Allocation& allocation) {
    const SlotSites::Entry& entry = sites_->At(allocation);
    return entry.Is(allocation) ? entry.site() : 0;
  }
  using Counted = std::map<std::pair<uint32_t, uint32_t>, uint32_t>;  // site, size -> how many
  Counted TakeCounted() {
    Counted counted;
    sites_->TakeCounted([&](const SlotSites::Entry& entry) {
      counted[{entry.site(), entry.size()}] += entry.count();
    });
    return counted;
  }

  const std::unique_ptr<SlotSites> sites_ = std::make_unique<SlotSites>();
};

TEST_F(SlotSitesTest, KnowsWhatIsTheSameInAll) {
  sites_->Keep(Alloc(1, 7, 100, 4), 4, 3);
  EXPECT_EQ(SiteOf(Alloc(1, 7, 100, 4)), 3u);
  EXPECT_EQ(SiteOf(Alloc(2, 7, 100, 4)), 0u);
  EXPECT_EQ(SiteOf(Alloc(1, 8, 100, 4)), 0u);
  EXPECT_EQ(SiteOf(Alloc(1, 7, 101, 4)), 0u);
  EXPECT_EQ(SiteOf(Alloc(1, 7, 100, 5)), 0u);
  EXPECT_EQ(SiteOf(Alloc(1, 7, 100, 4, EventKind::kCalloc)), 0u);
  EXPECT_EQ(sites_->At(Alloc(1, 7, 100, 4)).waste(), 4u);
}

TEST_F(SlotSitesTest, OfAnySizeIsOneForAllSizes) {
  const auto any = [&](uint32_t size, uint32_t waste) {
    return Alloc(1, 7, size, waste, EventKind::kRealloc).OfAnySize();
  };
  sites_->Keep(any(100, 4), 4, 3);
  EXPECT_EQ(SiteOf(any(5000, 8)), 3u);
  EXPECT_EQ(SiteOf(Alloc(1, 7, 100, 4, EventKind::kRealloc)), 0u);
}

TEST_F(SlotSitesTest, CountsWhatComesAgainOnce) {
  for (uint32_t size = 1; size <= 50; ++size) {
    const SlotSites::Allocation allocation = Alloc(0, 1, size);
    sites_->Keep(allocation, 0, 9);
    for (uint32_t i = 0; i < size && SiteOf(allocation) != 0; ++i) {
      sites_->Again(&sites_->At(allocation));
    }
  }
  const Counted counted = TakeCounted();
  // Two of them may be for one entry, of which the second is not kept then.
  EXPECT_GE(counted.size(), 45u);
  for (const auto& [key, count] : counted) {
    EXPECT_EQ(key.first, 9u);
    EXPECT_EQ(count, key.second);
  }
  EXPECT_TRUE(TakeCounted().empty());
}

// A slot that the stream gives to another stack, whose site is another.
TEST_F(SlotSitesTest, ForgetsASlotButNotWhatItHasCounted) {
  const SlotSites::Allocation before = Alloc(1, 7, 100);
  sites_->Keep(before, 0, 3);
  sites_->Again(&sites_->At(before));
  sites_->Forget(1, 8, 3);
  EXPECT_EQ(SiteOf(Alloc(1, 7, 100)), 3u) << "7 is not among them";
  sites_->Forget(1, 5, 3);
  EXPECT_EQ(SiteOf(Alloc(1, 7, 100)), 0u);
  sites_->Keep(Alloc(1, 7, 100), 0, 4);
  EXPECT_NE(SiteOf(Alloc(1, 7, 100)), 3u);
  EXPECT_EQ(TakeCounted(), (Counted{{{3, 100}, 1}}));
}

TEST_F(SlotSitesTest, NothingIsKeptWhereAnotherOneIsCounted) {
  const SlotSites::Allocation counted = Alloc(0, 1, 100);
  sites_->Keep(counted, 0, 1);
  sites_->Again(&sites_->At(counted));
  uint32_t slot = 2;
  while (&sites_->At(Alloc(0, slot, 8)) != &sites_->At(counted)) ++slot;
  sites_->Keep(Alloc(0, slot, 8), 0, 2);
  EXPECT_EQ(SiteOf(Alloc(0, slot, 8)), 0u);
  EXPECT_EQ(TakeCounted(), (Counted{{{1, 100}, 1}}));
  sites_->Keep(Alloc(0, slot, 8), 0, 2);
  EXPECT_EQ(SiteOf(Alloc(0, slot, 8)), 2u);
}

TEST_F(SlotSitesTest, WhatIsForgottenDoesNotComeBack) {
  const SlotSites::Allocation first = Alloc(3, 7, 100);
  sites_->Keep(first, 0, 3);
  for (int i = 0; i < 300'000; ++i) {
    sites_->Clear();
    ASSERT_EQ(SiteOf(Alloc(3, 7, 100)), 0u) << i;
  }
}

}  // namespace
}  // namespace memtrace::report
