/* Tells memtrace all it can, in C89 and in C++. Built by client_api_test in every way there is
 * to link; as a shared library its RunAll() is called by another program. */
#include <errno.h>
#include <memtrace.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static char g_arena[4096];
static void *volatile g_sink;

__attribute__((noinline)) void *TakeFromArena(size_t offset, size_t bytes) {
  memtrace_pool_alloc(g_arena, g_arena + offset, bytes);
  return g_arena + offset;
}

static void OnSignal(int number) {
  (void)number;
  memtrace_block_alloc(g_arena + 2048, 32);
}

#ifdef __cplusplus
extern "C"
#endif
int RunAll(void);

int RunAll(void) {
  void *kept;
  int active, added, removed;
  errno = 77;
  memtrace_phase_begin("all");
  memtrace_pool_create(g_arena, "arena", 0);
  g_sink = TakeFromArena(0, 100);
  g_sink = TakeFromArena(112, 50);
  memtrace_pool_free(g_arena, g_arena + 112);
  signal(SIGUSR1, OnSignal);
  raise(SIGUSR1);
  kept = malloc(1001);
  memtrace_ignore_object(kept);
  memtrace_disable();
  memtrace_disable();
  memtrace_enable();
  g_sink = malloc(1002);
  memtrace_enable();
  memtrace_enable(); /* one too many */
  memtrace_mark("half");
  memtrace_stop();
  g_sink = malloc(1003);
  free(kept);
  memtrace_start();
  memtrace_phase_end("all");
  active = memtrace_is_active();
  added = memtrace_root_region(g_arena, sizeof(g_arena));
  removed = memtrace_unroot_region(g_arena, sizeof(g_arena));
  if (errno != 77) return 1;
  printf("%d %d %d %d\n", active, added, removed, memtrace_unroot_region(g_arena, 1));
  return 0;
}

#ifndef AS_LIBRARY
int main(void) { return RunAll(); }
#endif
