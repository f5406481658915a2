// HeapTerritory: where blocks lie that are not glibc's: of another allocator, or of a pool that
// the program told of (memtrace.h). A bit for each MiB of the address space, in pages that are
// mapped when the first such block of their 32 GiB comes.
//
// Where glibc's own lie is seen in the mappings: in anonymous memory.
//
// Threads: any, at any time. Async-signal-safe.

#ifndef MEMTRACE_PRELOAD_LEAK_SCAN_HEAP_TERRITORY_H_
#define MEMTRACE_PRELOAD_LEAK_SCAN_HEAP_TERRITORY_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "preload/arch/arch.h"

namespace memtrace {

class HeapTerritory {
 public:
  // A block is, or was, at [begin, begin + bytes).
  void Note(uintptr_t begin, size_t bytes) {
    if (begin == 0 || begin >> arch::kAddressBits != 0) return;
    const uintptr_t last = (begin + (bytes != 0 ? bytes - 1 : 0)) >> kShift;
    for (uintptr_t granule = begin >> kShift; granule <= last; ++granule) {
      if (!Has(granule)) Set(granule);
    }
  }

  bool used() const { return used_.load(std::memory_order_relaxed); }

  // visit(begin, end) for each stretch of [begin, end) that may have blocks, ascending.
  template <typename Visit>
  void ForEach(uintptr_t begin, uintptr_t end, Visit visit) const {
    if (!used() || end > uintptr_t{1} << arch::kAddressBits) return;
    while (begin < end) {
      uintptr_t next = ((begin >> kShift) + 1) << kShift;
      if (next > end) next = end;
      if (Has(begin >> kShift)) {
        while (next < end && Has(next >> kShift)) {
          next = ((next >> kShift) + 1) << kShift;
          if (next > end) next = end;
        }
        visit(begin, next);
      }
      begin = next;
    }
  }

 private:
  using Words = std::atomic<uint64_t>;
  static constexpr int kShift = 20;
  static constexpr size_t kPageBits = arch::kPageBytes * 8;  // granules of a page
  static constexpr size_t kPages = (size_t{1} << (arch::kAddressBits - kShift)) / kPageBits;

  bool Has(uintptr_t granule) const {
    if (granule / kPageBits >= kPages) return false;
    const Words* const words = pages_[granule / kPageBits].load(std::memory_order_acquire);
    return words != nullptr &&
           (words[granule % kPageBits / 64].load(std::memory_order_relaxed) >> (granule % 64) & 1) !=
               0;
  }
  void Set(uintptr_t granule);

  std::atomic<bool> used_{false};
  std::atomic<Words*> pages_[kPages] = {};
};

extern HeapTerritory g_heap_territory;

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_LEAK_SCAN_HEAP_TERRITORY_H_
