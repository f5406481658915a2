// Selection: what part of a trace an analysis is of, from what the user asked for.

#ifndef MEMTRACE_REPORT_ANALYSIS_SELECTION_H_
#define MEMTRACE_REPORT_ANALYSIS_SELECTION_H_

#include <cstdint>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "report/analysis/analyzer.h"
#include "report/trace/trace_reader.h"

namespace memtrace::report {

struct Selection {
  Range range;
  absl::flat_hash_set<uint32_t> threads;  // serials; empty: all
};

// Reads the event blocks once when threads are asked for by name, because threads
// rename themselves there.
absl::StatusOr<Selection> Select(TraceReader& reader, const AnalyzeOptions& options);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_ANALYSIS_SELECTION_H_
