// HeapTerritory: where blocks lie that are not glibc's: of another allocator, or of a pool that
// the program told of (memtrace.h). A bit for each 64 KiB of the address space: what the program
// maps for itself may lie right beside, and is a root.
//
// Where glibc's own lie is seen in the mappings: in anonymous memory that the program did not
// map (program_mappings.h).
//
// Threads: any, at any time. Async-signal-safe.

#ifndef MEMTRACE_PRELOAD_LEAK_SCAN_HEAP_TERRITORY_H_
#define MEMTRACE_PRELOAD_LEAK_SCAN_HEAP_TERRITORY_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "preload/arch/arch.h"
#include "preload/leak_scan/address_bits.h"

namespace memtrace {

class HeapTerritory {
 public:
  // A block is, or was, at [begin, begin + bytes).
  void Note(uintptr_t begin, size_t bytes) {
    if (begin == 0 || begin >= kAddresses) return;
    const uintptr_t room = kAddresses - begin;  // a pool may be said to be larger than all there is
    const uintptr_t last = (begin + (bytes == 0 ? 0 : (bytes < room ? bytes : room) - 1)) >> kShift;
    const uintptr_t first = begin >> kShift;
    // Mostly one, which is set.
    if (last - first >= kMany) return Set(first, last);
    for (uintptr_t granule = first; granule <= last; ++granule) {
      if (!bits_.Has(granule)) Set(granule, granule);
    }
  }

  bool Has(uintptr_t address) const { return bits_.Has(address >> kShift); }

  bool used() const { return used_.load(std::memory_order_relaxed); }

  // visit(begin, end) for each stretch of [begin, end) that may have blocks, ascending.
  template <typename Visit>
  void ForEach(uintptr_t begin, uintptr_t end, Visit visit) const {
    if (used()) bits_.ForEachStretch(begin, end, visit);
  }

 private:
  static constexpr int kShift = 16;
  static constexpr uintptr_t kAddresses = uintptr_t{1} << arch::kAddressBits;
  static constexpr uintptr_t kMany = 16;  // granules, for which they are not looked at first

  void Set(uintptr_t first, uintptr_t last) {
    bits_.Set(first, last + 1);
    used_.store(true, std::memory_order_relaxed);
  }

  std::atomic<bool> used_{false};
  AddressBits<kShift> bits_;
};

extern HeapTerritory g_heap_territory;

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_LEAK_SCAN_HEAP_TERRITORY_H_
