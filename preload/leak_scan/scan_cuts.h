// ScanCuts: the parts of the address space that are something else than the mapping they lie in:
// the tracer's own memory, malloc's own lists, stacks and what is dead of them, heaps of other
// arenas than [heap], and what the main one has outside of it.

#ifndef MEMTRACE_PRELOAD_LEAK_SCAN_SCAN_CUTS_H_
#define MEMTRACE_PRELOAD_LEAK_SCAN_SCAN_CUTS_H_

#include <cstddef>
#include <cstdint>

#include "preload/leak_scan/by_tid.h"
#include "preload/leak_scan/page_plan.h"
#include "preload/leak_scan/scan_job.h"
#include "preload/leak_scan/scan_mappings.h"
#include "preload/leak_scan/scan_memory.h"
#include "preload/leak_scan/stack_cache.h"

namespace memtrace {

struct Cut {
  // The first wins over the others. kOwn: nothing of the program's, but the tracer's or malloc's.
  enum What : uint8_t { kOwn, kDead, kStack, kTerritory } what;
  uintptr_t begin, end;
  uint32_t serial;  // of a thread's stack, as in the trace; 0: the trace does not know it
  int tid;          // of a thread's stack; 0: of one that has ended
};

class ScanCuts {
 public:
  ScanCuts(const ScanJob& job, const ScanMappings& mappings, ScanArena& arena)
      : job_(job),
        mappings_(mappings),
        cuts_(arena),
        stacks_(arena),
        serials_(arena),
        stack_cache_(mappings, arena) {}

  // Finds them all. `scanner`: its memory is no root either, nor is what `arena` has given out
  // until now; `pages` is used.
  void Find(OwnRange scanner, ScanArena& arena, PagePlan& pages);

  // The thread's number in the trace, 0 none.
  uint32_t SerialOf(int tid) const {
    const uint32_t* const serial = serials_.Find(tid);
    return serial != nullptr ? *serial : 0;
  }
  // What is in use of its stack; empty: it is not known.
  OwnRange StackOf(int tid) const {
    const OwnRange* const stack = stacks_.Find(tid);
    return stack != nullptr ? *stack : OwnRange{0, 0};
  }
  // Visits the stacks of threads that have ended: visit(stack_begin, stack_end).
  template <typename Visit>
  void ForEachEndedStack(Visit visit) const {
    for (size_t i = 0; i < cuts_.size(); ++i) {
      if (cuts_[i].what == Cut::kStack && cuts_[i].tid == 0) visit(cuts_[i].begin, cuts_[i].end);
    }
  }

  // The cut that the memory from `at` on is in; lowers `*end` to where that changes. Null: in none,
  // so it is what its mapping is. To be called with ascending addresses.
  const Cut* At(uintptr_t at, uintptr_t* end);

 private:
  void Add(Cut::What what, uintptr_t begin, uintptr_t end, uint32_t serial = 0, int tid = 0) {
    if (begin < end) cuts_.Add({what, begin, end, serial, tid});
  }
  void AddStack(uintptr_t begin, uintptr_t end, uint32_t serial, int tid) {
    if (begin >= end) return;
    Add(Cut::kStack, begin, end, serial, tid);
    stacks_.Add(tid, {begin, end});
  }
  void FindTasks(ScanArena& arena);
  void FindOwnMemory(OwnRange scanner, const ScanArena& arena);
  bool WaitsInLibc(const StoppedThread& thread) const;
  bool IsInHeap(uintptr_t begin, uintptr_t end) const;
  void FindThread(int tid, uintptr_t control_block, uintptr_t stack_pointer, uintptr_t red_zone,
                  uintptr_t alternate_begin, uintptr_t alternate_end);
  void FindThreads();
  void FindStackOfEndedFirstThread();
  void FindDeadStacks(PagePlan& pages);
  void FindDeadStack(uintptr_t descriptor, uintptr_t begin, uintptr_t end, uintptr_t readable_end,
                     uintptr_t tid_offset, const PagePlan& pages);
  bool IsWanted(uintptr_t descriptor, uintptr_t readable_end, uintptr_t tid_offset,
                const PagePlan& pages);
  void FindStackCache(uintptr_t tid_offset, const PagePlan& pages);
  void FindHeaps();
  void FindAllocatorLists();
  void FindArenaParts(PagePlan& pages);

  const ScanJob& job_;
  const ScanMappings& mappings_;
  ScanArray<Cut> cuts_;  // by begin, once all are found
  size_t first_ = 0;     // those before it end before what was asked for last
  ByTid<OwnRange> stacks_;   // of threads that live
  ByTid<uint32_t> serials_;  // as SerialOf() says
  TidSet tasks_;             // the threads that live
  StackCache stack_cache_;
  bool stack_cache_was_looked_for_ = false;
  uintptr_t arena_top_ = 0;  // the last chunk of malloc's main arena; 0: not known
};

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_LEAK_SCAN_SCAN_CUTS_H_
