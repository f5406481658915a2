/* With another allocator preloaded: the only pointer to a block lies in memory that the program mapped for
   itself, right beside the allocator's: 64 KiB, or a page of the 64 KiB that a block is in.
   Exits with 77 where there is no such place.

     kept_beside_blocks [page] */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { kGranule = 1 << 16, kMiB = 1 << 20, kPage = 4096 };

__attribute__((noinline)) static void keep(void** where) { *where = malloc(5000); }

static void** beside(uintptr_t block, uintptr_t within, uintptr_t step) {
  for (uintptr_t at = block & -within; at < (block | (within - 1)); at += step) {
    void* const mine = mmap((void*)at, step, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (mine == (void*)at) return mine;
    if (mine != MAP_FAILED) munmap(mine, step);
  }
  return NULL;
}

int main(int argc, char** argv) {
  (void)argv;
  const int page = argc > 1;
  void** mine = NULL;
  for (int i = 0; i < 4000 && mine == NULL; ++i) {
    const uintptr_t block = (uintptr_t)malloc(page ? 100000 : 16384);
    mine = page ? beside(block + 100000, kGranule, kPage) : beside(block, kMiB, kGranule);
  }
  if (mine == NULL) return 77;
  keep(mine);
  puts("kept");
  return 0;
}
