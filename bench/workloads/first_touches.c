/* first_touches: page faults, and little else: so many blocks of 1 MiB are allocated, written
 * once in each page, and freed.
 *
 *   first_touches BLOCKS
 *
 * Prints the nanoseconds of a fault: the processor's time of the thread for all of it, over the
 * faults that getrusage counted. What empties the rings of events is in it; who else wants the
 * processor is not. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

enum { kBytes = 1 << 20, kPage = 4096 };

static double Now(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static long Faults(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

int main(int argc, char** argv) {
  mallopt(M_MMAP_THRESHOLD, 128 << 10);  /* or it would rise, and blocks be used again */
  const long blocks = argc > 1 ? atol(argv[1]) : 200;
  const long before = Faults();
  const double begin = Now();
  for (long i = 0; i < blocks; ++i) {
    volatile char* block = malloc(kBytes);
    if (block == NULL) return 1;
    for (size_t at = 0; at < kBytes; at += kPage) block[at] = 1;
    free((void*)block);
  }
  const double ns = Now() - begin;
  const long faults = Faults() - before;
  if (faults == 0) return 1;
  printf("%.1f\n", ns / (double)faults);
  return 0;
}
