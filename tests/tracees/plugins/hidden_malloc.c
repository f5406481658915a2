/* A plugin with a malloc of its own that nobody else sees, on memory that is its own too. */
#include <stddef.h>

static char pool[1 << 16];
static size_t used;

__attribute__((visibility("hidden"), noinline)) void* malloc(size_t bytes) {
  void* block = pool + used;
  used += (bytes + 15) & ~(size_t)15;
  return used <= sizeof(pool) ? block : NULL;
}

int Work(void);
int Work(void) {
  int sum = 0;
  for (int i = 0; i < 50; ++i) {
    volatile char* block = malloc(100);
    block[0] = (char)i;
    sum += block[0];
  }
  return sum;
}
