// Names from a trace are data. What is printed to a terminal or into a CSV file
// passes through here, so that a hostile function name, path or thread name can
// neither move the cursor nor become a formula. (JSON escapes by its own rules.)
//
// Pure functions, any thread.

#ifndef MEMTRACE_REPORT_WORDS_ESCAPE_H_
#define MEMTRACE_REPORT_WORDS_ESCAPE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace memtrace::report::words {

// Bytes of a code point that begins at s[0], or 0 if s does not begin with valid
// UTF-8 (overlong forms and surrogates are not valid). s is not empty.
size_t DecodeUtf8(absl::string_view s, char32_t* code_point);

// The first bytes of s, at most so many; a character that would be cut is left out whole.
absl::string_view CutUtf8(absl::string_view s, size_t bytes);

// Control characters (C0, C1, DEL), marks that reorder text (U+202A.. and so on)
// and bytes that are not UTF-8 become \xNN. A backslash stays as it is.
std::string EscapeControls(absl::string_view s);

// Does what EscapeControls does, and makes a ? of everything beyond ASCII, for a terminal
// that does not show UTF-8.
std::string EscapeToAscii(absl::string_view s);

// Text of an element or of a quoted attribute, in XML and in HTML. Does what EscapeControls does.
std::string EscapeMarkup(absl::string_view s);

// One field of a CSV record (RFC 4180): quoted where needed. Text that a
// spreadsheet would take for a formula gets a leading apostrophe.
std::string CsvField(absl::string_view s);

// Columns that a terminal uses for s, which holds no controls.
size_t DisplayWidth(absl::string_view s);
// DisplayWidth(s) <= width, without looking at more of s than that takes.
bool FitsWidth(absl::string_view s, size_t width);

// s itself if it fits into `width` columns; else its beginning, its end, or both, with
// an ellipsis ("..." in ASCII) at the cut. Never longer than `width`.
std::string KeepBeginning(absl::string_view s, size_t width, absl::string_view ellipsis);
std::string KeepEnd(absl::string_view s, size_t width, absl::string_view ellipsis);
std::string KeepEnds(absl::string_view s, size_t width, absl::string_view ellipsis);

// Lines of at most `width` columns, at least 1, parted at blanks; a longer word is cut.
std::vector<std::string> Wrapped(absl::string_view s, size_t width);

}  // namespace memtrace::report::words

#endif  // MEMTRACE_REPORT_WORDS_ESCAPE_H_
