/* own_dlsym: a program whose own dlsym() allocates, as that of a library that wraps the loader may.
 *
 * memtrace looks for the real allocator by dlsym(), so these allocations come while it is still
 * looking. Their blocks stay the program's for as long as it lives: they are asked for their size,
 * they grow, they are freed. Says what is wrong, or "all as it should be".
 *
 * Linked with exported names, so that the library's dlsym is this one. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kBlocks = 4, kBytes = 100 };

static void* (*g_dlsym)(void*, const char*);
static char* g_early[kBlocks];
static int g_count;

/* The call at the end is a jump, and so dlsym sees who asked: RTLD_NEXT depends on it. */
void* dlsym(void* handle, const char* name) {
  if (g_dlsym == NULL) g_dlsym = (void* (*)(void*, const char*))dlvsym(RTLD_DEFAULT, "dlsym", "GLIBC_2.34");
  if (g_dlsym == NULL) g_dlsym = (void* (*)(void*, const char*))dlvsym(RTLD_DEFAULT, "dlsym", "GLIBC_2.2.5");
  if (g_count < kBlocks) {
    char* block = malloc(kBytes);
    if (block != NULL) memset(block, 'a' + g_count, kBytes);
    g_early[g_count++] = block;
  }
  return g_dlsym(handle, name);
}

int main(void) {
  if (g_count == 0) dlsym(RTLD_DEFAULT, "main");
  printf("%s\n", g_count == kBlocks ? "early blocks" : "a block");
  for (int i = 0; i < g_count; ++i) {
    if (g_early[i] == NULL) return puts("no block"), 1;
    if (malloc_usable_size(g_early[i]) < kBytes) return puts("its size is too small"), 1;
    g_early[i][malloc_usable_size(g_early[i]) - 1] = (char)('a' + i);
    g_early[i] = realloc(g_early[i], 10 * kBytes);
    if (g_early[i] == NULL) return puts("it cannot grow"), 1;
    if (malloc_usable_size(g_early[i]) < 10 * kBytes) return puts("its size is not that of the larger"), 1;
    for (int k = 0; k < kBytes; ++k) {
      if (g_early[i][k] != 'a' + i) return puts("its bytes are not what they were"), 1;
    }
    free(g_early[i]);
  }
  if (malloc_usable_size(NULL) != 0) return puts("nothing has a size"), 1;
  puts("all as it should be");
  return 0;
}
