#include "report/blocks_by_address.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace memtrace::report {
namespace {

constexpr int kPartBits = 11;
constexpr size_t kParts = size_t{1} << kPartBits;
// Of 1.5 million blocks, least of seven: comparing from the beginning 116 ms; below 1024 blocks 90,
// below 64 48; with fewer parts and more rounds 57 to 69.
constexpr size_t kFew = 64;

bool IsBefore(const HeldBlock& a, const HeldBlock& b) { return a.address() < b.address(); }

// Addresses of base to base + range.
void Sort(std::span<HeldBlock> blocks, uint64_t base, uint64_t range) {
  if (blocks.size() < kFew) {
    std::sort(blocks.begin(), blocks.end(), IsBefore);
    return;
  }
  const int shift = std::max(static_cast<int>(std::bit_width(range)) - kPartBits, 0);
  const auto part_of = [base, shift](const HeldBlock& block) {
    return static_cast<size_t>((block.address() - base) >> shift);
  };
  std::array<size_t, kParts> next{}, end;
  for (const HeldBlock& block : blocks) ++next[part_of(block)];
  size_t sum = 0;
  for (size_t part = 0; part < kParts; ++part) {
    const size_t count = std::exchange(next[part], sum);
    end[part] = sum += count;
  }
  // A block is held, and put where it belongs; so is what was there, until one belongs here.
  for (size_t part = 0; part < kParts; ++part) {
    while (next[part] < end[part]) {
      HeldBlock& place = blocks[next[part]++];
      HeldBlock held = place;
      for (size_t its; (its = part_of(held)) != part;) std::swap(held, blocks[next[its]++]);
      place = held;
    }
  }
  if (shift == 0) return;
  for (size_t part = 0, begin = 0; part < kParts; begin = end[part++]) {
    if (end[part] - begin < 2) continue;
    Sort(blocks.subspan(begin, end[part] - begin), base + (uint64_t{part} << shift),
         (uint64_t{1} << shift) - 1);
  }
}

}  // namespace

void SortByAddress(std::span<HeldBlock> blocks) {
  if (blocks.empty()) return;
  const auto [least, most] = std::minmax_element(blocks.begin(), blocks.end(), IsBefore);
  Sort(blocks, least->address(), most->address() - least->address());
}

}  // namespace memtrace::report
