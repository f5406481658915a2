/* reallocarray_once: one realloc chain by reallocarray, which glibc makes of its exported realloc.
 * Two allocations and two frees, no more. */
#define _GNU_SOURCE
#include <stdlib.h>

int main(void) {
  void* volatile block = reallocarray(NULL, 10, 10);
  block = reallocarray(block, 20, 10);
  free(block);
  return 0;
}
