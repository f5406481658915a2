// `memtrace diff OLD NEW`: what changed from one run to another, site by site.

#ifndef MEMTRACE_REPORT_DIFF_COMMAND_DIFF_H_
#define MEMTRACE_REPORT_DIFF_COMMAND_DIFF_H_

namespace CLI {
class App;
}

namespace memtrace::report {

// See commands.h. Exit status 0; 1 with --exit-code when a site is new or grew; 2 when the two
// cannot be compared, with one line on stderr.
void RegisterDiffCommand(CLI::App& app, int* exit_code);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_DIFF_COMMAND_DIFF_H_
