// huge_pages: one fault brings in 2 MiB.
//
// A block of 16 MiB at a multiple of 2 MiB, for which the program asks for transparent huge pages,
// and a byte written in each of its first three: three faults, and a fourth on the small page in
// front that has the block's header, make 6 MiB resident. A page that was faulted in for one
// byte is as large a waste as 512 small ones.
//
// Where the kernel gives no huge pages there is nothing to see: `huge_pages check` prints how many
// KiB of the program are in such pages.
//
//   expect faults: site at @block in main: minor_faults == 4
//   expect: resident site at @block in main: resident_bytes == 6291464
//   expect: resident site at @block in main: untouched_bytes == 10485760
//   expect: /resident/0/huge_bytes >= 6291456
//   expect: text "6.00 MiB +.*of RSS: in huge pages"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { kBytes = 16 << 20, kHuge = 2 << 20, kTouched = 3 };

static int PrintHugeKib(void) {
  FILE* smaps = fopen("/proc/self/smaps_rollup", "r");
  if (smaps == NULL) return 1;
  char line[256];
  while (fgets(line, sizeof(line), smaps) != NULL) {
    long kib;
    if (sscanf(line, "AnonHugePages: %ld", &kib) == 1) printf("%ld\n", kib);
  }
  return fclose(smaps);
}

int main(int argc, char** argv) {
  char* block = aligned_alloc(kHuge, kBytes);  // @block
  if (block == NULL) return 1;
  madvise(block, kBytes, MADV_HUGEPAGE);
  for (int i = 0; i < kTouched; ++i) *(volatile char*)(block + i * kHuge) = 1;
  return argc > 1 && strcmp(argv[1], "check") == 0 ? PrintHugeKib() : 0;
}
