// Analyzer: one pass over a trace, in the order of its events, that fills an
// Analysis (analysis.h) and the StackTable its StackIds belong to.
//
//   reader -> order -> heap model, mapping model, timeline, faults -> Analysis
//
// Memory grows with the live heap, the distinct stacks and the sites; not with
// the events. Single-threaded. It knows addresses, not symbols.
//
// A range or a thread selects *blocks*: those allocated within the range by that
// thread. Every count of allocations, frees and live bytes is of these blocks;
// frees in the range of others are in Totals::earlier_frees.

#ifndef MEMTRACE_REPORT_ANALYZER_H_
#define MEMTRACE_REPORT_ANALYZER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "report/analysis.h"
#include "report/leak/leak_check.h"
#include "report/leak/leak_options.h"
#include "report/stack_table.h"

namespace memtrace::report {

class TraceReader;

struct AnalyzeOptions {
  Range range;
  // In place of the ends of `range`: shares of the process's duration, 0 to 1.
  std::optional<double> from_share, to_share;
  std::string from_name, to_name;  // in place of these: instants that the program named (phases.h)
  ThreadId thread;  // none: all threads
  // The threads that ever had this name, or this tid in decimal; empty: all. No
  // such thread in the trace is an error (NotFound) that lists the names there are.
  std::string thread_name;
  bool keep_live_blocks = false;  // fills Analysis::live
  leak::LeakOptions leaks;
  // Sees each memory scan with all that was worked out of it.
  leak::LeakCheck::Observer leak_observer;
  // Bytes of the trace that were read and their total; called every few megabytes.
  std::function<void(uint64_t done, uint64_t total)> progress;
};

struct AnalyzedTrace {
  Analysis analysis;
  std::unique_ptr<StackTable> stacks;  // what the StackIds in `analysis` mean
};

// Reads the trace at `path`. A damaged trace is no error: what could be read is
// analyzed, and Coverage says what could not.
absl::StatusOr<AnalyzedTrace> AnalyzeTrace(const std::string& path, const AnalyzeOptions& options);
absl::StatusOr<AnalyzedTrace> AnalyzeTrace(TraceReader& reader, const AnalyzeOptions& options);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_ANALYZER_H_
