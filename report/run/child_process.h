// ChildProcess: runs the program as if the shell had run it, and waits.
//
// The program gets our standard streams, process group, terminal, limits,
// signal mask and dispositions; no descriptor of ours and no shell. While it
// runs, this process
//   - ignores what the terminal sends to the whole group anyway (^C, ^\);
//   - passes on what was sent to it alone (kill, timeout, a service manager);
//   - stops when the program stops for job control, and goes on with it.
//
// Start() must run while the process has one thread: the child is a plain fork.
// WaitForEnd() runs on that same thread; threads that are started in between
// inherit its blocked signals and so take none.

#ifndef MEMTRACE_REPORT_RUN_CHILD_PROCESS_H_
#define MEMTRACE_REPORT_RUN_CHILD_PROCESS_H_

#include <signal.h>
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace memtrace::report {

struct ProgramEnd {
  bool signaled = false;
  int status = 0;            // exit status, or the signal
  bool core_dumped = false;
  uint64_t wall_ns = 0;      // CLOCK_REALTIME when it was seen
  uint64_t cpu_ns = 0;       // user and system, its waited-for children included
  uint64_t peak_rss_bytes = 0;

  int exit_status() const { return signaled ? 128 + status : status; }
};

class ChildProcess {
 public:
  struct Command {
    std::string path;                       // for execve()
    std::vector<std::string> arguments;     // argv, [0] as the user wrote it
    std::vector<std::string> environment;   // NAME=VALUE
  };

  // Forks and executes. When execve() fails, its errno is in *exec_error and the
  // status is FailedPrecondition; nothing runs then.
  static absl::StatusOr<ChildProcess> Start(const Command& command, int* exec_error);
  // Takes signals as before Start() again, for a caller that goes on when the program is done.
  // Signals that came meanwhile were for the program.
  void TakeSignalsAgain();

  pid_t pid() const { return pid_; }
  ProgramEnd WaitForEnd();

 private:
  ChildProcess() = default;

  void HandleSignal(const siginfo_t& info);
  bool Reap(ProgramEnd* end);
  void StopLike(int signal);
  bool ProgramIsStopped() const;
  void ReapOthers() const;

  pid_t pid_ = -1;
  sigset_t handled_;       // blocked here, taken with sigwaitinfo()
  sigset_t before_;        // Start()
  bool stopped_ = false;   // with the program, by StopLike(); until a SIGCONT was taken
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_RUN_CHILD_PROCESS_H_
