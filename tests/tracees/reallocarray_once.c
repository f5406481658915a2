/* reallocarray_once: one realloc chain by reallocarray, which glibc makes of its exported realloc.
 * Two allocations and two frees, no more; and one that fails, for the product is too large. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

int main(void) {
  void* volatile block = reallocarray(NULL, 10, 10);
  block = reallocarray(block, 20, 10);
  volatile size_t huge = SIZE_MAX / 2;
  if (reallocarray(block, huge, 3) != NULL || errno != ENOMEM) return 1;
  free(block);
  return 0;
}
