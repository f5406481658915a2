// /proc/PID/stat: what the kernel says of a process in one line.

#ifndef MEMTRACE_REPORT_RUN_PROC_STAT_H_
#define MEMTRACE_REPORT_RUN_PROC_STAT_H_

#include <sys/types.h>

#include <optional>
#include <string>

namespace memtrace::report {

// The line from field 3, the state, on ("S 1 4242 ..."): the name before it may hold anything.
// Nothing: the process is gone, or /proc is not there.
std::optional<std::string> StatFromState(pid_t pid);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_RUN_PROC_STAT_H_
