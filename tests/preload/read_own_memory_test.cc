#include "preload/leak_scan/read_own_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <vector>

namespace memtrace {
namespace {

constexpr size_t kAllPages = 8, kWordsOfPage = kPage / kWord;

// Pages that were there when they were planned, and are not any more: what lies behind them may be
// all that keeps a block.
TEST(ReadOwnMemoryTest, GoesOnBehindPagesThatCannotBeRead) {
  void* const mapping = mmap(nullptr, kAllPages * kPage, PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(mapping, MAP_FAILED);
  auto* const memory = static_cast<uint64_t*>(mapping);
  for (size_t i = 0; i < kAllPages * kWordsOfPage; ++i) memory[i] = i;
  const auto begin = reinterpret_cast<uintptr_t>(memory);
  std::vector<uint64_t> buffer(kAllPages * kWordsOfPage), seen;
  const auto read = [&](uintptr_t from, uintptr_t to) {
    seen.clear();
    return ReadOwnMemory(from, to, buffer.data(),
                         [&](const uint64_t* words, uintptr_t at, size_t count) {
                           EXPECT_EQ(at, begin + words[0] * kWord);
                           seen.insert(seen.end(), words, words + count);
                         });
  };
  if (read(begin, begin + kAllPages * kPage) != 0)
    GTEST_SKIP() << "process_vm_readv is refused here";
  EXPECT_EQ(seen.size(), kAllPages * kWordsOfPage);

  for (const size_t page : {size_t{0}, size_t{3}, size_t{4}, size_t{7}})
    ASSERT_EQ(mprotect(memory + page * kWordsOfPage, kPage, PROT_NONE), 0);
  EXPECT_EQ(read(begin, begin + kAllPages * kPage), 4 * kPage);
  std::vector<uint64_t> expected;
  for (const size_t page : {1, 2, 5, 6}) {
    for (size_t i = 0; i < kWordsOfPage; ++i) expected.push_back(page * kWordsOfPage + i);
  }
  EXPECT_EQ(seen, expected);

  // Parts of pages at both ends.
  EXPECT_EQ(read(begin + kPage - 2 * kWord, begin + 3 * kPage + kWord), 3 * kWord);
  EXPECT_EQ(seen.size(), 2 * kWordsOfPage);
  munmap(memory, kAllPages * kPage);
}

}  // namespace
}  // namespace memtrace
