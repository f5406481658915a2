// When a run ended, for who has not read all of it. By nanoseconds since its start.

#ifndef MEMTRACE_REPORT_ANALYSIS_RUN_END_H_
#define MEMTRACE_REPORT_ANALYSIS_RUN_END_H_

#include <cstdint>

#include "report/trace/trace_reader.h"

namespace memtrace::report {

// The latest stamp of its events; or until when the trace's clock was read behind them.
uint64_t LastStampNs(const TraceReader& reader);

// The end that it wrote; else that stamp, or until when it was seen at work.
uint64_t RunEndNs(const TraceReader& reader);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_ANALYSIS_RUN_END_H_
