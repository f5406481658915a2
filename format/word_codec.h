// Codec::kWords: event words in a fifth to two thirds of their bytes, for some 2 ns a word.
//
// Addresses come back, sizes and slots even more: many words of a block were in it a short
// while ago. The coder keeps a table of 256 words, each at the place its hash gives. A word
// that is in its place is written as that place, one byte; any other is written as it is and
// takes the place. Eight words make a group, behind a byte whose bit j says that word j is a
// place. The last group may have fewer words; content_bytes says how many there are.
//
// The table begins with zeros in each block, so that each can be read alone. Every step does the
// same whatever the word is: stores eight bytes and goes on by one or eight. Guessed branches would
// cost more than all of it.

#ifndef MEMTRACE_FORMAT_WORD_CODEC_H_
#define MEMTRACE_FORMAT_WORD_CODEC_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace memtrace::format {

inline constexpr size_t kWordTable = 256;
inline constexpr size_t kWordGroup = 8;

constexpr uint8_t WordPlace(uint64_t word) {
  return static_cast<uint8_t>(word * uint64_t{0x9e3779b97f4a7c15} >> 56);
}

// Room that EncodeWords() needs: the most that it writes, and what its last store overhangs.
constexpr size_t EncodedWordsRoom(size_t words) {
  return words * sizeof(uint64_t) + words / kWordGroup + 1 + sizeof(uint64_t);
}
// The least bytes that so many words can be in.
constexpr size_t LeastEncodedWords(size_t words) {
  return words + (words + kWordGroup - 1) / kWordGroup;
}

// Returns the bytes written at `out`.
inline size_t EncodeWords(const uint64_t* words, size_t count, uint64_t (&table)[kWordTable],
                          uint8_t* const out) {
  memset(table, 0, sizeof(table));
  uint8_t* next = out;
  const auto group = [&](size_t size) __attribute__((always_inline)) {
    uint8_t* const flags = next++;
    unsigned places = 0;
    for (size_t j = 0; j < size; ++j) {
      const uint64_t word = words[j];
      const uint64_t place = WordPlace(word);
      const unsigned known = table[place] == word;
      table[place] = word;
      const uint64_t written = known ? place : word;
      memcpy(next, &written, sizeof(written));
      next += known ? 1 : sizeof(uint64_t);
      places |= known << j;
    }
    *flags = static_cast<uint8_t>(places);
    words += size;
  };
  for (; count >= kWordGroup; count -= kWordGroup) group(kWordGroup);
  if (count != 0) group(count);
  return static_cast<size_t>(next - out);
}

// Exactly `count` words from exactly `bytes` bytes, or false. `words` need not be aligned.
inline bool DecodeWords(const uint8_t* next, size_t bytes, uint8_t* words, size_t count) {
  uint64_t table[kWordTable] = {};
  const uint8_t* const end = next + bytes;
  while (count != 0) {
    if (next == end) return false;
    unsigned places = *next++;
    const size_t size = count < kWordGroup ? count : kWordGroup;
    if (places >> size != 0) return false;
    for (size_t j = 0; j < size; ++j, places >>= 1) {
      uint64_t word;
      if (places & 1) {
        if (next == end) return false;
        word = table[*next++];
      } else {
        if (end - next < static_cast<ptrdiff_t>(sizeof(word))) return false;
        memcpy(&word, next, sizeof(word));
        next += sizeof(word);
        table[WordPlace(word)] = word;
      }
      memcpy(words, &word, sizeof(word));
      words += sizeof(word);
    }
    count -= size;
  }
  return next == end;
}

}  // namespace memtrace::format

#endif  // MEMTRACE_FORMAT_WORD_CODEC_H_
