// `memtrace check`: a gate for nightly tests. Exit status 0 clean, 1 something is not accepted,
// 2 no usable evidence; docs/gate.md is the manual.

#ifndef MEMTRACE_REPORT_GATE_COMMAND_CHECK_H_
#define MEMTRACE_REPORT_GATE_COMMAND_CHECK_H_

namespace CLI {
class App;
}

namespace memtrace::report {

// See commands.h. With --run the exit status is the program's, unless that is 0.
void RegisterCheckCommand(CLI::App& app, int* exit_code);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_GATE_COMMAND_CHECK_H_
