/* A plugin that takes next to nothing of its caller's stack. */
#include <stdlib.h>

void* Allocate(size_t bytes) {
  void* volatile block = malloc(bytes);
  return block;
}
