// Columns: any words come back as they were, and any columns are decoded or refused.

#include "report/trace/event_columns.h"

#include <gtest/gtest.h>

#include <random>

#include "format/event_words.h"

namespace memtrace::report {
namespace {

using format::EventKind;

// Events as a thread of a program has them, with oddities of every kind among them.
std::vector<uint64_t> MakeWords(std::mt19937_64& random, size_t events, bool odd) {
  std::vector<uint64_t> words, live;
  uint64_t top = 0x5555'0000'0010, ticks = random() >> 8;
  const auto slot = [&] { return 1 + random() % 60; };
  for (size_t i = 0; i < events; ++i) {
    switch (random() % (odd ? 16 : 10)) {
      case 0:
      case 1:
      case 2:
      case 3: {
        const uint64_t size = random() % 4 == 0 ? random() % 5000 : 16 * (random() % 8);
        uint64_t address = top;
        if (random() % 3 != 0 && !live.empty()) address = live[random() % live.size()];
        if (address == top) top += 16 * (random() % 40);
        const auto kind = static_cast<EventKind>(1 + random() % 3);
        const uint32_t waste = random() % 3 != 0
                                   ? (size <= 24 ? 24 - size : ((size + 23) & ~15) - 8 - size)
                                   : random() % 0x1000;
        words.push_back(format::Head(kind, address, waste));
        words.push_back(size | slot() << 32);
        live.push_back(address);
        break;
      }
      case 4:
      case 5:
      case 6: {
        const uint64_t address =
            live.empty() || random() % 10 == 0
                ? random()
                : live[live.size() - 1 - random() % std::min<size_t>(live.size(), 30)];
        words.push_back(format::Head(
            random() % 4 == 0 ? EventKind::kReallocIntent : EventKind::kFree, address));
        break;
      }
      case 7: {
        const uint32_t nodes = 1 + random() % 6;
        words.push_back(format::PathHead(random() % 60, slot(), nodes));
        for (uint32_t node = 0; node < nodes; ++node) {
          words.push_back(
              format::NodeWord(0x400000 + random() % 300 * 16, random() % 5 == 0 ? random() : 0));
        }
        break;
      }
      case 8:
        words.push_back(format::TimeWord(ticks += random() % 5000));
        break;
      case 9: {
        const uint32_t n = random() % 9;
        words.push_back(
            format::ExtendedHead(static_cast<format::ExtendedType>(1 + random() % 12), n));
        for (uint32_t w = 0; w < n; ++w)
          words.push_back(random() % 3 == 0 ? random() : random() % 60);
        break;
      }
      case 10:
        words.push_back(format::Head(EventKind::kFree, random(), 1));
        words.push_back(random() % 2 == 0 ? slot() : random());
        break;
      case 11:
        words.push_back(format::Head(EventKind::kFree, random(), random() & 0xffe));
        break;
      case 12:
        words.push_back(format::Head(EventKind::kReallocIntent, random(), random() & 0xfff));
        break;
      case 13:
        words.push_back(format::Head(EventKind::kWideAlloc, random(), 5));
        for (int w = 0; w < 3; ++w) words.push_back(random() % 60);
        break;
      case 14:
        words.push_back(format::TimeWord(random()));
        break;
      case 15:
        words.push_back(
            format::Head(static_cast<EventKind>(1 + random() % 3), random(), random() & 0xfff));
        words.push_back(random());
        break;
    }
  }
  return words;
}

void ExpectThereAndBack(EventColumns& columns, const std::vector<uint64_t>& words) {
  columns.Encode(words);
  size_t bytes = 0;
  for (size_t i = 0; i < EventColumns::kColumns; ++i) bytes += columns.column(i).size();
  EXPECT_LE(bytes, 2 * 8 * words.size());  // what a reader takes
  std::vector<uint64_t> back(words.size());
  ASSERT_TRUE(columns.Decode(back));
  ASSERT_EQ(back, words);
}

TEST(EventColumnsTest, WordsComeBackAsTheyWere) {
  std::mt19937_64 random(1);
  EventColumns columns;
  ExpectThereAndBack(columns, {});
  for (int round = 0; round < 400 && !testing::Test::HasFailure(); ++round) {
    SCOPED_TRACE(round);
    ExpectThereAndBack(columns, MakeWords(random, random() % 3000, round % 2 == 1));
  }
}

TEST(EventColumnsTest, SoDoWordsThatAreNoEvents) {
  std::mt19937_64 random(2);
  EventColumns columns;
  for (int round = 0; round < 400 && !testing::Test::HasFailure(); ++round) {
    SCOPED_TRACE(round);
    std::vector<uint64_t> words = MakeWords(random, random() % 500, true);
    for (uint64_t& word : words) {
      if (random() % 50 == 0) word = random();
    }
    words.resize(words.size() - std::min<size_t>(words.size(), random() % 4));  // cut
    if (round % 4 == 0) words.assign(random() % 300, random() % 2 == 0 ? 0 : ~uint64_t{0});
    if (round == 0) words.assign(200'000, 0);  // longer than one literal
    ExpectThereAndBack(columns, words);
  }
}

// docs/trace-format.md, section 8: the last column is the only one with words in it.
TEST(EventColumnsTest, WordsAsTheyAreAreLittleEndianBehindTheirNumber) {
  const std::vector<uint64_t> words = {
      format::ExtendedHead(static_cast<format::ExtendedType>(1), 1), 0x8877'6655'4433'2211};
  EventColumns columns;
  columns.Encode(words);
  EXPECT_EQ(columns.column(EventColumns::kKinds), std::vector<uint8_t>{0});
  std::vector<uint8_t> expected = {2};
  for (const uint64_t word : words) {
    for (int bit = 0; bit < 64; bit += 8) expected.push_back(static_cast<uint8_t>(word >> bit));
  }
  EXPECT_EQ(columns.column(EventColumns::kWords), expected);
}

TEST(EventColumnsTest, ForetellsWhatAllocatorsDo) {
  std::vector<uint64_t> words;
  for (int i = 0; i < 10'000; ++i) {
    words.push_back(format::Head(EventKind::kMalloc, 0x10010 + i % 4 * 0x40, 12));
    words.push_back(44 | uint64_t{7} << 32);
    words.push_back(format::Head(EventKind::kFree, 0x10010 + i % 4 * 0x40));
  }
  EventColumns columns;
  columns.Encode(words);
  EXPECT_LT(columns.column(EventColumns::kSlots).size(), 10u);
  EXPECT_LT(columns.column(EventColumns::kSizes).size(), 10u);
  EXPECT_EQ(columns.column(EventColumns::kDetails).size(), 0u);
  EXPECT_EQ(columns.column(EventColumns::kFreed).size(), 0u);
}

TEST(EventColumnsTest, TakesOrRefusesAnyColumns) {
  std::mt19937_64 random(3);
  EventColumns columns;
  int taken = 0, refused = 0;
  for (int round = 0; round < 20'000; ++round) {
    const std::vector<uint64_t> words = MakeWords(random, 20 + random() % 60, true);
    columns.Encode(words);
    for (int n = random() % 4; n >= 0; --n) {
      std::vector<uint8_t>& column = columns.column(random() % EventColumns::kColumns);
      if (column.empty() || random() % 4 == 0) {
        column.resize(column.size() + random() % 12, static_cast<uint8_t>(random()));
      } else {
        column[random() % column.size()] = static_cast<uint8_t>(random());
      }
    }
    std::vector<uint64_t> back(words.size() + random() % 3 - std::min<size_t>(words.size(), 1));
    ++(columns.Decode(back) ? taken : refused);
  }
  EXPECT_GT(taken, 0);
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace memtrace::report
