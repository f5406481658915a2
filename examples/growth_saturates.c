// growth_saturates: a cache that fills and then stays as large as it is.
//
// Each step puts a block of 1000 bytes in the cache; from step 100 on it replaces an older one.
// Of 1000 steps nine tenths happen at a constant size: much memory, but no leak that grows. The
// phases of memtrace.h tell the two parts apart, however long each took.
//
//   expect: /totals/allocations == 1000
//   expect: /totals/frees == 900
//   expect: /totals/live_bytes == 100000
//   expect: /totals/peak_live_bytes == 100000
//   expect: leak 100000 bytes in 100 blocks at @put in PutInCache
//   expect: /phases/0/growth_bytes == 100000
//   expect: /phases/1/allocations == 900
//   expect: /phases/1/growth_bytes == 0
#include <memtrace.h>
#include <stdlib.h>
#include <time.h>

enum { kSteps = 1000, kEntries = 100, kEntryBytes = 1000 };

static char* g_cache[kEntries];

static void PutInCache(int step) {
  char** entry = &g_cache[step % kEntries];
  free(*entry);
  *entry = malloc(kEntryBytes);  // @put
}

static void Run(const char* phase, int from, int to) {
  const struct timespec pause = {0, 20 * 1000};
  memtrace_phase_begin(phase);
  for (int step = from; step < to; ++step) {
    PutInCache(step);
    nanosleep(&pause, NULL);
  }
  memtrace_phase_end(phase);
}

int main(void) {
  Run("filling", 0, kEntries);
  Run("full", kEntries, kSteps);
  return 0;
}
