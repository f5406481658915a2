// StackCache: the threads that have ended and been joined, or were detached, whose stacks glibc
// keeps for threads to come. Nobody asks any more for what such a thread returned.
//
// glibc has a list of the stacks that are in use, one of those that the program gave, and one of
// those that it keeps; since 2.34 their heads lie in ld.so's data, in this order. A descriptor is
// in them by the two words before its thread id. That is so where what else tells of a join is not:
// since 2.43 the id is that of any thread that has ended. A fork child keeps those of its parent's
// threads as well.
//
// The lists may be in any state, for the threads stand anywhere, and what looks like one may be
// another program's: memory is read where it is known to be there, and where nothing is recognised
// nothing is told.

#ifndef MEMTRACE_PRELOAD_LEAK_SCAN_STACK_CACHE_H_
#define MEMTRACE_PRELOAD_LEAK_SCAN_STACK_CACHE_H_

#include <cstddef>
#include <cstdint>

#include "preload/leak_scan/page_plan.h"
#include "preload/leak_scan/scan_mappings.h"
#include "preload/leak_scan/scan_memory.h"

namespace memtrace {

class StackCache {
 public:
  StackCache(const ScanMappings& mappings, ScanArena& arena) : mappings_(mappings), kept_(arena) {}

  // Looks for the lists in `data` of ld.so. `tid_offset`: where in a descriptor the id is; `pages`
  // says what is there. True: they are found.
  bool Find(const ScanMapping& data, uintptr_t tid_offset, const PagePlan& pages);
  bool found() const { return found_; }

  // Whether the thread with this descriptor, which can be read, has been joined or detached: it is
  // kept, or in no list, as one is whose stack was the program's.
  bool HasDoneWith(uintptr_t descriptor, const PagePlan& pages) const;

 private:
  bool IsReadable(uintptr_t node, const PagePlan& pages) const;
  bool IsList(uintptr_t head, const PagePlan& pages) const;
  bool AreLists(uintptr_t first, const PagePlan& pages) const;
  bool IsOfDescriptor(uintptr_t node, const PagePlan& pages) const;
  void ReadKept(uintptr_t head, const PagePlan& pages);

  const ScanMappings& mappings_;
  const ScanMapping* data_ = nullptr;
  uintptr_t list_offset_ = 0;  // in a descriptor
  bool found_ = false;
  ScanArray<uintptr_t> kept_;  // descriptors, ascending
};

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_LEAK_SCAN_STACK_CACHE_H_
