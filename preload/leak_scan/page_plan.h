// PagePlan: which pages of a mapping are there to be read, and how.

#ifndef MEMTRACE_PRELOAD_LEAK_SCAN_PAGE_PLAN_H_
#define MEMTRACE_PRELOAD_LEAK_SCAN_PAGE_PLAN_H_

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>

#include "preload/leak_scan/scan_mappings.h"
#include "preload/leak_scan/scan_memory.h"

namespace memtrace {

class PagePlan {
 public:
  enum State : uint8_t {
    kAbsent,      // no page, or one that is as its file is
    kRead,
    kUnreadable,  // behind the end of its file, or not allowed
  };

  explicit PagePlan(ScanArena& arena) : arena_(arena) {}
  ~PagePlan();
  PagePlan(const PagePlan&) = delete;
  PagePlan& operator=(const PagePlan&) = delete;

  // Once, before the first Make(). False: no memory.
  bool Prepare();

  // Looks at the pages of [begin, end), a part of `mapping`. False: no memory.
  bool Make(const ScanMapping& mapping, uintptr_t begin, uintptr_t end);

  // Of the part that Make() looked at last: of the page that is the i-th from that of `begin`.
  State operator[](size_t i) const { return static_cast<State>(plan_[i]); }
  // What is kRead can be loaded, for it is the process's own; else it is to be asked for with
  // process_vm_readv.
  bool can_load() const { return can_load_; }

 private:
  bool Pagemap(uintptr_t begin, size_t pages);
  void TestPages(uintptr_t begin, size_t pages, const ScanMapping& mapping);

  ScanArena& arena_;
  uint8_t* plan_ = nullptr;
  size_t capacity_ = 0;
  uint64_t* entries_ = nullptr;  // of pagemap
  static constexpr size_t kEntries = 64 << 10;
  long pagemap_ = -1;
  bool can_load_ = false;
  static constexpr size_t kTested = 512;
  iovec tested_parts_[kTested];
  size_t tested_pages_[kTested];
  char tested_bytes_[kTested];
};

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_LEAK_SCAN_PAGE_PLAN_H_
