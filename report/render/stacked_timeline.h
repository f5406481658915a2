// The heap over time, in parts that add up to the whole: by site, thread, module or source folder.
//
// Pure functions of a ReportView.

#ifndef MEMTRACE_REPORT_RENDER_STACKED_TIMELINE_H_
#define MEMTRACE_REPORT_RENDER_STACKED_TIMELINE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "report/names/frame.h"
#include "report/render/view.h"

namespace memtrace::report::render {

enum class StackBy { kNone, kSite, kThread, kModule, kFolder };
absl::string_view StackByName(StackBy by);

struct StackedTimeline {
  struct Series {
    std::string name;
    std::vector<uint64_t> live_bytes;  // at the end of each interval; the last at the end of all
    const Frame* caller = nullptr;  // of StackBy::kSite, as far as there is one
    uint64_t most() const;
  };
  uint64_t from_ns = 0, interval_ns = 0;
  std::vector<Series> series;  // those that held most at one time, that one first
  Series other;                // all the others together
  size_t others = 0;
};

inline constexpr size_t kStackedSeries = 8;
StackedTimeline StackTimeline(const ReportView& view, StackBy by, size_t top = kStackedSeries);

// The folder of a frame's source as seen from where the program ran; "[libc.so.6]" without one.
std::string FolderOf(const Frame* frame, absl::string_view working_directory);
std::string ModuleOf(const Frame* frame);

}  // namespace memtrace::report::render

#endif  // MEMTRACE_REPORT_RENDER_STACKED_TIMELINE_H_
