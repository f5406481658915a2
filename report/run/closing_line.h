// The one line that `memtrace run` prints when the program has ended.

#ifndef MEMTRACE_REPORT_RUN_CLOSING_LINE_H_
#define MEMTRACE_REPORT_RUN_CLOSING_LINE_H_

#include <string>

#include "report/pressure/oom_watch.h"
#include "report/run/child_process.h"
#include "report/run/spool_follower.h"

namespace memtrace::report {

// What is known of the end of a program that was ended by SIGKILL.
struct KillFacts {
  pressure::Kill kill;
  std::string heap_then;  // "the heap held 61.2 MiB in 512 blocks"; empty: not known
};

// How it reads: "wrote a.mtr (1.2 MiB, 4,512 allocations); next: memtrace report a.mtr".
// `end`: nullptr when not known. `result` has at least one trace.
std::string ClosingLine(const RunResult& result, const ProgramEnd* end,
                        const KillFacts* kill = nullptr);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_RUN_CLOSING_LINE_H_
