/* forks_into_threads [syscall|many|atfork]: fork children of which the first event is another thread's than the
 * one that lives on in them.
 *
 * What the program keeps of the stacks of threads that have ended serves the child: to make a
 * thread there it allocates nothing. In each child two threads allocate at once, then the first
 * one.
 *
 *   syscall   the children come from the system call, which no library sees
 *   many      in one child, 300 threads begin with an allocation at the same instant
 *   atfork    the child's first event is of a thread that a handler of pthread_atfork makes */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kChildren = 12, kBlocks = 400, kMany = 300, kStackBytes = 64 << 10 };

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

static void* AllocateOnce(void* unused) {
  pthread_barrier_wait(&g_both);
  void* block = malloc(1777);
  if (block == NULL) _exit(9);
  memset(block, 1, 1777);
  free(block);
  return unused;
}

static void Times(int count, void* (*body)(void*)) {
  pthread_t threads[kMany];
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, kStackBytes);
  pthread_barrier_init(&g_both, NULL, (unsigned)count);
  for (int i = 0; i < count; ++i) {
    if (pthread_create(&threads[i], &small, body, NULL) != 0) _exit(9);
  }
  for (int i = 0; i < count; ++i) pthread_join(threads[i], NULL);
}

static void AllocateTwiceAtOnce(void) { Times(2, AllocateOften); }

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  const int many = strcmp(mode, "many") == 0;
  const int atfork = strcmp(mode, "atfork") == 0;
  free(malloc(1789));
  Times(many ? kMany : 2, Meet);
  if (atfork) pthread_atfork(NULL, NULL, AllocateTwiceAtOnce);
  for (int i = 0; i < (many ? 1 : kChildren); ++i) {
    const pid_t child = strcmp(mode, "syscall") == 0 ? (pid_t)syscall(SYS_fork) : fork();
    if (child < 0) _exit(9);
    if (child == 0) {
      if (many) {
        Times(kMany, AllocateOnce);
      } else if (!atfork) {
        AllocateTwiceAtOnce();
      }
      Allocate(1783);
      _exit(0);
    }
    int status;
    if (waitpid(child, &status, 0) != child || status != 0) _exit(9);
  }
  return 0;
}
