// Where malloc's lists are: in this process, by what a freed chunk points to; and in made-up data,
// with lists that have chunks or are broken.

#include "preload/leak_scan/arena_lists.h"

#include <gtest/gtest.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "preload/leak_scan/scan_memory.h"

namespace memtrace {
namespace {

using format::ScanRegionKind;

constexpr uintptr_t kWordBytes = 8;
constexpr size_t kBins = 127;
constexpr size_t kListsBytes = (2 + 2 * kBins) * kWordBytes;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kMallocIsGlibcs = false;
#else
constexpr bool kMallocIsGlibcs = true;
#endif

TEST(ArenaListsTest, AreWhereAFreedChunkPointsTo) {
  if (!kMallocIsGlibcs) GTEST_SKIP() << "malloc is the sanitizer's";
  // Too large for a thread's cache; and the chunk behind them stays in use.
  void* const freed = malloc(5000);
  void* const behind = malloc(5000);
  const volatile auto at = reinterpret_cast<uintptr_t>(freed);
  free(freed);
  // malloc's list of unsorted chunks, or of chunks of this size.
  const uintptr_t list = *reinterpret_cast<const volatile uintptr_t*>(at);
  ScanArena arena;
  ScanMappings mappings(arena);
  ASSERT_TRUE(mappings.Read());
  OwnRange found = {};
  for (size_t i = 0; i < mappings.size(); ++i) {
    const ScanMapping& mapping = mappings[i];
    if (mapping.kind != ScanRegionKind::kModuleData || mapping.part != ScanMapping::Part::kRead ||
        !mapping.path.ends_with("libc.so.6")) {
      continue;
    }
    const OwnRange here = FindArenaLists(mapping, mappings);
    if (here.begin != here.end) found = here;
  }
  free(behind);
  EXPECT_EQ(found.end - found.begin, kListsBytes);
  EXPECT_GE(list, found.begin);
  EXPECT_LT(list, found.end);
}

// Words of "libc's data" with an arena in them, and of a "heap" with chunks.
class MadeUpArena : public testing::Test {
 protected:
  static constexpr size_t kDataWords = 600, kFirst = 70;  // where they are

  MadeUpArena() {
    for (size_t bin = 0; bin < kBins; ++bin) Empty(bin);
    Bin(0)[0] = Address(&heap_[200]);  // the last chunk, where the first bin begins
    Bin(0)[1] = Address(&heap_[100]);  // and what was split last
    data_[kFirst + 2 + 2 * kBins] = 0x8000000400000002;  // which bins have chunks
    char lines[300];
    snprintf(lines, sizeof(lines),
             "%" PRIxPTR "-%" PRIxPTR " rw-p 00000000 fe:00 77 /lib/libc.so.6\n"
             "%" PRIxPTR "-%" PRIxPTR " rw-p 00000000 00:00 0 [heap]\n",
             Address(&data_[0]), Address(&data_[kDataWords]), Address(&heap_[0]),
             Address(&heap_[kHeapWords]));
    text_ = lines;
  }

  static uintptr_t Address(const volatile void* at) { return reinterpret_cast<uintptr_t>(at); }
  uint64_t* Bin(size_t i) { return &data_[kFirst + 2 * i]; }
  void Empty(size_t bin) { Bin(bin)[2] = Bin(bin)[3] = Address(Bin(bin)); }
  // A chunk in the list; `chunk` is the number of its first word.
  void Put(size_t bin, size_t chunk) {
    Bin(bin)[2] = Bin(bin)[3] = Address(&heap_[chunk]);
    heap_[chunk + 2] = heap_[chunk + 3] = Address(Bin(bin));
  }
  OwnRange Find() {
    ScanArena arena;
    ScanMappings mappings(arena);
    EXPECT_TRUE(mappings.ReadForTesting(text_));
    EXPECT_EQ(mappings.size(), 2u);
    ScanMapping data = mappings[0];
    data.part = ScanMapping::Part::kRead;
    return FindArenaLists(data, mappings);
  }
  void ExpectFound() {
    const OwnRange found = Find();
    EXPECT_EQ(found.begin, Address(&data_[kFirst]));
    EXPECT_EQ(found.end - found.begin, kListsBytes);
  }

  static constexpr size_t kHeapWords = 1024;
  struct {
    alignas(16) uint64_t words[2048];
  } memory_ = {};
  // The data lies below the heap.
  uint64_t* const data_ = memory_.words;
  uint64_t* const heap_ = memory_.words + 1024;
  std::string text_;
};

TEST_F(MadeUpArena, OfEmptyLists) { ExpectFound(); }

TEST_F(MadeUpArena, TheFirstListsHaveChunks) {
  for (size_t i = 0; i < 20; ++i) Put(i, 300 + 10 * i);
  ExpectFound();
}

TEST_F(MadeUpArena, OneListAloneIsEmpty) {
  for (size_t i = 0; i < kBins; ++i) {
    if (i != 77) Put(i, 4 + 8 * i);
  }
  ExpectFound();
}

TEST_F(MadeUpArena, AChunkIsBeingTakenFromOneList) {
  Put(5, 300);
  heap_[302] = 0;
  Put(6, 310);
  ExpectFound();
}

TEST_F(MadeUpArena, WhereNoneIsEmptyNothingIsSaid) {
  for (size_t i = 0; i < kBins; ++i) Put(i, 4 + 8 * i);
  const OwnRange found = Find();
  EXPECT_EQ(found.begin, found.end);
}

TEST_F(MadeUpArena, AFewHeadsOfListsAreNoArena) {
  for (size_t i = 100; i < kBins; ++i) Bin(i)[2] = Bin(i)[3] = 0;
  const OwnRange found = Find();
  EXPECT_EQ(found.begin, found.end);
}

// The lists of another program's structures lead to themselves, and not to two words before.
TEST_F(MadeUpArena, HeadsThatPointToThemselvesAreNoBins) {
  for (size_t i = 0; i < kBins; ++i) Bin(i)[2] = Bin(i)[3] = Address(Bin(i) + 2);
  const OwnRange found = Find();
  EXPECT_EQ(found.begin, found.end);
}

TEST_F(MadeUpArena, WordsThatAreNoAddresses) {
  for (size_t i = 0; i < 20; ++i) {
    Bin(i)[2] = i * 0x1111111111111111;
    Bin(i)[3] = 8;
  }
  const OwnRange found = Find();
  EXPECT_EQ(found.begin, found.end);
}

}  // namespace
}  // namespace memtrace
