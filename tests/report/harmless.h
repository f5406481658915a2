// Text that does to a terminal, or to whoever reads it, nothing but to be text.

#ifndef MEMTRACE_TESTS_REPORT_HARMLESS_H_
#define MEMTRACE_TESTS_REPORT_HARMLESS_H_

#include <cstddef>
#include <string_view>

#include "report/words/escape.h"

namespace memtrace::report {

// The first byte of `text` that is a control, no UTF-8, or turns the direction of text;
// npos: none. `line_end`: what may end a line.
inline size_t FirstHarmful(std::string_view text, std::string_view line_end = "\n") {
  for (size_t i = 0; i < text.size();) {
    if (text.compare(i, line_end.size(), line_end) == 0) {
      i += line_end.size();
      continue;
    }
    char32_t c = 0;
    const size_t bytes = words::DecodeUtf8({text.data() + i, text.size() - i}, &c);
    const bool control = c < 0x20 || (c >= 0x7f && c < 0xa0);
    const bool turns = c == 0x061c || (c >= 0x200b && c <= 0x200f) ||
                       (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x2069) || c == 0xfeff;
    if (bytes == 0 || control || turns) return i;
    i += bytes;
  }
  return std::string_view::npos;
}

}  // namespace memtrace::report

#endif  // MEMTRACE_TESTS_REPORT_HARMLESS_H_
