/* What counting_shim.c writes: one of these per process, in the byte order of the machine. */
#ifndef MEMTRACE_TESTS_TRACEES_COUNTING_SHIM_H_
#define MEMTRACE_TESTS_TRACEES_COUNTING_SHIM_H_

#include <stdint.h>

struct MemtraceCounts {
  uint64_t allocations; /* successful; a realloc is one */
  uint64_t frees;       /* a realloc of a block is one */
  uint64_t bytes;       /* requested */
  uint64_t mallocs, callocs, reallocs, aligned;
};

#endif /* MEMTRACE_TESTS_TRACEES_COUNTING_SHIM_H_ */
