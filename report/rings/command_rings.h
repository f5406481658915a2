// `memtrace rings`: memory by source folder, file and function.

#ifndef MEMTRACE_REPORT_RINGS_COMMAND_RINGS_H_
#define MEMTRACE_REPORT_RINGS_COMMAND_RINGS_H_

namespace CLI {
class App;
}

namespace memtrace::report {

// See commands.h.
void RegisterRingsCommand(CLI::App& app, int* exit_code);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_RINGS_COMMAND_RINGS_H_
