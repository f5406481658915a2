// Huge pages for what is large and about to be filled: where memory is touched for the first time
// the kernel's way to each page takes longer than what is then written there.

#ifndef MEMTRACE_BASE_HUGE_PAGES_H_
#define MEMTRACE_BASE_HUGE_PAGES_H_

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

namespace memtrace::base {

// Below this it is not worth a call.
inline constexpr size_t kHugeFromBytes = size_t{4} << 20;
inline constexpr size_t kHugePageBytes = size_t{2} << 20;  // x86-64

// A wish: a kernel that does not know huge pages, or is told not to use them, goes on as before.
inline void PreferHugePages(void* begin, size_t bytes) {
  constexpr uintptr_t kPageBytes = 4096;
  if (bytes < kHugeFromBytes) return;
  const uintptr_t first =
      (reinterpret_cast<uintptr_t>(begin) + kPageBytes - 1) / kPageBytes * kPageBytes;
  const uintptr_t end = (reinterpret_cast<uintptr_t>(begin) + bytes) / kPageBytes * kPageBytes;
  madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
}

}  // namespace memtrace::base

#endif  // MEMTRACE_BASE_HUGE_PAGES_H_
