#include "report/render/style.h"

#include <langinfo.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <clocale>
#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "report/words/escape.h"

namespace memtrace::report::render {
namespace {

absl::string_view Code(Ink ink) {
  switch (ink) {
    case Ink::kPlain: return "";
    case Ink::kHeading: return "1";
    case Ink::kStrong: return "1";
    case Ink::kDim: return "2";
    case Ink::kBad: return "1;31";
    case Ink::kWarning: return "33";
    case Ink::kGood: return "32";
    case Ink::kPlace: return "36";
    case Ink::kPlot: return "34";
    case Ink::kPlot2: return "33";
  }
  return "";
}

absl::string_view Environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

}  // namespace

std::string Style::Paint(Ink ink, absl::string_view text) const {
  if (!color || text.empty() || Code(ink).empty()) return std::string(text);
  return absl::StrCat("\x1b[", Code(ink), "m", text, "\x1b[0m");
}

std::string Style::Name(absl::string_view name) const {
  return utf8 ? words::EscapeControls(name) : words::EscapeToAscii(name);
}

Style StyleFor(int fd, ColorMode color, size_t width) {
  Style style;
  const bool terminal = isatty(fd) != 0;
  style.color = color == ColorMode::kAlways ||
                (color == ColorMode::kAuto && terminal && Environment("NO_COLOR").empty() &&
                 Environment("TERM") != "dumb");
  if (width == 0 && terminal) {
    winsize size = {};
    if (ioctl(fd, TIOCGWINSZ, &size) == 0) width = size.ws_col;
  }
  if (width == 0) {
    size_t columns = 0;
    if (absl::SimpleAtoi(Environment("COLUMNS"), &columns)) width = columns;
  }
  if (width == 0) width = 80;
  style.width = std::clamp(width, kMinWidth, kMaxWidth);
  std::setlocale(LC_CTYPE, "");
  const absl::string_view codeset = nl_langinfo(CODESET);
  style.utf8 = absl::EqualsIgnoreCase(codeset, "UTF-8") || absl::EqualsIgnoreCase(codeset, "UTF8");
  return style;
}

}  // namespace memtrace::report::render
