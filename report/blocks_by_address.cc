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
// Below this, comparing costs less than looking through the parts.
constexpr size_t kFew = 1024;

bool IsBefore(const HeldBlock& a, const HeldBlock& b) { return a.address() < b.address(); }

}  // namespace

void SortByAddress(std::span<HeldBlock> blocks) {
  if (blocks.size() < kFew) {
    std::sort(blocks.begin(), blocks.end(), IsBefore);
    return;
  }
  const auto [least, most] = std::minmax_element(blocks.begin(), blocks.end(), IsBefore);
  const uint64_t base = least->address(), range = most->address() - base;
  if (range == 0) return;
  const int shift = std::max(std::bit_width(range) - kPartBits, 0);
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
  for (size_t part = 0; part < kParts; ++part) {
    while (next[part] < end[part]) {
      HeldBlock& place = blocks[next[part]];
      for (size_t its; (its = part_of(place)) != part;) std::swap(place, blocks[next[its]++]);
      ++next[part];
    }
  }
  if (shift == 0) return;
  for (size_t part = 0, begin = 0; part < kParts; begin = end[part++]) {
    SortByAddress(blocks.subspan(begin, end[part] - begin));
  }
}

}  // namespace memtrace::report
