// `memtrace pages`: the pages of running processes.

#ifndef MEMTRACE_REPORT_PAGES_COMMAND_PAGES_H_
#define MEMTRACE_REPORT_PAGES_COMMAND_PAGES_H_

namespace CLI {
class App;
}

namespace memtrace::report {

void RegisterPagesCommand(CLI::App& app, int* exit_code);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_PAGES_COMMAND_PAGES_H_
