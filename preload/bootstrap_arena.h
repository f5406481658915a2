// BootstrapArena: memory for calls that arrive while the real functions are
// still being looked for. dlsym itself may call calloc, and ld.so and libc may
// free such a block much later: free and realloc ask Owns() for ever, and so does
// malloc_usable_size if there is such a block (real_allocator.cc). Nothing is given
// back; an exhausted arena returns null, as malloc may.

#ifndef MEMTRACE_PRELOAD_BOOTSTRAP_ARENA_H_
#define MEMTRACE_PRELOAD_BOOTSTRAP_ARENA_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "preload/arch/arch.h"

namespace memtrace {

class BootstrapArena {
 public:
  // Zeroed. `alignment` is a power of two.
  void* Allocate(size_t bytes, size_t alignment = 16) {
    if (bytes > kBytes || alignment > arch::kPageBytes) return nullptr;
    if (alignment < 16) alignment = 16;
    const size_t need = bytes + 16 + alignment;
    const size_t begin = used_.fetch_add((need + 15) & ~size_t{15}, std::memory_order_relaxed);
    if (begin + need > kBytes) return nullptr;
    uintptr_t block = reinterpret_cast<uintptr_t>(data_) + begin + 16;
    block = (block + alignment - 1) & ~(alignment - 1);
    reinterpret_cast<size_t*>(block)[-1] = bytes;
    return reinterpret_cast<void*>(block);
  }

  // The memory that was given out so far is [begin, used_end).
  const void* begin() const { return data_; }
  const void* used_end() const {
    const size_t used = used_.load(std::memory_order_relaxed);
    return data_ + (used < kBytes ? used : kBytes);
  }

  bool Owns(const void* block) const {
    return reinterpret_cast<uintptr_t>(block) - reinterpret_cast<uintptr_t>(data_) < kBytes;
  }
  static size_t Size(const void* block) { return static_cast<const size_t*>(block)[-1]; }

 private:
  static constexpr size_t kBytes = 64 << 10;
  alignas(64) char data_[kBytes] = {};
  std::atomic<size_t> used_{0};
};

extern BootstrapArena g_bootstrap_arena;

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_BOOTSTRAP_ARENA_H_
