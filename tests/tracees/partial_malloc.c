/* A program that defines malloc and free, and leaves the rest of the family to libc. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"

static char memory[1 << 20];
static size_t used;

void* malloc(size_t bytes) {
  void* block = memory + used;
  used += (bytes + 15) & ~(size_t)15;
  return used <= sizeof(memory) ? block : NULL;
}
void free(void* block) { (void)block; }

int main(void) {
  for (int i = 0; i < 30; ++i) {
    char* volatile zeroed = calloc(1, 1741);
    if (zeroed == NULL || zeroed[1740] != 0) return 9;
    char* volatile own = malloc(1743);
    if (own == NULL) return 9;
    memset(own, 1, 1743);
    free(own);
  }
  Tell("calloc 1741 30\n");
  return 0;
}
