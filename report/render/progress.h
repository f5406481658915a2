// Progress: one line on stderr, redrawn in place, while something takes longer
// than a second and stderr is a terminal: how much of it is done, how fast it goes and how
// long it will take. Leaves no trace on the screen.

#ifndef MEMTRACE_REPORT_RENDER_PROGRESS_H_
#define MEMTRACE_REPORT_RENDER_PROGRESS_H_

#include <chrono>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace memtrace::report::render {

class Progress {
 public:
  Progress();
  ~Progress() { Clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `share` of `what` is done, 0 to 1, and so many events, where it is of events. Another `what`
  // than before begins. Cheap: draws ten times a second at most.
  void Report(absl::string_view what, double share, uint64_t events = 0);
  void Clear();

 private:
  using Clock = std::chrono::steady_clock;
  const bool enabled_;
  std::string what_;
  Clock::time_point start_;  // of `what_`
  Clock::time_point next_;
  size_t drawn_ = 0;         // columns on the screen
};

// The line itself, without the carriage return: "memtrace: reading     [####            ]  25 %,
// 38.2 M events/s, 0:12 left". `seconds` is how long it took so far; what is left is told from the
// first second on.
std::string ProgressLine(absl::string_view what, double share, uint64_t events = 0,
                         double seconds = 0);

}  // namespace memtrace::report::render

#endif  // MEMTRACE_REPORT_RENDER_PROGRESS_H_
