// Commands and paths as one would type them: for "next: memtrace report ...", for the
// program that was traced.
//
// Nothing in them reaches the terminal as a control character. Pure functions, any thread.

#ifndef MEMTRACE_REPORT_WORDS_SHELL_WORDS_H_
#define MEMTRACE_REPORT_WORDS_SHELL_WORDS_H_

#include <cstddef>
#include <span>
#include <string>

#include "absl/strings/string_view.h"

namespace memtrace::report::words {

// `text` as one word: quoted only where it must be, with $'...' where it has what
// is not to be seen.
std::string ShellWord(absl::string_view text);
// The same of a file's name, which no command takes for an option.
std::string ShellFile(absl::string_view path);
// Words, parted by blanks.
std::string ShellCommand(std::span<const std::string> words);
// The same in at most `bytes` bytes, no fewer than a mark needs: where it is cut stands "\u2026",
// behind the quote that closes what is left of a word.
std::string ShellCommand(std::span<const std::string> words, size_t bytes);

}  // namespace memtrace::report::words

#endif  // MEMTRACE_REPORT_WORDS_SHELL_WORDS_H_
