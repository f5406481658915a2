// What is taken for a part of malloc's main arena outside of [heap], in made-up memory: a chain of
// chunks that goes from a page to the arena's last chunk, or to the headers that close a part.

#include "preload/leak_scan/arena_parts.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace memtrace {
namespace {

using Parts = std::vector<std::pair<size_t, size_t>>;

class ArenaPartsTest : public testing::Test {
 protected:
  static constexpr size_t kPages = 16, kPageWords = kPage / kWord;

  ArenaPartsTest() {
    // What lies beside is anything.
    for (uint64_t& word : memory_.words) word = 0x4141414141414141;
  }

  uintptr_t begin() const { return reinterpret_cast<uintptr_t>(memory_.words); }
  uintptr_t AddressOf(size_t page) const { return begin() + page * kPage; }
  uint64_t* WordsOf(size_t page) { return memory_.words + page * kPageWords; }

  // Chunks of `bytes` each in [page, end), up to `rest` bytes from its end, where one has what is
  // left. Its address.
  uintptr_t Fill(size_t page, size_t end, size_t bytes, size_t rest) {
    uintptr_t at = AddressOf(page);
    reinterpret_cast<uint64_t*>(at)[0] = 0;
    const uintptr_t last = AddressOf(end) - rest;
    while (at + 2 * bytes <= last) at = Put(at, bytes | 1);
    Put(at, (last - at) | 1);
    return at;
  }
  // The address behind it.
  static uintptr_t Put(uintptr_t chunk, uint64_t word) {
    reinterpret_cast<uint64_t*>(chunk)[1] = word;
    return chunk + (word & ~uint64_t{7});
  }
  // A part that is closed by so many headers.
  void FillClosed(size_t page, size_t end, size_t headers = 2, size_t bytes = 176) {
    Fill(page, end, bytes, headers * 16);
    for (size_t i = 1; i <= headers; ++i) Put(AddressOf(end) - i * 16, 0x11);
  }

  Parts Find(uintptr_t top = 0, size_t absent = kPages) {
    Parts found;
    ArenaParts(top).ForEach(
        begin(), begin() + kPages * kPage,
        [&](uintptr_t at) { return (at - begin()) / kPage != absent; },
        [&](uintptr_t from, uintptr_t to) {
          found.emplace_back((from - begin()) / kPage, (to - begin()) / kPage);
        });
    return found;
  }

  struct {
    alignas(kPage) uint64_t words[kPages * kPageWords];
  } memory_;
};

TEST_F(ArenaPartsTest, NoneInOtherMemory) {
  EXPECT_EQ(Find(), Parts());
  for (uint64_t& word : memory_.words) word = 0;
  EXPECT_EQ(Find(), Parts());
}

TEST_F(ArenaPartsTest, OneThatWasClosedAndTheLast) {
  FillClosed(2, 5);
  const uintptr_t top = Fill(6, 9, 4096, 0);
  EXPECT_EQ(Find(top), Parts({{2, 5}, {6, 9}}));
}

TEST_F(ArenaPartsTest, OneBesideTheOtherUpToTheEnd) {
  FillClosed(0, 3);
  FillClosed(3, 4, 3);
  FillClosed(4, 16, 2, 64);
  EXPECT_EQ(Find(), Parts({{0, 3}, {3, 4}, {4, 16}}));
}

// The first header tells so.
TEST_F(ArenaPartsTest, TheChunkBeforeTheEndIsFree) {
  FillClosed(2, 5);
  Put(AddressOf(5) - 32, 0x10);
  EXPECT_EQ(Find(), Parts({{2, 5}}));
}

TEST_F(ArenaPartsTest, AChainThatEndsNowhereIsNone) {
  Fill(2, 5, 176, 0);  // as the last part is, and it is not the last
  EXPECT_EQ(Find(), Parts());
  EXPECT_EQ(Find(AddressOf(3)), Parts());
}

TEST_F(ArenaPartsTest, OneHeaderDoesNotCloseAPart) {
  FillClosed(2, 5, 1);
  EXPECT_EQ(Find(), Parts());
}

TEST_F(ArenaPartsTest, ChunksOfOtherArenasAndMappedOnesAreNone) {
  for (const uint64_t flag : {2, 4}) {
    FillClosed(2, 5);
    WordsOf(2)[176 / kWord + 1] |= flag;
    EXPECT_EQ(Find(), Parts()) << flag;
  }
}

TEST_F(ArenaPartsTest, ABrokenChainIsNoneAndHidesNoOther) {
  FillClosed(2, 5);
  FillClosed(6, 9);
  for (const uint64_t word : {uint64_t{0}, uint64_t{1}, uint64_t{25}, ~uint64_t{7}}) {
    WordsOf(2)[176 / kWord + 1] = word;
    EXPECT_EQ(Find(), Parts({{6, 9}})) << word;
  }
}

// The first page of a part is known by its first word, which no chunk before it has.
TEST_F(ArenaPartsTest, WhatDoesNotBeginAsAPartIsNone) {
  FillClosed(2, 5);
  WordsOf(2)[0] = 1;
  EXPECT_EQ(Find(), Parts());
}

TEST_F(ArenaPartsTest, APageThatIsNotThereIsNotRead) {
  FillClosed(2, 5);
  EXPECT_EQ(Find(0, 3), Parts());
  // But where no chunk begins.
  Fill(2, 5, 3 * kPage - 64, 32);
  Put(AddressOf(5) - 32, 0x11);
  Put(AddressOf(5) - 16, 0x11);
  EXPECT_EQ(Find(0, 3), Parts({{2, 5}}));
}

// Many pages of it begin with a chunk, and all these chains break at the same place.
TEST_F(ArenaPartsTest, ALongChainIsFollowedOnce) {
  FillClosed(0, 8, 2, 32);
  for (size_t page = 1; page < 8; ++page) WordsOf(page)[0] = 0;
  WordsOf(7)[kPageWords - 8 + 1] = 0;  // a chunk near the end
  size_t asked = 0;
  ArenaParts(0).ForEach(
      begin(), begin() + 8 * kPage, [&](uintptr_t) { return ++asked > 0; },
      [](uintptr_t, uintptr_t) { ADD_FAILURE(); });
  EXPECT_LT(asked, 8 * kPage / 32 + 100);
}

}  // namespace
}  // namespace memtrace
