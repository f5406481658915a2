/* A program that calls glibc's allocator past its public names, as old wrappers do. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"

extern void* __libc_malloc(size_t bytes);
extern void __libc_free(void* block);

int main(void) {
  for (int i = 0; i < 20; ++i) {
    char* block = __libc_malloc(1751);
    if (block == NULL) return 9;
    memset(block, 1, 1751);
    free(block); /* seen */
    block = malloc(1753); /* seen */
    if (block == NULL) return 9;
    __libc_free(block);
  }
  Tell("seen 1753 20\nfrees 20 20\n");
  return 0;
}
