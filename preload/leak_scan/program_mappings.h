// ProgramMappings: memory that the program mapped for itself, anonymous and private. libc's
// allocator has no blocks there, for it maps what it needs by calls that never pass through us;
// so a word that points there is not written down by a memory scan. A garbage collector's heap
// is full of such words: cc1plus has ten million.
//
// Known are whole granules of 64 KiB that one call mapped; of the rest it is not known, and
// it may be libc's. Nor is it of memory that was moved, or unmapped in any way we saw.
//
// Threads: any, at any time. Async-signal-safe.

#ifndef MEMTRACE_PRELOAD_LEAK_SCAN_PROGRAM_MAPPINGS_H_
#define MEMTRACE_PRELOAD_LEAK_SCAN_PROGRAM_MAPPINGS_H_

#include <cstddef>
#include <cstdint>

#include "preload/leak_scan/address_bits.h"

namespace memtrace {

class ProgramMappings {
 public:
  static constexpr uintptr_t kGranule = uintptr_t{64} << 10;
  // A reservation of half the address space would cost as many bits.
  static constexpr size_t kMost = size_t{64} << 30;

  // The program's mmap() made this: behind the real call.
  void NoteMmap(uintptr_t begin, size_t bytes, int flags);
  // It is not the program's any more, or may not be: before the real call.
  void Forget(uintptr_t begin, size_t bytes) {
    if (used_.load(std::memory_order_relaxed)) bits_.Clear(begin / kGranule, EndOf(begin, bytes));
  }

  // Is all of the granule around `address` the program's?
  bool Has(uintptr_t address) const { return bits_.Has(address / kGranule); }

 private:
  // Behind the last granule that has some of it.
  static uintptr_t EndOf(uintptr_t begin, size_t bytes) {
    const uintptr_t end = begin + bytes;
    return end < begin ? UINTPTR_MAX / kGranule : end / kGranule + (end % kGranule != 0);
  }

  std::atomic<bool> used_{false};
  AddressBits<16> bits_;
  static_assert(kGranule == uintptr_t{1} << 16);
};

extern ProgramMappings g_program_mappings;

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_LEAK_SCAN_PROGRAM_MAPPINGS_H_
