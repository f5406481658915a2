// `memtrace-valgrind`: runs a program under the library and writes what Valgrind's memcheck
// would write about its leaks and frees, with Valgrind's options. The same executable as memtrace,
// under that name; so `ctest -T memcheck` and others can be pointed at it.

#ifndef MEMTRACE_REPORT_VALGRIND_DRIVER_H_
#define MEMTRACE_REPORT_VALGRIND_DRIVER_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace memtrace::report {

// Is it called so? The name of the file behind `argv0`.
bool IsValgrindDriver(absl::string_view argv0);

// Returns the exit status: the program's own unless that is 0. Ends by the signal that ended
// the program.
int RunValgrindDriver(const std::vector<std::string>& arguments);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_VALGRIND_DRIVER_H_
