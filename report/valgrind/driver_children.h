// Which processes of a run memtrace-valgrind reports: those that Valgrind would have run.

#ifndef MEMTRACE_REPORT_VALGRIND_DRIVER_CHILDREN_H_
#define MEMTRACE_REPORT_VALGRIND_DRIVER_CHILDREN_H_

#include <string>
#include <vector>

#include "report/valgrind/driver_options.h"

namespace memtrace::report::valgrind {

// Of `traces`, in their order. `program`: the trace of the command's process, whatever it has become by
// an exec. Forked children are of it, and theirs. What began by an exec is left out with all that it made, unless
// options.trace_children, and then where a pattern of options.skip_children or skip_children_by_argument matches.
// What cannot be read stays, to be told of.
std::vector<std::string> TracesToReport(const std::vector<std::string>& traces, const std::string& program,
                                        const DriverOptions& options);

}  // namespace memtrace::report::valgrind

#endif  // MEMTRACE_REPORT_VALGRIND_DRIVER_CHILDREN_H_
