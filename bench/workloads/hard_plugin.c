/* What hard_stacks.c loads again and again. */
#include <stdlib.h>

void* Allocate(size_t bytes) {
  void* volatile block = malloc(bytes);
  return block;
}
