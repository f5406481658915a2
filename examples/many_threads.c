// many_threads: 64 threads at once, each with its own leak, all with the same stack.
//
// Every thread allocates 1000 blocks and leaks one. The report has one call site for all of them,
// and a line per thread.
//
//   expect: leak 6400 bytes in 64 blocks at @work in Work
//   expect: site at @work in Work: allocations == 64000, frees == 63936, bytes_allocated == 6400000
//   expect: thread "worker-00" allocations == 1000
//   expect: thread "worker-63" allocations == 1000
//   expect: /coverage/unordered_events == 0
//   expect: /coverage/dropped_events == 0
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

enum { kThreads = 64, kBlocks = 1000 };

static pthread_barrier_t g_all_started;

static void* Work(void* argument) {
  const int number = (int)(intptr_t)argument;
  char name[] = "worker-00";
  name[7] = (char)('0' + number / 10);
  name[8] = (char)('0' + number % 10);
  pthread_setname_np(pthread_self(), name);
  pthread_barrier_wait(&g_all_started);
  for (int i = 0; i < kBlocks; ++i) {
    char* block = malloc(100);  // @work
    block[0] = 1;
    if (i != kBlocks / 2) free(block);
  }
  return NULL;
}

int main(void) {
  pthread_t threads[kThreads];
  pthread_barrier_init(&g_all_started, NULL, kThreads);
  for (int i = 0; i < kThreads; ++i) pthread_create(&threads[i], NULL, Work, (void*)(intptr_t)i);
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  return 0;
}
