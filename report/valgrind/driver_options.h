// The words behind `memtrace-valgrind`: the options of Valgrind's that have a meaning here,
// those that have none, and the program. docs/man/memtrace-valgrind.1 lists them.

#ifndef MEMTRACE_REPORT_VALGRIND_DRIVER_OPTIONS_H_
#define MEMTRACE_REPORT_VALGRIND_DRIVER_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "report/leak/heuristics.h"
#include "report/leak/leak_kinds.h"
#include "report/render/valgrind_losses.h"
#include "report/render/valgrind_report.h"
#include "report/valgrind/driver_config.h"

namespace memtrace::report::valgrind {

struct DriverOptions {
  enum class GenSuppressions { kNo, kAll };

  int verbosity = 1;
  render::ValgrindStyle::LeakCheck leak_check = render::ValgrindStyle::LeakCheck::kSummary;
  LeakKindSet show = LeakKindSet::Default();
  LeakKindSet errors = LeakKindSet::Default();
  leak::HeuristicSet heuristics = leak::kAllHeuristics;
  render::LeakResolution resolution = render::LeakResolution::kHigh;
  size_t callers = 12;
  bool below_main = false;
  std::vector<std::string> suppressions;
  bool default_suppressions = true;
  GenSuppressions gen_suppressions = GenSuppressions::kNo;
  int error_exitcode = 0;
  bool mismatched_frees = true;
  bool xml = false;
  std::string log_file, xml_file;  // with %p, %q{VAR}, %n, %%
  std::optional<int> log_fd, xml_fd;
  std::string user_comment;
  bool trace_children = false;
  // Patterns with * and ?, of executables and of arguments.
  std::vector<std::string> skip_children, skip_children_by_argument;
  bool child_silent_after_fork = false;
  std::vector<std::string> ignored;  // options of Valgrind's without a meaning here
  std::vector<std::string> missed;   // of these, those that ask for more than is done
  std::vector<std::string> command;
  bool help = false, version = false;
};

// `words`: without the name of the driver. `configured` come before them. InvalidArgument says
// which word is wrong, and where it was set.
absl::StatusOr<DriverOptions> ParseDriverOptions(
    const std::vector<std::string>& words, const std::vector<ConfiguredOptions>& configured = {});

// %p: the pid; %q{VAR}: that environment variable; %n: `number`; %%: a per cent sign.
absl::StatusOr<std::string> ExpandLogName(
    absl::string_view name, uint32_t pid, uint32_t number,
    const std::function<std::optional<std::string>(const std::string&)>& variable);

std::string DriverHelp();

}  // namespace memtrace::report::valgrind

#endif  // MEMTRACE_REPORT_VALGRIND_DRIVER_OPTIONS_H_
