// A plugin in C++ for a program in C: the C++ runtime comes with it.

#include <cstdlib>
#include <stdexcept>

namespace {
volatile int g_sink;

struct AllocatesAtTheEnd {
  std::size_t bytes;
  ~AllocatesAtTheEnd() { Allocate(); }
  [[gnu::noinline]] void Allocate() {
    free(malloc(bytes));
    g_sink = g_sink + 1;
  }
};
}  // namespace

extern "C" {

[[gnu::noinline]] void ThrowFrom(int depth) {
  const AllocatesAtTheEnd at_end{depth == 3 ? 701u : 702u};
  if (depth == 0) throw std::runtime_error("thrown");
  ThrowFrom(depth - 1);
  g_sink = g_sink + 1;
}

// Throws through the program's C frames, by way of `call`.
[[gnu::visibility("default")]] int CatchWhatIsThrown(void (*call)(void (*)(int))) {
  try {
    call(ThrowFrom);
  } catch (const std::exception&) {
    free(malloc(703));
    try {
      throw 5;
    } catch (int) {
      free(malloc(704));
      return 1;
    }
  }
  return 0;
}

}  // extern "C"
