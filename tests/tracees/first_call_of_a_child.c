/* Forks once for each function that allocates, frees or maps. The child's first call is that one,
 * then come all the others. Says how many children there were and which did not end well.
 *
 *   first_call_of_a_child [REMOVED]   REMOVED: a directory that is removed before the first fork
 *   first_call_of_a_child --tight     a few calls only, in children that get little memory or none
 *   first_call_of_a_child --stack N   in children of clone() that have a stack of N bytes */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void* volatile g_block;      /* of the parent; each child has its own */
static void* volatile g_more[8];
static void* volatile g_mapping;

static void Malloc(void) { g_more[0] = malloc(100); }
static void Calloc(void) { g_more[1] = calloc(10, 10); }
static void Realloc(void) { g_block = realloc(g_block, 20000); }
static void ReallocOfNone(void) { g_more[2] = realloc(NULL, 100); }
static void Reallocarray(void) { g_block = reallocarray(g_block, 3, 9000); }
static void Free(void) {
  free(g_block);
  g_block = NULL;
}
static void PosixMemalign(void) {
  void* block = NULL;
  if (posix_memalign(&block, 64, 100) != 0) _exit(9);
  g_more[3] = block;
}
static void AlignedAlloc(void) { g_more[4] = aligned_alloc(64, 128); }
static void Memalign(void) { g_more[5] = memalign(64, 100); }
static void Valloc(void) { g_more[6] = valloc(100); }
static void Pvalloc(void) { g_more[7] = pvalloc(100); }
static void Mmap(void) {
  g_mapping = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}
static void Mremap(void) { g_mapping = mremap(g_mapping, 8192, 16384, MREMAP_MAYMOVE); }
static void Munmap(void) { munmap(g_mapping, 4096); }
static void Sbrk(void) {
  if (sbrk(4096) == (void*)-1) _exit(9);
}
static void Usable(void) {
  if (g_block != NULL && malloc_usable_size(g_block) == 0) _exit(9);
}
static void Dlopen(void) {
  void* const library = dlopen("libm.so.6", RTLD_NOW);
  if (library != NULL) dlclose(library);
}
static void* Allocates(void* unused) {
  free(malloc(100));
  return unused;
}
static void Thread(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, Allocates, NULL) != 0) _exit(9);
  pthread_join(thread, NULL);
}
static void Fork(void) {
  const pid_t child = fork();
  if (child == 0) {
    Mmap();
    Malloc();
    _exit(0);
  }
  int status = 1;
  if (waitpid(child, &status, 0) != child || status != 0) _exit(9);
}

static const struct {
  const char* name;
  void (*call)(void);
} kCalls[] = {{"malloc", Malloc}, {"calloc", Calloc}, {"realloc", Realloc},
              {"realloc of none", ReallocOfNone}, {"reallocarray", Reallocarray},
              {"posix_memalign", PosixMemalign}, {"aligned_alloc", AlignedAlloc},
              {"memalign", Memalign}, {"valloc", Valloc}, {"pvalloc", Pvalloc}, {"mmap", Mmap},
              {"mremap", Mremap}, {"munmap", Munmap}, {"sbrk", Sbrk},
              {"malloc_usable_size", Usable}, {"dlopen", Dlopen}, {"pthread_create", Thread},
              {"fork", Fork}, {"free", Free}};
enum { kCallCount = sizeof(kCalls) / sizeof(kCalls[0]) };

/* By the system call: the library knows of setrlimit(). */
static void LimitMemory(size_t bytes) {
  const struct rlimit limit = {bytes, RLIM_INFINITY};
  if (syscall(SYS_prlimit64, 0, RLIMIT_AS, &limit, NULL) != 0) _exit(8);
}

static size_t MemoryInUse(void) {
  size_t pages = 0;
  FILE* const file = fopen("/proc/self/statm", "r");
  if (file == NULL || fscanf(file, "%zu", &pages) != 1) _exit(8);
  fclose(file);
  return pages * 4096;
}

static void Tight(void) {
  enum { kSteps = 64, kStep = 32768 };
  const size_t in_use = MemoryInUse();
  for (int i = 0; i < kSteps; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      LimitMemory(in_use + (size_t)i * kStep - 8 * kStep);
      if (i % 4 == 0) Free();
      if (i % 4 == 1) Malloc();
      if (i % 4 == 2) Realloc();
      if (i % 4 == 3) munmap(g_mapping, 4096);
      for (int k = 0; k < 100; ++k) free(realloc(malloc(100), 200));
      _exit(0);
    }
    int status = 1;
    waitpid(child, &status, 0);
    if (status != 0) printf("%d: %#x\n", i, status);
  }
  printf("%d\n", kSteps);
}

static int SmallStackChild(void* unused) {
  (void)unused;
  Malloc();
  Free();
  Mmap();
  for (int i = 0; i < 1000; ++i) free(realloc(malloc(100), 200));
  _exit(0);
}

/* With a page below that nobody may touch. */
static void SmallStack(size_t bytes) {
  const size_t pages = (bytes + 4095) / 4096 * 4096;
  char* const memory = mmap(NULL, 4096 + pages, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED || mprotect(memory, 4096, PROT_NONE) != 0) _exit(8);
  const pid_t child = clone(SmallStackChild, memory + 4096 + bytes, SIGCHLD, NULL);
  int status = 1;
  waitpid(child, &status, 0);
  printf("%#x\n", status);
}

int main(int count, char** words) {
  g_block = malloc(1000);
  Mmap();
  if (count > 1 && strcmp(words[1], "--tight") == 0) {
    Tight();
    return 0;
  }
  if (count > 2 && strcmp(words[1], "--stack") == 0) {
    SmallStack((size_t)atol(words[2]));
    return 0;
  }
  if (count > 1 && rmdir(words[1]) != 0) {
    /* What is in it goes first: the parent's own trace. */
    char command[4200];
    snprintf(command, sizeof(command), "env -u LD_PRELOAD rm -r '%s'", words[1]);
    if (system(command) != 0) return 2;
  }
  for (int i = 0; i < kCallCount; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      kCalls[i].call();
      for (int k = 0; k < kCallCount; ++k) kCalls[k].call();
      _exit(0);
    }
    int status = 1;
    waitpid(child, &status, 0);
    if (status != 0) printf("%s: %#x\n", kCalls[i].name, status);
  }
  printf("%d\n", kCallCount);
  return 0;
}
