// LiveTable: the blocks that are live now, by address.
//
// Open addressing with linear probing; erasing shifts the entries behind back, so
// that no tombstones pile up in a trace of billions of frees. An entry that another one had to pass
// on the way from its home is marked: behind all others there is nothing to shift. A mark stays
// until its entry is erased, though what passed it may be gone by then. An entry is half a
// cache line, and a lookup far from any cache: Prefetch() some events ahead.
//
// What is allocated in a row mostly lies in a row. So in a table too large for the cache not an
// address is hashed but 256 bytes of addresses, to four entries in a row, two cache lines: it is
// read a quarter as often. Where blocks are 16 bytes apart too many belong to the same four; a
// table that finds itself crowded when it grows hashes each address from then on. A small table
// does so too: there an entry more to pass costs more than a line more to read.
//
// It grows where it stands: with a copy it would take half as much again, and memory that
// nobody has touched yet costs more than all else that is done to an entry.
//
// Addresses from a hostile trace may be chosen so that all belong into one place. Where
// an entry lands much too far from its home the table takes another hash, by a factor
// that nobody outside knows.
//
// Pointers to entries are good until the next FindOrInsert(), Insert() or Erase().

#ifndef MEMTRACE_REPORT_MODEL_LIVE_TABLE_H_
#define MEMTRACE_REPORT_MODEL_LIVE_TABLE_H_

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <random>
#include <vector>

#include "base/huge_pages.h"
#include "format/event_words.h"

namespace memtrace::report {

struct HeldBlock {
  enum Flags : uint64_t {
    kUncounted = 1,  // allocated outside the range or by another thread than asked for
    kLimbo = 2,      // between a realloc's intent and its result
    kMapped = 4,     // has a mapping of its own
    kIgnored = 8,    // never a leak: LiveBlock::ignored
    kStopped = 16,   // allocated while the recording was stopped: format::kStoppedSlot
    kMore = 32,      // of HeapModel::CopyLiveBytes(): more of the block before, none of its own
  };
  // Above the flags, how often it was reallocated so far; kLongChain: UsageFold knows.
  static constexpr unsigned kChainShift = 48 + 6;
  static constexpr uint32_t kLongChain = (1u << (64 - kChainShift)) - 1;
  static constexpr uint64_t kSizeBits = 48;
  static constexpr uint64_t kPassed = uint64_t{1} << (kSizeBits - 1);  // LiveTable's mark
  static constexpr uint64_t kMaxSize = kPassed - 1;
  static constexpr uint64_t kMaxWaste = 0xffff;

  uint64_t address_flags = 0;  // 48 bits of address, Flags and the chain above; 0: empty
  // 47 bits of size and kPassed; usable minus requested above, at most kMaxWaste
  uint64_t size_waste = 0;
  uint32_t site = 0;
  uint32_t thread = 0;         // that allocated it
  uint64_t time_ns = 0;

  uint64_t address() const { return address_flags & format::kAddressMask; }
  uint64_t size() const { return size_waste & kMaxSize; }
  uint64_t waste() const { return size_waste >> kSizeBits; }
  void set_size(uint64_t size, uint64_t waste) {
    size_waste = (size_waste & kPassed) | size | waste << kSizeBits;
  }
  bool has(Flags flag) const { return (address_flags >> 48 & flag) != 0; }
  uint32_t chain() const { return static_cast<uint32_t>(address_flags >> kChainShift); }
  void set_chain(uint32_t chain) {
    address_flags = (address_flags & ((uint64_t{1} << kChainShift) - 1)) | uint64_t{chain}
                                                                               << kChainShift;
  }
  void set(Flags flag) { address_flags |= static_cast<uint64_t>(flag) << 48; }
  void clear(Flags flag) { address_flags &= ~(static_cast<uint64_t>(flag) << 48); }
};
static_assert(sizeof(HeldBlock) == 32);

class LiveTable {
 public:
  LiveTable() {
    Scatter();
    Allocate(kFirstSlots);
  }
  ~LiveTable() { munmap(slots_, mapped_bytes_); }
  LiveTable(const LiveTable&) = delete;
  LiveTable& operator=(const LiveTable&) = delete;

  size_t size() const { return limit_ - room_; }

  // nullptr: no such block is live. `address` is not 0.
  HeldBlock* Find(uint64_t address) {
    for (HeldBlock* slot = Home(address);; slot = Behind(slot)) {
      if (slot->address() == address) return slot;
      if (slot->address_flags == 0) return nullptr;
    }
  }

  const HeldBlock* Find(uint64_t address) const {
    return const_cast<LiveTable*>(this)->Find(address);
  }

  // The same of a block with no flag set: one that has any is not found.
  HeldBlock* FindPlain(uint64_t address) {
    for (HeldBlock* slot = Home(address);; slot = Behind(slot)) {
      if (slot->address_flags == address) return slot;
      if (slot->address_flags == 0) return nullptr;
    }
  }

  bool Contains(uint64_t address) const { return Find(address) != nullptr; }

  // The block at `address`: the live one, or a new one with nothing but its address
  // and `*inserted` set.
  HeldBlock* FindOrInsert(uint64_t address, bool* inserted) {
    HeldBlock* const block = Insert(address);
    *inserted = block != nullptr;
    return block != nullptr ? block : Find(address);
  }

  // The new block; nullptr: one at that address is live. `address` is not 0.
  HeldBlock* Insert(uint64_t address) {
    if (room_ == 0) [[unlikely]] Grow();
    HeldBlock* slot = Home(address);
    if (slot->address_flags != 0) {
      slot = EmptyBehind(slot, address);
      if (slot == nullptr) [[unlikely]] return nullptr;
    }
    slot->address_flags = address;
    slot->size_waste = 0;  // not passed
    --room_;
    return slot;
  }

  void Erase(HeldBlock* block) {
    if (IsPassed(*block)) block = MoveUp(block);
    block->address_flags = 0;
    ++room_;
  }

  // Writes `block` to `slot`, in which there is an entry. The mark is the slot's.
  static void Replace(HeldBlock* slot, const HeldBlock& block) {
    const uint64_t mark = slot->size_waste & HeldBlock::kPassed;
    *slot = block;
    slot->size_waste = (block.size_waste & ~HeldBlock::kPassed) | mark;
  }

  // False while the processor's cache holds the table: prefetching would cost more than it saves.
  bool WantsPrefetch() const { return mapped_bytes_ > kNearBytes; }
  void Prefetch(uint64_t address) const { __builtin_prefetch(Home(address), 1); }

  template <typename Function>
  void ForEach(Function function) const {
    for (const HeldBlock* slot = slots_; slot != end_; ++slot) {
      if (slot->address_flags != 0) function(*slot);
    }
  }

 private:
  static constexpr size_t kFirstSlots = 1 << 12;
  static constexpr size_t kCachedBytes = size_t{4} << 20;  // a power of two, as the table is
  static constexpr size_t kNearBytes = size_t{2} << 20;
  static constexpr size_t kMaxProbes = 4096;
  static constexpr size_t kCrowded = 16;  // entries that a lookup has to pass, on average
  static constexpr unsigned kGroup = 4;     // entries in a row,
  static constexpr unsigned kStepBits = 6;  // and an entry for each 64 bytes of addresses

  // The golden ratio parts what is counted by one: the low bits that all addresses have alike are
  // taken from the factor.
  static constexpr unsigned kGroupedShift = 8, kScatteredShift = 4;

  // Where the search for an address begins. The high bits of a product are its best. In a group the
  // last ones are the group's order.
  HeldBlock* Home(uint64_t address) const {
    if (group_mask_ == 0) [[likely]] return slots_ + HighBits(address * factor_);
    constexpr uint64_t kSpan = ~uint64_t{(kGroup << kStepBits) - 1};
    return slots_ + (HighBits((address & kSpan) * factor_) ^ (address >> kStepBits & group_mask_));
  }
  // As many as a number of a slot has.
  size_t HighBits(uint64_t product) const {
    return static_cast<size_t>(static_cast<unsigned __int128>(product) * slot_count_ >> 64);
  }
  HeldBlock* Behind(HeldBlock* slot) const { return ++slot == end_ ? slots_ : slot; }
  static bool IsPassed(const HeldBlock& slot) {
    return (slot.size_waste & HeldBlock::kPassed) != 0;
  }
  HeldBlock* Pass(HeldBlock* slot) const {
    slot->size_waste |= HeldBlock::kPassed;
    return Behind(slot);
  }
  // How many slots `slot` is behind `before`.
  size_t Distance(const HeldBlock* before, const HeldBlock* slot) const {
    return static_cast<size_t>(slot - before) & (slot_count_ - 1);
  }

  // The first empty slot behind `slot`; nullptr: the block at `address` is on the way there.
  HeldBlock* EmptyBehind(HeldBlock* slot, uint64_t address) {
    HeldBlock* const home = slot;
    do {
      if (slot->address() == address) [[unlikely]] return nullptr;
      slot = Pass(slot);
    } while (slot->address_flags != 0);
    if (Distance(home, slot) <= kMaxProbes || reseeded_) [[likely]] return slot;
    Reseed();
    return EmptyFor(address);
  }
  HeldBlock* EmptyFor(uint64_t address) const {
    HeldBlock* slot = Home(address);
    while (slot->address_flags != 0) slot = Pass(slot);
    return slot;
  }
  // Writes what is in another slot to an empty one, which nobody has passed.
  static void Put(HeldBlock* slot, const HeldBlock& block) {
    *slot = block;
    slot->size_waste &= ~HeldBlock::kPassed;
  }

  // Moves entries behind the hole to it, and to those holes that this makes, as long as they stay
  // behind their homes. Returns the last hole.
  [[gnu::noinline]] HeldBlock* MoveUp(HeldBlock* hole) {
    HeldBlock* slot = Behind(hole);
    while (slot->address_flags != 0) {
      if (Distance(Home(slot->address()), slot) >= Distance(hole, slot)) {
        Replace(hole, *slot);
        hole = slot;
        if (!IsPassed(*hole)) break;
      }
      slot = Behind(slot);
    }
    return hole;
  }

  void Allocate(size_t slots) {
    void* memory = mmap(nullptr, slots * sizeof(HeldBlock), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    Take(memory, slots);
  }

  void Take(void* memory, size_t slots) {
    mapped_bytes_ = slots * sizeof(HeldBlock);
    base::PreferHugePages(memory, mapped_bytes_);
    slots_ = static_cast<HeldBlock*>(memory);  // what is new is all zero: empty
    slot_count_ = slots;
    end_ = slots_ + slots;
    const size_t held = size();
    // Each entry more that a lookup has to pass is a branch nobody foresees; each line that is not
    // in the cache costs more than some of these.
    limit_ = mapped_bytes_ <= kCachedBytes ? slots / 2 : slots / 4 * 3;
    room_ = limit_ - held;
  }

  [[gnu::noinline]] void Grow() {
    const size_t slots = 2 * slot_count_;
    if (mapped_bytes_ == kCachedBytes && !reseeded_) {
      Group();
      Rebuild(slots);
    } else if (group_mask_ != 0 && IsCrowded()) {
      Scatter();
      Rebuild(slots);
    } else {
      GrowInPlace();
    }
  }

  // A home is the high bits of a product: with one bit more it is at twice the place, but for the
  // order in a group. From the last entry on each moves up into what is empty by then. The few
  // that are too far behind their homes for that, or too near to the begin, go at the end; and
  // those that would pass the table's end: what they find at its begin has not moved yet.
  void GrowInPlace() {
    const size_t slots = slot_count_;
    void* const memory = mremap(slots_, mapped_bytes_, 2 * mapped_bytes_, MREMAP_MAYMOVE);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    Take(memory, 2 * slots);
    std::vector<HeldBlock> late;
    for (HeldBlock* slot = slots_ + slots; slot != slots_;) {
      --slot;
      if (slot->address_flags == 0) continue;
      const HeldBlock block = *slot;
      slot->address_flags = 0;
      HeldBlock* to = Home(block.address());
      if (to <= slot) to = end_;
      while (to != end_ && to->address_flags != 0) {
        to->size_waste |= HeldBlock::kPassed;
        ++to;
      }
      if (to != end_) {
        Put(to, block);
      } else {
        late.push_back(block);
      }
    }
    for (const HeldBlock& block : late) Put(EmptyFor(block.address()), block);
  }

  // Whether entries are far from their homes. Looks at the first slots only: their entries
  // come from everywhere.
  bool IsCrowded() const {
    size_t entries = 0, passed = 0;
    for (const HeldBlock* slot = slots_; slot != slots_ + kFirstSlots; ++slot) {
      if (slot->address_flags == 0) continue;
      ++entries;
      passed += Distance(Home(slot->address()), slot);
    }
    return passed > kCrowded * entries;
  }

  void Group() {
    group_mask_ = kGroup - 1;
    factor_ = seed_ >> kGroupedShift;
  }

  void Scatter() {
    group_mask_ = 0;
    factor_ = seed_ >> kScatteredShift;
  }

  [[gnu::noinline]] void Reseed() {
    reseeded_ = true;
    std::random_device random;
    seed_ = random() | uint64_t{random()} << 32;
    Scatter();
    Rebuild(slot_count_);
  }

  void Rebuild(size_t slots) {
    HeldBlock* const old = slots_;
    const size_t old_slots = slot_count_, old_bytes = mapped_bytes_;
    Allocate(slots);
    for (const HeldBlock* block = old; block != old + old_slots; ++block) {
      if (block->address_flags != 0) Put(EmptyFor(block->address()), *block);
    }
    munmap(old, old_bytes);
  }

  HeldBlock* slots_ = nullptr;
  HeldBlock* end_ = nullptr;
  uint64_t slot_count_ = 0;  // a power of two
  uint64_t factor_ = 0;
  uint64_t group_mask_ = 0;  // kGroup - 1; 0: each address has a hash of its own
  size_t room_ = 0;          // for so many entries it need not grow
  size_t limit_ = 0;
  size_t mapped_bytes_ = 0;
  uint64_t seed_ = 0x9e3779b97f4a7c15;
  bool reseeded_ = false;
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_MODEL_LIVE_TABLE_H_
