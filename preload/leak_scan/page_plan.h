// PagePlan: which pages of a mapping are there to be read, and how.
//
// It keeps a byte for each page, and one for each chunk of 512: where no page of a chunk is there,
// its pages have none. So a TiB that is reserved, and of which a page is touched here and there,
// takes no step for each of its pages.

#ifndef MEMTRACE_PRELOAD_LEAK_SCAN_PAGE_PLAN_H_
#define MEMTRACE_PRELOAD_LEAK_SCAN_PAGE_PLAN_H_

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>

#include "preload/leak_scan/scan_mappings.h"
#include "preload/leak_scan/scan_memory.h"
#include "preload/leak_scan/shared_pages.h"

namespace memtrace {

class PagePlan {
 public:
  enum State : uint8_t {
    kAbsent,      // no page, or one that is as its file is
    kRead,
    kUnreadable,  // behind the end of its file, or not allowed, or not known to be there
    kGuard,       // a guard region (madvise()); kUnreadable on kernels that do not tell
  };

  // `in_copy`: this is a copy of the process, which alone dies of a file that becomes
  // shorter at this moment.
  PagePlan(ScanArena& arena, bool in_copy)
      : arena_(arena), in_copy_(in_copy), shared_(SharedPages::kMostAsked, in_copy) {}
  ~PagePlan();
  PagePlan(const PagePlan&) = delete;
  PagePlan& operator=(const PagePlan&) = delete;

  // Once, before the first Make(). False: no memory.
  bool Prepare();

  // Does without PAGEMAP_SCAN, as on kernels before Linux 6.7.
  void ForbidScanForTesting() { can_scan_ = false; }

  // The most that Make() may be asked for in one call, for it keeps a byte for each page.
  static constexpr uintptr_t kMostBytes = uintptr_t{16} << 30;

  // Looks at the pages of [begin, end), a part of `mapping`.
  enum Result { kMade, kTooLarge, kNoMemory };
  Result Make(const ScanMapping& mapping, uintptr_t begin, uintptr_t end);

  // The state of the i-th page of the part that Make() looked at last, counted
  // from the page of `begin`.
  State operator[](size_t i) const {
    return chunks_[i / kChunk] != 0 ? static_cast<State>(plan_[i]) : kAbsent;
  }
  // The first page from the i-th on that may not be kAbsent; `end`: there is none before that one.
  size_t SkipAbsent(size_t i, size_t end) const {
    while (i < end && chunks_[i / kChunk] == 0) i = (i / kChunk + 1) * kChunk;
    return i < end ? i : end;
  }
  // Whether the page of private memory at this address is there to be loaded; false also where the
  // kernel does not tell. Of any mapping: the plan is as it was.
  bool IsThere(uintptr_t address) const;
  // Whether kRead pages can be loaded, for they are the process's own; else they are to be asked
  // for with process_vm_readv.
  bool can_load() const { return can_load_; }
  bool may_have_guards() const { return may_have_guards_; }
  // Is it little work to look at memory of which little is there?
  bool is_quick() const { return can_scan_; }

 private:
  bool MakeRoom(size_t pages);
  void Set(size_t first, size_t pages, State state);
  bool Pagemap(uintptr_t begin, size_t pages);
  bool PlanByScan(bool only_written, uintptr_t begin, size_t pages, bool* some_swapped);
  bool PlanPrivate(const ScanMapping& mapping, uintptr_t begin, size_t pages, bool* some_swapped);
  void TestPages(uintptr_t begin, size_t pages, const ScanMapping& mapping);

  ScanArena& arena_;
  const bool in_copy_;
  static constexpr size_t kChunk = 512;  // pages
  uint8_t* plan_ = nullptr;
  uint8_t* chunks_ = nullptr;  // 0: what plan_ has of its pages is of no meaning
  size_t capacity_ = 0;
  uint64_t* entries_ = nullptr;  // of pagemap
  static constexpr size_t kEntries = 64 << 10;
  long pagemap_ = -1;
  bool can_scan_ = false;    // PAGEMAP_SCAN
  uint64_t guard_category_ = 0;  // 0: the kernel does not tell
  SharedPages shared_;
  bool can_load_ = false;
  bool may_have_guards_ = false;
  static constexpr size_t kTested = 512;
  iovec tested_parts_[kTested];
  size_t tested_pages_[kTested];
  char tested_bytes_[kTested];
};

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_LEAK_SCAN_PAGE_PLAN_H_
