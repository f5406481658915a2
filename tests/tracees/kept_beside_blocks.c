/* With another allocator preloaded: the only pointer to a block lies in memory that the program mapped for
   itself, right beside the allocator's. Exits with 77 where there is no such place. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { kStep = 1 << 16, kMiB = 1 << 20 };

__attribute__((noinline)) static void keep(void** where) { *where = malloc(5000); }

static void** beside(uintptr_t block) {
  for (uintptr_t at = block & -(uintptr_t)kMiB; at < (block | (kMiB - 1)); at += kStep) {
    void* const mine = mmap((void*)at, kStep, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (mine == (void*)at) return mine;
    if (mine != MAP_FAILED) munmap(mine, kStep);
  }
  return NULL;
}

int main(void) {
  void** mine = NULL;
  for (int i = 0; i < 4000 && mine == NULL; ++i) mine = beside((uintptr_t)malloc(16384));
  if (mine == NULL) return 77;
  keep(mine);
  puts("kept");
  return 0;
}
