#include "report/diff/command_diff.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "absl/strings/str_cat.h"
#include "report/base/memory_limit.h"
#include "report/cli/exit_status.h"
#include "report/cli/filter_options.h"
#include "report/cli/refusals.h"
#include "report/diff/comparison_options.h"
#include "report/diff/diff_formats.h"
#include "report/diff/run_diff.h"
#include "report/render/progress.h"
#include "report/tree/trace_set.h"

namespace memtrace::report {
namespace {

constexpr int kExitGrew = 1;

struct Flags : ComparisonFlags {
  std::string old_run, new_run;
};

absl::Status RefuseToReplaceAny(const std::string& path, const std::string& output) {
  if (!IsDirectory(path)) return RefuseToReplace(path, output);
  const auto set = FindTraces({path});
  if (!set.ok()) return set.status();
  for (const TraceSet::File& file : set->files) {
    const absl::Status status = RefuseToReplace(file.path, output);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

// Times and blocks are those of one process.
absl::Status RefuseWhatIsOfOneTrace(const Flags& flags, const std::string& path) {
  if (!IsDirectory(path)) return absl::OkStatus();
  for (const GivenFilter& filter : GivenFilters(flags)) {
    if (filter.of_sites) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        filter.option, ": is for one trace on each side, and ", path, " is a directory of several"));
  }
  return absl::OkStatus();
}

// Each trace that was left out gets a line on standard error, as from `memtrace report`.
void TellSkipped(const RunSummary& run, bool* skipped) {
  for (const std::string& one : run.skipped) {
    *skipped = true;
    ExitCodeOf(absl::InvalidArgumentError(one));
  }
}

absl::Status Diff(const Flags& flags, bool* grew, bool* skipped, std::string* incomplete) {
  LimitMemory();
  const auto options = ParseComparison(flags);
  if (!options.ok()) return options.status();
  const auto shared = ParseCommon(flags, {"text", "json", "csv", "html"});
  if (!shared.ok()) return shared.status();
  for (const std::string& path : {flags.old_run, flags.new_run}) {
    absl::Status status = RefuseToReplaceAny(path, flags.output);
    status.Update(RefuseWhatIsOfOneTrace(flags, path));
    if (!status.ok()) return status;
  }

  render::Progress progress;
  SummaryOptions summary;
  summary.symbolizer = shared->symbolizer;
  summary.analyze = shared->analyze;
  summary.frames = shared->frames;
  summary.measure = options->measure;
  summary.progress = [&](absl::string_view what, double share) { progress.Report(what, share); };
  const auto old_run = SummarizeRun({flags.old_run}, summary);
  if (!old_run.ok()) return old_run.status();
  const auto new_run = SummarizeRun({flags.new_run}, summary);
  if (!new_run.ok()) return new_run.status();
  const auto diff = CompareRuns(*old_run, *new_run, *options);
  if (!diff.ok()) return diff.status();
  *grew = diff->grew();
  for (const RunSummary* run : {&*old_run, &*new_run}) {
    if (incomplete->empty() && !run->incomplete.empty()) *incomplete = run->incomplete.front();
  }
  progress.Clear();
  TellSkipped(*old_run, skipped);
  TellSkipped(*new_run, skipped);

  return WriteComparison(
      flags, *shared,
      {[&](size_t top, words::Sink& out) { RenderDiffJson(*diff, top, out); },
       [&](size_t top, words::Sink& out) { RenderDiffCsv(*diff, top, out); },
       [&](size_t top, words::Sink& out) { RenderDiffHtml(*diff, top, out); },
       [&](const render::TextOptions& text) { return RenderDiffText(*diff, text); }});
}

}  // namespace

void RegisterDiffCommand(CLI::App& app, int* exit_code) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand("diff", "What changed from one run to another");
  command->add_option("OLD", flags->old_run, "A trace, or a directory of the traces of a run")
      ->required()->type_name("");
  command->add_option("NEW", flags->new_run, "Another")->required()->type_name("");
  const auto add_filters = [command, flags] {
    AddTimeFilters(command, flags.get());
    AddBlockFilters(command, flags.get());
  };
  AddComparisonOptions(command, flags.get(), add_filters,
                       {"run (default), second, allocation: for runs that\ndid not do as much",
                        "Least change that counts: 4096, 64K, 10%",
                        "Exit with 1 when a site is new or grew",
                        "Every row, with its stack, nothing shortened", "",
                        "text (default), json, csv, html",
                        "Rows of each table; text: 10; json: 1000;\nhtml: 20000; csv: all"});
  command->footer(
      "Examples:\n"
      "  memtrace diff last-week.mtr today.mtr\n"
      "  memtrace diff old/ new/ --by peak --min 1M\n"
      "  memtrace diff old.mtr new.mtr --per allocation --exit-code\n"
      "  memtrace diff old.mtr new.mtr --format html -o diff.html");
  command->callback([flags, exit_code] {
    bool grew = false, skipped = false;
    std::string incomplete;
    *exit_code = ExitCodeOf(Diff(*flags, &grew, &skipped, &incomplete));
    if (*exit_code == 0 && grew && flags->exit_code) *exit_code = kExitGrew;
    if (*exit_code == 0 && flags->exit_code && !incomplete.empty()) {
      *exit_code = ExitCodeOf(absl::DataLossError(
          absl::StrCat(incomplete, "; that no site grew is not shown by it")));
    }
    if (*exit_code == 0 && skipped) *exit_code = kExitFailed;
  });
}

}  // namespace memtrace::report
