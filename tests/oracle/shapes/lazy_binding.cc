// A call through a PLT slot that is not bound yet, to a function whose address a
// resolver computes: the probe runs below _dl_runtime_resolve. See shapes.h.
// Built twice over: the library with the resolver, and the one that calls it.

#include "tests/oracle/shapes/shapes.h"

#ifdef MEMTRACE_LAZY_TARGET

extern "C" [[gnu::visibility("default")]] Probe g_lazy_probe;
Probe g_lazy_probe = nullptr;

namespace {
volatile int g_sink;
[[gnu::noinline]] void Deeper(int depth) {
  if (depth == 0) {
    if (g_lazy_probe != nullptr) g_lazy_probe("lazy_binding");
  } else {
    Deeper(depth - 1);
  }
  g_sink = g_sink + 1;
}
}  // namespace

extern "C" {
static int Target(int a, int b) { return a + b; }
static int (*ResolveLazily())(int, int) {
  Deeper(2);
  return Target;
}
[[gnu::visibility("default"), gnu::ifunc("ResolveLazily")]] int LazyTarget(int a, int b);
}

#else

extern "C" Probe g_lazy_probe;
extern "C" int LazyTarget(int a, int b);

extern "C" [[gnu::visibility("default")]] void RunShapes(Probe probe) {
  volatile long kept[6] = {1, 2, 3, 4, 5, 6};
  g_lazy_probe = probe;
  kept[0] = LazyTarget(static_cast<int>(kept[1]), static_cast<int>(kept[2]));
  kept[5] = kept[0] + kept[3];
}

#endif
