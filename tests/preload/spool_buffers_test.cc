#include "preload/spool_buffers.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <optional>
#include <thread>
#include <vector>

namespace memtrace {
namespace {

TEST(SpoolBuffersTest, EachBorrowerHasOneOfItsOwnUntilThereAreNone) {
  std::array<std::optional<BorrowedSpoolBuffer>, 9> lent;
  for (auto& each : lent) each.emplace();
  for (size_t i = 0; i < 8; ++i) {
    ASSERT_NE(lent[i]->get(), nullptr);
    for (size_t j = 0; j < i; ++j) EXPECT_NE(lent[i]->get(), lent[j]->get());
  }
  EXPECT_EQ(lent[8]->get(), nullptr);
  SpoolBuffer* const fourth = lent[3]->get();
  lent[3].reset();
  const BorrowedSpoolBuffer again;
  EXPECT_EQ(again.get(), fourth);
}

TEST(SpoolBuffersTest, AForkChildHasThoseOfTheThreadsThatAreGone) {
  const BorrowedSpoolBuffer mine;
  std::atomic<int> step{0};
  std::thread other([&] {
    std::array<std::optional<BorrowedSpoolBuffer>, 7> rest;
    for (auto& each : rest) each.emplace();
    step = 1;
    while (step != 2) std::this_thread::yield();
    for (auto& each : rest) each.reset();
  });
  while (step != 1) std::this_thread::yield();
  EXPECT_EQ(BorrowedSpoolBuffer().get(), nullptr);
  ReturnSpoolBuffersOfOtherThreads();
  {
    const BorrowedSpoolBuffer another;
    EXPECT_NE(another.get(), nullptr);
    EXPECT_NE(another.get(), mine.get());
  }
  step = 2;
  other.join();
}

TEST(SpoolBuffersTest, ThreadsDoNotShareThem) {
  std::vector<std::thread> threads;
  for (uint64_t t = 1; t <= 12; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < 2000; ++i) {
        const BorrowedSpoolBuffer buffer;
        if (buffer.get() == nullptr) continue;
        volatile uint64_t* const word = buffer.get()->table;
        *word = t;
        EXPECT_EQ(*word, t);
      }
    });
  }
  for (std::thread& each : threads) each.join();
}

}  // namespace
}  // namespace memtrace
