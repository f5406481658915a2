#include "preload/next_functions.h"

#include <atomic>

#include "preload/real_allocator.h"

namespace memtrace {
namespace {

constinit NextFunctions g_next = {};
constinit std::atomic<bool> g_found{false};

}  // namespace

// By several threads at once: all find the same.
const NextFunctions& Next() {
  if (g_found.load(std::memory_order_acquire)) return g_next;
#define MEMTRACE_FIND(name, ...) \
  g_next.name = reinterpret_cast<decltype(g_next.name)>(FindNext(#name));
  MEMTRACE_NEXT_FUNCTIONS(MEMTRACE_FIND)
#undef MEMTRACE_FIND
  g_found.store(true, std::memory_order_release);
  return g_next;
}

}  // namespace memtrace
