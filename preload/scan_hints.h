// ScanHints: what the program told by memtrace.h and a memory scan has to know.
//
// Root regions: stretches of memory whose words are roots wherever they lie
// (memtrace_root_region()). A table of fixed size, without locks: a region is added and taken
// away by any thread in any state, signal handlers included, and read by the copy of the process
// that scans. A fork child has its parent's.
//
// Ignored blocks are not here. They are events (kIgnoreBlock, kLeaksDisabled): the library knows no
// blocks, so that an entry here would outlive its block and hide the next at that address.
//
// An entry is free while `begin` is 0, and is being written while it is kWriting:
//   writer   begin 0 -> kWriting (compare-and-swap); end; begin (release)      [entry]
//   reader   begin (acquire), neither of these; end                           [entry]
// A thread that is stopped between the two has not told the region yet.

#ifndef MEMTRACE_PRELOAD_SCAN_HINTS_H_
#define MEMTRACE_PRELOAD_SCAN_HINTS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace memtrace {

class ScanHints {
 public:
  static constexpr size_t kRootRegions = 1024;

  // False: the region is empty, or the table is full.
  bool AddRoot(uintptr_t begin, uintptr_t end) {
    if (begin <= kWriting || end <= begin) return false;
    for (Entry& entry : roots_) {
      uintptr_t free = 0;
      if (!entry.begin.compare_exchange_strong(free, kWriting, std::memory_order_relaxed)) continue;
      entry.end.store(end, std::memory_order_relaxed);
      entry.begin.store(begin, std::memory_order_release);  // [entry]
      return true;
    }
    return false;
  }

  // One of those with exactly these bounds. False: there is none.
  bool RemoveRoot(uintptr_t begin, uintptr_t end) {
    if (begin <= kWriting) return false;
    for (Entry& entry : roots_) {
      uintptr_t its = entry.begin.load(std::memory_order_acquire);  // [entry]
      if (its != begin || entry.end.load(std::memory_order_relaxed) != end) continue;
      if (entry.begin.compare_exchange_strong(its, 0, std::memory_order_relaxed)) return true;
    }
    return false;
  }

  // visit(uintptr_t begin, uintptr_t end)
  template <typename Visit>
  void ForEachRoot(Visit visit) const {
    for (const Entry& entry : roots_) {
      const uintptr_t begin = entry.begin.load(std::memory_order_acquire);  // [entry]
      if (begin > kWriting) visit(begin, entry.end.load(std::memory_order_relaxed));
    }
  }

 private:
  static constexpr uintptr_t kWriting = 1;
  struct Entry {
    std::atomic<uintptr_t> begin{0};
    std::atomic<uintptr_t> end{0};
  };
  Entry roots_[kRootRegions];
};

inline constinit ScanHints g_scan_hints;

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_SCAN_HINTS_H_
