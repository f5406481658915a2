// SampledSet: the addresses of the live blocks that were sampled, so that the free of
// any other block is known as not worth a word after one load.
//
//   filter  a byte for every 64 bytes of address space, modulo its size: 255 says that
//           no sampled block begins there, anything else to look into the table. It is
//           255 less the number of blocks. 0 is never left again, and all are 0 until
//           sampling begins: in a process that records everything, every free looks.
//   table   the addresses themselves, in groups of one cache line, eight of them.
//           A group that is full leads to the next level, which is eight times as
//           large and mapped when first needed. So the table is exact, and grows with
//           the live samples: 32 KiB for a few thousand, nothing ever copied.
//
// Any thread may insert and remove, without a lock. An address is inserted after the
// real allocation and before the program has it, and removed before the real free: the
// program's own handing over of the block orders the two, so that both sides may be
// relaxed, and no address is in the table twice.
//
// A fork child has a copy of it, rightly: it frees blocks that its parent sampled.

#ifndef MEMTRACE_PRELOAD_SAMPLED_SET_H_
#define MEMTRACE_PRELOAD_SAMPLED_SET_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace memtrace {

class SampledSet {
 public:
  // False: not in the set. True: perhaps.
  [[gnu::always_inline]] bool MayHold(const void* block) const {
    return filter_[FilterIndex(block)].load(std::memory_order_relaxed) != kNone;
  }

  // Before the first sampled allocation.
  void Begin();
  // False when there is no memory for it: such a block must not be recorded.
  bool Insert(const void* block);
  // Whether it was there.
  bool Remove(const void* block);

  // The frees of [begin, end) look into the table for ever.
  void Watch(const void* begin, const void* end);

 private:
  static constexpr uint8_t kNone = 255;
  // 16 KiB: a thousand live samples, of half a gigabyte of heap at 512 KiB each, make
  // one free in 16 look further, and a program with a small heap touches little of it.
  static constexpr size_t kFilterBytes = 16 << 10;
  static constexpr size_t kLevels = 6;  // 150 million blocks
  static constexpr size_t kFirstGroups = 512;

  struct alignas(64) Group {
    std::atomic<uintptr_t> blocks[8];
  };

  static size_t FilterIndex(const void* block) {
    return (reinterpret_cast<uintptr_t>(block) >> 6) % kFilterBytes;
  }
  static size_t Groups(size_t level) { return kFirstGroups << 3 * level; }
  static Group& GroupOf(Group* groups, size_t level, const void* block) {
    const uint64_t hash = (reinterpret_cast<uintptr_t>(block) >> 4) * 0x9e3779b97f4a7c15;
    return groups[hash >> 40 & (Groups(level) - 1)];
  }
  Group* Level(size_t level) {
    return level == 0 ? first_ : levels_[level].load(std::memory_order_acquire);
  }
  Group* MapLevel(size_t level);
  void Count(const void* block);
  void Discount(const void* block);

  std::atomic<uint8_t> filter_[kFilterBytes];
  Group first_[kFirstGroups];
  std::atomic<Group*> levels_[kLevels];
};

extern SampledSet g_sampled;

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_SAMPLED_SET_H_
