/* Frees blocks of malloc by jemalloc's own functions, as valkey does: of these no event tells.
 * Linked with jemalloc (tests/e2e/allocators_test.cc). */
#include <stdlib.h>
#include <string.h>

void sdallocx(void*, size_t, int);
void dallocx(void*, int);

enum { kTimes = 300 };

static void* volatile g_last;

__attribute__((noinline)) static void* Make(size_t bytes) {
  void* const block = malloc(bytes);
  if (block == NULL) exit(1);
  memset(block, 1, bytes);
  g_last = block;
  return block;
}

int main(void) {
  for (int i = 0; i < kTimes; ++i) sdallocx(Make(1761), 1761, 0);
  for (int i = 0; i < kTimes; ++i) dallocx(Make(2761), 0);
  return 0;
}
