// TraceSnapshot: a trace of what a running process did so far, as a copy of its own.

#ifndef MEMTRACE_REPORT_RUN_TRACE_SNAPSHOT_H_
#define MEMTRACE_REPORT_RUN_TRACE_SNAPSHOT_H_

#include <string>

#include "absl/status/statusor.h"

namespace memtrace::report {

// Copies the raw trace, which its process goes on writing, into `directory`, and with it what
// `memtrace run` has packed of it already. The path of the copy.
absl::StatusOr<std::string> CopyRunningTrace(const std::string& trace,
                                             const std::string& directory);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_RUN_TRACE_SNAPSHOT_H_
