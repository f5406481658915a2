/* holds_large_blocks: five times a thousand small pairs at full speed, and then a block of 8 MiB that is
 * filled and held for 50 ms; and so with one that a realloc has made as large. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kBytes = 8 << 20, kHeldUs = 50000 };

__attribute__((noinline)) static void SmallPairs(void) {
  for (int i = 0; i < 1000; ++i) {
    void *volatile block = malloc(100);
    free(block);
  }
}

__attribute__((noinline)) static void HoldLarge(void) {
  char *volatile block = malloc(kBytes);
  memset(block, 1, kBytes);
  usleep(kHeldUs);
  free(block);
}

__attribute__((noinline)) static void HoldGrown(void) {
  char *volatile block = malloc(10);
  block = realloc(block, kBytes);
  memset(block, 1, kBytes);
  usleep(kHeldUs);
  free(block);
}

int main(void) {
  for (int i = 0; i < 5; ++i) {
    SmallPairs();
    HoldLarge();
    SmallPairs();
    HoldGrown();
  }
  return 0;
}
