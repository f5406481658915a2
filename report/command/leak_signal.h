// SendLeakSignal(): wakes an idle process that was started with MEMTRACE_LEAK_SIGNAL=N,
// for `memtrace leaks`.
//
// The signal goes to one thread, and only to one whose handler will run: a thread that waits for
// signals by sigwait() would take it for one of the program's, and one that all threads block would
// stay pending for whoever unblocks it. It takes along which call of the kernel the thread was seen
// in, which its handler makes again (format/leak_signal.h).

#ifndef MEMTRACE_REPORT_COMMAND_LEAK_SIGNAL_H_
#define MEMTRACE_REPORT_COMMAND_LEAK_SIGNAL_H_

#include "format/trace_format.h"

namespace memtrace::report {

struct LeakSignal {
  int number = 0;            // that the process was started with; 0: none
  bool has_handler = false;  // the process has one for it: without, it would end most programs
  bool sent = false;         // there was a thread that takes it
};

// `area` is the status of the trace that the process writes.
LeakSignal SendLeakSignal(int pid, const format::StatusArea& area);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_COMMAND_LEAK_SIGNAL_H_
