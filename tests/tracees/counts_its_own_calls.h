/* What counts_its_own_calls.c counts, in a file that it shares with whoever started it.
 *
 * begun is raised before a call and returned behind it: what a trace has of a lane is at least
 * `returned`, and at most `begun`. Each counter has one writer, a lane's thread of the moment. */
#ifndef MEMTRACE_TESTS_TRACEES_COUNTS_ITS_OWN_CALLS_H_
#define MEMTRACE_TESTS_TRACEES_COUNTS_ITS_OWN_CALLS_H_

#include <stdint.h>

#ifdef __cplusplus
typedef volatile uint64_t memtrace_shared_count;
#else
#include <stdatomic.h>
typedef _Atomic uint64_t memtrace_shared_count;
#endif

enum { kMaxLanes = 16, kSizesOfALane = 1000, kFirstSize = 4096 };

struct LaneCounts {
  memtrace_shared_count calls_begun, calls_returned;        /* that give a block */
  memtrace_shared_count releases_begun, releases_returned;  /* free, and realloc of a block */
  uint64_t padding[4];
};

struct CountsPage {
  uint64_t pid;
  uint64_t padding[7];
  struct LaneCounts lane[kMaxLanes];
};

/* The bytes that call `n` of a lane asks for. No other call of the program asks for so many. */
static inline uint64_t SizeOf(int lane, uint64_t n) {
  return kFirstSize + (uint64_t)lane * 1024 + n % kSizesOfALane;
}

#endif
