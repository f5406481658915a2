// Style: what the place we print to can show: its width, colours, UTF-8.
//
// Colours are on where the output is a terminal that has them and the user has
// not said otherwise (NO_COLOR, --color). The characters of plots and cuts are
// chosen here, so that no renderer asks for the locale itself.

#ifndef MEMTRACE_REPORT_RENDER_STYLE_H_
#define MEMTRACE_REPORT_RENDER_STYLE_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace memtrace::report::render {

enum class ColorMode { kAuto, kAlways, kNever };

enum class Ink { kPlain, kHeading, kStrong, kDim, kBad, kWarning, kGood, kPlace, kPlot, kPlot2 };

struct Style {
  size_t width = 80;
  bool color = false;
  bool utf8 = false;

  // Below this, space is for names, and not between numbers, which are short then.
  bool wide() const { return width >= 110; }
  std::string Paint(Ink ink, absl::string_view text) const;
  // A name from the trace, safe to print.
  std::string Name(absl::string_view name) const;
  absl::string_view ellipsis() const { return utf8 ? "\u2026" : "..."; }
  absl::string_view dash() const { return utf8 ? "\u2500" : "-"; }
};

inline constexpr size_t kMinWidth = 60;
inline constexpr size_t kMaxWidth = 200;  // wider lines are not read more easily

// The style for file descriptor `fd`. `width` 0: that of the terminal, else 80 ($COLUMNS
// is honoured, for it is how a user sets the width of a pipe).
Style StyleFor(int fd, ColorMode color, size_t width);

}  // namespace memtrace::report::render

#endif  // MEMTRACE_REPORT_RENDER_STYLE_H_
