// LiveTable: the blocks that are live now, by address.
//
// Open addressing with linear probing; erasing shifts the entries behind back, so
// that no tombstones pile up in a trace of billions of frees. An entry is half a
// cache line, and a lookup far from any cache: Prefetch() some events ahead.
//
// Addresses from a hostile trace may be chosen so that all belong into one place. Where
// an entry lands much too far from its home the table takes another hash, by a factor
// that nobody outside knows.
//
// Pointers to entries are good until the next Insert() or Erase().

#ifndef MEMTRACE_REPORT_LIVE_TABLE_H_
#define MEMTRACE_REPORT_LIVE_TABLE_H_

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <random>

#include "format/event_words.h"

namespace memtrace::report {

struct HeldBlock {
  enum Flags : uint64_t {
    kUncounted = 1,  // allocated outside the range or by another thread than asked for
    kLimbo = 2,      // between a realloc's intent and its result
    kMapped = 4,     // has a mapping of its own
    kIgnored = 8,    // never a leak: LiveBlock::ignored
    kStopped = 16,   // allocated while the recording was stopped: format::kStoppedSlot
    kReallocated = 32,  // UsageFold has its chain
  };
  static constexpr uint64_t kSizeBits = 48;
  static constexpr uint64_t kMaxSize = (uint64_t{1} << kSizeBits) - 1;
  static constexpr uint64_t kMaxWaste = 0xffff;

  uint64_t address_flags = 0;  // 48 bits of address, Flags above; 0: empty
  uint64_t size_waste = 0;     // 48 bits of size; usable minus requested above, at most kMaxWaste
  uint32_t site = 0;
  uint32_t thread = 0;         // that allocated it
  uint64_t time_ns = 0;

  uint64_t address() const { return address_flags & format::kAddressMask; }
  uint64_t size() const { return size_waste & kMaxSize; }
  uint64_t waste() const { return size_waste >> kSizeBits; }
  bool has(Flags flag) const { return (address_flags >> 48 & flag) != 0; }
  void set(Flags flag) { address_flags |= static_cast<uint64_t>(flag) << 48; }
  void clear(Flags flag) { address_flags &= ~(static_cast<uint64_t>(flag) << 48); }
};
static_assert(sizeof(HeldBlock) == 32);

class LiveTable {
 public:
  LiveTable() { Allocate(kFirstSlots); }
  ~LiveTable() { munmap(slots_, mapped_bytes_); }
  LiveTable(const LiveTable&) = delete;
  LiveTable& operator=(const LiveTable&) = delete;

  size_t size() const { return size_; }

  // nullptr: no such block is live. `address` is not 0.
  HeldBlock* Find(uint64_t address) {
    for (size_t i = Home(address);; i = (i + 1) & mask_) {
      HeldBlock& slot = slots_[i];
      if (slot.address() == address) return &slot;
      if (slot.address_flags == 0) return nullptr;
    }
  }

  bool Contains(uint64_t address) const {
    for (size_t i = Home(address);; i = (i + 1) & mask_) {
      if (slots_[i].address() == address) return true;
      if (slots_[i].address_flags == 0) return false;
    }
  }

  // The block at `address`: the live one, or a new one with nothing but its address
  // and `*inserted` set.
  HeldBlock* FindOrInsert(uint64_t address, bool* inserted) {
    if (size_ >= limit_) [[unlikely]] Grow();
    const size_t home = Home(address);
    for (size_t i = home;; i = (i + 1) & mask_) {
      HeldBlock& slot = slots_[i];
      if (slot.address() == address) {
        *inserted = false;
        return &slot;
      }
      if (slot.address_flags == 0) {
        slot.address_flags = address;
        ++size_;
        *inserted = true;
        if (((i - home) & mask_) > kMaxProbes && !reseeded_) [[unlikely]] {
          Reseed();
          return Find(address);
        }
        return &slot;
      }
    }
  }

  void Erase(HeldBlock* block) {
    size_t hole = static_cast<size_t>(block - slots_);
    for (size_t i = (hole + 1) & mask_; slots_[i].address_flags != 0; i = (i + 1) & mask_) {
      const size_t home = Home(slots_[i].address());
      // The entry may move to the hole unless its home lies behind the hole.
      if (((i - home) & mask_) >= ((i - hole) & mask_)) {
        slots_[hole] = slots_[i];
        hole = i;
      }
    }
    slots_[hole].address_flags = 0;
    --size_;
  }

  void Prefetch(uint64_t address) const { __builtin_prefetch(&slots_[Home(address)], 1); }

  template <typename Function>
  void ForEach(Function function) const {
    for (size_t i = 0; i <= mask_; ++i) {
      if (slots_[i].address_flags != 0) function(slots_[i]);
    }
  }

 private:
  static constexpr size_t kFirstSlots = 1 << 12;
  static constexpr size_t kMaxProbes = 4096;

  size_t Home(uint64_t address) const {
    // Blocks are 16 bytes apart at least; the high bits of a product are its best.
    return (address >> 4) * factor_ >> shift_;
  }

  void Allocate(size_t slots) {
    mapped_bytes_ = slots * sizeof(HeldBlock);
    void* memory =
        mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    if (mapped_bytes_ >= (size_t{4} << 20)) madvise(memory, mapped_bytes_, MADV_HUGEPAGE);
    slots_ = static_cast<HeldBlock*>(memory);  // all zero: all empty
    mask_ = slots - 1;
    shift_ = 64 - static_cast<unsigned>(__builtin_ctzll(slots));
    // Half of them at most: each entry more that a lookup has to pass is a branch nobody foresees.
    limit_ = slots / 2;
  }

  void Grow() { Rehash((mask_ + 1) * 2); }

  void Reseed() {
    reseeded_ = true;
    std::random_device random;
    factor_ = random() | uint64_t{random()} << 32 | 1;
    Rehash(mask_ + 1);
  }

  void Rehash(size_t slots) {
    HeldBlock* const old = slots_;
    const size_t old_slots = mask_ + 1, old_bytes = mapped_bytes_;
    Allocate(slots);
    for (size_t i = 0; i < old_slots; ++i) {
      if (old[i].address_flags == 0) continue;
      size_t to = Home(old[i].address());
      while (slots_[to].address_flags != 0) to = (to + 1) & mask_;
      slots_[to] = old[i];
    }
    munmap(old, old_bytes);
  }

  HeldBlock* slots_ = nullptr;
  size_t mask_ = 0;
  unsigned shift_ = 0;
  size_t limit_ = 0;
  size_t size_ = 0;
  size_t mapped_bytes_ = 0;
  uint64_t factor_ = 0x9e3779b97f4a7c15;
  bool reseeded_ = false;
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_LIVE_TABLE_H_
