#include "report/names/brackets.h"

#include <string>

namespace memtrace::report {

size_t Closing(absl::string_view text, size_t open) {
  std::string expected;  // innermost last
  for (size_t i = open; i < text.size(); ++i) {
    switch (text[i]) {
      case '(': expected.push_back(')'); break;
      case '{': expected.push_back('}'); break;
      case '[': expected.push_back(']'); break;
      case '<': expected.push_back('>'); break;
      case '>':
        // It may close a template's arguments, or be an arrow or a comparison within
        // brackets of another kind.
        if (expected.back() != '>' || text[i - 1] == '-') break;
        [[fallthrough]];
      case ')': case '}': case ']':
        while (!expected.empty() && expected.back() == '>' && text[i] != '>') expected.pop_back();
        if (expected.empty() || expected.back() != text[i]) return absl::string_view::npos;
        expected.pop_back();
        if (expected.empty()) return i;
        break;
      default: break;
    }
  }
  return absl::string_view::npos;
}

}  // namespace memtrace::report
