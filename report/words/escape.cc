#include "report/words/escape.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace memtrace::report::words {
namespace {

// Code points that draw nothing of their own but change how others are drawn.
bool IsReordering(char32_t c) {
  return c == 0x061c || (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
         (c >= 0x2060 && c <= 0x2069) || c == 0xfeff || (c >= 0xfff9 && c <= 0xfffb) ||
         (c >= 0xe0000 && c <= 0xe007f);
}

bool IsControl(char32_t c) { return c < 0x20 || (c >= 0x7f && c < 0xa0); }

// Whether the code point is one that never is a character. XML does not allow U+FFFE and
// U+FFFF, which are such.
bool IsNoncharacter(char32_t c) { return (c & 0xfffe) == 0xfffe || (c >= 0xfdd0 && c <= 0xfdef); }

// Columns of a code point: the ranges that terminals agree upon, no more.
size_t Columns(char32_t c) {
  if ((c >= 0x0300 && c <= 0x036f) || (c >= 0x20d0 && c <= 0x20ff) ||
      (c >= 0xfe00 && c <= 0xfe0f)) {
    return 0;  // combining
  }
  if ((c >= 0x1100 && c <= 0x115f) || (c >= 0x2e80 && c <= 0xa4cf && c != 0x303f) ||
      (c >= 0xac00 && c <= 0xd7a3) || (c >= 0xf900 && c <= 0xfaff) ||
      (c >= 0xfe30 && c <= 0xfe6f) || (c >= 0xff00 && c <= 0xff60) ||
      (c >= 0xffe0 && c <= 0xffe6) || (c >= 0x1f300 && c <= 0x1faff) ||
      (c >= 0x20000 && c <= 0x3fffd)) {
    return 2;  // East Asian wide
  }
  return 1;
}

template <typename Keep>
std::string Escape(absl::string_view s, Keep keep) {
  std::string out;
  out.reserve(s.size());
  while (!s.empty()) {
    char32_t c = 0;
    const size_t bytes = DecodeUtf8(s, &c);
    if (bytes == 0 || IsControl(c) || IsReordering(c) || IsNoncharacter(c)) {
      const size_t escaped = bytes == 0 ? 1 : bytes;
      for (size_t i = 0; i < escaped; ++i) {
        absl::StrAppendFormat(&out, "\\x%02x", static_cast<uint8_t>(s[i]));
      }
      s.remove_prefix(escaped);
      continue;
    }
    keep(s.substr(0, bytes), &out);
    s.remove_prefix(bytes);
  }
  return out;
}

}  // namespace

size_t DecodeUtf8(absl::string_view s, char32_t* code_point) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(s[i]); };
  const uint8_t first = byte(0);
  size_t bytes = 0;
  char32_t c = 0, least = 0;
  if (first < 0x80) {
    *code_point = first;
    return 1;
  } else if (first >= 0xc2 && first < 0xe0) {
    bytes = 2, c = first & 0x1f, least = 0x80;
  } else if (first >= 0xe0 && first < 0xf0) {
    bytes = 3, c = first & 0x0f, least = 0x800;
  } else if (first >= 0xf0 && first < 0xf5) {
    bytes = 4, c = first & 0x07, least = 0x10000;
  } else {
    return 0;
  }
  if (s.size() < bytes) return 0;
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    c = c << 6 | (byte(i) & 0x3f);
  }
  if (c < least || c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) return 0;
  *code_point = c;
  return bytes;
}

absl::string_view CutUtf8(absl::string_view s, size_t bytes) {
  if (s.size() <= bytes) return s;
  // A character has four bytes at most: three before the cut.
  for (size_t back = 1; back <= 3 && back <= bytes; ++back) {
    char32_t c = 0;
    const size_t length = DecodeUtf8(s.substr(bytes - back), &c);
    if (length != 0) return s.substr(0, length > back ? bytes - back : bytes);
  }
  return s.substr(0, bytes);
}

std::string EscapeControls(absl::string_view s) {
  return Escape(s, [](absl::string_view piece, std::string* out) { absl::StrAppend(out, piece); });
}

std::string EscapeToAscii(absl::string_view s) {
  return Escape(s, [](absl::string_view piece, std::string* out) {
    absl::StrAppend(out, piece.size() == 1 ? piece : "?");
  });
}

std::string EscapeMarkup(absl::string_view s) {
  return absl::StrReplaceAll(EscapeControls(s), {{"&", "&amp;"},
                                                 {"<", "&lt;"},
                                                 {">", "&gt;"},
                                                 {"\"", "&quot;"},
                                                 {"'", "&#39;"}});
}

std::string CsvField(absl::string_view s) {
  std::string text = EscapeControls(s);
  if (!text.empty() && absl::string_view("=+-@|%").find(text[0]) != absl::string_view::npos) {
    text.insert(text.begin(), '\'');
  }
  // Spaces at the ends are part of a field, but not every reader thinks so.
  const bool quote = text.find_first_of(",\";") != std::string::npos ||
                     (!text.empty() && (text.front() == ' ' || text.back() == ' '));
  if (!quote) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted.push_back('"');
    quoted.push_back(c);
  }
  quoted.push_back('"');
  return quoted;
}

namespace {

struct Character {
  size_t bytes, columns;
};

// The first one of `s`, which is not empty. A byte that is part of none is one.
Character FirstCharacter(absl::string_view s) {
  char32_t c = 0;
  const size_t bytes = DecodeUtf8(s, &c);
  return bytes == 0 ? Character{1, Columns('?')} : Character{bytes, Columns(c)};
}

}  // namespace

size_t DisplayWidth(absl::string_view s) {
  size_t width = 0;
  while (!s.empty()) {
    const Character first = FirstCharacter(s);
    width += first.columns;
    s.remove_prefix(first.bytes);
  }
  return width;
}

bool FitsWidth(absl::string_view s, size_t width) {
  size_t used = 0;
  while (!s.empty()) {
    const Character first = FirstCharacter(s);
    used += first.columns;
    if (used > width) return false;
    s.remove_prefix(first.bytes);
  }
  return true;
}

std::string KeepBeginning(absl::string_view s, size_t width, absl::string_view ellipsis) {
  if (FitsWidth(s, width)) return std::string(s);
  const size_t mark = DisplayWidth(ellipsis);
  if (mark >= width) ellipsis = "";
  const size_t room = width - (ellipsis.empty() ? 0 : mark);
  size_t used = 0, end = 0;
  while (end < s.size()) {
    const Character next = FirstCharacter(s.substr(end));
    if (used + next.columns > room) break;
    used += next.columns;
    end += next.bytes;
  }
  return absl::StrCat(s.substr(0, end), ellipsis);
}

std::string KeepEnd(absl::string_view s, size_t width, absl::string_view ellipsis) {
  size_t columns = DisplayWidth(s);
  if (columns <= width) return std::string(s);
  const size_t mark = DisplayWidth(ellipsis);
  if (mark >= width) ellipsis = "";
  const size_t room = width - (ellipsis.empty() ? 0 : mark);
  while (!s.empty() && columns > room) {
    const Character first = FirstCharacter(s);
    columns -= first.columns;
    s.remove_prefix(first.bytes);
  }
  return absl::StrCat(ellipsis, s);
}

std::string KeepEnds(absl::string_view s, size_t width, absl::string_view ellipsis) {
  const size_t mark = DisplayWidth(ellipsis);
  if (FitsWidth(s, width) || width <= mark + 1) return KeepBeginning(s, width, ellipsis);
  const size_t behind = (width - mark) / 2;
  return absl::StrCat(KeepBeginning(s, width - behind, ellipsis), KeepEnd(s, behind, ""));
}

std::vector<std::string> Wrapped(absl::string_view s, size_t width) {
  std::vector<std::string> lines;
  while (!s.empty()) {
    size_t end = s.size();
    if (!FitsWidth(s, width)) {
      end = KeepBeginning(s, width + 1, "").size();
      const size_t space = s.substr(0, end).rfind(' ');
      if (space != absl::string_view::npos && space > 0) {
        end = space;
      } else {
        end = KeepBeginning(s, width, "").size();
        // A path is taken apart between its folders.
        const size_t slash = s.substr(0, end).rfind('/');
        if (slash != absl::string_view::npos && slash > end / 2) end = slash + 1;
      }
      if (end == 0) end = s.size();  // a character of two columns, and room for one
    }
    lines.emplace_back(s.substr(0, end));
    s.remove_prefix(end);
    if (!s.empty() && s[0] == ' ') s.remove_prefix(1);
  }
  return lines;
}

}  // namespace memtrace::report::words
