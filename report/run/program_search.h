// FindProgram: the file that execvp() would run for a name, found beforehand, so
// that what is checked is what is run.

#ifndef MEMTRACE_REPORT_RUN_PROGRAM_SEARCH_H_
#define MEMTRACE_REPORT_RUN_PROGRAM_SEARCH_H_

#include <string>

#include "absl/strings/string_view.h"

namespace memtrace::report {

struct FoundProgram {
  std::string path;  // to give to execve(); empty when there is none
  int error = 0;     // then: ENOENT, EACCES (found but not executable), ...
};

// `search_path` is the value of PATH; nullptr: not set, which means confstr(_CS_PATH).
FoundProgram FindProgram(absl::string_view name, const char* search_path);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_RUN_PROGRAM_SEARCH_H_
