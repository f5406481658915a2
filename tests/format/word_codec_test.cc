#include "format/word_codec.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace memtrace::format {
namespace {

std::vector<uint8_t> Encode(const std::vector<uint64_t>& words) {
  uint64_t table[kWordTable];
  std::vector<uint8_t> bytes(EncodedWordsRoom(words.size()), 0xee);
  bytes.resize(EncodeWords(words.data(), words.size(), table, bytes.data()));
  return bytes;
}

bool Decodes(const std::vector<uint8_t>& bytes, const std::vector<uint64_t>& words) {
  std::vector<uint64_t> decoded(words.size());
  return DecodeWords(bytes.data(), bytes.size(), reinterpret_cast<uint8_t*>(decoded.data()),
                     decoded.size()) &&
         decoded == words;
}

std::vector<uint64_t> SomeWords(size_t count, uint64_t different, unsigned seed) {
  std::mt19937_64 random(seed);
  std::vector<uint64_t> pool(different), words(count);
  for (uint64_t& word : pool) word = random() >> random() % 64;
  for (uint64_t& word : words) word = pool[random() % different];
  return words;
}

TEST(WordCodecTest, EveryLengthComesBack) {
  for (size_t count = 0; count <= 70; ++count) {
    for (const uint64_t different : {1, 3, 1000}) {
      const std::vector<uint64_t> words = SomeWords(count, different, static_cast<unsigned>(count));
      const std::vector<uint8_t> bytes = Encode(words);
      EXPECT_LE(bytes.size() + sizeof(uint64_t), EncodedWordsRoom(count));
      EXPECT_GE(bytes.size(), LeastEncodedWords(count));
      EXPECT_TRUE(Decodes(bytes, words)) << count << " of " << different;
    }
  }
}

TEST(WordCodecTest, ZeroIsAWordLikeOthers) {
  const std::vector<uint64_t> words(20, 0);
  EXPECT_EQ(Encode(words).size(), LeastEncodedWords(20));
  EXPECT_TRUE(Decodes(Encode(words), words));
}

TEST(WordCodecTest, WordsOfOnePlaceReplaceEachOther) {
  uint64_t other = 1;
  while (WordPlace(other) != WordPlace(0x1234)) ++other;
  const std::vector<uint64_t> words = {0x1234, other, 0x1234, other, other};
  EXPECT_EQ(Encode(words).size(), 1 + 4 * 8 + 1u);
  EXPECT_TRUE(Decodes(Encode(words), words));
}

TEST(WordCodecTest, WordsThatComeBackTakeAByte) {
  const std::vector<uint64_t> words = SomeWords(8000, 20, 1);
  EXPECT_LT(Encode(words).size(), words.size() * 3 / 2);
}

TEST(WordCodecTest, WhatIsCutOrTooLongIsRefused) {
  const std::vector<uint64_t> words = SomeWords(43, 9, 2);
  std::vector<uint8_t> bytes = Encode(words);
  std::vector<uint64_t> out(words.size());
  auto* const at = reinterpret_cast<uint8_t*>(out.data());
  for (size_t size = 0; size < bytes.size(); ++size) {
    const std::vector<uint8_t> cut(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(size));
    EXPECT_FALSE(DecodeWords(cut.data(), cut.size(), at, out.size())) << size;
  }
  bytes.push_back(0);
  EXPECT_FALSE(DecodeWords(bytes.data(), bytes.size(), at, out.size()));
}

TEST(WordCodecTest, PlacesBehindTheLastWordAreRefused) {
  const uint8_t bytes[] = {0b1000, 1, 2, 3};
  uint8_t out[3 * 8];
  EXPECT_FALSE(DecodeWords(bytes, sizeof(bytes), out, 3));
}

}  // namespace
}  // namespace memtrace::format
