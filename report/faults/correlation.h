// CorrelateFaults: do faults follow the heap, and how much later?
//
// Between usage samples the counters are taken to rise evenly.

#ifndef MEMTRACE_REPORT_FAULTS_CORRELATION_H_
#define MEMTRACE_REPORT_FAULTS_CORRELATION_H_

#include <span>

#include "report/findings/fault_details.h"
#include "report/findings/over_time.h"

namespace memtrace::report {

// `samples` in the order of time. Fewer than kFewestCorrelated: nothing is known.
inline constexpr size_t kFewestCorrelated = 16;
FaultCorrelation CorrelateFaults(std::span<const UsageSample> samples);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_FAULTS_CORRELATION_H_
