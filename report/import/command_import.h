// `memtrace import`: traces from the logs of other tools.

#ifndef MEMTRACE_REPORT_IMPORT_COMMAND_IMPORT_H_
#define MEMTRACE_REPORT_IMPORT_COMMAND_IMPORT_H_

namespace CLI {
class App;
}

namespace memtrace::report {

// See commands.h.
void RegisterImportCommand(CLI::App& app, int* exit_code);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_IMPORT_COMMAND_IMPORT_H_
