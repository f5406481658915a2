// When a run ended, for who has not read all of it. By nanoseconds since its start.

#ifndef MEMTRACE_REPORT_ANALYSIS_RUN_END_H_
#define MEMTRACE_REPORT_ANALYSIS_RUN_END_H_

#include <cstdint>

#include "report/pressure/pressure_lane.h"
#include "report/trace/trace_reader.h"

namespace memtrace::report {

// The latest stamp of its events; or until when the trace's clock was read behind them.
uint64_t LastStampNs(const TraceReader& reader);

// Until when the process was seen from outside. The last event of one that was killed, or that
// ended past exit(), is not its end: it may have slept for an hour.
uint64_t SeenAliveUntil(const TraceMetadata& metadata, const PressureLane& lane);

// The end that it wrote; else that stamp, or until when it was seen at work.
uint64_t RunEndNs(const TraceReader& reader);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_ANALYSIS_RUN_END_H_
