/* glibc_statistics: prints what glibc itself says is in use, at the moment nothing more happens.
 *
 * 20000 operations on blocks of 24, 56, 88, ... bytes: their chunks are multiples of 32, so are the
 * free ones, and nothing is left over that is too small for a chunk of its own. Then glibc gives
 * exactly what was asked for, and the bytes in use by mallinfo2 grow by the live bytes and 8 for
 * each live block. Prints that growth: what glibc itself needs is in use before.
 * To be run with GLIBC_TUNABLES=glibc.malloc.tcache_count=0, for the thread cache's
 * free blocks count as used. */
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { kSlots = 500, kOperations = 20000 };

static void* g_slots[kSlots];

int main(void) {
  uint64_t random = 88172645463325252u;
  free(malloc(24));
  const struct mallinfo2 before = mallinfo2();
  for (int i = 0; i < kOperations; ++i) {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    void** slot = &g_slots[random % kSlots];
    const size_t bytes = 24 + 32 * (random >> 32 & 63);
    switch (random >> 20 & 3) {
      case 0:
        free(*slot);
        *slot = NULL;
        break;
      case 1:
        *slot = realloc(*slot, bytes);
        break;
      default:
        free(*slot);
        *slot = malloc(bytes);
    }
  }
  const struct mallinfo2 info = mallinfo2();
  char line[100];
  const int length = snprintf(line, sizeof(line), "%zu\n",
                              info.uordblks + info.hblkhd - before.uordblks - before.hblkhd);
  return write(1, line, (size_t)length) == length ? 0 : 1;
}
