// Blocks that form a graph, and threads and variables that hold them: what memtrace report --graph
// and --why say is known here. Prints "NAME ADDRESS" of each block. Ends by exit() while its
// threads stand.

#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/tracees/spin_with_register.h"

#define NOINLINE __attribute__((noinline))

struct Node {
  struct Node* next;
  void* payload;
};

struct Node* g_list;                       // three nodes with a payload each
struct { void* unused; void* used; } g_pair;  // used: one block
void *g_left, *g_right;                    // a block each, which share a third
void* g_inside;                            // into the middle of a block
_Thread_local void* t_cache[2];            // [1], of the thread "worker"
static volatile int g_ready;

static NOINLINE void* Named(const char* name, size_t size, void* block) {
  memset(block, 0, size);
  printf("%s %p\n", name, block);
  return block;
}
static NOINLINE struct Node* MakeNode(void) { return Named("node", 1000, malloc(1000)); }
static NOINLINE void* MakePayload(void) { return Named("payload", 2000, malloc(2000)); }
static NOINLINE void* MakePaired(void) { return Named("paired", 3000, malloc(3000)); }
static NOINLINE void* MakeCached(void) { return Named("cached", 4000, malloc(4000)); }
static NOINLINE void* MakeOnStack(void) { return Named("on_stack", 5000, malloc(5000)); }
static NOINLINE uintptr_t MakeHidden(void) {
  return ~(uintptr_t)Named("in_register", 6000, malloc(6000));
}
static NOINLINE void** MakeRing(void) { return Named("ring", 7000, malloc(7000)); }
static NOINLINE void** MakeSide(void) { return Named("side", 8000, malloc(8000)); }
static NOINLINE void* MakeShared(void) { return Named("shared", 8500, malloc(8500)); }
static NOINLINE char* MakeInside(void) { return Named("inside", 9000, malloc(9000)); }

static NOINLINE void CleanStack(void) {
  volatile char frames[32 << 10];
  for (size_t i = 0; i < sizeof(frames); ++i) frames[i] = 0;
}

static void* Worker(void* unused) {
  (void)unused;
  pthread_setname_np(pthread_self(), "worker");
  t_cache[1] = MakeCached();
  CleanStack();
  g_ready++;
  for (;;) pause();
  return NULL;
}

static void* Stacker(void* unused) {
  (void)unused;
  pthread_setname_np(pthread_self(), "stacker");
  void* volatile kept = MakeOnStack();
  g_ready++;
  for (;;) pause();
  return kept;
}

static void* Spinner(void* unused) {
  (void)unused;
  pthread_setname_np(pthread_self(), "spinner");
  const uintptr_t hidden = MakeHidden();
  CleanStack();
  SpinWithRegister(hidden);
  return NULL;
}

static NOINLINE void Fill(void) {
  for (int i = 0; i < 3; ++i) {
    struct Node* const node = MakeNode();
    node->payload = MakePayload();
    node->next = g_list;
    g_list = node;
  }
  g_pair.used = MakePaired();
  void** const first = MakeRing();
  void** const second = MakeRing();
  first[3] = second;
  second[5] = first;
  void** sides[2];
  for (volatile int i = 0; i < 2; ++i) sides[i] = MakeSide();
  sides[0][2] = sides[1][4] = MakeShared();
  g_left = sides[0];
  g_right = sides[1];
  g_inside = MakeInside() + 104;
}

int main(void) {
  setvbuf(stdout, NULL, _IONBF, 0);
  pthread_t thread;
  if (pthread_create(&thread, NULL, Worker, NULL) != 0 ||
      pthread_create(&thread, NULL, Stacker, NULL) != 0 ||
      pthread_create(&thread, NULL, Spinner, NULL) != 0) {
    return 77;
  }
  Fill();
  CleanStack();
  while (g_ready < 2 || g_spins == 0) usleep(1000);
  exit(0);
}
