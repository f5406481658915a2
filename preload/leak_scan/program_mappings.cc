#include "preload/leak_scan/program_mappings.h"

#include <sys/mman.h>

#include "preload/arch/arch.h"
#include "preload/rounding.h"

namespace memtrace {

constinit ProgramMappings g_program_mappings;
constinit ProgramEdges g_program_edges;
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

template <int kShift>
bool MappedGranules<kShift>::HasAll(uintptr_t begin, size_t bytes) const {
  const uintptr_t first = begin / kGranule + (begin % kGranule != 0);
  const uintptr_t end = (begin + bytes) / kGranule;
  if (!used() || bytes > kMost || begin + bytes < begin || first >= end) return false;
  for (uintptr_t granule = first; granule < end; ++granule) {
    if (!bits_.Has(granule)) return false;
  }
  return true;
}

template class MappedGranules<12>;
template class MappedGranules<16>;
template class MappedGranules<20>;

void ProgramEdges::NoteMmap(uintptr_t begin, size_t bytes, int flags) {
  constexpr uintptr_t kGranule = ProgramMappings::kGranule, kPage = arch::kPageBytes;
  Forget(begin, bytes);
  if (begin + bytes < begin) return;
  const uintptr_t end = Up(begin + bytes, kPage);  // as the kernel does
  const uintptr_t first = Up(begin, kGranule), last = Down(end, kGranule);
  if (first > last) return pages_.NoteMmap(begin, end - begin, flags);  // in the midst of one
  if (begin != first) pages_.NoteMmap(begin, first - begin, flags);
  if (last != end) pages_.NoteMmap(last, end - last, flags);
}

KnownRange::KnownRange(const void* address, size_t bytes)
    : begin_(reinterpret_cast<uintptr_t>(address)),
      bytes_(bytes),
      program_(g_program_mappings.HasAll(begin_, bytes)),
      allocator_(g_allocator_mappings.HasAll(begin_, bytes)) {}

void KnownRange::NoteAgain() const {
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS;
  if (program_) g_program_mappings.NoteMmap(begin_, bytes_, kFlags);
  if (allocator_) g_allocator_mappings.NoteMmap(begin_, bytes_, kFlags);
}

}  // namespace memtrace
