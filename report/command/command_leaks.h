// `memtrace leaks PID`: asks a traced process for a memory scan, and reports what it found.
//
// The trace of the process is the file that its rings are mapped from (running_trace.h). The
// request is a number in the status area of that file (format::StatusArea), which the library
// looks at where it looks at clocks. What is reported is what the trace has then
// (trace_snapshot.h): it goes on to be written, and to be packed by `memtrace run`.

#ifndef MEMTRACE_REPORT_COMMAND_COMMAND_LEAKS_H_
#define MEMTRACE_REPORT_COMMAND_COMMAND_LEAKS_H_

namespace CLI {
class App;
}

namespace memtrace::report {

// See commands.h.
void RegisterLeaksCommand(CLI::App& app, int* exit_code);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_COMMAND_COMMAND_LEAKS_H_
