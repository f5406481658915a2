// Processes to write traces for, and traces that are large enough to matter.

#ifndef MEMTRACE_TESTS_REPORT_RUN_RUN_PROCESSES_H_
#define MEMTRACE_TESTS_REPORT_RUN_RUN_PROCESSES_H_

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/report/run/run_raw_trace.h"

namespace memtrace::report {

using Words = std::vector<uint64_t>;

inline Words operator+(Words a, const Words& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// A process that does nothing until it is ended.
class Sleeper {
 public:
  Sleeper() : pid_(fork()) {
    if (pid_ == 0) {
      while (true) pause();
    }
  }
  ~Sleeper() { End(); }
  uint32_t pid() const { return static_cast<uint32_t>(pid_); }
  void End() {
    if (pid_ < 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  pid_t pid_;
};

inline uint32_t EndedPid() {
  Sleeper sleeper;
  return sleeper.pid();
}

inline std::string RawName(const std::string& program, uint32_t pid, uint64_t start) {
  return program + "." + std::to_string(pid) + "." + std::to_string(start) + ".mtr";
}

// Enough blocks to be handed back: 40 blocks of 1 MiB with a ring and notes in between.
inline void WriteMuch(RawTrace* raw, uint32_t first, uint32_t last) {
  for (uint32_t i = first; i <= last; ++i) {
    raw->AppendEvents(1, i, RawTrace::Mallocs(65536, uint64_t{i} << 24));
  }
}
inline Words MuchWords(uint32_t first, uint32_t last) {
  Words words;
  for (uint32_t i = first; i <= last; ++i) {
    words = std::move(words) + RawTrace::Mallocs(65536, uint64_t{i} << 24);
  }
  return words;
}

}  // namespace memtrace::report

#endif  // MEMTRACE_TESTS_REPORT_RUN_RUN_PROCESSES_H_
