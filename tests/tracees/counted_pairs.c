/* counted_pairs MODE N: N times what MODE says, for counting instructions.
 *
 *   pair    malloc and free of a block, always from the same stack
 *   apart   N mallocs, then N frees
 *   turns   malloc and free from a stack whose three innermost frames differ each time
 *           from those before, eight in turn
 *   fresh   malloc and free from a stack that never comes again
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void Leaf(void) {
  void *volatile block = malloc(24);
  free(block);
}

static void Down(unsigned way, unsigned depth);
__attribute__((noinline)) static void Left(unsigned way, unsigned depth) {
  Down(way >> 1, depth - 1);
  __asm__ volatile("" ::: "memory");
}
__attribute__((noinline)) static void Right(unsigned way, unsigned depth) {
  Down(way >> 1, depth - 1);
  __asm__ volatile("" ::: "memory");
}
__attribute__((noinline)) static void Down(unsigned way, unsigned depth) {
  if (depth == 0) {
    Leaf();
  } else if (way & 1) {
    Left(way, depth);
  } else {
    Right(way, depth);
  }
  __asm__ volatile("" ::: "memory");
}

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  const unsigned n = (unsigned)atoi(argv[2]);
  if (strcmp(argv[1], "pair") == 0) {
    for (unsigned i = 0; i < n; ++i) Leaf();
  } else if (strcmp(argv[1], "turns") == 0) {
    for (unsigned i = 0; i < n; ++i) Down(i % 8, 3);
  } else if (strcmp(argv[1], "fresh") == 0) {
    for (unsigned i = 0; i < n; ++i) Down(i * 0x9e3779b1u, 20);
  } else if (strcmp(argv[1], "apart") == 0) {
    void **blocks = malloc(n * sizeof(*blocks));
    for (unsigned i = 0; i < n; ++i) blocks[i] = malloc(24);
    for (unsigned i = 0; i < n; ++i) free(blocks[i]);
    free(blocks);
  } else {
    return 2;
  }
  return 0;
}
