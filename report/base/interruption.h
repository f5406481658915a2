// Interruption: Ctrl-C during a long read asks for what is known so far.
//
// While the object exists, the first SIGINT makes requested() true and the next one ends the
// process, as every SIGINT does before and afterwards. Where the process ignores SIGINT (as a
// background job of a shell without job control does) it stays ignored.
//
// One at a time, in the thread that SIGINT shall interrupt; the others block it.

#ifndef MEMTRACE_REPORT_BASE_INTERRUPTION_H_
#define MEMTRACE_REPORT_BASE_INTERRUPTION_H_

#include <signal.h>

namespace memtrace::report {

// The exit status that a shell gives for a death by SIGINT: 128 plus the number of the signal.
inline constexpr int kExitInterrupted = 130;

class Interruption {
 public:
  Interruption();
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  bool requested() const;

 private:
  struct sigaction before_;
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_BASE_INTERRUPTION_H_
