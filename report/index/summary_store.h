// SummaryStore: analyzed traces on disk, so that the next report of one that has not changed need
// not read its events.
//
// A summary is everything that AnalyzeTrace() and `complete` gave, for one trace (its identity),
// one set of options, and one build of this program; together with stamps of the files of the
// modules, which `complete` may have looked into. If any of them is another now, the trace is read
// again. Summaries are private files of the cache directory (base/private_file.h): as they
// are taken as they are, they are not looked for beside the trace, where they could be anybody's.
//
// Kept only of traces that have their end, for another one may still be written, and that were
// read to it. Not of small ones,
// which are read in no time. What cannot be stored is not; nothing here is an error.
//
// One thread.

#ifndef MEMTRACE_REPORT_INDEX_SUMMARY_STORE_H_
#define MEMTRACE_REPORT_INDEX_SUMMARY_STORE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "report/analysis/analyzer.h"
#include "report/index/indexed_analysis.h"
#include "report/index/trace_identity.h"

namespace memtrace::report::index {

inline constexpr char kSummarySuffix[] = ".sum";

class SummaryStore {
 public:
  static constexpr uint64_t kLeastTraceBytes = 256 << 10;
  // Of one kind of files in the directory.
  static constexpr uint64_t kMostBytes = uint64_t{256} << 20;

  // `directory` empty: does nothing.
  explicit SummaryStore(std::string directory, uint64_t least_trace_bytes = kLeastTraceBytes)
      : directory_(std::move(directory)), least_trace_bytes_(least_trace_bytes) {}

  using Complete = std::function<void(Analysis*)>;
  // Does what AnalyzeTrace() and then `complete` do, or recalls their result. The result of
  // `complete` must depend on the analysis, and on the files of its modules below
  // `sysroot`, and on nothing else.
  absl::StatusOr<AnalyzedTrace> Analyze(const std::string& path, const AnalyzeOptions& options,
                                        const std::string& sysroot, const Complete& complete);

  // Sets the index that is used for traces that have to be read.
  void set_index(const IndexOptions& index) { index_ = index; }

  // The last call had no need to read the events.
  bool recalled() const { return recalled_; }
  // Where the summary of the last call's trace is, or would be if it could be written, for what is
  // kept beside it, and the trace it is of. Empty: there is none.
  const std::string& file() const { return file_; }
  const TraceIdentity& identity() const { return identity_; }

 private:
  std::optional<AnalyzedTrace> Recall(const std::string& file, const std::string& trace,
                                      const TraceIdentity& identity) const;
  void Keep(const std::string& file, const TraceIdentity& identity, const std::string& sysroot,
            const AnalyzedTrace& trace) const;

  const std::string directory_;
  const uint64_t least_trace_bytes_;
  IndexOptions index_;
  bool recalled_ = false;
  std::string file_;
  TraceIdentity identity_;
};

}  // namespace memtrace::report::index

#endif  // MEMTRACE_REPORT_INDEX_SUMMARY_STORE_H_
