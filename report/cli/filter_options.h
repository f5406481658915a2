// The options that choose what of a trace is looked at, said in one way by all commands. What they
// mean is parsed by ParseReportFlags().

#ifndef MEMTRACE_REPORT_CLI_FILTER_OPTIONS_H_
#define MEMTRACE_REPORT_CLI_FILTER_OPTIONS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "report/cli/options.h"

namespace CLI {
class App;
}

namespace memtrace::report {

void AddTimeFilters(CLI::App* command, render::FilterFlags* flags);   // --from, --to, --at
// --thread, --match, --function, --file, --module, --size, --lifetime, --age.
// `what_matches` is added to what --match says.
void AddBlockFilters(CLI::App* command, render::FilterFlags* flags,
                     absl::string_view what_matches = "");

struct GivenFilter {
  absl::string_view option;  // "--from"
  std::string value;         // "90%"
  bool of_sites;  // it chooses sites, by their frames; else times or blocks, of one process
};
// The options that were given, in the order of the help.
std::vector<GivenFilter> GivenFilters(const render::FilterFlags& flags);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_CLI_FILTER_OPTIONS_H_
