#include "preload/leak_scan/by_tid.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace memtrace {
namespace {

TEST(ByTidTest, FindsWhatWasAddedLastForAThread) {
  ScanArena arena;
  ByTid<char> names(arena);
  EXPECT_EQ(names.Find(1), nullptr);
  names.Sort();
  EXPECT_EQ(names.Find(1), nullptr);
  names.Add(30, 'a');
  names.Add(-1, 'b');
  names.Add(7, 'c');
  names.Add(30, 'd');
  names.Add(8, 'e');
  names.Add(30, 'f');
  names.Sort();
  for (const auto& [tid, name] :
       {std::pair(30, 'f'), std::pair(-1, 'b'), std::pair(7, 'c'), std::pair(8, 'e')}) {
    ASSERT_NE(names.Find(tid), nullptr) << tid;
    EXPECT_EQ(*names.Find(tid), name) << tid;
  }
  for (const int tid : {0, 6, 9, 29, 31}) EXPECT_EQ(names.Find(tid), nullptr) << tid;
}

TEST(TidSetTest, HasWhatWasAddedAlsoWhenItIsAsFullAsItMayBe) {
  constexpr size_t kMost = 3000;
  const size_t words = TidSet::WordsFor(kMost);
  EXPECT_GE(words, 2 * kMost);
  EXPECT_EQ(words & (words - 1), 0u);
  for (const int step : {1, 2, 64, 1024, 4096}) {
    std::vector<int> memory(words);
    TidSet set;
    EXPECT_FALSE(set.Has(1)) << "it has no memory yet";
    set.Use(memory.data(), words);
    for (size_t i = 0; i < kMost; ++i) {
      const int tid = 300 + static_cast<int>(i) * step;
      EXPECT_FALSE(set.Has(tid)) << tid;
      set.Add(tid);
      set.Add(tid);
    }
    for (size_t i = 0; i < kMost; ++i) EXPECT_TRUE(set.Has(300 + static_cast<int>(i) * step)) << i;
    for (const int other : {-1, 0, 299, 300 + static_cast<int>(kMost) * step})
      EXPECT_FALSE(set.Has(other)) << other;
  }
}

}  // namespace
}  // namespace memtrace
