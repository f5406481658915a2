// Analyzer: one pass over a trace, in the order of its events, that fills an
// Analysis (analysis.h) and the StackTable its StackIds belong to.
//
//   reader -> order -> heap model, mapping model, timeline, faults -> Analysis
//
// Memory grows with the live heap, the distinct stacks and the sites; not with
// the events. Blocks are decoded ahead by other threads (read_ahead.h), the rest is of the calling
// one. It knows addresses, not symbols.
//
// A range, a thread or a filter selects *blocks*: those allocated within the range by that
// thread, and of that size, site or lifetime. Every count of allocations, frees and live bytes is
// of these blocks; frees in the range of blocks from before it are in Totals::earlier_frees. A
// filter by lifetime or age costs a pass over the trace before, and a bit for each allocation.

#ifndef MEMTRACE_REPORT_ANALYSIS_ANALYZER_H_
#define MEMTRACE_REPORT_ANALYSIS_ANALYZER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "report/findings/analysis.h"
#include "report/leak/leak_check.h"
#include "report/leak/leak_options.h"
#include "report/trace/stack_table.h"
#include "report/usage/block_filter.h"

namespace memtrace::report {

class PassKeeper;
class PassSource;
class TraceReader;

// How far one pass over the events has come.
struct ReadProgress {
  uint64_t done = 0, total = 0;  // bytes of events, decoded
  uint64_t events = 0;           // allocations and frees so far

  double share() const {
    return total == 0 ? 1 : static_cast<double>(done) / static_cast<double>(total);
  }
};

struct AnalyzeOptions {
  Range range;
  // Selects `chosen`, and clears the other ways to give a range.
  void Only(const Range& chosen) {
    range = chosen;
    from_share = to_share = std::nullopt;
    from_name.clear();
    to_name.clear();
  }
  // In place of the ends of `range`: shares of the process's duration, 0 to 1.
  std::optional<double> from_share, to_share;
  std::string from_name, to_name;  // in place of these: instants that the program named (phases.h)
  ThreadId thread;  // none: all threads
  // The threads that ever had this name, or this tid in decimal; empty: all. No
  // such thread in the trace is an error (NotFound) that lists the names there are.
  std::string thread_name;
  BlockFilter filter;
  // Stacks of an earlier pass over the same trace, which keep their ids; null: new ones.
  StackTable* stacks = nullptr;
  bool keep_live_blocks = false;  // fills Analysis::live
  // Threads that may be at work; 0: as many as there are processors. The result is the same for
  // any number.
  unsigned jobs = 0;
  leak::LeakOptions leaks;
  // Sees each memory scan with all that was worked out of it.
  leak::LeakCheck::Observer leak_observer;
  // Called every few megabytes.
  std::function<void(const ReadProgress&)> progress;
  // Is told of states in the middle of a pass over the whole trace (pass_state.h); may be null.
  PassKeeper* keeper = nullptr;
  // Is asked for a state to begin with; may be null. A state that is not of this trace, or damaged,
  // is an error (DataLoss), after which the reader is of no use.
  PassSource* source = nullptr;
  // Asked every few thousand events, until it says true: that ends the reading there. The result is
  // of the part that was read, and says so (Coverage::interrupted).
  std::function<bool()> stop;
  // How far an earlier pass over the trace came that was stopped: this one goes no further, and
  // where that cuts the range its result says so as that pass's would.
  struct Reached {
    uint64_t to_ns = 0;
    double read_share = 0;
  };
  std::optional<Reached> reached;
};

struct AnalyzedTrace {
  Analysis analysis;
  // The stacks of the StackIds in `analysis`; null where AnalyzeOptions::stacks has them.
  std::unique_ptr<StackTable> stacks;
  uint64_t event_bytes_decoded = 0;  // that this pass came to, as decoded
};

// Reads the trace at `path`. A damaged trace is no error: what could be read is
// analyzed, and Coverage says what could not.
absl::StatusOr<AnalyzedTrace> AnalyzeTrace(const std::string& path, const AnalyzeOptions& options);
absl::StatusOr<AnalyzedTrace> AnalyzeTrace(TraceReader& reader, const AnalyzeOptions& options);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_ANALYSIS_ANALYZER_H_
