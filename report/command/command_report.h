// `memtrace report`: analyzes a trace, symbolizes it, renders it.

#ifndef MEMTRACE_REPORT_COMMAND_COMMAND_REPORT_H_
#define MEMTRACE_REPORT_COMMAND_COMMAND_REPORT_H_

namespace CLI {
class App;
}

namespace memtrace::report {

// See commands.h. Exit status 0, or 2 with one line on stderr.
void RegisterReportCommand(CLI::App& app, int* exit_code);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_COMMAND_COMMAND_REPORT_H_
