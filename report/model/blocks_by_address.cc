#include "report/model/blocks_by_address.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace memtrace::report {
namespace {

constexpr int kPartBits = 11;
constexpr size_t kParts = size_t{1} << kPartBits;
constexpr size_t kFew = 64;  // so many are not worth a table: they are compared
// Blocks whose addresses span no more places than these are put into them at once, and not
// dealt into parts again.
constexpr int kPlaceBits = 12;
constexpr size_t kPlaces = size_t{1} << kPlaceBits;

bool IsBefore(const HeldBlock& a, const HeldBlock& b) { return a.address() < b.address(); }

class AddressSort {
 public:
  // All addresses are multiples of 2^step_bits.
  explicit AddressSort(int step_bits) : step_bits_(step_bits), sorted_(kPlaces) {}

  // Addresses of base to base + range.
  void Sort(std::span<HeldBlock> blocks, uint64_t base, uint64_t range) {
    if (blocks.size() < kFew) {
      std::sort(blocks.begin(), blocks.end(), IsBefore);
      return;
    }
    const bool has_places = range >> step_bits_ < kPlaces;
    if (has_places && Place(blocks, base)) return;
    const int finest = has_places ? 0 : step_bits_ + kPlaceBits;
    const int shift = std::max(static_cast<int>(std::bit_width(range)) - kPartBits, finest);
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

 private:
  // Each has a place of its own, by its address. False: two have the same, and nothing was moved.
  bool Place(std::span<HeldBlock> blocks, uint64_t base) {
    if (blocks.size() > kPlaces) return false;
    taken_.fill(0);
    for (size_t i = 0; i < blocks.size(); ++i) {
      const size_t place = (blocks[i].address() - base) >> step_bits_;
      uint64_t& word = taken_[place / 64];
      const uint64_t bit = uint64_t{1} << place % 64;
      if ((word & bit) != 0) [[unlikely]] return false;
      word |= bit;
      block_at_[place] = static_cast<uint16_t>(i);
    }
    HeldBlock* next = sorted_.data();
    for (size_t i = 0; i < taken_.size(); ++i) {
      for (uint64_t word = taken_[i]; word != 0; word &= word - 1) {
        *next++ = blocks[block_at_[64 * i + static_cast<size_t>(std::countr_zero(word))]];
      }
    }
    std::copy(sorted_.data(), next, blocks.data());
    return true;
  }

  const int step_bits_;
  std::array<uint64_t, kPlaces / 64> taken_;
  std::array<uint16_t, kPlaces> block_at_;  // where taken_ has its bit
  std::vector<HeldBlock> sorted_;
};

}  // namespace

void SortByAddress(std::span<HeldBlock> blocks) {
  if (blocks.empty()) return;
  uint64_t least = UINT64_MAX, most = 0, all = 0;
  for (const HeldBlock& block : blocks) {
    const uint64_t address = block.address();
    least = std::min(least, address);
    most = std::max(most, address);
    all |= address;
  }
  const int step_bits = std::min(std::countr_zero(all), 12);  // all are 0: of no matter
  AddressSort(step_bits).Sort(blocks, least, most - least);
}

}  // namespace memtrace::report
