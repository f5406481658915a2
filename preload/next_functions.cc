#include "preload/next_functions.h"

#include <dlfcn.h>

namespace memtrace {

constinit NextFunctions g_next = {};
constinit std::atomic<bool> g_next_found{false};

// By several threads at once: all find the same.
[[gnu::noinline]] void FindNextFunctions() {
#define MEMTRACE_FIND(name, ...) \
  g_next.name = reinterpret_cast<decltype(g_next.name)>(dlsym(RTLD_NEXT, #name));
  MEMTRACE_NEXT_FUNCTIONS(MEMTRACE_FIND)
#undef MEMTRACE_FIND
  g_next_found.store(true, std::memory_order_release);
}

}  // namespace memtrace
