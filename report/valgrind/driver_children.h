// Which processes of a run memtrace-valgrind reports: those that Valgrind would have run.

#ifndef MEMTRACE_REPORT_VALGRIND_DRIVER_CHILDREN_H_
#define MEMTRACE_REPORT_VALGRIND_DRIVER_CHILDREN_H_

#include <string>
#include <vector>

#include "report/valgrind/driver_options.h"

namespace memtrace::report::valgrind {

struct TraceToReport {
  std::string file;
  // The image of the same process that came by an exec.
  enum class Next { kNoTrace, kReported, kLeftOut } next = Next::kNoTrace;
  std::string next_program;  // as it was called; empty without a trace
  bool is_commands = true;   // of the command's process, not of a child; true where that is not known
};

// The traces to report of `traces`, in their order. `program` is the trace of the command's
// process, whatever that has become by an exec; forked children belong to it, and their children. A
// process that began by an exec is left out with all that it made, unless options.trace_children is
// set and no pattern of options.skip_children or skip_children_by_argument matches. A file that
// cannot be read stays, so that the user is told of it.
std::vector<TraceToReport> TracesToReport(const std::vector<std::string>& traces,
                                          const std::string& program, const DriverOptions& options);

}  // namespace memtrace::report::valgrind

#endif  // MEMTRACE_REPORT_VALGRIND_DRIVER_CHILDREN_H_
