// Lines: the facts of a summary, each with a label before it.

#ifndef MEMTRACE_REPORT_RENDER_LINES_H_
#define MEMTRACE_REPORT_RENDER_LINES_H_

#include <cstddef>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "report/render/escape.h"
#include "report/render/style.h"
#include "report/render/text_report.h"

namespace memtrace::report::render {

class Lines {
 public:
  explicit Lines(const TextOptions& options) : options_(options) {}

  // Text without colours is cut at the width, or wrapped between words.
  void Add(absl::string_view label, absl::string_view text, Ink ink = Ink::kPlain) {
    const Style& style = options_.style;
    const size_t room = style.width - 2 - kLabelWidth;
    absl::string_view rest = text;
    bool first = true;
    while (!rest.empty()) {
      size_t end = rest.size();
      if (!options_.full && !FitsWidth(rest, room)) {
        end = KeepBeginning(rest, room + 1, "").size();
        const size_t space = rest.substr(0, end).rfind(' ');
        if (space != absl::string_view::npos && space > 0) {
          end = space;
        } else {
          end = KeepBeginning(rest, room, "").size();
        }
      }
      absl::StrAppend(&out_, "  ",
                      style.Paint(Ink::kDim, absl::StrFormat("%-*s", kLabelWidth,
                                                             first ? std::string(label) : "")),
                      style.Paint(ink, rest.substr(0, end)), "\n");
      rest.remove_prefix(end);
      if (!rest.empty() && rest[0] == ' ') rest.remove_prefix(1);
      first = false;
    }
  }
  std::string Take() { return std::move(out_); }

 private:
  static constexpr size_t kLabelWidth = 11;

  const TextOptions& options_;
  std::string out_;
};

}  // namespace memtrace::report::render

#endif  // MEMTRACE_REPORT_RENDER_LINES_H_
