/* sampled_sites: sites that allocate what they say, for the statistics of sampling.
 *
 *   sampled_sites
 *
 * Each site is a function that runs in a thread of its own, one after the other: a thread has
 * its own part of the sampler's random numbers, so that what is sampled depends on the seed and
 * not on what libc allocates. Prints a line for each: the address of the function, the bytes
 * that its allocations asked for, and the bytes it left unfreed. A realloc counts as an
 * allocation of its new size. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct Sums {
  unsigned long allocated, left;
};

typedef void (*Site)(struct Sums*);

/* Blocks that stay are kept reachable. */
static void* g_kept[100000];
static int g_kept_count;

static void Keep(void* block) { g_kept[g_kept_count++] = block; }

__attribute__((noinline)) static void FreeAtOnce(struct Sums* sums) {
  for (int i = 0; i < 30000; ++i) {
    free(malloc(24));
    sums->allocated += 24;
  }
}

__attribute__((noinline)) static void KeepSome(struct Sums* sums) {
  for (int i = 0; i < 6000; ++i) {
    void* block = malloc(200);
    sums->allocated += 200;
    if (i % 3 == 0) {
      Keep(block);
      sums->left += 200;
    } else {
      free(block);
    }
  }
}

__attribute__((noinline)) static void ManySizes(struct Sums* sums) {
  uint32_t random = 1;
  for (int i = 0; i < 3000; ++i) {
    random = random * 1664525 + 1013904223;
    const size_t bytes = (size_t)16 << (random >> 16) % 9;
    void* block = calloc(1, bytes);
    sums->allocated += bytes;
    if (random >> 28 == 0) {
      Keep(block);
      sums->left += bytes;
    } else {
      free(block);
    }
  }
}

__attribute__((noinline)) static void Large(struct Sums* sums) {
  for (int i = 0; i < 40; ++i) {
    void* block = malloc(20000);
    sums->allocated += 20000;
    if (i % 2 == 0) {
      Keep(block);
      sums->left += 20000;
    } else {
      free(block);
    }
  }
}

__attribute__((noinline)) static void Grow(struct Sums* sums) {
  for (int i = 0; i < 300; ++i) {
    char* block = NULL;
    size_t bytes = 0;
    for (int step = 1; step <= 10; ++step) {
      bytes = (size_t)step * 100;
      block = realloc(block, bytes);
      sums->allocated += bytes;
    }
    if (i % 4 == 0) {
      Keep(block);
      sums->left += bytes;
    } else {
      free(block);
    }
  }
}

__attribute__((noinline)) static void Aligned(struct Sums* sums) {
  for (int i = 0; i < 4000; ++i) {
    void* block = NULL;
    if (posix_memalign(&block, 64, 320) != 0) abort();
    sums->allocated += 320;
    if (i % 5 == 0) {
      Keep(block);
      sums->left += 320;
    } else {
      free(block);
    }
  }
}

/* So little that the usual number of samples is three. */
__attribute__((noinline)) static void Rarely(struct Sums* sums) {
  for (int i = 0; i < 100; ++i) {
    Keep(malloc(128));
    sums->allocated += 128;
    sums->left += 128;
  }
}

static const Site kSites[] = {FreeAtOnce, KeepSome, ManySizes, Large, Grow, Aligned, Rarely};
enum { kSiteCount = sizeof(kSites) / sizeof(kSites[0]) };

struct Task {
  Site site;
  struct Sums sums;
};

static void* Run(void* argument) {
  struct Task* task = argument;
  task->site(&task->sums);
  return NULL;
}

int main(void) {
  static struct Task tasks[kSiteCount];
  for (int i = 0; i < kSiteCount; ++i) {
    tasks[i].site = kSites[i];
    pthread_t thread;
    if (pthread_create(&thread, NULL, Run, &tasks[i]) != 0) return 1;
    pthread_join(thread, NULL);
  }
  for (int i = 0; i < kSiteCount; ++i) {
    printf("%lu %lu %lu\n", (unsigned long)(uintptr_t)tasks[i].site, tasks[i].sums.allocated,
           tasks[i].sums.left);
  }
  return 0;
}
