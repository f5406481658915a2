/* reallocarray_of_any_size: one call of it, for small blocks and for such as have a mapping of their
 * own. Of four allocations two remain, 1,001,000 bytes. */
#define _GNU_SOURCE
#include <stdlib.h>

static void* volatile g_blocks[2];

static __attribute__((noinline)) void Resize(int which, size_t count) {
  g_blocks[which] = reallocarray(g_blocks[which], count, 100);
  if (g_blocks[which] == NULL) exit(1);
}

int main(void) {
  static const size_t kCounts[] = {1, 10, 2, 10000};
  for (volatile int i = 0; i < 4; ++i) Resize(i / 2, kCounts[i]);
  return 0;
}
