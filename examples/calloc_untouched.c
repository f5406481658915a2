// calloc_untouched: zeroed memory that nobody touches costs no page.
//
// calloc(64 MiB) gets a mapping of its own, which is zero already: only the page with the block's
// header is there. The program then writes to one byte in each of ten pages. The heap says 64 MiB,
// and eleven pages are resident; what is missing between the two is in the report as untouched.
//
//   expect: leak 67108864 bytes in 1 block at @block in main
//   expect faults: site at @block in main: minor_faults == 11
//   expect faults: site at @block in main: resident_bytes == 45048
#include <stdlib.h>

enum { kBytes = 64 << 20, kPage = 4096, kTouched = 10 };

int main(void) {
  volatile char* block = calloc(1, kBytes);  // @block
  if (block == NULL) return 1;
  // Not the first page, which has the header.
  for (int i = 1; i <= kTouched; ++i) block[i * 16 * kPage] = 1;
  return 0;
}
