// waste: small blocks cost more than was asked for.
//
// glibc hands out blocks of 24, 40, 56, ... usable bytes. 10000 blocks of 25 bytes therefore hold
// 40 each: 150000 bytes are given and not asked for. The blocks of 40 bytes beside them waste
// nothing.
//
//   expect: site at @odd in TwentyFive: allocations == 10000, bytes_allocated == 250000
//   expect: site at @odd in TwentyFive: wasted_bytes == 150000
//   expect: site at @even in Forty: allocations == 10000, bytes_allocated == 400000
//   expect: site at @even in Forty: wasted_bytes == 0
//   expect: /totals/wasted_bytes == 150000
#include <stdlib.h>

enum { kBlocks = 10000 };

static char* g_blocks[2 * kBlocks];

static void TwentyFive(void) {
  for (int i = 0; i < kBlocks; ++i) g_blocks[i] = malloc(25);  // @odd
}

static void Forty(void) {
  for (int i = kBlocks; i < 2 * kBlocks; ++i) g_blocks[i] = malloc(40);  // @even
}

int main(void) {
  TwentyFive();
  Forty();
  return 0;
}
