// What Valgrind's users set once for all runs: options in ~/.valgrindrc, in the variable
// VALGRIND_OPTS and in ./.valgrindrc, in this order, before those of the command line.
//
// Words are parted by blanks and line ends; from a # that begins a word on, the rest of the line is
// a comment. "--memcheck:OPTION" is an option for memcheck alone. A ./.valgrindrc that another user
// owns or anybody may write to is not read, nor is what is no regular file. (The Valgrind manual,
// 2.6: Setting Default Options.)

#ifndef MEMTRACE_REPORT_VALGRIND_DRIVER_CONFIG_H_
#define MEMTRACE_REPORT_VALGRIND_DRIVER_CONFIG_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace memtrace::report::valgrind {

struct ConfiguredOptions {
  std::string place;  // for messages: the file, or VALGRIND_OPTS
  std::vector<std::string> words;
};

// The options that Valgrind would read for this process: by its environment, its user,
// its working directory.
absl::StatusOr<std::vector<ConfiguredOptions>> ReadConfiguredOptions();

// The words of such a file or variable.
std::vector<std::string> WordsOfOptions(absl::string_view text);

}  // namespace memtrace::report::valgrind

#endif  // MEMTRACE_REPORT_VALGRIND_DRIVER_CONFIG_H_
