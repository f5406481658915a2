// What is said to be free of a heap, against a program that knows what it has allocated; and heaps
// that are not as they should be, of which nothing is said to be free any more.

#include "preload/leak_scan/free_chunks.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "preload/leak_scan/scan_mappings.h"
#include "preload/leak_scan/scan_memory.h"

namespace memtrace {
namespace {

using Stretch = std::pair<uintptr_t, uintptr_t>;

// What may be in use of [begin, end), asked for in pieces.
std::vector<Stretch> Used(FreeChunks& chunks, uintptr_t begin, uintptr_t end, uintptr_t piece) {
  std::vector<Stretch> used;
  for (uintptr_t from = begin; from < end; from += piece) {
    const uintptr_t to = std::min(from + piece, end);
    chunks.ForEachUsed(from, to, begin, end, [&](uintptr_t a, uintptr_t b) {
      EXPECT_LT(a, b);
      EXPECT_GE(a, from);
      EXPECT_LE(b, to);
      if (!used.empty() && used.back().second == a) {
        used.back().second = b;
      } else {
        used.emplace_back(a, b);
      }
    });
  }
  return used;
}

uintptr_t Bytes(const std::vector<Stretch>& stretches) {
  uintptr_t sum = 0;
  for (const auto& [begin, end] : stretches) sum += end - begin;
  return sum;
}

// A heap as glibc keeps one. Its list of free chunks is a ring through the heap's own first chunk.
class MadeUpHeap {
 public:
  static constexpr size_t kWords = 1 << 16;

  MadeUpHeap() : words_(std::make_unique<uint64_t[]>(kWords + 2)) {
    while (begin() % 16 != 0) ++first_;
  }
  uintptr_t begin() const { return reinterpret_cast<uintptr_t>(&words_[first_]); }
  uintptr_t end() const { return begin() + next_ * 8; }

  // Returns where it is, as an index.
  size_t Add(size_t bytes, bool free) {
    const size_t at = next_;
    word(at + 1) = bytes | previous_in_use_;
    next_ += bytes / 8;
    if (free) {
      word(next_) = bytes;
      if (list_ != 0) {
        word(at + 2) = address(list_);
        word(at + 3) = address(list_);
        word(list_ + 2) = word(list_ + 3) = address(at);
      }
      list_ = list_ == 0 ? at : list_;
    }
    previous_in_use_ = !free;
    return at;
  }
  uint64_t& word(size_t i) { return words_[first_ + i]; }
  uint64_t address(size_t i) const { return begin() + i * 8; }

  std::vector<Stretch> Used() {
    FreeChunks chunks(mappings_);
    chunks.Begin(begin(), end());
    return memtrace::Used(chunks, begin(), end(), 4096);
  }

 private:
  ScanArena arena_;
  const ScanMappings mappings_{arena_};
  std::unique_ptr<uint64_t[]> words_;
  size_t first_ = 0, next_ = 0, list_ = 0;
  uint64_t previous_in_use_ = 1;
};

TEST(FreeChunksTest, TwoThatAreInOneListAndTheLast) {
  MadeUpHeap heap;
  heap.Add(64, false);
  const size_t a = heap.Add(1024, true), used = heap.Add(20'000, false);
  const size_t b = heap.Add(8192, true), more = heap.Add(512, false), last = heap.Add(4096, false);
  EXPECT_EQ(heap.Used(), (std::vector<Stretch>{{heap.begin(), heap.address(a + 6)},
                                               {heap.address(used), heap.address(b + 6)},
                                               {heap.address(more), heap.address(last + 2)}}));
}

// Each of them would be said to be free if nothing were checked.
TEST(FreeChunksTest, WhatFailsACheckIsRead) {
  enum { kNothing, kLink, kBackLink, kSizeBehind, kNoLink, kUnaligned, kCases };
  for (int wrong = kNothing; wrong < kCases; ++wrong) {
    MadeUpHeap heap;
    heap.Add(64, false);
    const size_t a = heap.Add(1024, true), used = heap.Add(4096, false);
    const size_t b = heap.Add(8192, true), more = heap.Add(512, false);
    heap.Add(64, false);
    if (wrong == kLink) heap.word(b + 2) = heap.address(used);
    if (wrong == kBackLink) heap.word(a + 3) = heap.address(used);
    if (wrong == kSizeBehind) heap.word(more) = 4096;
    if (wrong == kNoLink) heap.word(b + 2) = heap.word(b + 3) = 0x10;
    if (wrong == kUnaligned) heap.word(b + 2) = heap.word(b + 3) = heap.address(a) + 1;
    const uintptr_t skipped = heap.end() - heap.begin() - Bytes(heap.Used());
    const uintptr_t last = 64 - 16, first = 1024 - 48, second = 8192 - 48;
    // Both are in one list: what is wrong with one link is wrong for the one it leads to, too.
    const uintptr_t expected = wrong == kNothing      ? first + second + last
                               : wrong == kSizeBehind ? first + last
                                                      : last;
    EXPECT_EQ(skipped, expected) << wrong;
  }
}

// From where the chain does not go on, all is read.
TEST(FreeChunksTest, AChainThatBreaksSaysNothingOfWhatFollows) {
  for (const uint64_t size : {0ul, 16ul, 24ul, 1ul << 40, ~0ul, 4096ul | 4, 4096ul | 2}) {
    MadeUpHeap heap;
    heap.Add(1024, false);
    const size_t broken = heap.Add(4096, false);
    heap.Add(2048, true);
    heap.Add(64, false);
    heap.Add(2048, true);
    heap.Add(64, false);
    heap.word(broken + 1) = size;
    EXPECT_EQ(Bytes(heap.Used()), heap.end() - heap.begin()) << size;
  }
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// This process's own heap, with what it has freed.
TEST(FreeChunksTest, NoBlockThatIsLiveAndMostOfWhatIsNot) {
  std::mt19937 random(11);
  std::map<uintptr_t, size_t> live;
  std::vector<void*> held;
  uintptr_t freed = 0;
  for (int i = 0; i < 20'000; ++i) {
    const size_t bytes = random() % 8 == 0 ? random() % 60'000 : random() % 600;
    held.push_back(malloc(bytes));
    live[reinterpret_cast<uintptr_t>(held.back())] = bytes;
  }
  ScanArena arena;
  ScanMappings mappings(arena);
  ASSERT_TRUE(mappings.Read());
  const ScanMapping* heap = nullptr;
  for (size_t i = 0; i < mappings.size() && heap == nullptr; ++i) {
    if (mappings[i].kind == format::ScanRegionKind::kHeap) heap = &mappings[i];
  }
  ASSERT_NE(heap, nullptr);
  // The tests before may have had limits and threads, whose arenas the allocator goes on with.
  std::erase_if(live, [heap](const auto& block) {
    return block.first < heap->begin || block.first >= heap->end;
  });
  std::shuffle(held.begin(), held.end(), random);
  for (size_t i = 0; i < held.size() * 4 / 5; ++i) {
    const auto at = live.find(reinterpret_cast<uintptr_t>(held[i]));
    if (at != live.end()) {
      freed += at->second;
      live.erase(at);
    }
    free(held[i]);
  }

  FreeChunks chunks(mappings);
  chunks.Begin(heap->begin, reinterpret_cast<uintptr_t>(sbrk(0)));
  // Lists are looked at as they are: what stands in `used` may be taken from free memory.
  std::vector<Stretch> used;
  used.reserve(100'000);
  for (uintptr_t from = heap->begin; from < heap->end; from += 256 << 10) {
    chunks.ForEachUsed(from, std::min(from + (256 << 10), heap->end), heap->begin, heap->end,
                       [&](uintptr_t a, uintptr_t b) { used.emplace_back(a, b); });
  }
  for (const auto& [begin, bytes] : live) {
    uintptr_t at = begin;
    auto next = std::upper_bound(used.begin(), used.end(), at,
                                 [](uintptr_t a, const Stretch& each) { return a < each.second; });
    for (; at < begin + bytes; ++next) {
      ASSERT_TRUE(next != used.end() && next->first <= at) << begin << " " << bytes;
      at = next->second;
    }
  }
  EXPECT_GT(heap->end - heap->begin - Bytes(used), freed / 2);
  for (size_t i = held.size() * 4 / 5; i < held.size(); ++i) free(held[i]);
}
#endif

}  // namespace
}  // namespace memtrace
