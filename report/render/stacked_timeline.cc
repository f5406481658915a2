#include "report/render/stacked_timeline.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace memtrace::report::render {
namespace {

// Adds what a site held at the end of each interval.
void AddSite(const Site& site, std::vector<uint64_t>* to) {
  uint64_t live = 0;
  size_t next = 0;
  for (size_t i = 0; i < to->size(); ++i) {
    while (next < site.series.size() && site.series[next].interval <= i) {
      live = site.series[next++].live_bytes;
    }
    (*to)[i] += live;
  }
}

double Area(const std::vector<uint64_t>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

}  // namespace

absl::string_view StackByName(StackBy by) {
  switch (by) {
    case StackBy::kNone:
      return "";
    case StackBy::kSite:
      return "site";
    case StackBy::kThread:
      return "thread";
    case StackBy::kModule:
      return "module";
    case StackBy::kFolder:
      return "folder";
  }
  return "";
}

uint64_t StackedTimeline::Series::most() const {
  return live_bytes.empty() ? 0 : *std::max_element(live_bytes.begin(), live_bytes.end());
}

std::string FolderOf(const Frame* frame, absl::string_view working_directory) {
  if (frame == nullptr) return "[no stack]";
  if (frame->file.empty()) return absl::StrCat("[", ModuleOf(frame), "]");
  const size_t slash = frame->file.rfind('/');
  if (slash == std::string::npos) return ".";
  const std::string folder = frame->file.substr(0, std::max<size_t>(slash, 1));
  if (folder == working_directory) return ".";
  const std::string home = absl::StrCat(working_directory, "/");
  return home.size() > 1 && absl::StartsWith(folder, home) ? folder.substr(home.size()) : folder;
}

std::string ModuleOf(const Frame* frame) {
  if (frame == nullptr) return "[no stack]";
  return frame->module.empty() ? "[unknown]" : std::string(FileNameOf(frame->module));
}

StackedTimeline StackTimeline(const ReportView& view, StackBy by, size_t top) {
  const Analysis& analysis = view.analysis();
  StackedTimeline timeline;
  timeline.from_ns = std::min(analysis.range.from_ns, analysis.process.duration_ns);
  timeline.interval_ns = analysis.series_interval_ns;
  timeline.other.name = "other";
  if (timeline.interval_ns == 0) return timeline;
  const uint64_t end = std::min(analysis.range.to_ns, analysis.process.duration_ns);
  // The last one is open: it ends with the run.
  const auto intervals = static_cast<size_t>(std::min<uint64_t>(
      (end - timeline.from_ns) / timeline.interval_ns + 1, SiteSeries::kMostIntervals));

  std::vector<StackedTimeline::Series> all;
  if (by == StackBy::kThread) {
    for (const ThreadSummary& thread : analysis.threads) {
      if (thread.held.empty()) continue;
      std::vector<uint64_t> held = thread.held;
      held.resize(intervals, held.back());
      all.push_back(
          {absl::StrCat(thread.name, thread.name.empty() ? "" : " ", thread.tid), std::move(held)});
    }
  } else {
    std::map<std::string, size_t> index;
    for (const SiteGroup& group : view.callers()) {
      const Frame* frame = view.Caller(group.stack);
      const std::string name = by == StackBy::kModule ? ModuleOf(frame)
                               : by == StackBy::kFolder
                                   ? FolderOf(frame, analysis.process.working_directory)
                                   : view.CallerText(group.stack);
      const auto [at, is_new] = index.try_emplace(name, all.size());
      if (is_new) all.push_back({name, std::vector<uint64_t>(intervals)});
      for (const Site* site : group.sites) AddSite(*site, &all[at->second].live_bytes);
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return Area(a.live_bytes) > Area(b.live_bytes);
  });
  timeline.other.live_bytes.resize(intervals);
  for (size_t i = top; i < all.size(); ++i) {
    for (size_t k = 0; k < intervals; ++k) timeline.other.live_bytes[k] += all[i].live_bytes[k];
  }
  timeline.others = all.size() - std::min(top, all.size());
  if (all.size() > top) all.resize(top);
  timeline.series = std::move(all);
  return timeline;
}

}  // namespace memtrace::report::render
