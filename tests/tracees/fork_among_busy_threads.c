/* fork_among_busy_threads CHILDREN THREADS: threads allocate and free at full speed; each of
 * them, and the first thread, forks children in the midst of it. A child does what a
 * child may not be able to when a lock was held at the fork: it allocates more than a ring
 * holds, starts a thread that does, ends it, and says "child PID ALLOCATIONS\n". One that
 * has not ended in a minute is killed by SIGALRM, which fails the parent. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/tracees/expect.h"

enum { kChildAllocations = 4000 };
static atomic_int g_left, g_failed;

static void Allocate(int count) {
  static _Thread_local void* kept[64];
  for (int i = 0; i < count; ++i) {
    void** slot = &kept[i % 64];
    free(*slot);
    *slot = malloc((size_t)(i % 300 + 1));
  }
}

static void* InThread(void* unused) {
  Allocate(kChildAllocations);
  return unused;
}

static void Child(void) {
  pthread_t thread;
  alarm(60);
  Allocate(kChildAllocations);
  if (pthread_create(&thread, NULL, InThread, NULL) != 0 || pthread_join(thread, NULL) != 0) {
    _exit(4);
  }
  Allocate(kChildAllocations);
  Tell("child %d %d\n", (int)getpid(), 3 * kChildAllocations);
  _exit(0);
}

static void* Busy(void* unused) {
  for (int round = 0; atomic_load(&g_left) > 0; ++round) {
    Allocate(1500 + round % 700);
    if (atomic_fetch_sub(&g_left, 1) <= 0) break;
    const pid_t child = fork();
    if (child == 0) Child();
    int status = 1;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
      atomic_fetch_add(&g_failed, 1);
    }
  }
  return unused;
}

int main(int argc, char** argv) {
  enum { kMaxThreads = 64 };
  pthread_t threads[kMaxThreads];
  const int count = argc > 2 ? atoi(argv[2]) : 3;
  atomic_store(&g_left, argc > 1 ? atoi(argv[1]) : 20);
  if (count > kMaxThreads) return 2;
  for (int i = 0; i < count; ++i) {
    if (pthread_create(&threads[i], NULL, Busy, NULL) != 0) return 1;
  }
  Busy(NULL);
  for (int i = 0; i < count; ++i) pthread_join(threads[i], NULL);
  return atomic_load(&g_failed) == 0 ? 0 : 3;
}
