// NamedTrace: a trace analyzed, symbolized and made a view of: what `memtrace compare` and
// the Valgrind-compatible driver begin with.

#ifndef MEMTRACE_REPORT_VALGRIND_NAMED_TRACE_H_
#define MEMTRACE_REPORT_VALGRIND_NAMED_TRACE_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "report/analysis/analyzer.h"
#include "report/leak/leak_check.h"
#include "report/leak/leak_options.h"
#include "report/names/site_symbols.h"
#include "report/render/view.h"
#include "symbolizer/symbolizer.h"

namespace memtrace::report::valgrind {

class NamedTrace {
 public:
  // `observer`, if given, sees each memory scan with all that was worked out of it.
  static absl::StatusOr<std::unique_ptr<NamedTrace>> Read(
      const std::string& path, const symbolizer::Options& options,
      const leak::LeakOptions& leaks = {}, const leak::LeakCheck::Observer& observer = {});

  const Analysis& analysis() const { return trace_.analysis; }
  const render::ReportView& view() const { return *view_; }

 private:
  NamedTrace() = default;

  AnalyzedTrace trace_;
  std::optional<SiteSymbols> symbols_;
  std::optional<render::ReportView> view_;
};

}  // namespace memtrace::report::valgrind

#endif  // MEMTRACE_REPORT_VALGRIND_NAMED_TRACE_H_
