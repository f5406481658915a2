// The text report in a test: for a terminal of some width, in which each line must fit.

#ifndef MEMTRACE_TESTS_REPORT_RENDER_RENDER_AS_TEXT_H_
#define MEMTRACE_TESTS_REPORT_RENDER_RENDER_AS_TEXT_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <string>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "report/render/text_report.h"
#include "report/words/escape.h"

namespace memtrace::report::render {

inline TextOptions Options(size_t width, bool utf8) {
  TextOptions options;
  options.style.width = width;
  options.style.utf8 = utf8;
  return options;
}

inline void ExpectFits(const std::string& text, size_t width) {
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    EXPECT_LE(words::DisplayWidth(line), width) << line;
    EXPECT_FALSE(!line.empty() && line.back() == ' ') << "trailing blank: " << line;
  }
}

}  // namespace memtrace::report::render

#endif  // MEMTRACE_TESTS_REPORT_RENDER_RENDER_AS_TEXT_H_
