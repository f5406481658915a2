// AddTotals(): what several processes did, as one. The peaks are left to the caller: at one time or
// not, only it knows.

#ifndef MEMTRACE_REPORT_TREE_ADD_TOTALS_H_
#define MEMTRACE_REPORT_TREE_ADD_TOTALS_H_

#include "report/findings/analysis.h"

namespace memtrace::report {

inline void AddTotals(const Totals& from, Totals* to) {
  to->allocations += from.allocations;
  to->frees += from.frees;
  to->bytes_allocated += from.bytes_allocated;
  to->live_bytes += from.live_bytes;
  to->live_blocks += from.live_blocks;
  to->wasted_bytes += from.wasted_bytes;
  to->temporary_allocations += from.temporary_allocations;
  to->reallocations += from.reallocations;
  to->failed_allocations += from.failed_allocations;
  to->bytes_sample.Add(from.bytes_sample);
  to->live_sample.Add(from.live_sample);
}

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_TREE_ADD_TOTALS_H_
