// The options that choose what of a trace is looked at, said in one way by all commands. What they
// mean is parsed by ParseReportFlags().

#ifndef MEMTRACE_REPORT_CLI_FILTER_OPTIONS_H_
#define MEMTRACE_REPORT_CLI_FILTER_OPTIONS_H_

#include <string>
#include <utility>
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

// Those that choose sites, by their frames: what a choice of them has, it has whole.
inline constexpr absl::string_view kSiteFilters[] = {"--match", "--function", "--file", "--module"};

// The options that were given, in the order of the help: ("--from", "90%").
std::vector<std::pair<absl::string_view, std::string>> GivenFilters(
    const render::FilterFlags& flags);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_CLI_FILTER_OPTIONS_H_
