#include "report/valgrind/named_trace.h"

#include <utility>

#include "report/analysis/unseen_allocators.h"
#include "symbolizer/symbolizer_process.h"

namespace memtrace::report::valgrind {

absl::StatusOr<std::unique_ptr<NamedTrace>> NamedTrace::Read(
    const std::string& path, const symbolizer::Options& options, const leak::LeakOptions& leaks,
    const leak::LeakCheck::Observer& observer) {
  symbolizer::SymbolizerProcess symbolizer(options);
  symbolizer.StartForkServer();
  absl::StatusOr<AnalyzedTrace> trace =
      AnalyzeTrace(path, {.leaks = leaks, .leak_observer = observer});
  if (!trace.ok()) return trace.status();
  std::unique_ptr<NamedTrace> named(new NamedTrace);
  named->trace_ = *std::move(trace);
  FillUnseenAllocators(ModuleNamesBy(&symbolizer), &named->trace_.analysis);
  named->symbols_.emplace(
      named->trace_.analysis, *named->trace_.stacks, SymbolizeBy(&symbolizer));
  absl::StatusOr<render::ReportView> view =
      render::ReportView::Create(named->trace_.analysis, *named->symbols_, "");
  if (!view.ok()) return view.status();
  named->view_.emplace(*std::move(view));
  return named;
}

}  // namespace memtrace::report::valgrind
