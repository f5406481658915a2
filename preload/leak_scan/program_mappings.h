// MappedGranules: of which granules of the address space it is known who mapped them, anonymous and
// private. Those that one call mapped whole; of the rest it is not known. Nor is it of memory that
// was moved, or unmapped in any way we saw.
//
// ProgramMappings: what the program mapped for itself. libc's allocator has no blocks there, for it
// maps what it needs by calls that never pass through us; so a word that points there is
// not written down by a memory scan. A garbage collector's heap is full of such words:
// cc1plus has ten million.
//
// ProgramEdges: of a mapping of the program's the pages in granules that it has in part. With
// another allocator than glibc's: blocks may lie in the rest of these, and what the program has
// there is a root all the same.
//
// AllocatorMappings: what another allocator than glibc's mapped. There it keeps its blocks and what
// it knows of them, addresses of blocks among it: those make no block reachable.
//
// Threads: any, at any time. Async-signal-safe.

#ifndef MEMTRACE_PRELOAD_LEAK_SCAN_PROGRAM_MAPPINGS_H_
#define MEMTRACE_PRELOAD_LEAK_SCAN_PROGRAM_MAPPINGS_H_

#include <cstddef>
#include <cstdint>

#include "preload/leak_scan/address_bits.h"

namespace memtrace {

template <int kShift>
class MappedGranules {
 public:
  static constexpr uintptr_t kGranule = uintptr_t{1} << kShift;
  // HasAll() looks at each granule, and a reservation may be half the address space.
  static constexpr size_t kMost = size_t{64} << 30;

  // mmap() made this, with these flags: behind the real call.
  void NoteMmap(uintptr_t begin, size_t bytes, int flags);
  // It is not the caller's any more, or may not be: before the real call.
  void Forget(uintptr_t begin, size_t bytes) {
    if (used()) bits_.Clear(begin / kGranule, EndOf(begin, bytes));
  }

  bool used() const { return used_.load(std::memory_order_relaxed); }
  // Is all of the granule around `address` known?
  bool Has(uintptr_t address) const { return bits_.Has(address / kGranule); }
  // Is each granule known that lies wholly in this, and is there one?
  bool HasAll(uintptr_t begin, size_t bytes) const;
  // visit(begin, end) for each stretch of [begin, end) that is known, ascending.
  template <typename Visit>
  void ForEach(uintptr_t begin, uintptr_t end, Visit visit) const {
    if (used()) bits_.ForEachStretch(begin, end, visit);
  }

 private:
  // Behind the last granule that has some of it.
  static uintptr_t EndOf(uintptr_t begin, size_t bytes) {
    const uintptr_t end = begin + bytes;
    return end < begin ? UINTPTR_MAX / kGranule : end / kGranule + (end % kGranule != 0);
  }

  std::atomic<bool> used_{false};
  AddressBits<kShift> bits_;
};

using ProgramMappings = MappedGranules<16>;
using AllocatorMappings = MappedGranules<20>;

class ProgramEdges {
 public:
  // As of MappedGranules.
  void NoteMmap(uintptr_t begin, size_t bytes, int flags);
  void Forget(uintptr_t begin, size_t bytes) { pages_.Forget(begin, bytes); }
  template <typename Visit>
  void ForEach(uintptr_t begin, uintptr_t end, Visit visit) const {
    pages_.ForEach(begin, end, visit);
  }

 private:
  MappedGranules<12> pages_;
};

extern ProgramMappings g_program_mappings;
extern ProgramEdges g_program_edges;
extern AllocatorMappings g_allocator_mappings;

// What is known of a range before a call that may give it up, and forgets it first: where the call
// fails, it is known again, but for ProgramEdges.
class KnownRange {
 public:
  KnownRange(const void* address, size_t bytes);
  void NoteAgain() const;

 private:
  const uintptr_t begin_;
  const size_t bytes_;
  const bool program_, allocator_;  // all of it
};

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_LEAK_SCAN_PROGRAM_MAPPINGS_H_
