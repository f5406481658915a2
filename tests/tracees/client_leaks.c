/* Blocks of known sizes that are lost, or would be if memtrace.h did not say otherwise; the size
 * tells which is which. One scan, while nothing on the stack or in registers points to them. */
#include <memtrace.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kClearedBytes = 16384 };

static char g_pool[8192] __attribute__((aligned(16)));
static void **volatile g_kept; /* volatile: nobody reads it */
static void *volatile g_sink;

__attribute__((noinline)) static void **Take(void *block, size_t bytes) {
  memtrace_pool_alloc(g_pool, block, bytes);
  return block;
}

__attribute__((noinline)) static void LoseAndKeep(void) {
  void **block;
  char *holder;
  block = malloc(101); /* ignored, and what it leads to */
  memtrace_ignore_object(block);
  block[0] = malloc(102);
  memtrace_disable();
  g_sink = malloc(103);
  memtrace_enable();
  g_sink = malloc(104); /* lost */

  memtrace_pool_create(g_pool, "static", 0);
  g_kept = Take(g_pool + 64, 48);
  g_kept[0] = NULL;
  block = Take(g_pool + 256, 49); /* lost, with the next */
  block[0] = Take(g_pool + 512, 50);

  holder = malloc(1000); /* its blocks take its place */
  memset(holder, 0, 1000);
  memtrace_block_alloc(holder + 16, 60);
  memtrace_block_alloc(holder + 128, 61); /* lost */
  *(char **)(g_pool + 4096) = holder + 16;

  block = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  block[1] = malloc(105);

  memtrace_stop();
  block = malloc(200); /* of no figure, but what it points to is not lost */
  memtrace_start();
  block[0] = malloc(106);

  block = malloc(400); /* lost; a word of it is a root */
  memset(block, 0, 400);
  block[10] = malloc(107);
  memtrace_root_region(block + 10, sizeof(void *));
  block = NULL;
  g_sink = NULL;
}

__attribute__((noinline)) static void ClearStack(void) {
  volatile char stack[kClearedBytes];
  memset((char *)stack, 0, sizeof(stack));
}

int main(void) {
  LoseAndKeep();
  ClearStack();
  if (memtrace_leak_check("known blocks", MEMTRACE_LEAKS_ANY, 1) != 1) return 1;
  {
    /* A child's first call of all. */
    int status = 0;
    const pid_t child = fork();
    if (child == 0) _exit(memtrace_leak_check("child", MEMTRACE_LEAKS_ANY, 1) == 1 ? 0 : 2);
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 3;
  }
}
