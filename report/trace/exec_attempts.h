// ExecAttempts: the execs whose last words a trace has, and which of them failed. Other threads go
// on until the kernel ends them, so that events behind the last words say nothing.

#ifndef MEMTRACE_REPORT_TRACE_EXEC_ATTEMPTS_H_
#define MEMTRACE_REPORT_TRACE_EXEC_ATTEMPTS_H_

#include <cstdint>

#include "absl/container/flat_hash_set.h"

namespace memtrace::report {

// From the last words to the end of the other threads it takes longer only where the program's file
// comes over a slow network.
inline constexpr uint64_t kLongestExecNs = 1'000'000'000;

// The blocks of a file may be in another order than they were written, and some of them gone.
class ExecAttempts {
 public:
  // An exec is told by the ticks of its kEnd.
  void Begin(uint64_t ticks) {
    if (failed_.erase(ticks) == 0) begun_.insert(ticks);
  }
  void Fail(uint64_t ticks) {
    if (begun_.erase(ticks) == 0) failed_.insert(ticks);
  }
  // Whether one did not fail: it replaced the program.
  bool Replaced() const { return !begun_.empty(); }

 private:
  absl::flat_hash_set<uint64_t> begun_;   // and not failed
  absl::flat_hash_set<uint64_t> failed_;  // of those whose kEnd was not met yet
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_TRACE_EXEC_ATTEMPTS_H_
