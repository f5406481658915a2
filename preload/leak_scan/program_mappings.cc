#include "preload/leak_scan/program_mappings.h"

#include <sys/mman.h>

namespace memtrace {

constinit ProgramMappings g_program_mappings;
constinit AllocatorMappings g_allocator_mappings;

template <int kShift>
void MappedGranules<kShift>::NoteMmap(uintptr_t begin, size_t bytes, int flags) {
  const bool anonymous = (flags & MAP_ANONYMOUS) != 0 && (flags & MAP_TYPE) == MAP_PRIVATE;
  const uintptr_t first = begin / kGranule + (begin % kGranule != 0);
  const uintptr_t end = (begin + bytes) / kGranule;
  if (!anonymous || bytes > kMost || begin + bytes < begin || first >= end) {
    Forget(begin, bytes);
    return;
  }
  // A mapping at a fixed place may leave parts of others at its ends: they are the
  // same caller's as before.
  used_.store(true, std::memory_order_relaxed);
  bits_.Set(first, end);
}

template class MappedGranules<16>;
template class MappedGranules<20>;

}  // namespace memtrace
