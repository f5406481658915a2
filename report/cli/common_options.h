// Options that several commands have, said in one way.

#ifndef MEMTRACE_REPORT_CLI_COMMON_OPTIONS_H_
#define MEMTRACE_REPORT_CLI_COMMON_OPTIONS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace CLI {
class App;
}

namespace memtrace::report {

// Where names come from: --debug-dir, --sysroot, --debuginfod. A mistyped directory would silently
// cost all names: it has to be there.
struct NameFlags {
  std::vector<std::string>* debug_dirs;
  std::string* sysroot;
  bool* debuginfod = nullptr;  // null: the command does not ask the network
};
// `when` begins their descriptions: "With --add: ".
void AddNameOptions(CLI::App* command, const NameFlags& flags, absl::string_view when = "");

// How text is printed: --color, --width. What --color is given is parsed by the command.
void AddTextOptions(CLI::App* command, std::string* color, size_t* width);

// For CLI11: empty when there is such a directory.
std::string Directory(const std::string& path);
// For CLI11, which takes "-1" for a large number, and whose own check has an unreadable
// message: empty when `text` is a whole number.
std::string WholeNumber(const std::string& text);
// For CLI11: empty when `text` is a whole number that is not 0.
std::string PositiveNumber(const std::string& text);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_CLI_COMMON_OPTIONS_H_
