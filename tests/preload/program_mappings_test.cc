// What is known of the program's own mappings: never more than it mapped.

#include "preload/leak_scan/program_mappings.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <set>

#include "preload/leak_scan/block_places.h"
#include "preload/leak_scan/heap_territory.h"
#include "preload/own_memory.h"

namespace memtrace {
namespace {

constexpr int kAnonymous = MAP_PRIVATE | MAP_ANONYMOUS;
constexpr uintptr_t kGranule = ProgramMappings::kGranule;
constexpr uintptr_t kBase = 0x7f12'3400'0000;

TEST(ProgramMappingsTest, KnowsTheGranulesThatOneCallMappedWhole) {
  auto mappings = std::make_unique<ProgramMappings>();
  mappings->NoteMmap(kBase + 4096, 3 * kGranule, kAnonymous);
  EXPECT_FALSE(mappings->Has(kBase + 8192)) << "a part of it";
  EXPECT_TRUE(mappings->Has(kBase + kGranule));
  EXPECT_TRUE(mappings->Has(kBase + 3 * kGranule - 1));
  EXPECT_FALSE(mappings->Has(kBase + 3 * kGranule)) << "a part of it";
  mappings->NoteMmap(kBase + 8 * kGranule, kGranule - 4096, kAnonymous);
  EXPECT_FALSE(mappings->Has(kBase + 8 * kGranule));
}

TEST(ProgramMappingsTest, WhatIsNotAnonymousAndPrivateIsForgotten) {
  auto mappings = std::make_unique<ProgramMappings>();
  for (const int flags : {MAP_PRIVATE, MAP_SHARED | MAP_ANONYMOUS, MAP_SHARED}) {
    mappings->NoteMmap(kBase, 2 * kGranule, kAnonymous);
    mappings->NoteMmap(kBase + 4096, 4096, flags);
    EXPECT_FALSE(mappings->Has(kBase)) << flags;
    EXPECT_TRUE(mappings->Has(kBase + kGranule)) << flags;
  }
}

// A byte of it unmapped, and the granule is not known any more.
TEST(ProgramMappingsTest, ForgetsEveryGranuleOfWhichSomeIsGone) {
  auto mappings = std::make_unique<ProgramMappings>();
  mappings->NoteMmap(kBase, 8 * kGranule, kAnonymous);
  mappings->Forget(kBase + 2 * kGranule - 1, 2);
  EXPECT_TRUE(mappings->Has(kBase));
  EXPECT_FALSE(mappings->Has(kBase + kGranule));
  EXPECT_FALSE(mappings->Has(kBase + 2 * kGranule));
  EXPECT_TRUE(mappings->Has(kBase + 3 * kGranule));
  mappings->Forget(kBase, SIZE_MAX);
  EXPECT_FALSE(mappings->Has(kBase + 3 * kGranule));
}

// As an mremap() that fails.
TEST(ProgramMappingsTest, WhatACallDidNotTakeIsKnownAgain) {
  void* const begin = reinterpret_cast<void*>(kBase);
  g_program_mappings.NoteMmap(kBase, 4 * kGranule, kAnonymous);
  const KnownRange whole(begin, 4 * kGranule), more(begin, 5 * kGranule), none(begin, 4096);
  g_program_mappings.Forget(kBase, 5 * kGranule);
  more.NoteAgain();
  none.NoteAgain();
  EXPECT_FALSE(g_program_mappings.Has(kBase));
  whole.NoteAgain();
  EXPECT_TRUE(g_program_mappings.Has(kBase));
  EXPECT_TRUE(g_program_mappings.Has(kBase + 4 * kGranule - 1));
  EXPECT_FALSE(g_program_mappings.Has(kBase + 4 * kGranule));
  EXPECT_FALSE(g_allocator_mappings.Has(kBase));
  g_program_mappings.Forget(kBase, 4 * kGranule);
}

TEST(ProgramMappingsTest, LengthsThatCannotBeAreHarmless) {
  auto mappings = std::make_unique<ProgramMappings>();
  mappings->NoteMmap(kBase, SIZE_MAX, kAnonymous);
  mappings->NoteMmap(kBase, 0, kAnonymous);
  mappings->NoteMmap(UINTPTR_MAX - 4095, 4096, kAnonymous);
  mappings->Forget(0, SIZE_MAX);
  mappings->NoteMmap(kBase, ProgramMappings::kMost + 1, kAnonymous);
  EXPECT_FALSE(mappings->Has(kBase));
  EXPECT_FALSE(mappings->Has(UINTPTR_MAX));
}

// Against a set of pages, over the borders of the pages of bits too.
TEST(ProgramMappingsTest, NeverKnowsMoreThanWasMapped) {
  constexpr uintptr_t kPage = 4096, kPages = 2048;
  const uintptr_t base = (kBase >> 31 << 31) - kPages / 2 * kPage;  // 2 GiB: a page of bits
  std::mt19937 random(7);
  auto mappings = std::make_unique<ProgramMappings>();
  std::set<uintptr_t> mapped;
  size_t known = 0;
  for (int round = 0; round < 2000; ++round) {
    const uintptr_t first = random() % kPages, count = 1 + random() % 200;
    const bool map = random() % 3 != 0;
    if (map) {
      mappings->NoteMmap(base + first * kPage, count * kPage, kAnonymous);
    } else {
      mappings->Forget(base + first * kPage, count * kPage);
    }
    for (uintptr_t page = first; page < first + count; ++page) {
      if (map) {
        mapped.insert(page);
      } else {
        mapped.erase(page);
      }
    }
    for (uintptr_t at = 0; at < kPages + 200; at += kGranule / kPage) {
      if (!mappings->Has(base + at * kPage)) continue;
      ++known;
      for (uintptr_t page = at; page < at + kGranule / kPage; ++page) {
        ASSERT_TRUE(mapped.contains(page)) << round << " " << page;
      }
    }
  }
  EXPECT_GT(known, 10'000u);
}

TEST(HeapTerritoryTest, VisitsTheStretchesThatHaveBlocks) {
  constexpr uintptr_t kGranule = 1 << 16;
  auto territory = std::make_unique<HeapTerritory>();
  EXPECT_FALSE(territory->used());
  territory->Note(kBase + 100, 16);
  territory->Note(kBase + kGranule - 8, 16);  // in two of them
  territory->Note(kBase + 5 * kGranule, 0);
  territory->Note(0, 16);
  territory->Note(UINTPTR_MAX - 8, 16);
  EXPECT_TRUE(territory->used());
  std::map<uintptr_t, uintptr_t> found;
  territory->ForEach(kBase + 50, kBase + 6 * kGranule - 7,
                     [&](uintptr_t begin, uintptr_t end) { found[begin] = end; });
  EXPECT_EQ(found, (std::map<uintptr_t, uintptr_t>{{kBase + 50, kBase + 2 * kGranule},
                                                   {kBase + 5 * kGranule, kBase + 6 * kGranule - 7}}));
}

// A page of bits that is set as a whole is none until a part of it is cleared.
TEST(ProgramMappingsTest, KnowsManyGibibytesAndForgetsPartsOfThem) {
  constexpr uintptr_t kPageOfBits = uintptr_t{1} << 31;
  const uintptr_t base = kBase / kPageOfBits * kPageOfBits;
  auto mappings = std::make_unique<ProgramMappings>();
  mappings->NoteMmap(base - 3 * kGranule, 5 * kPageOfBits + 6 * kGranule, kAnonymous);
  mappings->Forget(base + kPageOfBits + 4096, 1);
  mappings->Forget(base + 3 * kPageOfBits, kPageOfBits);
  mappings->NoteMmap(base + 2 * kPageOfBits + kGranule, kGranule, kAnonymous);  // it is known
  mappings->NoteMmap(base + 3 * kPageOfBits + 7 * kGranule, kGranule, kAnonymous);
  std::map<uintptr_t, uintptr_t> known;
  mappings->ForEach(base - kPageOfBits, base + 7 * kPageOfBits,
                    [&](uintptr_t begin, uintptr_t end) { known[begin] = end; });
  EXPECT_EQ(known, (std::map<uintptr_t, uintptr_t>{
                       {base - 3 * kGranule, base + kPageOfBits},
                       {base + kPageOfBits + kGranule, base + 3 * kPageOfBits},
                       {base + 3 * kPageOfBits + 7 * kGranule, base + 3 * kPageOfBits + 8 * kGranule},
                       {base + 4 * kPageOfBits, base + 5 * kPageOfBits + 3 * kGranule}}));
  EXPECT_TRUE(mappings->HasAll(base, kPageOfBits));
  EXPECT_FALSE(mappings->HasAll(base, 2 * kPageOfBits));
}

// The program says what it likes of its pools, and waits for us meanwhile.
TEST(HeapTerritoryTest, ManyTebibytesTakeLittleMemory) {
  constexpr uintptr_t kTebibyte = uintptr_t{1} << 40;
  auto territory = std::make_unique<HeapTerritory>();
  const uint64_t before = own_bytes();
  territory->Note(kBase, SIZE_MAX);
  territory->Note(kTebibyte, 100 * kTebibyte);
  EXPECT_LT(own_bytes() - before, 1u << 20);
  EXPECT_TRUE(territory->Has(kTebibyte));
  EXPECT_TRUE(territory->Has(101 * kTebibyte - 1));
  EXPECT_TRUE(territory->Has((uintptr_t{1} << 47) - 1));
  size_t stretches = 0;
  territory->ForEach(0, uintptr_t{1} << 47, [&](uintptr_t, uintptr_t) { ++stretches; });
  EXPECT_EQ(stretches, 2u);
}

// A mapping has its last page whole, however much of it was asked for.
TEST(ProgramEdgesTest, AreWholePages) {
  auto edges = std::make_unique<ProgramEdges>();
  edges->NoteMmap(kBase, 100, kAnonymous);
  edges->NoteMmap(kBase + 2 * kGranule, kGranule + 5000, kAnonymous);
  std::map<uintptr_t, uintptr_t> found;
  edges->ForEach(kBase, kBase + 10 * kGranule,
                 [&](uintptr_t begin, uintptr_t end) { found[begin - kBase] = end - kBase; });
  EXPECT_EQ(found, (std::map<uintptr_t, uintptr_t>{{0, 4096}, {3 * kGranule, 3 * kGranule + 8192}}));
}

TEST(ProgramEdgesTest, ArePagesOfGranulesThatAMappingHasInPart) {
  constexpr uintptr_t kPage = 4096;
  auto edges = std::make_unique<ProgramEdges>();
  const auto found = [&] {
    std::map<uintptr_t, uintptr_t> found;
    edges->ForEach(kBase - kGranule, kBase + 100 * kGranule,
                   [&](uintptr_t begin, uintptr_t end) { found[begin - kBase] = end - kBase; });
    return found;
  };
  using Edges = std::map<uintptr_t, uintptr_t>;
  edges->NoteMmap(kBase, 4 * kGranule, kAnonymous);
  EXPECT_EQ(found(), Edges());
  edges->NoteMmap(kBase + 9 * kGranule - kPage, 3 * kGranule, kAnonymous);
  const Edges both = {{9 * kGranule - kPage, 9 * kGranule}, {11 * kGranule, 12 * kGranule - kPage}};
  EXPECT_EQ(found(), both);
  edges->NoteMmap(kBase + 20 * kGranule + kPage, 2 * kPage, kAnonymous);
  edges->NoteMmap(kBase + 30 * kGranule, kPage, kAnonymous);
  edges->NoteMmap(kBase + 41 * kGranule - kPage, kPage, kAnonymous);
  Edges all = both;
  all[20 * kGranule + kPage] = 20 * kGranule + 3 * kPage;
  all[30 * kGranule] = 30 * kGranule + kPage;
  all[41 * kGranule - kPage] = 41 * kGranule;
  EXPECT_EQ(found(), all);
  edges->Forget(kBase + 20 * kGranule, 10 * kGranule + kPage);
  all.erase(20 * kGranule + kPage);
  all.erase(30 * kGranule);
  EXPECT_EQ(found(), all);
  edges->NoteMmap(kBase + 41 * kGranule - kPage, kPage, MAP_SHARED | MAP_ANONYMOUS);
  EXPECT_EQ(found(), both);
  edges->NoteMmap(kBase, 64 * kGranule, kAnonymous);
  EXPECT_EQ(found(), Edges()) << "granules that it has whole";
  for (const size_t bytes : {size_t{0}, SIZE_MAX, SIZE_MAX - kBase}) {
    edges->NoteMmap(kBase + kPage, bytes, kAnonymous);
  }
  edges->Forget(0, SIZE_MAX);
  EXPECT_EQ(found(), Edges());
}

// Everything but the granules that the program mapped and that have no block.
TEST(BlockPlacesTest, AreAllButWhatTheProgramKeepsForItself) {
  constexpr uintptr_t kFar = kBase + (uintptr_t{1} << 36), kCount = 64;
  g_program_mappings.NoteMmap(kFar + 2 * kGranule, 20 * kGranule, kAnonymous);
  g_program_mappings.NoteMmap(kFar + 30 * kGranule, 34 * kGranule, kAnonymous);
  for (const uintptr_t granule : {1, 2, 7, 8, 21, 22, 40, 63}) {
    g_heap_territory.Note(kFar + granule * kGranule, 16);
  }
  for (const uintptr_t cut : {0, 1, 2, 3, 7, 8, 9, 21, 22, 29, 30, 40}) {
    const uintptr_t begin = kFar + cut * kGranule + 4096;
    const uintptr_t end = kFar + (kCount - cut / 2) * kGranule - 4096;
    std::map<uintptr_t, uintptr_t> expected, found;
    for (uintptr_t at = begin; at < end; at = at / kGranule * kGranule + kGranule) {
      if (g_program_mappings.Has(at) && !g_heap_territory.Has(at)) continue;
      const uintptr_t next = std::min(at / kGranule * kGranule + kGranule, end);
      if (!expected.empty() && expected.rbegin()->second == at) {
        expected.rbegin()->second = next;
      } else {
        expected[at] = next;
      }
    }
    ForEachBlockPlace(begin, end, [&](uintptr_t from, uintptr_t to) {
      if (from < to) found[from] = to;
    });
    EXPECT_EQ(found, expected) << cut;
  }
  g_program_mappings.Forget(kFar, kCount * kGranule);
}

}  // namespace
}  // namespace memtrace
