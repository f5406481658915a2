// `memtrace report` of a directory, or of several traces.

#ifndef MEMTRACE_REPORT_TREE_COMMAND_TREE_H_
#define MEMTRACE_REPORT_TREE_COMMAND_TREE_H_

#include "absl/status/status.h"
#include "report/cli/options.h"

namespace memtrace::report {

// Do the paths mean a report on several processes? One file does not.
bool MeansATree(const render::ReportFlags& flags);

// Writes the report of flags.files. What had to be skipped is in the report and gets a line
// on standard error, and so how many were not read because of Ctrl-C; `*exit_code` is then that of
// it. An error: there is no report.
absl::Status ReportTree(const render::ReportFlags& flags, int* exit_code);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_TREE_COMMAND_TREE_H_
