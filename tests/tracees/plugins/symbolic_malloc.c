/* A library with a malloc of its own that binds it to itself (-Bsymbolic). */
#include <stddef.h>
#include <stdlib.h>

static char memory[1 << 20];
static size_t used;

void* Take(void);
void Give(void* block);

void* malloc(size_t bytes) {
  void* block = memory + used;
  used += (bytes + 15) & ~(size_t)15;
  return used <= sizeof(memory) ? block : NULL;
}
void free(void* block) { (void)block; }

/* The libc's calloc, so that this library is on a stack that is recorded. */
void* Take(void) { return calloc(1, 1737) != NULL ? malloc(1733) : NULL; }
void Give(void* block) { free(block); }
