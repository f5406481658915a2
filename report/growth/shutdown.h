// When did the program begin to give everything back before it ended?
//
// Pure functions, any thread.

#ifndef MEMTRACE_REPORT_GROWTH_SHUTDOWN_H_
#define MEMTRACE_REPORT_GROWTH_SHUTDOWN_H_

#include <cstdint>
#include <span>

#include "report/analysis.h"

namespace memtrace::report {

// The begin of the shutdown: of the end of the run in which frees outnumber allocations ten to
// one, at most its last tenth. UINT64_MAX: there is none.
uint64_t ShutdownBegin(std::span<const TimelinePoint> timeline, uint64_t from_ns, uint64_t end_ns);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_GROWTH_SHUTDOWN_H_
