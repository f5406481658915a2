/* A library that allocates for its user. */
#include <stdlib.h>
#include <string.h>

void* Take(void);
void Give(void* block);

void* Take(void) {
  void* block = malloc(1733);
  return block != NULL ? memset(block, 1, 1733) : NULL;
}
void Give(void* block) { free(block); }
