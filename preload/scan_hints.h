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
  static constexpr size_t kBreaks = 64;

  // False: the region is empty, or the table is full.
  bool AddRoot(uintptr_t begin, uintptr_t end) {
    if (begin <= kWriting || end <= begin) return false;
    return Add(roots_, begin, end);
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
    ForEach(roots_, visit);
  }

  // The program itself moved the break. What it added lies in [heap], and is no business of libc's
  // allocator. Where there are more stretches than fit, the rest is taken for libc's.
  void MoveBreak(uintptr_t before, uintptr_t now) {
    if (now > before) {
      for (Entry& entry : breaks_) {
        uintptr_t end = before;
        if (entry.begin.load(std::memory_order_acquire) > kWriting &&
            entry.end.compare_exchange_strong(end, now, std::memory_order_relaxed)) {
          return;
        }
      }
      Add(breaks_, before, now);
      return;
    }
    for (Entry& entry : breaks_) {
      const uintptr_t begin = entry.begin.load(std::memory_order_acquire);
      if (begin <= kWriting || entry.end.load(std::memory_order_relaxed) <= now) continue;
      if (begin < now) {
        entry.end.store(now, std::memory_order_relaxed);
      } else {
        entry.begin.store(0, std::memory_order_relaxed);
      }
    }
  }
  template <typename Visit>
  void ForEachBreak(Visit visit) const {
    ForEach(breaks_, visit);
  }

 private:
  static constexpr uintptr_t kWriting = 1;
  struct Entry {
    std::atomic<uintptr_t> begin{0};
    std::atomic<uintptr_t> end{0};
  };

  template <size_t kEntries>
  static bool Add(Entry (&entries)[kEntries], uintptr_t begin, uintptr_t end) {
    for (Entry& entry : entries) {
      uintptr_t free = 0;
      if (!entry.begin.compare_exchange_strong(free, kWriting, std::memory_order_relaxed)) continue;
      entry.end.store(end, std::memory_order_relaxed);
      entry.begin.store(begin, std::memory_order_release);  // [entry]
      return true;
    }
    return false;
  }
  template <size_t kEntries, typename Visit>
  static void ForEach(const Entry (&entries)[kEntries], Visit visit) {
    for (const Entry& entry : entries) {
      const uintptr_t begin = entry.begin.load(std::memory_order_acquire);  // [entry]
      if (begin > kWriting) visit(begin, entry.end.load(std::memory_order_relaxed));
    }
  }

  Entry roots_[kRootRegions];
  Entry breaks_[kBreaks];
};

inline constinit ScanHints g_scan_hints;

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_SCAN_HINTS_H_
