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

// `get(size)`: of malloc's kind.
template <typename Get>
void* LargeInHugePages(std::size_t size, const Get& get) {
  if (size == 0) size = 1;
  for (;;) {
    if (void* const block = get(size); block != nullptr) [[likely]] {
      memtrace::base::PreferHugePages(block, size);
      return block;
    }
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}

}  // namespace

// The operator delete of libstdc++ gives both to free().
void* operator new(std::size_t size) {
  return LargeInHugePages(size, [](std::size_t bytes) { return std::malloc(bytes); });
}

void* operator new(std::size_t size, std::align_val_t alignment) {
  const std::size_t multiple = std::max(static_cast<std::size_t>(alignment), sizeof(void*));
  return LargeInHugePages(size, [multiple](std::size_t bytes) {
    void* block = nullptr;
    return posix_memalign(&block, multiple, bytes) == 0 ? block : nullptr;
  });
}

#endif  // __SANITIZE_ADDRESS__
