// TreeView: what every format of a report on several processes shows, computed once, and
// the formats themselves. docs/report.md tells what each column and key means.
//
// One thread. Refers to the TreeAnalysis, which outlives it.

#ifndef MEMTRACE_REPORT_TREE_TREE_VIEW_H_
#define MEMTRACE_REPORT_TREE_TREE_VIEW_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "report/names/site_symbols.h"
#include "report/render/text_report.h"
#include "report/render/view.h"
#include "report/tree/tree_analysis.h"
#include "report/words/sink.h"

namespace memtrace::report {

class TreeView {
 public:
  // `executable`: only the sites of executables of this path or file name; empty: all. `frames` as
  // for ReportView. The processes and the totals stay those of all.
  static absl::StatusOr<TreeView> Create(const TreeAnalysis& analysis,
                                         const SymbolizeModule& symbolize,
                                         const std::function<void(double)>& progress,
                                         const std::string& executable,
                                         const render::FrameFilter& frames);

  const TreeAnalysis& analysis() const { return *analysis_; }
  const MergedExecutable& executable(size_t i) const {
    return analysis_->sites.executables()[i];
  }
  const render::ReportView& sites_of(size_t executable) const { return views_[executable]; }
  // The executables that were asked for, the one with most bytes first.
  const std::vector<size_t>& executables() const { return order_; }
  const SiteSymbols& symbols() const { return *symbols_; }
  // Of what is possibly lost in all processes (TreeAnalysis::leaks), the runtime's own.
  LeakAmount OfRuntime() const;
  const std::string& only_executable() const { return only_executable_; }
  const render::FrameFilter& filter() const { return filter_; }

 private:
  TreeView() = default;

  const TreeAnalysis* analysis_ = nullptr;
  std::string only_executable_;
  render::FrameFilter filter_;
  std::unique_ptr<SiteSymbols> symbols_;
  std::vector<render::ReportView> views_;  // of each executable
  std::vector<size_t> order_;
};

enum class TreeTable { kSummary, kProcesses, kExecutables, kLeaks, kSites };

struct TreeTextOptions {
  render::TextOptions text;        // its `sections` are not used
  std::vector<TreeTable> tables;   // empty: all
  size_t sites = 3;                // rows of each executable's leaks and sites
};

std::string RenderTreeText(const TreeView& view, const TreeTextOptions& options);
// "memtrace-tree/1". `top` bounds the leaks and the sites of each executable,
// `sort` is of the sites.
void RenderTreeJson(const TreeView& view, size_t top, render::SortColumn sort, words::Sink& out);
// RFC 4180 with a header record. Not kSummary.
void RenderTreeCsv(const TreeView& view, TreeTable table, size_t top, render::SortColumn sort,
                   words::Sink& out);

// "exec", "fork", "parent", "time"; empty: none.
absl::string_view LinkName(ImageLink link);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_TREE_TREE_VIEW_H_
