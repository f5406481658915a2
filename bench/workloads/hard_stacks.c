/* Stacks that are hard to follow, for bench/peers: hard_stacks HOW [PLUGIN]
 *
 *   recursion   three functions that call each other, 3,000 deep, with a block at each level
 *   fiber       a pair of malloc and free, 30 frames deep on a thread's own stack, after a fiber
 *               that is mapped below it has allocated
 *   reloads     a plugin that is loaded, allocates, and is unloaded
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

static volatile int sink;

#define LEVEL(name, next)                                      \
  static __attribute__((noinline)) int name(int depth) {       \
    void* volatile block = malloc(32);                         \
    const int below = depth > 0 ? next(depth - 1) : 0;         \
    free(block);                                               \
    return below + 1;                                          \
  }
static int Second(int depth);
static int Third(int depth);
LEVEL(First, Second)
LEVEL(Second, Third)
LEVEL(Third, First)

enum { kFiberBytes = 512 << 10 };
static ucontext_t thread_context, fiber_context;

static void Fiber(void) {
  for (int i = 0; i < 200; ++i) free(malloc(40));
}

static __attribute__((noinline)) int Pairs(int depth) {
  if (depth > 0) return Pairs(depth - 1) + 1;
  for (int i = 0; i < 1000000; ++i) free(malloc(50));
  return 0;
}

static void* OnAThread(void* fiber) {
  getcontext(&fiber_context);
  fiber_context.uc_stack.ss_sp = fiber;
  fiber_context.uc_stack.ss_size = kFiberBytes;
  fiber_context.uc_link = &thread_context;
  makecontext(&fiber_context, Fiber, 0);
  swapcontext(&thread_context, &fiber_context);
  sink += Pairs(30);
  return NULL;
}

static int Reload(const char* plugin) {
  for (int i = 0; i < 600; ++i) {
    void* const handle = dlopen(plugin, RTLD_NOW);
    if (handle == NULL) return 1;
    void* (*allocate)(size_t) = (void* (*)(size_t))dlsym(handle, "Allocate");
    for (int n = 0; n < 1000; ++n) free(allocate(40));
    dlclose(handle);
  }
  return 0;
}

int main(int argc, char** argv) {
  if (argc >= 2 && strcmp(argv[1], "recursion") == 0) {
    for (int i = 0; i < 70; ++i) sink += First(3000);
    return 0;
  }
  if (argc >= 2 && strcmp(argv[1], "fiber") == 0) {
    pthread_t thread;
    /* What is mapped after the thread's stack lies below it. */
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    char* const memory = mmap(NULL, kFiberBytes + (2 << 20), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return 1;
    pthread_attr_setstack(&attributes, memory + kFiberBytes, 2 << 20);
    if (pthread_create(&thread, &attributes, OnAThread, memory) != 0) return 1;
    return pthread_join(thread, NULL);
  }
  return argc == 3 && strcmp(argv[1], "reloads") == 0 ? Reload(argv[2]) : 2;
}
