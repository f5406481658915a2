/* allocates_by_nested_calls calls|fewer_calls|handlers|jumps|keeps: behind an allocator whose functions
 * call each other by name (nesting_allocator.c). Tells the blocks that it has asked for, and loses
 * none.
 *
 *   calls         every function, by two threads one after the other
 *   fewer_calls   those that Electric Fence has
 *   handlers      a signal handler allocates in the midst of a nesting call, on the same stack and
 *                 on another
 *   jumps         a signal handler jumps out of a nesting calloc; then the program allocates from
 *                 where it was, from deeper on its stack, and in a thread whose first call is
 *                 jumped out of
 *   keeps         what the allocator keeps of its own is where the program's blocks were
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"

enum { kRounds = 40 };

static void (**g_hook)(void);

static void* Checked(void* block) {
  if (block == NULL) _exit(9);
  return block;
}

static void* Call(void* fewer) {
  for (int i = 0; i < kRounds; ++i) {
    char* blocks[8];
    size_t count = 0;
    blocks[count++] = Checked(malloc(1801));
    char* zeroed = blocks[count++] = Checked(calloc(11, 163)); /* 1793 */
    for (int at = 0; at < 1793; ++at) {
      if (zeroed[at] != 0) _exit(9);
    }
    char* grown = Checked(realloc(NULL, 1811));
    grown[1810] = 'x';
    grown = blocks[count++] = Checked(realloc(grown, 9001));
    if (grown[1810] != 'x') _exit(9);
    blocks[count++] = Checked(reallocarray(NULL, 3, 607)); /* 1821 */
    void* aligned = NULL;
    if (posix_memalign(&aligned, 4096, 1823) != 0) _exit(9);
    blocks[count++] = aligned;
    blocks[count++] = Checked(memalign(256, 1831));
    blocks[count++] = Checked(valloc(1847));
    if (fewer == NULL) {
      blocks[count++] = Checked(aligned_alloc(64, 1856));
      free(Checked(pvalloc(12289)));
    }
    for (size_t j = 0; j < count; ++j) free(blocks[j]);
    char text[1862];
    memset(text, 'y', 1861);
    text[1861] = 0;
    free(Checked(strdup(text)));
  }
  return fewer;
}

static void TellCalls(void* fewer) {
  pthread_t thread;
  Call(fewer);
  if (pthread_create(&thread, NULL, Call, fewer) != 0) _exit(9);
  pthread_join(thread, NULL);
  for (const size_t* bytes =
           (const size_t[]){1801, 1793, 1811, 9001, 1821, 1823, 1831, 1847, 1862, 0};
       *bytes != 0; ++bytes) {
    Tell("all %zu %d\n", *bytes, 2 * kRounds);
  }
  if (fewer == NULL) Tell("all 1856 %d\nall 12289 %d\n", 2 * kRounds, 2 * kRounds);
}

static void AllocateInHandler(int signal) {
  (void)signal;
  void (*const hook)(void) = *g_hook;
  *g_hook = NULL;
  free(Checked(malloc(1867)));
  free(Checked(calloc(1, 1871)));
  free(Checked(realloc(Checked(malloc(1873)), 1877)));
  *g_hook = hook;
}

static sigjmp_buf g_from;
static void Jump(int signal) {
  (void)signal;
  *g_hook = NULL;
  siglongjmp(g_from, 1);
}

static void Raise(void) { raise(SIGUSR1); }

static void Handle(void (*handler)(int), int flags) {
  struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
  sigaction(SIGUSR1, &action, NULL);
}

enum { kStackBytes = 1 << 16 };

__attribute__((noinline)) static void BeHandledOn(char* stack) {
  const stack_t other = {.ss_sp = stack, .ss_size = kStackBytes};
  if (sigaltstack(&other, NULL) != 0) _exit(9);
  for (int i = 0; i < kRounds; ++i) {
    Handle(AllocateInHandler, i % 2 == 0 ? 0 : SA_ONSTACK);
    *g_hook = Raise;
    char* block = Checked(calloc(1, 1879)); /* one handler */
    block = Checked(realloc(block, 1889));  /* another one */
    *g_hook = NULL;
    free(block);
  }
}

/* One of the other stacks lies below the calls, one above. */
static void TellHandlers(void) {
  static char below[kStackBytes];
  char above[kStackBytes];
  BeHandledOn(below);
  BeHandledOn(above);
  const stack_t none = {.ss_flags = SS_DISABLE};
  if (sigaltstack(&none, NULL) != 0) _exit(9);
  Tell("all 1879 %d\nall 1889 %d\n", 2 * kRounds, 2 * kRounds);
  for (const size_t* bytes = (const size_t[]){1867, 1871, 1873, 1877, 0}; *bytes != 0; ++bytes) {
    Tell("all %zu %d\n", *bytes, 4 * kRounds);
  }
}

static void JumpOut(void) {
  *g_hook = Raise;
  if (sigsetjmp(g_from, 1) == 0) {
    calloc(1, 1901);
    _exit(9);
  }
}

__attribute__((noinline)) static void AllocateDeep(void) {
  char frames[1 << 16];
  memset(frames, 0, sizeof(frames));
  __asm__ volatile("" : : "r"(frames) : "memory");
  free(Checked(malloc(1907)));
  free(Checked(realloc(Checked(calloc(1, 1913)), 1931)));
  __asm__ volatile("" : : "r"(frames) : "memory");
}

__attribute__((noinline)) static void AllocateHere(void) {
  free(Checked(calloc(1, 1933)));
  void* block = NULL;
  if (posix_memalign(&block, 8192, 1949) != 0) _exit(9);
  free(block);
}

static void* JumpOutFirst(void* unused) {
  JumpOut();
  AllocateDeep();
  AllocateHere();
  return unused;
}

static void TellJumps(void) {
  Handle(Jump, 0);
  for (int i = 0; i < kRounds; ++i) {
    JumpOut();
    AllocateDeep();
    JumpOut();
    AllocateHere();
    AllocateDeep();
    pthread_t thread;
    if (pthread_create(&thread, NULL, JumpOutFirst, NULL) != 0) _exit(9);
    pthread_join(thread, NULL);
  }
  for (const size_t* bytes = (const size_t[]){1907, 1913, 1931, 0}; *bytes != 0; ++bytes) {
    Tell("all %zu %d\n", *bytes, 3 * kRounds);
  }
  Tell("all 1933 %d\nall 1949 %d\n", 2 * kRounds, 2 * kRounds);
}

static void TellKeeps(void) {
  void (*const keep)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "nesting_keep");
  void (*const forget)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "nesting_forget");
  void* blocks[kRounds];
  for (int i = 0; i < kRounds; ++i) blocks[i] = Checked(malloc(48));
  for (int i = 0; i < kRounds; ++i) free(blocks[i]);
  keep();
  for (int i = 0; i < kRounds; ++i) blocks[i] = Checked(malloc(1999));
  forget();
  for (int i = 0; i < kRounds; ++i) free(blocks[i]);
  Tell("all 48 %d\nall 1951 1\nall 1999 %d\n", kRounds, kRounds);
}

int main(int argc, char** argv) {
  g_hook = (void (**)(void))dlsym(RTLD_DEFAULT, "nesting_hook");
  const char* mode = argc > 1 ? argv[1] : "";
  if (strcmp(mode, "calls") == 0) {
    TellCalls(NULL);
  } else if (strcmp(mode, "fewer_calls") == 0) {
    TellCalls(&g_hook);
  } else if (g_hook == NULL) {
    return 77;
  } else if (strcmp(mode, "handlers") == 0) {
    TellHandlers();
  } else if (strcmp(mode, "keeps") == 0) {
    TellKeeps();
  } else {
    TellJumps();
  }
  return 0;
}
