// What `memtrace diff` and `memtrace trend` both take: what is compared, in which unit, from
// which change on, and how it is written.

#ifndef MEMTRACE_REPORT_DIFF_COMPARISON_OPTIONS_H_
#define MEMTRACE_REPORT_DIFF_COMPARISON_OPTIONS_H_

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "report/cli/options.h"
#include "report/diff/run_diff.h"
#include "report/render/output.h"

namespace CLI {
class App;
}

namespace memtrace::report {

// The options of `diff` and `trend`, as the user typed them.
struct ComparisonFlags : render::FilterFlags {
  std::string by = "live", per = "run", min = "1";
  std::string format = "text", output, color = "auto", sysroot;
  std::vector<std::string> debug_dirs;
  std::optional<size_t> top;
  size_t width = 0;
  bool full = false, exit_code = false, debuginfod = false;
};

// Words of a command's own in the help.
struct ComparisonWords {
  std::string per, min, exit_code, full, names;
  std::string formats = "text (default), json, csv";
  std::string top = "Rows of each table; text: 10; json: 1000; csv: all";
};
// `add_filters` adds the command's own of FilterFlags, in their place.
void AddComparisonOptions(CLI::App* command, ComparisonFlags* flags,
                          const std::function<void()>& add_filters, const ComparisonWords& words);

// The options that say what is compared.
absl::StatusOr<DiffOptions> ParseComparison(const ComparisonFlags& flags);
// The options that say how the result is written, and where names come from. `formats`: those
// that the command has.
absl::StatusOr<render::ReportOptions> ParseCommon(
    const ComparisonFlags& flags,
    const std::vector<std::string>& formats = {"text", "json", "csv"});

// Writes it in the format that was asked for, at most so many rows of it.
struct ComparisonWriter {
  std::function<void(size_t top, words::Sink& out)> json, csv, html;
  std::function<std::string(const render::TextOptions& options)> text;
};
absl::Status WriteComparison(const ComparisonFlags& flags, const render::ReportOptions& common,
                             const ComparisonWriter& writer);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_DIFF_COMPARISON_OPTIONS_H_
