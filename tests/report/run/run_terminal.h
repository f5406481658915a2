// A terminal with a shell's part in it, for tests of `memtrace run` as a job.

#ifndef MEMTRACE_TESTS_REPORT_RUN_RUN_TERMINAL_H_
#define MEMTRACE_TESTS_REPORT_RUN_RUN_TERMINAL_H_

#include <pty.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <termios.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "tests/report/run/run_e2e.h"

namespace memtrace::report {

// A shell's part: a session with a terminal, memtrace in its foreground group.
class TerminalTest : public RunTest {
 protected:
  // In the background: the shell keeps the terminal, until it is told to continue the job.
  void StartInBackground(const std::vector<std::string>& command) {
    background_ = true;
    Start(command);
  }
  void Start(const std::vector<std::string>& command) {
    ASSERT_EQ(openpty(&terminal_, &other_end_, nullptr, nullptr, nullptr), 0);
    fcntl(terminal_, F_SETFD, FD_CLOEXEC);
    fcntl(terminal_, F_SETFL, O_NONBLOCK);
    std::vector<std::string> words = Command(command);
    ASSERT_EQ(pipe2(states_, O_CLOEXEC), 0);
    shell_ = fork();
    if (shell_ == 0) Shell(words);
    close(states_[1]);
  }
  // Never returns: reports 's' when the job has stopped for ^Z, 'i' when for input,
  // continues it in the foreground when told by SIGUSR1, and exits as the job does.
  void Shell(std::vector<std::string>& words) {
    close(terminal_);  // or it would not be gone when the test closes it
    setsid();
    ioctl(other_end_, TIOCSCTTY, 0);
    signal(SIGTTOU, SIG_IGN);
    sigset_t go;
    sigemptyset(&go);
    sigaddset(&go, SIGUSR1);
    sigprocmask(SIG_BLOCK, &go, nullptr);
    const pid_t job = fork();
    if (job == 0) {
      sigprocmask(SIG_UNBLOCK, &go, nullptr);
      setpgid(0, 0);
      if (!background_) tcsetpgrp(other_end_, getpid());
      signal(SIGTTOU, SIG_DFL);
      for (int fd : {0, 1, 2}) dup2(other_end_, fd);
      std::vector<char*> argv;
      for (std::string& word : words) argv.push_back(word.data());
      argv.push_back(nullptr);
      execv(argv[0], argv.data());
      _exit(97);
    }
    while (true) {
      int status;
      if (waitpid(job, &status, WUNTRACED) != job) _exit(95);
      if (!WIFSTOPPED(status)) _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 94);
      const char state = WSTOPSIG(status) == SIGTSTP   ? 's'
                         : WSTOPSIG(status) == SIGTTIN ? 'i'
                                                       : '?';
      tcsetpgrp(other_end_, getpid());  // as a shell that has its prompt back
      [[maybe_unused]] const ssize_t n = write(states_[1], &state, 1);
      sigwaitinfo(&go, nullptr);
      tcsetpgrp(other_end_, job);
      kill(-job, SIGCONT);
    }
  }
  std::string ReadUntil(const std::string& text) {
    std::string seen;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (seen.find(text) == seen.npos && std::chrono::steady_clock::now() < deadline) {
      char buffer[1024];
      const ssize_t n = read(terminal_, buffer, sizeof(buffer));
      if (n > 0) seen.append(buffer, static_cast<size_t>(n));
      if (n <= 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    EXPECT_THAT(seen, ::testing::HasSubstr(text));
    return seen;
  }
  void Type(char c) { ASSERT_EQ(write(terminal_, &c, 1), 1); }
  void Type(const std::string& text) {
    ASSERT_EQ(write(terminal_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  // The process group that control characters go to.
  pid_t Foreground() const { return tcgetpgrp(terminal_); }
  // Why the shell saw its job stop.
  char WaitForStop() {
    char state = 0;
    EXPECT_EQ(read(states_[0], &state, 1), 1);
    return state;
  }
  void ContinueInForeground() { kill(shell_, SIGUSR1); }
  int WaitForShell() {
    int status = 0;
    waitpid(shell_, &status, 0);
    shell_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  ~TerminalTest() override {
    if (shell_ > 0) {
      kill(shell_, SIGKILL);
      waitpid(shell_, nullptr, 0);
    }
  }

  int terminal_ = -1, other_end_ = -1;
  int states_[2] = {-1, -1};
  pid_t shell_ = -1;
  bool background_ = false;
};

}  // namespace memtrace::report

#endif  // MEMTRACE_TESTS_REPORT_RUN_RUN_TERMINAL_H_
