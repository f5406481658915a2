// Range: the part of a run that is looked at, in nanoseconds since its start.

#ifndef MEMTRACE_REPORT_FINDINGS_RANGE_H_
#define MEMTRACE_REPORT_FINDINGS_RANGE_H_

#include <cstdint>

namespace memtrace::report {

struct Range {
  uint64_t from_ns = 0;
  uint64_t to_ns = UINT64_MAX;
  bool whole() const { return from_ns == 0 && to_ns == UINT64_MAX; }
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_FINDINGS_RANGE_H_
