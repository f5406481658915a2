// operator new of the command line: large blocks lie in huge pages (base/huge_pages.h).
//
// The figures of many sites, and the blocks of a large heap, are vectors of many megabytes, filled
// once and then asked for here and there. In pages of 4 KiB a sixth of the report of cc1plus's trace
// went by touching each for the first time and by finding it again (docs/benchmarks-log.md). What
// the vectors are of need not know that.
//
// Only here: a library has no business to say how its host allocates. Not under AddressSanitizer,
// which has an operator new and a delete that belong together.

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <new>

#include "base/huge_pages.h"

#ifndef __SANITIZE_ADDRESS__

namespace {

// Throws if there is no memory. `alignment` is a power of two.
void* Allocate(std::size_t size, std::size_t alignment) {
  const auto get = [size](std::size_t multiple) {
    void* block = nullptr;
    if (multiple <= alignof(std::max_align_t)) return std::malloc(std::max<std::size_t>(size, 1));
    return posix_memalign(&block, multiple, size) == 0 ? block : nullptr;
  };
  for (;;) {
    void* block = nullptr;
    if (size >= memtrace::base::kHugeFromBytes) {
      block = get(std::max(alignment, memtrace::base::kHugePageBytes));
      if (block != nullptr) memtrace::base::PreferHugePages(block, size);
    }
    // Near a limit of memory there may be no room for the alignment.
    if (block == nullptr) block = get(alignment);
    if (block != nullptr) [[likely]] return block;
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}

}  // namespace

// The operator delete of libstdc++ gives both to free().
void* operator new(std::size_t size) { return Allocate(size, 1); }

void* operator new(std::size_t size, std::align_val_t alignment) {
  return Allocate(size, static_cast<std::size_t>(alignment));
}

#endif  // __SANITIZE_ADDRESS__
