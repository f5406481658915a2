// The lists of malloc's main arena in libc's data: the chunk at the end of the heap, what remained
// of the chunk that was split last, and the bins (glibc, malloc/malloc.c, "struct malloc_state";
// fast bins, which some versions have in front, are not among them). They have addresses of free
// chunks, and one of them that of a chunk which may be part of a block by now: the remainder is
// never forgotten, and a realloc that grows over it leaves a word there that points into the middle
// of the block. None of them is the program's.

#ifndef MEMTRACE_PRELOAD_LEAK_SCAN_ARENA_LISTS_H_
#define MEMTRACE_PRELOAD_LEAK_SCAN_ARENA_LISTS_H_

#include <cstdint>

#include "preload/leak_scan/scan_mappings.h"
#include "preload/own_memory.h"

namespace memtrace {

// Where they are in `data`, a part of libc's that can be read; empty: not found there. They are
// known by the bins, of which there are as many in each version and which are rings of chunks: the
// head of an empty one points to itself, that of another is pointed to by its neighbours. Where
// none is empty they are not found.
OwnRange FindArenaLists(const ScanMapping& data, const ScanMappings& mappings);

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_LEAK_SCAN_ARENA_LISTS_H_
