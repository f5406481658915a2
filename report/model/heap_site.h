// HeapSite, HeapThread: what a HeapModel knows of each allocation site and of each thread. All
// counts and bytes are in the units of SampleWeight (sampling.h); HeapModel::Finish() rounds them.

#ifndef MEMTRACE_REPORT_MODEL_HEAP_SITE_H_
#define MEMTRACE_REPORT_MODEL_HEAP_SITE_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "format/event_words.h"
#include "report/trace/stack_table.h"

namespace memtrace::report {

struct alignas(64) HeapSite {
  // A cache line of what both an allocation and a free touch,
  uint64_t live_bytes = 0;
  uint64_t live_blocks = 0;
  uint64_t changed_at = 0;      // number of the event that changed it last
  uint64_t interval_low = 0;    // the least and the most live bytes since the site's series
  uint64_t interval_high = 0;   //   was opened last
  uint64_t frees = 0;
  double lifetime_ns = 0;       // of the blocks that were freed, added up
  uint32_t turns = 0;           // allocations with a free just before
  uint16_t falling = 0;         // 1: its latest event was a free
  format::AllocFunction function = format::AllocFunction::kMalloc;
  bool chosen = true;           // BlockFilter::sites
  // and one of the rest of an allocation.
  uint64_t allocations = 0;
  uint64_t bytes_allocated = 0;
  uint64_t last_time_ns = 0;
  uint64_t largest_bytes = 0;
  uint64_t wasted_bytes = 0;
  uint64_t peak_bytes = 0;
  uint64_t blocks_at_own_peak = 0;
  uint64_t temporary = 0;
  uint64_t snapshot_bytes = 0;  // held at the latest peak, if changed since
  uint64_t snapshot_blocks = 0;
  uint64_t freed_by_other_thread = 0;
  uint64_t first_free_ns = 0;
  uint64_t first_time_ns = 0;
  uint64_t mapped_calls = 0;    // blocks with a mapping of their own
  uint64_t mapped_bytes = 0;
  StackId stack;
  uint32_t next = 0;            // the site of the same stack and another function

  // It has a block more.
  void Rose() {
    turns += falling;
    falling = 0;
    KeepHighest();
  }
  // It has more bytes, of a block or back from one that lay in one of its own.
  void KeepHighest() {
    if (live_bytes <= interval_high) return;
    interval_high = live_bytes;  // at most its peak
    if (live_bytes <= peak_bytes) return;
    peak_bytes = live_bytes;
    blocks_at_own_peak = live_blocks;
  }
  struct Highest {
    uint64_t interval_high = 0, peak_bytes = 0, blocks_at_own_peak = 0;
  };
  Highest highest() const { return {interval_high, peak_bytes, blocks_at_own_peak}; }
  void set_highest(const Highest& highest) {
    interval_high = highest.interval_high;
    peak_bytes = highest.peak_bytes;
    blocks_at_own_peak = highest.blocks_at_own_peak;
  }
};
static_assert(sizeof(HeapSite) == 192);

struct HeapThread {
  uint32_t serial = 0;
  uint32_t of_thread = 0;       // its serial, or that of the thread whose handlers these are
  bool selected = true;
  bool leaks_disabled = false;  // memtrace_disable()
  uint64_t last_alloc = 0;      // address of its latest allocation
  uint64_t last_size = 0;       // its size
  uint32_t last_site = 0;       // and site
  uint64_t pending = 0;         // the block it announced a realloc of; 0 none
  bool pending_is_debt = false;  // and that block was not there
  // `pending` and `pending_is_debt` of the reallocs that a signal handler interrupted to realloc
  // something itself.
  std::vector<std::pair<uint64_t, bool>> interrupted;
  uint64_t allocations = 0, frees = 0, bytes_allocated = 0, temporary = 0;
  uint64_t live_bytes = 0;      // of what it allocated, without those of custom blocks in it
  uint64_t first_time_ns = UINT64_MAX, last_time_ns = 0;
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_MODEL_HEAP_SITE_H_
