// The commands of memtrace that this directory implements. Each Register...
// function adds a subcommand to the command line; when the user chose it, its
// callback runs it and stores the exit status in `*exit_code`:
//
//   0  done       2  it could not be done; one line on stderr says why
//
// Single-threaded. main.cc owns the CLI::App and the other commands.

#ifndef MEMTRACE_REPORT_COMMAND_COMMANDS_H_
#define MEMTRACE_REPORT_COMMAND_COMMANDS_H_

namespace CLI {
class App;
}

namespace memtrace::report {

void RegisterDumpCommand(CLI::App& app, int* exit_code);
void RegisterInfoCommand(CLI::App& app, int* exit_code);
void RegisterPackCommand(CLI::App& app, int* exit_code);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_COMMAND_COMMANDS_H_
