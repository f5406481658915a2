/* deep_recursion: allocates on its way down, at the bottom, and on its way up again.
 *
 *   deep_recursion DEPTH */
#include <stdlib.h>

#include "expect.h"

static volatile int g_sink;

__attribute__((noinline)) static void Recurse(int depth) {
  if (depth % 100 == 0) free(malloc(401));
  if (depth > 0) {
    Recurse(depth - 1);
  } else {
    for (int i = 0; i < 1000; ++i) free(malloc(402));
  }
  if (depth % 100 == 0) free(malloc(403));
  g_sink = g_sink + 1;
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const int depth = atoi(argv[1]);
  Recurse(depth);
  Expect(401, depth / 100 + 1, "Recurse");
  Expect(402, 1000, "Recurse");
  Expect(403, depth / 100 + 1, "Recurse");
  free(malloc(404));
  Expect(404, 1, "main");
  return 0;
}
