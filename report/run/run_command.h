// `memtrace run`: starts a program with libmemtrace.so preloaded, packs its trace
// while it runs, and ends as it ended. docs/run.md is the manual.

#ifndef MEMTRACE_REPORT_RUN_RUN_COMMAND_H_
#define MEMTRACE_REPORT_RUN_RUN_COMMAND_H_

namespace CLI {
class App;
}

namespace memtrace::report {

// Adds the subcommand `run`. Its callback stores the exit status: the program's
// own, 128 + n after signal n, 2 when it could not be traced, 126 and 127 as
// shells use them.
void RegisterRunCommand(CLI::App& app, int* exit_code);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_RUN_RUN_COMMAND_H_
