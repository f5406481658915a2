// The commands of memtrace that this directory implements. Each Register...
// function adds a subcommand to the command line; when the user chose it, its
// callback runs it and stores the exit status in `*exit_code`:
//
//   0  done       2  it could not be done; one line on stderr says why
//
// Single-threaded. main.cc owns the CLI::App and the other commands.

#ifndef MEMTRACE_REPORT_COMMAND_COMMANDS_H_
#define MEMTRACE_REPORT_COMMAND_COMMANDS_H_

#include <string>

#include "absl/status/status.h"

namespace CLI {
class App;
}

namespace memtrace::report {

inline constexpr int kExitFailed = 2;

void RegisterDumpCommand(CLI::App& app, int* exit_code);
void RegisterInfoCommand(CLI::App& app, int* exit_code);
void RegisterPackCommand(CLI::App& app, int* exit_code);

// Prints "memtrace: <message>" on stderr and returns kExitFailed; 0 when ok.
int ExitCodeOf(const absl::Status& status);

// An error where the file to write is one that is read, which a report, a dump or half of its
// packed self would replace. `what` it is, for the message.
absl::Status RefuseToReplace(const std::string& read, const std::string& output,
                             absl::string_view what = "the trace itself");
// An error where a page, or what is no text, would go to a terminal.
absl::Status RefuseTerminal(absl::string_view format, const std::string& output);
// A file of something else is not replaced by a trace.
absl::Status RefuseToReplaceNoTrace(const std::string& output);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_COMMAND_COMMANDS_H_
