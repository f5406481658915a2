// EventColumns::Tables: what coder and decoder of event_columns.h guess from, and the bytes that
// say which guesses were right. docs/trace-format.md, section 8, has each guess; a change of any of
// them is another format.
//
// Both sides tell the tables of each event when they know it, so that both have the same.

#ifndef MEMTRACE_REPORT_TRACE_EVENT_TABLES_H_
#define MEMTRACE_REPORT_TRACE_EVENT_TABLES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "format/event_words.h"
#include "format/varint.h"
#include "report/trace/event_columns.h"

namespace memtrace::report {

// The byte of an event: its kind, or kLiteral, in the low half; guesses in the high one.
inline constexpr uint8_t kLiteral = 0;
// kMalloc, kCalloc, kRealloc:
inline constexpr uint8_t kDetailGuessed = 0x10, kSizeGuessed = 0x20, kAddressGuessed = 0x40,
                         kSlotGuessed = 0x80;
// kFree, kReallocIntent:
inline constexpr uint8_t kOfBefore = 0x10;  // not allocated in this block
inline constexpr uint8_t kWithStack = 0x20;
// kPath:
inline constexpr uint8_t kParentIsLast = 0x10, kSlotIsNext = 0x20, kOneNode = 0x40;

inline constexpr unsigned kTableBits = 14;
inline constexpr uint32_t kTableMask = (1u << kTableBits) - 1;

// The difference of two addresses of 48 bits, signed.
inline int64_t Difference(uint64_t a, uint64_t b) {
  return static_cast<int64_t>((a - b) << 16) >> 16;
}

// Most differences are multiples of 16: bit 0 tells that they are not.
inline uint64_t PackDifference(uint64_t a, uint64_t b) {
  const int64_t d = Difference(a, b);
  return (d & 15) == 0 ? format::ZigZag(static_cast<uint64_t>(d >> 4)) << 1
                       : format::ZigZag(static_cast<uint64_t>(d)) << 1 | 1;
}
inline uint64_t UnpackDifference(uint64_t packed, uint64_t b) {
  const uint64_t d = format::UnZigZag(packed >> 1);
  return (b + ((packed & 1) != 0 ? d : d << 4)) & format::kAddressMask;
}

// What glibc makes usable for a request of `size` when it splits nothing off.
inline uint64_t GuessedUsable(uint64_t size) {
  return std::max<uint64_t>(24, ((size + 23) & ~uint64_t{15}) - 8);
}
inline uint32_t GuessedDetail(uint64_t size, uint32_t arena) {
  return static_cast<uint32_t>(GuessedUsable(size) - size) | arena;
}
inline uint64_t Usable(uint64_t size, uint32_t detail) {
  const uint32_t waste = detail & format::kUnknownWaste;
  return waste == format::kUnknownWaste ? GuessedUsable(size) : size + waste;
}
inline uint8_t ClassOf(uint64_t usable) {
  return static_cast<uint8_t>(std::min<uint64_t>(usable >> 4, 255));
}

inline uint32_t HashOf(uint64_t value) {
  return static_cast<uint32_t>(value * 0x9e3779b97f4a7c15 >> (64 - kTableBits));
}

// The free blocks of a size, the latest last; the oldest are forgotten. As large as a power of two:
// where one begins is a shift.
class alignas(256) FreeList {
 public:
  static constexpr uint32_t kDepth = 16;

  void Clear() { size_ = 0; }
  void Push(uint64_t address) {
    addresses_[++top_ % kDepth] = address;
    size_ += size_ < kDepth;
  }
  uint32_t size() const { return size_; }
  // Number `i`, 1 the latest.
  uint64_t At(uint32_t i) const { return addresses_[(top_ - i + 1) % kDepth]; }
  uint64_t TakeLatest() {
    --size_;
    return addresses_[top_-- % kDepth];
  }
  void Take(uint32_t i) {
    for (; i > 1; --i) addresses_[(top_ - i + 1) % kDepth] = addresses_[(top_ - i + 2) % kDepth];
    --top_;
    --size_;
  }
  // 0: not among them.
  uint32_t Find(uint64_t address) const {
    for (uint32_t i = 1; i <= size_; ++i) {
      if (At(i) == address) return i;
    }
    return 0;
  }

 private:
  uint64_t addresses_[kDepth];
  uint32_t top_ = 0, size_ = 0;
};

struct EventColumns::Tables {
  // The address of a block, and the class of its usable bytes above.
  struct Allocation {
    uint64_t word = 0;
    uint64_t address() const { return word & format::kAddressMask; }
    void set_address(uint64_t address) { word = (word & ~format::kAddressMask) | address; }
    uint8_t size_class() const { return static_cast<uint8_t>(word >> kClassShift); }
  };
  static constexpr unsigned kClassShift = 48;

  // Begins anew, for a block of so many words.
  void Reset(size_t words) {
    last_slot = last_node = arena = 0;
    last_end = last_pc = last_ticks = 0;
    last_freed = {};
    allocation_count = 0;
    if (allocations.size() < words / 2 + 1) allocations.resize(words / 2 + 1);
    pcs.assign(1, 0);
    memset(next_slot, 0, sizeof(next_slot));
    memset(size_of, 0, sizeof(size_of));
    memset(pc_of, 0, sizeof(pc_of));
    memset(pc_behind, 0, sizeof(pc_behind));
    for (FreeList& list : free_lists) list.Clear();
  }

  uint32_t& SlotBehind(uint32_t slot) { return next_slot[slot & kTableMask]; }
  uint32_t& SizeOf(uint32_t slot) { return size_of[slot & kTableMask]; }

  // `usable`: Usable() of its size and detail; an event of two words.
  void Allocated(uint64_t address, uint64_t usable) {
    last_end = address + usable + 8;
    allocations[allocation_count++] = {address | uint64_t{ClassOf(usable)} << kClassShift};
  }
  void Freed(Allocation block) {
    last_freed = block;
    free_lists[block.size_class()].Push(block.address());
  }
  // A realloc left its block where it was.
  void FreedAgainAllocated() {
    FreeList& list = free_lists[last_freed.size_class()];
    if (list.size() > 0 && list.At(1) == last_freed.address()) list.Take(1);
  }
  void Defined(uint32_t slot, uint32_t parent, uint64_t pc) {
    pc_behind[HashOf(pc_of[parent & kTableMask])] = pc;
    pc_of[slot & kTableMask] = pc;
    last_node = slot;
    last_pc = pc;
  }
  uint64_t GuessedPc(uint32_t parent) const {
    return pc_behind[HashOf(pc_of[parent & kTableMask])];
  }

  uint32_t last_slot, last_node, arena;
  uint64_t last_end, last_pc, last_ticks;
  Allocation last_freed;
  std::vector<Allocation> allocations;  // the first allocation_count: of this block, in order
  size_t allocation_count;
  std::vector<uint64_t> pcs;            // by number, from 1; instance in the high 16 bits
  uint32_t next_slot[kTableMask + 1];
  uint32_t size_of[kTableMask + 1];
  uint64_t pc_of[kTableMask + 1];      // of a node, by slot
  uint64_t pc_behind[kTableMask + 1];  // of the latest child of a frame
  FreeList free_lists[256];

  // The coder's own: the latest allocation of an address, checked against `allocations`.
  static constexpr unsigned kFindBits = 17;
  std::vector<uint32_t> found;
  absl::flat_hash_map<uint64_t, uint32_t> number_of_pc;

  uint32_t& FoundAt(uint64_t address) {
    return found[address * 0x9e3779b97f4a7c15 >> (64 - kFindBits)];
  }
  // SIZE_MAX: not of this block, or forgotten.
  size_t Find(uint64_t address) {
    const uint32_t i = FoundAt(address);
    return i < allocation_count && allocations[i].address() == address ? i : SIZE_MAX;
  }
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_TRACE_EVENT_TABLES_H_
