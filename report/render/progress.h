// Progress: one line on stderr, redrawn in place, while something takes longer
// than a second and stderr is a terminal. Leaves no trace on the screen.

#ifndef MEMTRACE_REPORT_RENDER_PROGRESS_H_
#define MEMTRACE_REPORT_RENDER_PROGRESS_H_

#include <chrono>
#include <string>

#include "absl/strings/string_view.h"

namespace memtrace::report::render {

class Progress {
 public:
  Progress();
  ~Progress() { Clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `share` of `what` is done, 0 to 1. Cheap: draws ten times a second at most.
  void Report(absl::string_view what, double share);
  void Clear();

 private:
  using Clock = std::chrono::steady_clock;
  const bool enabled_;
  const Clock::time_point start_;
  Clock::time_point next_;
  bool drawn_ = false;
};

// The line itself, without the carriage return.
std::string ProgressLine(absl::string_view what, double share);

}  // namespace memtrace::report::render

#endif  // MEMTRACE_REPORT_RENDER_PROGRESS_H_
