// growth_saturates: a cache that fills and then stays as large as it is.
//
// Each step puts a block of 1000 bytes in the cache; from step 100 on it replaces an older one.
// Of 1000 steps nine tenths happen at a constant size: much memory, but no leak that grows.
//
//   expect: /totals/allocations == 1000
//   expect: /totals/frees == 900
//   expect: /totals/live_bytes == 100000
//   expect: /totals/peak_live_bytes == 100000
//   expect: leak 100000 bytes in 100 blocks at @put in PutInCache
//   expect: live bytes at 50% between 99000 100000
//   expect: live bytes at 90% between 99000 100000
//
// 99000: an entry may just be out, between the free and the malloc that replaces it.
#include <stdlib.h>
#include <time.h>

enum { kSteps = 1000, kEntries = 100, kEntryBytes = 1000 };

static char* g_cache[kEntries];

static void PutInCache(int step) {
  char** entry = &g_cache[step % kEntries];
  free(*entry);
  *entry = malloc(kEntryBytes);  // @put
}

int main(void) {
  const struct timespec pause = {0, 20 * 1000};
  for (int step = 0; step < kSteps; ++step) {
    PutInCache(step);
    nanosleep(&pause, NULL);
  }
  return 0;
}
