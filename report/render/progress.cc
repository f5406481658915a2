#include "report/render/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace memtrace::report::render {
namespace {

constexpr std::chrono::milliseconds kQuiet{1000};   // shorter work shows nothing
constexpr std::chrono::milliseconds kRedraw{100};
constexpr int kBarWidth = 16;

}  // namespace

Progress::Progress()
    : enabled_(isatty(STDERR_FILENO) != 0), start_(Clock::now()), next_(start_ + kQuiet) {}

std::string ProgressLine(absl::string_view what, double share, uint64_t events, double seconds) {
  const double clamped = std::clamp(share, 0.0, 1.0);
  const int full = static_cast<int>(clamped * kBarWidth);
  std::string line =
      absl::StrFormat("memtrace: %-11s [%s%s] %3.0f %%", what, std::string(full, '#'),
                      std::string(kBarWidth - full, ' '), clamped * 100);
  if (seconds < 1) return line;
  if (events != 0) {
    absl::StrAppendFormat(&line, ", %.1f M events/s", static_cast<double>(events) / seconds / 1e6);
  }
  if (clamped > 0) {
    // A hostile or very slow trace has no more than this left.
    const double left = std::min(seconds * (1 - clamped) / clamped, 359999.0);
    const auto whole = static_cast<int>(std::ceil(left));
    if (whole >= 3600) {
      absl::StrAppendFormat(&line, ", %d:%02d:%02d left", whole / 3600, whole / 60 % 60,
                            whole % 60);
    } else {
      absl::StrAppendFormat(&line, ", %d:%02d left", whole / 60, whole % 60);
    }
  }
  return line;
}

void Progress::Report(absl::string_view what, double share, uint64_t events) {
  if (!enabled_) return;
  const Clock::time_point now = Clock::now();
  if (what != what_) {
    if (!what_.empty()) start_ = now;
    what_ = std::string(what);
  }
  if (now < next_) return;
  next_ = now + kRedraw;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const std::string line = ProgressLine(what, share, events, seconds);
  // Spaces, where a longer line was: also a terminal that knows no escape sequences can do that.
  const std::string rest(drawn_ - std::min(drawn_, line.size()), ' ');
  drawn_ = line.size();
  std::fputs(absl::StrCat("\r", line, rest).c_str(), stderr);
  std::fflush(stderr);
}

void Progress::Clear() {
  if (drawn_ == 0) return;
  std::fputs(absl::StrCat("\r", std::string(drawn_, ' '), "\r").c_str(), stderr);
  std::fflush(stderr);
  drawn_ = 0;
}

}  // namespace memtrace::report::render
