/* malloc_pairs: what a malloc and its free cost, by one thread or several at once.
 *
 *   malloc_pairs THREADS PAIRS [DEPTH]
 *
 * Each thread does PAIRS pairs from a stack of DEPTH frames (16), eight blocks of 16 to 1024 bytes
 * in flight. Prints nanoseconds for one pair of one thread, by the wall clock from the first
 * thread's first pair to the last thread's last.
 *
 * The threads take these times themselves. Were main to take the first one when it leaves the
 * barrier, a tool that runs one thread at a time (Valgrind) could let a thread do all its pairs
 * before that: memcheck then seemed to need 14 ns for a pair, and needs 1000. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { kInFlight = 8, kMaxThreads = 64 };

static long g_pairs;
static int g_depth;
static pthread_barrier_t g_start;
static double g_first[kMaxThreads], g_last[kMaxThreads];

static double Seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

__attribute__((noinline)) static void DoPairs(void) {
  char* blocks[kInFlight] = {NULL};
  for (long i = 0; i < g_pairs; ++i) {
    char** block = &blocks[i % kInFlight];
    free(*block);
    *block = malloc(16 + (size_t)(i * 37 % 64) * 16);
    (*block)[0] = (char)i;
  }
  for (int i = 0; i < kInFlight; ++i) free(blocks[i]);
}

__attribute__((noinline)) static void Descend(int depth) {
  if (depth > 1) {
    Descend(depth - 1);
  } else {
    DoPairs();
  }
  __asm__ volatile(""); /* no tail call: each level is a frame */
}

static void* Work(void* argument) {
  const int number = (int)(intptr_t)argument;
  pthread_barrier_wait(&g_start);
  g_first[number] = Seconds();
  Descend(g_depth);
  g_last[number] = Seconds();
  return NULL;
}

int main(int argc, char** argv) {
  const int threads = argc > 1 ? atoi(argv[1]) : 1;
  g_pairs = argc > 2 ? atol(argv[2]) : 1000000;
  g_depth = argc > 3 ? atoi(argv[3]) : 16;
  if (threads < 1 || threads > kMaxThreads || g_pairs < 1) return 2;
  pthread_barrier_init(&g_start, NULL, (unsigned)threads);
  pthread_t ids[kMaxThreads];
  for (int i = 0; i < threads; ++i) pthread_create(&ids[i], NULL, Work, (void*)(intptr_t)i);
  for (int i = 0; i < threads; ++i) pthread_join(ids[i], NULL);
  double first = g_first[0], last = g_last[0];
  for (int i = 1; i < threads; ++i) {
    if (g_first[i] < first) first = g_first[i];
    if (g_last[i] > last) last = g_last[i];
  }
  printf("%.2f\n", (last - first) / (double)g_pairs * 1e9);
  return 0;
}
