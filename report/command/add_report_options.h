// The options of `memtrace report`: their names, what --help says of each, and where its text goes.
// options.h reads these texts.

#ifndef MEMTRACE_REPORT_COMMAND_ADD_REPORT_OPTIONS_H_
#define MEMTRACE_REPORT_COMMAND_ADD_REPORT_OPTIONS_H_

#include "report/cli/options.h"

namespace CLI {
class App;
}

namespace memtrace::report {

// `flags` outlives the parsing.
void AddReportOptions(CLI::App* command, render::ReportFlags* flags);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_COMMAND_ADD_REPORT_OPTIONS_H_
