// realloc_chain: a buffer that doubles by realloc, from 16 bytes to 1 MiB, and is freed.
//
// realloc(NULL, 16) and 16 more: each is one allocation, all but the first are one free as well.
// Old and new are never live together, so the peak is the last size. A shrinking realloc and a
// realloc that fails (the block stays) come after it on a second block.
//
//   expect: /totals/allocations == 19
//   expect: /totals/frees == 18
//   expect: /totals/bytes_allocated == 2098360
//   expect: /totals/peak_live_bytes == 1048576
//   expect: leak 200 bytes in 1 block at @shrink in ShrinkAndFail
//   expect: no leak in GrowByDoubling
//   expect: site at @double in GrowByDoubling: allocations == 17, bytes_allocated == 2097136
//   expect: site at @double in GrowByDoubling: live_blocks == 0
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static void GrowByDoubling(void) {
  char* buffer = NULL;
  for (size_t bytes = 16; bytes <= 1 << 20; bytes *= 2) {
    buffer = realloc(buffer, bytes);  // @double
    buffer[bytes - 1] = 1;
  }
  free(buffer);
}

static int ShrinkAndFail(void) {
  char* block = malloc(1024);
  block = realloc(block, 200);  // @shrink
  volatile size_t too_large = PTRDIFF_MAX;
  return realloc(block, too_large) == NULL;  // the 200 bytes are still live
}

int main(void) {
  GrowByDoubling();
  return ShrinkAndFail() ? 0 : 1;
}
