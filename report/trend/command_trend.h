// `memtrace trend`: adds a run to a history of nights, and tells which sites grow over them.

#ifndef MEMTRACE_REPORT_TREND_COMMAND_TREND_H_
#define MEMTRACE_REPORT_TREND_COMMAND_TREND_H_

namespace CLI {
class App;
}

namespace memtrace::report {

// See commands.h. Exit status 0; with --exit-code 1 when a site grows, and 2 when there are too
// few nights to tell; 2 when it could not be done, with one line on stderr.
void RegisterTrendCommand(CLI::App& app, int* exit_code);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_TREND_COMMAND_TREND_H_
