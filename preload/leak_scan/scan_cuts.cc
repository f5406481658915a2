#include "preload/leak_scan/scan_cuts.h"

#include <sys/mman.h>

#include <algorithm>

#include "preload/leak_scan/arena_lists.h"
#include "preload/leak_scan/arena_parts.h"
#include "preload/leak_scan/block_places.h"
#include "preload/leak_scan/heap_territory.h"
#include "preload/leak_scan/program_mappings.h"
#include "preload/leak_scan/scan_words.h"
#include "preload/unwind/thread_descriptor.h"
#include "preload/process.h"
#include "preload/recorder.h"

extern "C" {
// glibc's own data of ld.so: where the kernel had the stack end.
extern void* __libc_stack_end __attribute__((weak));
}

namespace memtrace {

using format::ScanRegionKind;

namespace {

std::string_view LastNameOf(const ScanMapping& mapping) {
  return From(mapping.path, mapping.path.rfind('/') + 1);  // npos + 1 is 0
}

bool IsLibc(const ScanMapping& mapping) {
  if (!mapping.file) return false;
  const std::string_view name = LastNameOf(mapping);
  return name.starts_with("libc.so.") || name.starts_with("libc-");
}

bool IsLoader(const ScanMapping& mapping) {
  const std::string_view name = LastNameOf(mapping);
  return name.starts_with("ld-") || name.starts_with("ld.so") || name.starts_with("ld64.so");
}

}  // namespace

void ScanCuts::FindTasks(ScanArena& arena) {
  ForEachThread([this](const ThreadState& state) {
    if (state.handlers_of == 0)
      serials_.Add(state.owner_tid.load(std::memory_order_relaxed), state.serial);
  });
  serials_.Sort();
  const size_t words = TidSet::WordsFor(job_.others->size() + 1);
  int* const memory = arena.Array<int>(words);
  if (memory == nullptr) return;  // the scan fails
  tasks_.Use(memory, words);
  tasks_.Add(job_.tid);
  for (size_t i = 0; i < job_.others->size(); ++i) tasks_.Add((*job_.others)[i].tid);
}

void ScanCuts::FindOwnMemory(OwnRange scanner, const ScanArena& arena) {
  for (size_t i = 0; i < job_.own_count; ++i) {
    Add(Cut::kOwn, job_.own[i].begin, Up(job_.own[i].end, kPage));
  }
  for (size_t i = 0; i < arena.size(); ++i) {
    Add(Cut::kOwn, arena[i].begin, arena[i].end);
  }
  Add(Cut::kOwn, scanner.begin, Up(scanner.end, kPage));
  // All of the library but what it lent to the program before libc's allocator was known.
  Add(Cut::kOwn, job_.library_begin, job_.bootstrap_begin);
  Add(Cut::kOwn, job_.bootstrap_end, Up(job_.library_end, kPage));
}

// A thread that waits in a call of libc's has nothing below its stack pointer but what the calls
// before left there, our own and malloc's among them: what the kernel was asked is in registers.
bool ScanCuts::WaitsInLibc(const StoppedThread& thread) const {
  if (thread.call.number < 0 || thread.call.place.stack_pointer != thread.stack_pointer()) {
    return false;
  }
  const ScanMapping* const code = mappings_.Find(thread.call.place.pc);
  return code != nullptr && IsLibc(*code);
}

// Where blocks lie close together: [heap], a heap of another arena, another allocator's memory.
bool ScanCuts::IsInHeap(uintptr_t begin, uintptr_t end) const {
  const ScanMapping* const mapping = mappings_.Find(begin);
  bool is =
      (mapping != nullptr && mapping->kind == ScanRegionKind::kHeap) || g_heap_territory.Has(begin);
  g_process.arena_heaps.ForEach([&](uintptr_t base, size_t bytes) {
    is |= base < end && begin < base + bytes;
  });
  return is;
}

void ScanCuts::FindThread(int tid, uintptr_t control_block, uintptr_t stack_pointer,
                          uintptr_t red_zone, uintptr_t alternate_begin, uintptr_t alternate_end) {
  const uint32_t serial = SerialOf(tid);
  const uintptr_t used = Down(stack_pointer - red_zone, kWord);
  const auto has_pointer = [&](uintptr_t begin, uintptr_t end) {
    return stack_pointer - begin < end - begin;
  };
  uintptr_t begin = 0, end = 0;
  const ScanMapping* const mapping = mappings_.Find(control_block);
  if (mapping == nullptr || !unwind::FindStackBlock(control_block, mapping->end, &begin, &end)) {
    // The first thread's was made by the kernel.
    for (size_t i = 0; tid == job_.pid && i < mappings_.size(); ++i) {
      if (mappings_[i].kind != ScanRegionKind::kStack) continue;
      begin = mappings_[i].begin;
      end = mappings_[i].end;
    }
  }
  if (begin != end) {
    if (has_pointer(begin, end)) {
      if (used > begin) Add(Cut::kDead, begin, used, serial, tid);
      AddStack(used > begin ? used : begin, end, serial, tid);
    } else {
      // It runs on another: a coroutine's, or its signal stack. What of this one is in use is
      // not known.
      AddStack(begin, end, serial, tid);
    }
  }
  if (alternate_begin != 0) {
    // Not in use it has nothing but what signals left there; ours, for one. But a stack that was a
    // block may have been freed since, and be others now.
    const bool in_use = has_pointer(alternate_begin, alternate_end);
    const uintptr_t dead = in_use ? used : alternate_end;
    if (dead > alternate_begin && (in_use || !IsInHeap(alternate_begin, alternate_end))) {
      Add(Cut::kDead, alternate_begin, dead, serial, tid);
    }
  }
}

void ScanCuts::FindThreads() {
  FindThread(job_.tid, job_.control_block, job_.stack_pointer, job_.red_zone, job_.alternate_begin,
             job_.alternate_end);
  for (size_t i = 0; i < job_.others->size(); ++i) {
    const StoppedThread& thread = (*job_.others)[i];
    if (thread.tid == 0 || thread.state.load() != StoppedThread::kParked) continue;
    FindThread(thread.tid, thread.control_block, thread.stack_pointer(),
               WaitsInLibc(thread) ? 0 : arch::kRedZoneBytes, thread.alternate_begin,
               thread.alternate_end);
  }
  stacks_.Sort();
  if (!tasks_.Has(job_.pid)) FindStackOfEndedFirstThread();
}

// It called pthread_exit(): above its frames arguments and environment are in use still.
void ScanCuts::FindStackOfEndedFirstThread() {
  if (&__libc_stack_end == nullptr) return;
  const auto first_frame = reinterpret_cast<uintptr_t>(__libc_stack_end);
  const ScanMapping* const mapping = mappings_.Find(first_frame);
  if (mapping == nullptr || mapping->kind != ScanRegionKind::kStack) return;
  Add(Cut::kDead, mapping->begin, Down(first_frame, kWord));
}

void ScanCuts::FindStackCache(uintptr_t tid_offset, const PagePlan& pages) {
  stack_cache_was_looked_for_ = true;
  for (size_t i = 0; i < mappings_.size(); ++i) {
    const ScanMapping& mapping = mappings_[i];
    if (mapping.kind == ScanRegionKind::kModuleData && mapping.part == ScanMapping::Part::kRead &&
        IsLoader(mapping) && stack_cache_.Find(mapping, tid_offset, pages)) {
      return;
    }
  }
}

// Whether somebody may ask yet for what the thread returned, which has ended.
bool ScanCuts::IsWanted(uintptr_t descriptor, uintptr_t readable_end, uintptr_t tid_offset,
                        const PagePlan& pages) {
  // Joined: its id is -1, before glibc 2.43. Detached: it is its own joiner, also before.
  uintptr_t last = descriptor + unwind::kDescriptorBytes;
  if (last > readable_end) last = readable_end;
  if (*reinterpret_cast<const int*>(descriptor + tid_offset) == -1) return false;
  for (uintptr_t at = descriptor + 512; at + kWord <= last; at += kWord) {
    if (Load(at) == descriptor) return false;
  }
  if (!stack_cache_was_looked_for_) FindStackCache(tid_offset, pages);
  return !stack_cache_.HasDoneWith(descriptor, pages);
}

// The stack of a thread that has ended: kept by glibc for a thread to come, or until the thread
// is joined.
void ScanCuts::FindDeadStack(uintptr_t descriptor, uintptr_t begin, uintptr_t end,
                             uintptr_t readable_end, uintptr_t tid_offset, const PagePlan& pages) {
  const bool wanted = IsWanted(descriptor, readable_end, tid_offset, pages);
  // The address of its thread-local blocks stays: they are allocated still.
  constexpr uintptr_t kHeaderBytes = 16;
  Add(Cut::kDead, begin, descriptor);
  if (wanted) {
    Add(Cut::kStack, descriptor, end);
  } else {
    // Also where it lies beside blocks of another allocator, whose memory is no root.
    if (!g_process.allocator_is_glibc) Add(Cut::kStack, descriptor, descriptor + kHeaderBytes);
    Add(Cut::kDead, descriptor + kHeaderBytes, end);
  }
}

void ScanCuts::FindDeadStacks(PagePlan& pages) {
  const uintptr_t tid_offset = unwind::FindTidOffset(job_.control_block, job_.tid);
  if (tid_offset == 0) return;
  for (size_t i = 1; i < mappings_.size(); ++i) {
    const ScanMapping& mapping = mappings_[i];
    const ScanMapping& below = mappings_[i - 1];
    if (!mapping.anonymous() || mapping.part != ScanMapping::Part::kRead ||
        mapping.kind != ScanRegionKind::kAnonymous) {
      continue;
    }
    // Stacks have a page without access at their lower end; since glibc 2.42 a guard region, and
    // several may be one mapping.
    const bool is_behind_guard = below.end == mapping.begin && below.protection == 0;
    if (!is_behind_guard && !pages.is_quick()) continue;
    if (mapping.end - mapping.begin > PagePlan::kMostBytes) continue;
    if (pages.Make(mapping, mapping.begin, mapping.end) != PagePlan::kMade) continue;
    if (!is_behind_guard && !pages.may_have_guards()) continue;
    const size_t count = (mapping.end - mapping.begin) / kPage;
    for (size_t page = 0; (page = pages.SkipAbsent(page, count)) < count; ++page) {
      if (pages[page] != PagePlan::kRead) continue;
      const uintptr_t page_end = mapping.begin + (page + 1) * kPage;
      const bool goes_on = page + 1 < count && pages[page + 1] == PagePlan::kRead;
      const uintptr_t readable_end = goes_on ? page_end + kPage : page_end;
      for (uintptr_t at = mapping.begin + page * kPage; at < page_end; at += 64) {
        if (Load(at) != at || Load(at + 2 * kWord) != at || at + 1024 > readable_end) continue;
        const int tid = *reinterpret_cast<const int*>(at + tid_offset);
        if (tasks_.Has(tid)) continue;
        uintptr_t begin, end;
        if (!unwind::FindStackBlock(at, readable_end, &begin, &end) || end > mapping.end) continue;
        if (!is_behind_guard) {
          if (begin < mapping.begin) continue;
          const PagePlan::State first = pages[(begin - mapping.begin) / kPage];
          if (first != PagePlan::kGuard && first != PagePlan::kUnreadable) continue;
        }
        FindDeadStack(at, begin, end, end < readable_end ? end : readable_end, tid_offset, pages);
      }
    }
  }
}

void ScanCuts::FindHeaps() {
  if (!g_process.allocator_is_glibc) {
    const auto add = [this](uintptr_t begin, uintptr_t end) { Add(Cut::kTerritory, begin, end); };
    const auto add_but_edges = [add](uintptr_t begin, uintptr_t end) {
      uintptr_t from = begin;
      g_program_edges.ForEach(begin, end, [&](uintptr_t edge, uintptr_t edge_end) {
        add(from, edge);
        from = edge_end;
      });
      add(from, end);
    };
    for (size_t i = 0; i < mappings_.size(); ++i) {
      if (!mappings_[i].anonymous()) continue;
      g_heap_territory.ForEach(mappings_[i].begin, mappings_[i].end, add_but_edges);
      g_allocator_mappings.ForEach(mappings_[i].begin, mappings_[i].end, add);
    }
    return;
  }
  g_process.arena_heaps.ForEach([this](uintptr_t base, size_t bytes) {
    // It may have shrunk, and may be gone. Of a fork child what it added is a mapping of its own.
    uintptr_t end = base;
    while (end < base + bytes) {
      const ScanMapping* const mapping = mappings_.Find(end);
      if (mapping == nullptr || mapping->part != ScanMapping::Part::kRead) break;
      end = base + bytes < mapping->end ? base + bytes : mapping->end;
    }
    if (end != base) Add(Cut::kTerritory, base, end);
  });
}

void ScanCuts::FindAllocatorLists() {
  if (!g_process.allocator_is_glibc) return;
  for (size_t i = 0; i < mappings_.size(); ++i) {
    const ScanMapping& mapping = mappings_[i];
    if (mapping.kind != ScanRegionKind::kModuleData || mapping.part != ScanMapping::Part::kRead ||
        !IsLibc(mapping)) {
      continue;
    }
    const OwnRange lists = FindArenaLists(mapping, mappings_);
    if (lists.begin == lists.end) continue;
    Add(Cut::kOwn, lists.begin, lists.end);
    arena_top_ = Load(lists.begin);
  }
}

// Of what the main arena got when the break could not grow.
void ScanCuts::FindArenaParts(PagePlan& pages) {
  const ScanMapping* const last = arena_top_ < kAddresses ? mappings_.Find(arena_top_) : nullptr;
  if (last == nullptr || last->kind != ScanRegionKind::kAnonymous) return;
  // Another libc (dlmopen) has all of its main arena so, and blocks that are not in the trace: they
  // may be what keeps others.
  size_t libcs = 0;
  for (size_t i = 0; i < mappings_.size(); ++i) {
    libcs += IsLibc(mappings_[i]) && (mappings_[i].protection & PROT_EXEC) != 0 ? 1 : 0;
  }
  if (libcs != 1) return;
  const ArenaParts parts(arena_top_);
  for (size_t i = 0; i < mappings_.size(); ++i) {
    const ScanMapping& mapping = mappings_[i];
    if (mapping.kind != ScanRegionKind::kAnonymous || mapping.part != ScanMapping::Part::kRead ||
        mapping.end - mapping.begin > PagePlan::kMostBytes ||
        pages.Make(mapping, mapping.begin, mapping.end) != PagePlan::kMade || !pages.can_load()) {
      continue;
    }
    const auto is_there = [&](uintptr_t at) {
      return pages[(at - mapping.begin) / kPage] == PagePlan::kRead;
    };
    ForEachBlockPlace(mapping.begin, mapping.end, [&](uintptr_t begin, uintptr_t end) {
      parts.ForEach(begin, end, is_there, [this](uintptr_t from, uintptr_t to) {
        Add(Cut::kTerritory, from, to);
      });
    });
  }
}

void ScanCuts::Find(OwnRange scanner, ScanArena& arena, PagePlan& pages) {
  FindTasks(arena);
  FindOwnMemory(scanner, arena);
  FindThreads();
  FindHeaps();
  FindAllocatorLists();
  FindArenaParts(pages);
  FindDeadStacks(pages);
  if (cuts_.size() == 0) return;
  std::sort(&cuts_[0], &cuts_[0] + cuts_.size(),
            [](const Cut& a, const Cut& b) { return a.begin < b.begin; });
}

const Cut* ScanCuts::At(uintptr_t at, uintptr_t* end) {
  while (first_ < cuts_.size() && cuts_[first_].end <= at) ++first_;
  const Cut* here = nullptr;
  for (size_t i = first_; i < cuts_.size() && cuts_[i].begin < *end; ++i) {
    const Cut& cut = cuts_[i];
    if (cut.end <= at || (here != nullptr && cut.what >= here->what)) continue;
    if (cut.begin > at) {
      *end = cut.begin;
    } else {
      here = &cut;
    }
  }
  if (here != nullptr && here->end < *end) *end = here->end;
  return here;
}

}  // namespace memtrace
