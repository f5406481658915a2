// When did the program begin to give everything back before it ended?
//
// Pure functions, any thread.

#ifndef MEMTRACE_REPORT_GROWTH_SHUTDOWN_H_
#define MEMTRACE_REPORT_GROWTH_SHUTDOWN_H_

#include <cstdint>
#include <span>
#include <vector>

#include "report/findings/leaks.h"
#include "report/findings/over_time.h"

namespace memtrace::report {

// The begin of the shutdown: of the end of the run in which frees outnumber allocations ten to
// one, at most its last tenth, as far as it is in the range from `from_ns` on. UINT64_MAX: there is
// none.
uint64_t ShutdownBegin(std::span<const TimelinePoint> timeline, uint64_t from_ns, uint64_t end_ns);

// The same, where all of it lies in an interval in which the program was at work before: by
// when sites allocated last, and freed for the first time. Of sites that have done both in it,
// no more is known than that.
struct SiteEnds {
  uint64_t last_allocation_ns = 0, allocations = 0;
  uint64_t first_free_ns = 0, frees = 0;
};
uint64_t ShutdownBegin(std::vector<SiteEnds> sites, uint64_t from_ns, uint64_t end_ns);

// The call of exit(), where a scan before the destructors tells of it: what came behind that scan
// must be at most a tenth of the run as well.
uint64_t ExitCalled(std::span<const LeakScan> scans, uint64_t from_ns, uint64_t end_ns);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_GROWTH_SHUTDOWN_H_
