// ForEachBlockPlace: where blocks may lie in anonymous memory. libc's allocator has them anywhere
// but where the program mapped it, and there only other allocators have, and pools.

#ifndef MEMTRACE_PRELOAD_LEAK_SCAN_BLOCK_PLACES_H_
#define MEMTRACE_PRELOAD_LEAK_SCAN_BLOCK_PLACES_H_

#include <cstdint>

#include "preload/leak_scan/heap_territory.h"
#include "preload/leak_scan/program_mappings.h"

namespace memtrace {

// visit(begin, end) for each stretch of [begin, end), ascending; some may be empty. It takes steps
// for what is known of the memory, not for each granule.
template <typename Visit>
void ForEachBlockPlace(uintptr_t begin, uintptr_t end, Visit visit) {
  uintptr_t from = begin;
  g_program_mappings.ForEach(begin, end, [&](uintptr_t known, uintptr_t known_end) {
    uintptr_t at = known;
    g_heap_territory.ForEach(known, known_end, [&](uintptr_t blocks, uintptr_t blocks_end) {
      if (at < blocks) {
        visit(from, at);
        from = blocks;
      }
      at = blocks_end;
    });
    if (at == known_end) return;
    visit(from, at);
    from = known_end;
  });
  visit(from, end);
}

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_LEAK_SCAN_BLOCK_PLACES_H_
