// Beginning: the right to begin a scan, one thread's at a time. A handler that came meanwhile and
// jumped out would keep it for ever: so none runs until it is given back.

#ifndef MEMTRACE_PRELOAD_LEAK_SCAN_BEGINNING_H_
#define MEMTRACE_PRELOAD_LEAK_SCAN_BEGINNING_H_

#include <atomic>
#include <cstdint>

#include "preload/signals_blocked.h"

namespace memtrace {

// A thread has it.
inline constinit std::atomic<bool> g_beginning{false};

class Beginning {
 public:
  Beginning() : mine_(!g_beginning.exchange(true, std::memory_order_acquire)) {}
  ~Beginning() {
    if (mine_) g_beginning.store(false, std::memory_order_release);
  }
  Beginning(const Beginning&) = delete;
  Beginning& operator=(const Beginning&) = delete;

  explicit operator bool() const { return mine_; }
  uint64_t unblocked() const { return ~no_handler_.before(); }

  // Somebody else gives it back.
  void HandOver() { mine_ = false; }

 private:
  const SignalsBlocked no_handler_;
  bool mine_;
};

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_LEAK_SCAN_BEGINNING_H_
