// What a command leaves behind when it could not do what it was asked for: a line on stderr and an
// exit status.

#ifndef MEMTRACE_REPORT_CLI_EXIT_STATUS_H_
#define MEMTRACE_REPORT_CLI_EXIT_STATUS_H_

#include "absl/status/status.h"

namespace memtrace::report {

inline constexpr int kExitFailed = 2;

// Prints "memtrace: <message>" on stderr and returns kExitFailed; 0 when ok.
int ExitCodeOf(const absl::Status& status);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_CLI_EXIT_STATUS_H_
