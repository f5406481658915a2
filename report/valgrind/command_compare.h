// `memtrace compare`: a trace beside what Valgrind found in another run of the program.

#ifndef MEMTRACE_REPORT_VALGRIND_COMMAND_COMPARE_H_
#define MEMTRACE_REPORT_VALGRIND_COMMAND_COMPARE_H_

namespace CLI {
class App;
}

namespace memtrace::report {

// Exit status: 0 both agree, or differ as expected; 1 they differ; 2 a file cannot be used.
void RegisterCompareCommand(CLI::App& app, int* exit_code);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_VALGRIND_COMMAND_COMPARE_H_
