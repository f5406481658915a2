#include "report/tree/tree_view.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "report/base/path.h"
#include "report/suppress/suppress_records.h"

namespace memtrace::report {

absl::StatusOr<TreeView> TreeView::Create(const TreeAnalysis& analysis,
                                          const SymbolizeModule& symbolize,
                                          const std::function<void(double)>& progress,
                                          const std::string& executable,
                                          const render::FrameFilter& frames) {
  TreeView view;
  view.analysis_ = &analysis;
  view.only_executable_ = executable;
  view.filter_ = frames;
  const std::vector<MergedExecutable>& all = analysis.sites.executables();
  std::set<std::string> names;
  for (size_t i = 0; i < all.size(); ++i) {
    const absl::string_view name = FileNameOf(all[i].path);
    names.emplace(name);
    if (executable.empty() || executable == all[i].path || executable == name) {
      view.order_.push_back(i);
    }
  }
  if (view.order_.empty() && !all.empty()) {
    return absl::NotFoundError(absl::StrCat("--executable: no process ran \"", executable,
                                            "\"; there are ", absl::StrJoin(names, ", ")));
  }
  std::sort(view.order_.begin(), view.order_.end(), [&](size_t a, size_t b) {
    const Totals& x = all[a].analysis.totals;
    const Totals& y = all[b].analysis.totals;
    return std::tuple(y.bytes_allocated, y.allocations, a) <
           std::tuple(x.bytes_allocated, x.allocations, b);
  });
  const std::vector<StackId> stacks = analysis.sites.AllStacks();
  view.symbols_ = std::make_unique<SiteSymbols>(analysis.sites.files(), analysis.sites.stacks(),
                                                symbolize, progress, stacks);
  for (const MergedExecutable& one : all) {
    auto sites = render::ReportView::Create(one.analysis, *view.symbols_, frames);
    if (!sites.ok()) return sites.status();
    view.views_.push_back(*std::move(sites));
  }
  return view;
}

LeakAmount TreeView::OfRuntime() const {
  suppress::RuntimesOwn own;
  LeakAmount sum;
  for (size_t i = 0; i < views_.size(); ++i) {
    for (const auto& [site, lost] : executable(i).possibly_lost) {
      if (!own.Has(views_[i], site.first, site.second)) continue;
      sum.bytes += lost.bytes;
      sum.blocks += lost.blocks;
    }
  }
  return sum;
}

absl::string_view LinkName(ImageLink link) {
  switch (link) {
    case ImageLink::kNone: return "";
    case ImageLink::kExec: return "exec";
    case ImageLink::kFork: return "fork";
    case ImageLink::kParent: return "parent";
    case ImageLink::kTime: return "time";
  }
  return "";
}

}  // namespace memtrace::report
