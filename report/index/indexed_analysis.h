// AnalyzeByIndex: questions about an instant or a range of a trace, from an index beside it: the
// next state before is taken up, and only what follows it is read.
//
// The index is made with the first such question, by one pass over the whole trace; with the next
// it is there. States are taken so far apart that the index has about a tenth of the bytes of the
// events: a question reads what lies between two states and its own range.
//
// When the making of the index is stopped, the answer is of what that pass had come to, from the
// states that it has left.
//
// No index is made of a small trace, which is read in no time; of one without an end,
// which may still be written; nor for a question by lifetime or age, which asks for the
// whole of the trace anyway.
//
// Memory while it is made: as for a report, and the live blocks once more.

#ifndef MEMTRACE_REPORT_INDEX_INDEXED_ANALYSIS_H_
#define MEMTRACE_REPORT_INDEX_INDEXED_ANALYSIS_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "report/analysis/analyzer.h"

namespace memtrace::report::index {

struct IndexOptions {
  bool use = false;
  // Where else than beside the trace: where nobody may write there, or where `beside` is false.
  std::string directory;
  bool beside = true;
  bool build = true;  // where there is none
  // Told, in one line, when an index was made that could not be written.
  std::function<void(const std::string&)> warn;

  uint64_t least_trace_bytes = 1 << 20;
  // States are at least so many stored bytes of events apart, and looked for every so many events.
  uint64_t least_gap_bytes = 256 << 10;
  int every_events = 8192;
};

// Whether an index was made or used, and how much of the events was decoded for the answer. Only
// tests ask.
struct IndexUse {
  bool built = false, used = false;
  std::string path;  // of the index, if it has one
  uint64_t bytes = 0, states = 0;
  uint64_t event_bytes_decoded = 0;  // for the answer
};

// Does what AnalyzeTrace() does, with the help of an index.
absl::StatusOr<AnalyzedTrace> AnalyzeByIndex(const std::string& path, const AnalyzeOptions& options,
                                             const IndexOptions& index, IndexUse* use = nullptr);

// Sites over time, of the whole trace, from the index alone: an Analysis with sites, their series,
// modules, and what is known of the process. The index is made if there is none.
// Where there can be none, the trace is read.
absl::StatusOr<AnalyzedTrace> SeriesByIndex(const std::string& path, const AnalyzeOptions& options,
                                            const IndexOptions& index, IndexUse* use = nullptr);

}  // namespace memtrace::report::index

#endif  // MEMTRACE_REPORT_INDEX_INDEXED_ANALYSIS_H_
