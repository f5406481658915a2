#include "report/render/stacked_timeline.h"

#include <algorithm>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "report/base/path.h"
#include "report/growth/site_series.h"

namespace memtrace::report::render {
namespace {

// The data of one series: one thread, or sites.
struct Part {
  std::string name;
  const ThreadSummary* thread = nullptr;
  std::vector<const Site*> sites = {};
  const Frame* caller = nullptr;
  uint64_t most = 0;  // what it held at one time
};

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

void AddPart(const Part& part, uint32_t held_intervals, std::vector<uint64_t>* to) {
  for (const Site* site : part.sites) AddSite(*site, to);
  if (part.thread == nullptr || held_intervals == 0) return;
  for (size_t i = 0; i < to->size(); ++i) {
    (*to)[i] += part.thread->held.At(std::min<size_t>(i, held_intervals - 1));
  }
}

std::string ThreadText(const ThreadSummary& thread) {
  return absl::StrCat(thread.name, thread.name.empty() ? "" : " ", thread.tid);
}

std::vector<Part> PartsOf(const ReportView& view, StackBy by) {
  const Analysis& analysis = view.analysis();
  std::vector<Part> parts;
  if (by == StackBy::kThread) {
    for (const ThreadSummary& thread : analysis.threads) parts.push_back({{}, &thread});
    return parts;
  }
  std::map<std::string, size_t> index;
  for (const SiteGroup& group : view.callers()) {
    const Frame* frame = view.Caller(group.stack);
    const std::string name = by == StackBy::kModule ? ModuleOf(frame)
                             : by == StackBy::kFolder
                                 ? FolderOf(frame, analysis.process.working_directory)
                                 : view.CallerText(group.stack);
    const auto [at, is_new] = index.try_emplace(name, parts.size());
    if (is_new) parts.push_back({.name = name, .caller = by == StackBy::kSite ? frame : nullptr});
    std::vector<const Site*>& sites = parts[at->second].sites;
    sites.insert(sites.end(), group.sites.begin(), group.sites.end());
  }
  return parts;
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

  // There may be very many threads: one series at a time, and those of the first alone are kept.
  std::vector<Part> parts = PartsOf(view, by);
  timeline.other.live_bytes.resize(intervals);  // all of them, and then those less that are told
  std::vector<uint64_t> series;
  const auto series_of = [&](const Part& part) {
    series.assign(intervals, 0);
    AddPart(part, analysis.held_intervals, &series);
  };
  for (Part& part : parts) {
    series_of(part);
    part.most = *std::max_element(series.begin(), series.end());
    for (size_t k = 0; k < intervals; ++k) timeline.other.live_bytes[k] += series[k];
  }
  std::stable_sort(parts.begin(), parts.end(),
                   [](const Part& a, const Part& b) { return a.most > b.most; });
  for (size_t i = 0; i < std::min(top, parts.size()); ++i) {
    series_of(parts[i]);
    for (size_t k = 0; k < intervals; ++k) timeline.other.live_bytes[k] -= series[k];
    timeline.series.push_back(
        {parts[i].thread != nullptr ? ThreadText(*parts[i].thread) : parts[i].name, series,
         parts[i].caller});
  }
  timeline.others = parts.size() - std::min(top, parts.size());
  return timeline;
}

}  // namespace memtrace::report::render
