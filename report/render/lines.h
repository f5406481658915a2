// Lines: the facts of a summary, each with a label before it.

#ifndef MEMTRACE_REPORT_RENDER_LINES_H_
#define MEMTRACE_REPORT_RENDER_LINES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "report/render/style.h"
#include "report/render/text_report.h"
#include "report/words/escape.h"

namespace memtrace::report::render {

class Lines {
 public:
  static constexpr size_t kLabelWidth = 11;
  static constexpr size_t kIndent = 2 + kLabelWidth;  // of the text

  explicit Lines(const TextOptions& options) : options_(options) {}

  // Text without colours is cut at the width, or wrapped between words, to at most so many lines.
  void Add(absl::string_view label, absl::string_view text, Ink ink = Ink::kPlain,
           size_t most_lines = SIZE_MAX) {
    const Style& style = options_.style;
    const size_t room = options_.full ? SIZE_MAX - 1 : style.width - kIndent;
    std::vector<std::string> lines = words::Wrapped(text, room);
    if (lines.size() > most_lines) {
      const std::string last = absl::StrCat(lines[most_lines - 1], " ", lines[most_lines]);
      lines.resize(most_lines);
      lines.back() = words::KeepBeginning(last, room, style.ellipsis());
    }
    for (const std::string& line : lines) {
      absl::StrAppend(&out_, "  ",
                      style.Paint(Ink::kDim, absl::StrFormat("%-*s", kLabelWidth, label)),
                      style.Paint(ink, line), "\n");
      label = "";
    }
  }
  std::string Take() { return std::move(out_); }

 private:
  const TextOptions& options_;
  std::string out_;
};

}  // namespace memtrace::report::render

#endif  // MEMTRACE_REPORT_RENDER_LINES_H_
