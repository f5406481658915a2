// Runs the built memtrace as a user would, and keeps what came out of it.

#ifndef MEMTRACE_TESTS_REPORT_RUN_RUN_E2E_H_
#define MEMTRACE_TESTS_REPORT_RUN_RUN_E2E_H_

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "tests/report/run/run_raw_trace.h"

namespace memtrace::report {

struct Outcome {
  int status = -1;       // exit status, or 1000 + signal
  std::string out, err;
};

// A process that runs, with both its outputs in pipes.
class Running {
 public:
  // `prepare` runs in the child before it executes; `input` becomes its standard input.
  Running(std::vector<std::string> command, const std::string& directory,
          const std::string& input = "", const std::function<void()>& prepare = nullptr)
      : input_(input) {
    int in[2], out[2], err[2];
    EXPECT_EQ(pipe2(in, O_CLOEXEC) | pipe2(out, O_CLOEXEC) | pipe2(err, O_CLOEXEC), 0);
    std::vector<char*> argv;
    for (std::string& word : command) argv.push_back(word.data());
    argv.push_back(nullptr);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(in[0], 0);
      dup2(out[1], 1);
      dup2(err[1], 2);
      close_range(3, ~0u, CLOSE_RANGE_CLOEXEC);  // what we were started with
      if (chdir(directory.c_str()) != 0) _exit(98);
      if (prepare) prepare();
      execvp(argv[0], argv.data());
      _exit(97);
    }
    close(in[0]), close(out[1]), close(err[1]);
    in_ = in[1], out_ = out[0], err_ = err[0];
    fcntl(in_, F_SETFL, O_NONBLOCK);
  }
  ~Running() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    for (int fd : {in_, out_, err_}) {
      if (fd >= 0) close(fd);
    }
  }
  pid_t pid() const { return pid_; }

  // Returns when standard output holds `text`, or it ends.
  void WaitFor(const std::string& text) {
    while (outcome_.out.find(text) == std::string::npos && Pump()) {
    }
    EXPECT_NE(outcome_.out.find(text), std::string::npos);
  }

  Outcome Wait() {
    // Children may hold the pipes longer than the process lives; then its end is enough.
    while (Pump() && (in_ >= 0 || waitid(P_PID, static_cast<id_t>(pid_), &ended_,
                                         WEXITED | WNOHANG | WNOWAIT) != 0 ||
                      ended_.si_pid == 0)) {
    }
    int status = 0;
    EXPECT_EQ(waitpid(pid_, &status, 0), pid_);
    pid_ = -1;
    outcome_.status = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
    while (Pump(0)) {
    }
    return outcome_;
  }

 private:
  // Moves bytes for up to 20 ms; false when both outputs have ended or nothing came in time 0.
  bool Pump(int timeout_ms = 20) {
    if (in_ >= 0 && input_.empty()) {
      close(in_);
      in_ = -1;
    }
    pollfd fds[] = {{in_, POLLOUT, 0}, {out_, POLLIN, 0}, {err_, POLLIN, 0}};
    if (out_ < 0 && err_ < 0) return false;
    const int ready = poll(fds, 3, timeout_ms);
    if (ready == 0) return timeout_ms != 0;
    if (fds[0].revents != 0) {
      const ssize_t n = write(in_, input_.data(), input_.size());
      if (n > 0) input_.erase(0, static_cast<size_t>(n));
      if (n < 0) input_.clear();
    }
    Take(fds[1], &out_, &outcome_.out);
    Take(fds[2], &err_, &outcome_.err);
    return true;
  }
  void Take(const pollfd& ready, int* fd, std::string* text) {
    if (ready.fd < 0 || ready.revents == 0) return;
    char buffer[65536];
    const ssize_t n = read(*fd, buffer, sizeof(buffer));
    if (n > 0) {
      text->append(buffer, static_cast<size_t>(n));
    } else {
      close(*fd);
      *fd = -1;
    }
  }

  pid_t pid_ = -1;
  int in_ = -1, out_ = -1, err_ = -1;
  std::string input_;
  siginfo_t ended_ = {};
  Outcome outcome_;
};

class RunTest : public ::testing::Test {
 protected:
  // memtrace run -o out.mtr OPTIONS -- COMMAND
  std::vector<std::string> Command(const std::vector<std::string>& command,
                                   const std::vector<std::string>& options = {}) {
    std::vector<std::string> all = {RUN_MEMTRACE, "run"};
    if (std::find(options.begin(), options.end(), "-o") == options.end()) {
      all.insert(all.end(), {"-o", directory_ / "out.mtr"});
    }
    all.insert(all.end(), options.begin(), options.end());
    all.push_back("--");
    all.insert(all.end(), command.begin(), command.end());
    return all;
  }
  Outcome Run(const std::vector<std::string>& command, const std::vector<std::string>& options = {},
              const std::string& input = "", const std::function<void()>& prepare = nullptr) {
    signal(SIGPIPE, SIG_IGN);
    return Running(Command(command, options), directory_.path(), input, prepare).Wait();
  }
  // The program by itself, to compare with.
  Outcome Plain(const std::vector<std::string>& command, const std::string& input = "",
                const std::function<void()>& prepare = nullptr) {
    return Running(command, directory_.path(), input, prepare).Wait();
  }
  void ExpectNothingLeft(const std::vector<std::string>& but = {}) {
    EXPECT_THAT(FilesIn(directory_), ::testing::UnorderedElementsAreArray(but));
  }
  static uint64_t Allocations(const PackedTrace& trace) {
    uint64_t count = 0;
    for (const auto& [thread, words] : trace.events) {
      for (size_t i = 0; i < words.size(); i += format::EventWords(words[i])) {
        const format::EventKind kind = format::KindOf(words[i]);
        const bool allocates =
            kind == format::EventKind::kMalloc || kind == format::EventKind::kCalloc ||
            kind == format::EventKind::kRealloc || kind == format::EventKind::kWideAlloc;
        if (allocates && format::AddressOf(words[i]) != 0) ++count;
      }
    }
    return count;
  }

  TempDir directory_;
  const std::string tracee_ = RUN_DYNAMIC_PROGRAM;
};

}  // namespace memtrace::report

#endif  // MEMTRACE_TESTS_REPORT_RUN_RUN_E2E_H_
