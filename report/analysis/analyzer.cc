#include "report/analysis/analyzer.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "report/analysis/analyzer_pass.h"
#include "report/analysis/invalid_frees.h"
#include "report/analysis/selection.h"
#include "report/trace/trace_reader.h"

namespace memtrace::report {

absl::StatusOr<AnalyzedTrace> AnalyzeTrace(TraceReader& reader, const AnalyzeOptions& options) {
  auto selection = Select(reader, options);
  if (!selection.ok()) return selection.status();
  AnalyzedTrace trace;
  if (options.stacks == nullptr) trace.stacks = std::make_unique<StackTable>();
  StackTable* const stacks = options.stacks != nullptr ? options.stacks : trace.stacks.get();
  std::optional<LifetimeWatch> watch;
  std::optional<double> interrupted;  // an earlier pass, after this share
  AnalyzeOptions whole = options;
  if (options.reached.has_value()) {
    whole.stop = nullptr;
    if (options.reached->to_ns < selection->range.from_ns) {
      whole.stop = [] { return true; };
    } else if (options.reached->to_ns < selection->range.to_ns) {
      selection->range.to_ns = options.reached->to_ns;
      interrupted = options.reached->read_share;
    }
  }
  if (options.filter.selection().needs_lifetimes()) {
    watch.emplace(options.filter.lifetimes, options.filter.ages);
    AnalyzeOptions quiet = whole;
    quiet.leak_observer = nullptr;
    quiet.progress = nullptr;
    quiet.keeper = nullptr;
    AnalyzerPass first(&reader, quiet, *selection, stacks, nullptr, &*watch);
    absl::Status status = first.Run();
    if (!status.ok()) return status;
    Analysis ends;
    first.Finish(&ends);
    if (ends.coverage.interrupted) {
      interrupted = ends.coverage.read_share;
      selection->range = ends.range;
      whole.stop = nullptr;  // or the second would end at once
    }
    watch->Finish(std::min(ends.process.duration_ns, selection->range.to_ns));
  }
  AnalyzerPass analyzer(&reader, whole, *selection, stacks,
                    watch.has_value() ? &watch->chosen() : nullptr, nullptr);
  absl::Status status = analyzer.Run();
  if (!status.ok()) return status;
  analyzer.Finish(&trace.analysis);
  if (interrupted.has_value()) {
    trace.analysis.coverage.interrupted = true;
    trace.analysis.coverage.read_share = *interrupted;
  }
  trace.event_bytes_decoded = analyzer.bytes_decoded();
  if (trace.analysis.coverage.unknown_frees + trace.analysis.coverage.inherited_frees > 0 &&
      CanTellInvalidFrees(trace.analysis)) {
    const std::vector<UnknownFree>& unknown = analyzer.first_unknown_frees();
    InvalidFrees& found = trace.analysis.invalid_frees;
    found = FindInvalidFrees(&reader, unknown, stacks, options.jobs, options.stop);
    Coverage& coverage = trace.analysis.coverage;
    if (!found.looked_for) coverage.interrupted = true;
    const bool forked = coverage.inherited_frees > 0;
    const uint64_t all = coverage.unknown_frees + coverage.inherited_frees;
    if (unknown.size() == (forked ? HeapModel::kMostOfForkedChild : HeapModel::kMostUnknownFrees)) {
      found.not_looked_for = all - unknown.size();
    }
    if (forked) {
      // A forked child knows nothing of its parent's blocks; the frees that are told here
      // are of its own blocks.
      coverage.inherited_frees -= found.told;
      coverage.unknown_frees = found.told;
    }
  }
  return trace;
}

absl::StatusOr<AnalyzedTrace> AnalyzeTrace(const std::string& path,
                                           const AnalyzeOptions& options) {
  auto reader = TraceReader::Open(path);
  if (!reader.ok()) return reader.status();
  return AnalyzeTrace(**reader, options);
}

}  // namespace memtrace::report
