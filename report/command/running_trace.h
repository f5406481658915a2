// RunningTrace: the trace that a running process records to, for `memtrace leaks`.

#ifndef MEMTRACE_REPORT_COMMAND_RUNNING_TRACE_H_
#define MEMTRACE_REPORT_COMMAND_RUNNING_TRACE_H_

#include <string>

#include "absl/status/statusor.h"

namespace memtrace::report {

struct RunningTrace {
  std::string path;
  // Where the process's files are, if these are others than ours or the trace is found but there:
  // "/proc/PID/root" of one that has mounts of its own, or the same of a thread of it. Else empty.
  std::string root;
};

// The file that is mapped shared by the process, with its pid in the header.
absl::StatusOr<RunningTrace> FindRunningTrace(int pid);

// Whether blocks that were allocated or freed are recorded in it, so far.
bool HasAllocations(const RunningTrace& trace);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_COMMAND_RUNNING_TRACE_H_
