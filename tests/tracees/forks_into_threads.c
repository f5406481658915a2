/* forks_into_threads [syscall]: fork children of which the first event is another thread's than the
 * one that lives on in them.
 *
 * What the program keeps of the stacks of threads that have ended serves the child: to make a
 * thread there it allocates nothing. In each child two threads allocate at once, then the first
 * one. syscall: the children come from the system call, which no library sees. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "expect.h"

enum { kChildren = 12, kBlocks = 400 };

static pthread_barrier_t g_both;

static void* Meet(void* unused) {
  pthread_barrier_wait(&g_both);
  return unused;
}

static void Allocate(size_t bytes) {
  for (int i = 0; i < kBlocks; ++i) {
    void* block = malloc(bytes);
    if (block == NULL) _exit(9);
    memset(block, 1, bytes);
    free(block);
  }
}

static void* AllocateOften(void* unused) {
  pthread_barrier_wait(&g_both);
  Allocate(1777);
  return unused;
}

static void Twice(void* (*body)(void*)) {
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i) {
    if (pthread_create(&threads[i], NULL, body, NULL) != 0) _exit(9);
  }
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
}

int main(int argc, char** argv) {
  (void)argv;
  free(malloc(1789));
  pthread_barrier_init(&g_both, NULL, 2);
  Twice(Meet);
  for (int i = 0; i < kChildren; ++i) {
    const pid_t child = argc > 1 ? (pid_t)syscall(SYS_fork) : fork();
    if (child < 0) _exit(9);
    if (child == 0) {
      Twice(AllocateOften);
      Allocate(1783);
      _exit(0);
    }
    int status;
    if (waitpid(child, &status, 0) != child || status != 0) _exit(9);
  }
  Tell("all 1777 %d\nall 1783 %d\n", 2 * kBlocks, kBlocks);
  return 0;
}
