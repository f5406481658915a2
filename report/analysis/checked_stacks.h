// Stacks that libunwind did not confirm, as the trace has them (kCrossCheck records).

#ifndef MEMTRACE_REPORT_ANALYSIS_CHECKED_STACKS_H_
#define MEMTRACE_REPORT_ANALYSIS_CHECKED_STACKS_H_

#include "report/findings/analysis.h"
#include "report/trace/trace_reader.h"

namespace memtrace::report {

// After the modules: libunwind's frames are given the instances they lie in.
void FillCheckedStacks(const TraceReader& reader, Analysis* analysis);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_ANALYSIS_CHECKED_STACKS_H_
