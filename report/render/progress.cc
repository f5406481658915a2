#include "report/render/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace memtrace::report::render {
namespace {

constexpr std::chrono::milliseconds kQuiet{1000};   // shorter work shows nothing
constexpr std::chrono::milliseconds kRedraw{100};
constexpr int kBarWidth = 30;

}  // namespace

Progress::Progress()
    : enabled_(isatty(STDERR_FILENO) != 0), start_(Clock::now()), next_(start_ + kQuiet) {}

std::string ProgressLine(absl::string_view what, double share) {
  const double clamped = std::clamp(share, 0.0, 1.0);
  const int full = static_cast<int>(clamped * kBarWidth);
  return absl::StrFormat("memtrace: %-12s [%s%s] %3.0f %%", what, std::string(full, '#'),
                         std::string(kBarWidth - full, ' '), clamped * 100);
}

void Progress::Report(absl::string_view what, double share) {
  if (!enabled_) return;
  const Clock::time_point now = Clock::now();
  if (now < next_) return;
  next_ = now + kRedraw;
  drawn_ = true;
  const std::string line = absl::StrCat("\r", ProgressLine(what, share));
  std::fwrite(line.data(), 1, line.size(), stderr);
  std::fflush(stderr);
}

void Progress::Clear() {
  if (!drawn_) return;
  drawn_ = false;
  std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
}

}  // namespace memtrace::report::render
