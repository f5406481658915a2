// FreeChunks: what of libc's heap is in use, so that a memory scan need not read what was freed. At
// the end of a program that frees everything that is nearly all of it.
//
// From the begin of the heap on, chunk follows chunk (glibc, malloc/malloc.c, "malloc_chunk
// details"). One is free, and what it holds is nobody's, if
//
//   - the chunk behind it says so, and how large it is;
//   - both its neighbours in its list point back to it, as malloc's own check of a list asks;
//   - or it is the last one and ends where the break is.
//
// Chunks in caches of threads and in fast bins look used, and are read. Where the chain of
// chunks does not go on as it should (the program moved the break itself; it overwrote what is
// malloc's), everything from there on is read. The threads stand, perhaps in the midst of malloc: a
// chunk that is still in its list is no block yet, and one that is not fails the check.
//
// One pass over the heap, by ascending addresses. Reads the heap and libc's data, nothing else.

#ifndef MEMTRACE_PRELOAD_LEAK_SCAN_FREE_CHUNKS_H_
#define MEMTRACE_PRELOAD_LEAK_SCAN_FREE_CHUNKS_H_

#include <cstdint>

#include "preload/leak_scan/scan_mappings.h"

namespace memtrace {

class FreeChunks {
 public:
  explicit FreeChunks(const ScanMappings& mappings) : mappings_(mappings) {}

  // The first chunk, and where the break is. Without it nothing is known to be free.
  void Begin(uintptr_t first, uintptr_t program_break) {
    next_ = first;
    break_ = program_break;
  }

  // visit(begin, end) for what may be in use of [from, to), which lies in the readable part
  // [part_begin, part_end) of the heap.
  template <typename Visit>
  void ForEachUsed(uintptr_t from, uintptr_t to, uintptr_t part_begin, uintptr_t part_end,
                   Visit visit) {
    uintptr_t used = from > free_until_ ? from : free_until_;
    if (next_ < part_begin) next_ = kLost;
    while (next_ < to) {
      const uintptr_t free = Step(part_begin, part_end);  // where free memory begins; 0: none does
      if (free == 0) continue;
      const uintptr_t end = free < to ? free : to;
      if (used < end) visit(used, end);
      if (used < free_until_) used = free_until_;
    }
    if (used < to) visit(used, to);
  }

 private:
  static constexpr uintptr_t kLost = UINTPTR_MAX;
  static constexpr uintptr_t kLeast = 512;  // what is smaller is not worth a look at its list

  // Looks at the chunk at next_, and goes on to the one behind it.
  uintptr_t Step(uintptr_t part_begin, uintptr_t part_end);
  bool IsInItsList(uintptr_t chunk, uintptr_t part_begin, uintptr_t part_end);
  // May the list's words of a chunk there be read?
  bool IsReadable(uintptr_t chunk, uintptr_t part_begin, uintptr_t part_end);

  const ScanMappings& mappings_;
  const ScanMapping* lists_ = nullptr;  // that has the heads of the lists, when one was seen
  uintptr_t next_ = kLost;
  uintptr_t free_until_ = 0;
  uintptr_t break_ = 0;
};

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_LEAK_SCAN_FREE_CHUNKS_H_
