// ArenaHeaps: how large the heaps of glibc's other arenas were when the trace was told last, by
// whatever thread. Blocks change hands, so that one thread sees many arenas in turn: each would be
// news to it every time. Hashed, a few probes; a heap that finds no place is told again, which is
// harmless.

#ifndef MEMTRACE_PRELOAD_ARENA_HEAPS_H_
#define MEMTRACE_PRELOAD_ARENA_HEAPS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace memtrace {

class ArenaHeaps {
 public:
  // True when that is news.
  bool Update(uintptr_t base, size_t bytes) {
    const size_t home = base >> 26;
    for (size_t probe = 0; probe < kProbes; ++probe) {
      Entry& entry = entries_[(home + probe) % kEntries];
      uintptr_t found = entry.base.load(std::memory_order_relaxed);
      if (found == 0) entry.base.compare_exchange_strong(found, base, std::memory_order_relaxed);
      if (found != 0 && found != base) continue;
      return entry.bytes.exchange(bytes, std::memory_order_relaxed) != bytes;
    }
    return true;
  }
  // visit(base, bytes)
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (const Entry& entry : entries_) {
      const uintptr_t base = entry.base.load(std::memory_order_relaxed);
      if (base != 0) visit(base, entry.bytes.load(std::memory_order_relaxed));
    }
  }
  void Clear() {
    for (Entry& entry : entries_) {
      entry.base.store(0, std::memory_order_relaxed);
      entry.bytes.store(0, std::memory_order_relaxed);
    }
  }

 private:
  static constexpr size_t kEntries = 256, kProbes = 8;
  struct Entry {
    std::atomic<uintptr_t> base{0};
    std::atomic<size_t> bytes{0};
  };
  Entry entries_[kEntries];
};

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_ARENA_HEAPS_H_
