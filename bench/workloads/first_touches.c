/* first_touches: page faults, and little else: so many blocks of 1 MiB are allocated, written once in
 * each page, and freed.
 *
 *   first_touches BLOCKS
 *
 * Prints the nanoseconds of a fault: the time of the writing alone, over the faults that getrusage
 * counted in it. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

enum { kBytes = 1 << 20, kPage = 4096 };

static double Now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
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
  double ns = 0;
  long faults = 0;
  for (long i = 0; i < blocks; ++i) {
    volatile char* block = malloc(kBytes);
    if (block == NULL) return 1;
    const long before = Faults();
    const double begin = Now();
    for (size_t at = 0; at < kBytes; at += kPage) block[at] = 1;
    ns += Now() - begin;
    faults += Faults() - before;
    free((void*)block);
  }
  if (faults == 0) return 1;
  printf("%.1f\n", ns / (double)faults);
  return 0;
}
