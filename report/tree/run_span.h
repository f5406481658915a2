// RunSpan: from when to when the processes of a run ran, by the wall clock.
//
// An imported log does not tell when it was written: it takes no part beside traces that do.

#ifndef MEMTRACE_REPORT_TREE_RUN_SPAN_H_
#define MEMTRACE_REPORT_TREE_RUN_SPAN_H_

#include <cstdint>
#include <vector>

#include "report/tree/process_tree.h"

namespace memtrace::report {

struct RunSpan {
  int64_t start_realtime_ns = 0;  // of the first process; 0: none has a start that is known
  uint64_t duration_ns = 0;       // until the last end; of imported logs alone: of the longest
  uint64_t own_duration_ns = 0;   // the same without what memtrace did at the exits
};

RunSpan RunSpanOf(const std::vector<ProcessImage>& images);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_TREE_RUN_SPAN_H_
