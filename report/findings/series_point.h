// SeriesPoint: what a site did in one interval of the run. A plain value.

#ifndef MEMTRACE_REPORT_FINDINGS_SERIES_POINT_H_
#define MEMTRACE_REPORT_FINDINGS_SERIES_POINT_H_

#include <cstdint>

#include "absl/container/inlined_vector.h"

namespace memtrace::report {

// An interval in which a site allocated or freed.
struct SeriesPoint {
  uint32_t interval = 0;  // its number; Analysis::series_interval_ns is the length of each
  uint32_t allocations = 0, frees = 0;     // in it, at most UINT32_MAX
  uint32_t live_blocks = 0;                // at its end, at most UINT32_MAX
  uint64_t low_bytes = 0, high_bytes = 0;  // live in it, the least and the most
  uint64_t live_bytes = 0;                 // at its end
  uint64_t bytes_allocated = 0;            // in it
};

// Most sites have one.
using SeriesPoints = absl::InlinedVector<SeriesPoint, 1>;

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_FINDINGS_SERIES_POINT_H_
