/* loses_large_blocks: five blocks of 100,000 bytes and eighty of 1,234, all lost: allocators keep the
 * addresses of such in what they know of their memory. */
#include <stdlib.h>
#include <string.h>

__attribute__((noinline)) static void Lose(int blocks, size_t bytes) {
  for (int i = 0; i < blocks; ++i) {
    char *volatile block = malloc(bytes);
    memset(block, 0, bytes);
    block = NULL;
  }
}

/* What the calls before left on the stack. */
__attribute__((noinline)) static void ClearStack(void) {
  volatile char bytes[64 << 10];
  for (size_t i = 0; i < sizeof(bytes); ++i) bytes[i] = 0;
}

int main(void) {
  Lose(5, 100000);
  Lose(80, 1234);
  ClearStack();
  for (int i = 0; i < 100; ++i) {
    void *volatile other = malloc(50);
    free(other);
  }
  ClearStack();
  return 0;
}
