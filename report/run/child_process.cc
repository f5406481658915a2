#include "report/run/child_process.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "report/base/clock.h"
#include "report/base/proc_stat.h"
#include "report/base/unique_fd.h"

namespace memtrace::report {
namespace {

// Signals that may be sent to us and are meant for the program. Not SIGKILL and SIGSTOP,
// which nobody can catch, nor the signals of a fault of our own.
constexpr int kHandled[] = {
    SIGCHLD, SIGINT,  SIGQUIT, SIGTERM, SIGHUP,    SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM,
    SIGPROF, SIGCONT, SIGTSTP, SIGTTIN, SIGTTOU,   SIGWINCH, SIGURG, SIGIO,   SIGPWR,
    SIGSTKFLT, SIGABRT,
};

// These signals, and the real-time signals.
sigset_t HandledSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : kHandled) sigaddset(&set, signal);
  for (int signal = SIGRTMIN; signal <= SIGRTMAX; ++signal) sigaddset(&set, signal);
  return set;
}

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& s : strings) pointers.push_back(const_cast<char*>(s.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

uint64_t Nanoseconds(const timeval& t) {
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_usec) * 1000;
}

}  // namespace

absl::StatusOr<ChildProcess> ChildProcess::Start(const Command& command, int* exec_error) {
  *exec_error = 0;
  std::vector<char*> argv = Pointers(command.arguments);
  std::vector<char*> envp = Pointers(command.environment);
  // execvp()'s last resort for a file that is executable and no known format.
  std::vector<char*> shell_argv = {const_cast<char*>("sh"),
                                   const_cast<char*>(command.path.c_str())};
  shell_argv.insert(shell_argv.end(), argv.begin() + 1, argv.end());

  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "pipe");
  UniqueFd read_end(ends[0]), write_end(ends[1]);

  ChildProcess child;
  sigset_t& before = child.before_;
  child.handled_ = HandledSignals();
  sigprocmask(SIG_BLOCK, &child.handled_, &before);
  // Whoever started us may ignore SIGCHLD, and then there is nothing to wait for.
  struct sigaction sigchld_before, sigchld_default = {};
  sigchld_default.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &sigchld_default, &sigchld_before);

  child.pid_ = fork();
  if (child.pid_ < 0) {
    const int error = errno;
    sigprocmask(SIG_SETMASK, &before, nullptr);
    return absl::ErrnoToStatus(error, "cannot start a process");
  }
  if (child.pid_ == 0) {
    sigaction(SIGCHLD, &sigchld_before, nullptr);
    sigprocmask(SIG_SETMASK, &before, nullptr);
    execve(command.path.c_str(), argv.data(), envp.data());
    if (errno == ENOEXEC) execve("/bin/sh", shell_argv.data(), envp.data());
    const int error = errno;
    [[maybe_unused]] const ssize_t n = write(write_end.get(), &error, sizeof(error));
    _exit(127);
  }

  write_end.Close();
  ssize_t n;
  do n = read(read_end.get(), exec_error, sizeof(*exec_error));
  while (n < 0 && errno == EINTR);
  if (n == sizeof(*exec_error)) {
    while (waitpid(child.pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
    sigprocmask(SIG_SETMASK, &before, nullptr);
    return absl::FailedPreconditionError(
        absl::StrCat("cannot run ", command.path, ": ", strerror(*exec_error)));
  }
  *exec_error = 0;
  return child;
}

ProgramEnd ChildProcess::WaitForEnd() {
  ProgramEnd end;
  while (!Reap(&end)) {
    ReapOthers();
    siginfo_t info = {};
    if (sigwaitinfo(&handled_, &info) > 0) HandleSignal(info);
  }
  // The mask stays: what is sent now must not cut off the end of the trace.
  return end;
}

void ChildProcess::TakeSignalsAgain() {
  const timespec none = {};
  while (sigtimedwait(&handled_, nullptr, &none) > 0) {
  }
  sigprocmask(SIG_SETMASK, &before_, nullptr);
}

// True when the program has ended.
bool ChildProcess::Reap(ProgramEnd* end) {
  while (true) {
    int status = 0;
    rusage usage = {};
    const pid_t pid = wait4(pid_, &status, WNOHANG | WUNTRACED, &usage);
    if (pid < 0 && errno == EINTR) continue;
    if (pid == 0) return false;
    if (pid > 0 && WIFSTOPPED(status)) {
      StopLike(WSTOPSIG(status));
      continue;
    }
    end->wall_ns = NowNs(CLOCK_REALTIME);
    end->cpu_ns = Nanoseconds(usage.ru_utime) + Nanoseconds(usage.ru_stime);
    end->peak_rss_bytes = static_cast<uint64_t>(usage.ru_maxrss) * 1024;
    end->signaled = WIFSIGNALED(status);
    end->status = end->signaled ? WTERMSIG(status) : WEXITSTATUS(status);
    end->core_dumped = end->signaled && WCOREDUMP(status);
    return true;
  }
}

void ChildProcess::HandleSignal(const siginfo_t& info) {
  switch (info.si_signo) {
    case SIGCHLD:
    case SIGTTIN:  // meant for whoever touched the terminal, and that is never us
    case SIGTTOU:
      return;
    case SIGINT:
    case SIGQUIT:
    case SIGTSTP:
    case SIGWINCH:
      // The terminal tells the whole group; the program has it already.
      if (info.si_code == SI_KERNEL) return;
      break;
    case SIGHUP:
      // The whole group is told as well when its session's leader ends; but only the leader is told
      // that the terminal is gone.
      if (info.si_code == SI_KERNEL && getsid(0) != getpid()) return;
      break;
    case SIGCONT:
      // After a stop of the job, a shell sends SIGCONT to the whole group; a program that handles
      // it must not be told twice.
      if (std::exchange(stopped_, false) && !ProgramIsStopped()) return;
      break;
  }
  // Not reaped yet, so the pid is still the program's.
  if (info.si_code == SI_QUEUE) {
    sigqueue(pid_, info.si_signo, info.si_value);
  } else {
    kill(pid_, info.si_signo);
  }
}

bool ChildProcess::ProgramIsStopped() const {
  const std::optional<std::string> stat = ReadProcStat(pid_);
  // Not known: one SIGCONT too many does less harm.
  return !stat.has_value() || ProcStatField(*stat, 3) == "T";
}

// Children that are not the program: those we had before we became memtrace, and, where we
// are the first process of a container, everybody's orphans.
void ChildProcess::ReapOthers() const {
  siginfo_t info = {};
  while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0 &&
         info.si_pid != pid_) {
    waitpid(info.si_pid, nullptr, WNOHANG);
    info = {};
  }
}

// The shell must see its job stop. SIGSTOP is not copied: it was sent to the
// program by somebody who will send SIGCONT there too, and not to us.
void ChildProcess::StopLike(int signal) {
  if (signal != SIGTSTP && signal != SIGTTIN && signal != SIGTTOU) return;
  sigset_t set, before;
  sigemptyset(&set);
  sigaddset(&set, signal);
  stopped_ = true;
  raise(signal);
  // Stops here unless the group is orphaned, where the kernel drops the signal.
  sigprocmask(SIG_UNBLOCK, &set, &before);
  sigprocmask(SIG_SETMASK, &before, nullptr);
  // ^Z comes to the group as well; what is pending of it would stop us a second time.
  timespec none = {};
  while (sigtimedwait(&set, nullptr, &none) > 0) {
  }
}

}  // namespace memtrace::report
