// ProcessStatus: what /proc says of a process that is asked for its leaks.
//
// A *task* is a directory of /proc with a status file: /proc/PID, or /proc/PID/task/TID.

#ifndef MEMTRACE_REPORT_COMMAND_PROCESS_STATUS_H_
#define MEMTRACE_REPORT_COMMAND_PROCESS_STATUS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace memtrace::report {

// The value of the field `name` ("SigCgt:" and the like); empty: it is not there.
std::string StatusField(const std::string& task, absl::string_view name);

// The tasks of all threads of the process; none: it is gone.
struct ThreadTask {
  int id = 0;
  std::string task;
};
std::vector<ThreadTask> ThreadsOf(int pid);

// Whether the thread has ended. The first thread of a process may end while the process goes on.
bool ThreadHasEnded(const std::string& task);

// Of a process whose first thread has ended /proc/PID has no more memory, root or program: the task
// of one of its threads that goes on. Else, and where none does, "/proc/PID".
std::string LivingTask(int pid);

// Why all threads stand still, and what would let them go on: "it is stopped (kill -CONT 4242 lets
// it go on)", or by a debugger, or frozen by its control group. Empty: they do not.
std::string WhyItStands(int pid);

// The number that the process has for itself: in its own pid namespace, as in a container.
uint32_t PidForItself(int pid);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_COMMAND_PROCESS_STATUS_H_
