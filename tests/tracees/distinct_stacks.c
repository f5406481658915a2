/* distinct_stacks: each allocation has a stack of its own.
 *
 *   distinct_stacks LEAVES ORDER     ORDER: tree, or random
 *
 * A stack is a path of 24 calls, each of Left or Right; there are 2^24 of them. They are taken
 * as a walk of the tree meets them, where neighbours have most of their stacks in common, or
 * in random order, without repetition. Sixteen blocks along the way have a size of their own
 * and are told with their path; so is how much larger the process became after a twentieth of the way. */
#include <stdint.h>
#include <stdlib.h>

#include "expect.h"

enum { kDepth = 24, kSamples = 16 };

static long g_leaves, g_visited, g_stride, g_early_kib;
static volatile int g_sink;

static long ResidentKib(void);

static void TellSample(uint32_t path, size_t bytes) {
  char functions[kDepth * 16 + 60] = "Leaf";
  for (int depth = kDepth - 1; depth >= 0; --depth) {
    strcat(functions, path >> (kDepth - 1 - depth) & 1 ? " Deeper Right" : " Deeper Left");
  }
  strcat(functions, " Deeper Descend main");
  Expect(bytes, 1, functions);
}

__attribute__((noinline)) static void Leaf(uint32_t path) {
  const int is_sample = g_visited % g_stride == g_stride / 2;
  const size_t bytes = is_sample ? 100000 + (size_t)(g_visited / g_stride) : 24;
  if (++g_visited == g_leaves / 20) g_early_kib = ResidentKib();
  free(malloc(bytes));
  if (is_sample) TellSample(path, bytes);
  g_sink = g_sink + 1;
}

/* Bit kDepth - 1 - depth of `path` is the way taken at `depth`. In the tree's order both ways
 * are taken, one after the other. */
static void Left(uint32_t path, int depth, int both);
static void Right(uint32_t path, int depth, int both);

static inline __attribute__((always_inline)) void Deeper(uint32_t path, int depth, int both) {
  if (depth == kDepth) {
    Leaf(path);
    return;
  }
  const uint32_t bit = 1u << (kDepth - 1 - depth);
  if (both) {
    Left(path, depth + 1, both);
    if (g_visited < g_leaves) Right(path | bit, depth + 1, both);
  } else if (path & bit) {
    Right(path, depth + 1, both);
  } else {
    Left(path, depth + 1, both);
  }
  g_sink = g_sink + 1;
}

__attribute__((noinline)) static void Left(uint32_t path, int depth, int both) {
  Deeper(path, depth, both);
  g_sink = g_sink + 2;
}
__attribute__((noinline)) static void Right(uint32_t path, int depth, int both) {
  Deeper(path, depth, both);
  g_sink = g_sink + 3;
}

__attribute__((noinline)) static void Descend(uint32_t path, int both) {
  Deeper(path, 0, both);
  g_sink = g_sink + 4;
}

static long ResidentKib(void) {
  long kib = 0;
  char line[200];
  FILE* status = fopen("/proc/self/status", "r");
  while (status != NULL && fgets(line, sizeof(line), status) != NULL) {
    if (sscanf(line, "VmRSS: %ld kB", &kib) == 1) break;
  }
  if (status != NULL) fclose(status);
  return kib;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  g_leaves = atol(argv[1]);
  if (g_leaves < kSamples || g_leaves > 1L << kDepth) return 2;
  g_stride = g_leaves / kSamples;
  if (argv[2][0] == 't') {
    Descend(0, 1);
  } else {
    /* An odd step of full period: every path once. */
    uint32_t path = 12345;
    for (long i = 0; i < g_leaves; ++i) {
      Descend(path & ((1u << kDepth) - 1), 0);
      path = path * 1664525u + 1013904223u;
    }
  }
  Tell("leaves %ld\n", g_visited);
  Tell("growth_kib %ld\n", ResidentKib() - g_early_kib);
  return g_visited == g_leaves ? 0 : 3;
}
