#include "report/diff/command_diff.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "report/commands.h"
#include "report/diff/diff_formats.h"
#include "report/diff/run_diff.h"
#include "report/memory_limit.h"
#include "report/options.h"
#include "report/render/formats.h"
#include "report/render/output.h"
#include "report/render/progress.h"
#include "report/tree/trace_set.h"

namespace memtrace::report {
namespace {

constexpr int kExitGrew = 1;

struct Flags {
  std::string old_run, new_run, by = "live", per = "run", min = "1", match;
  std::string format = "text", output, color = "auto", sysroot;
  std::vector<std::string> debug_dirs;
  std::optional<size_t> top;
  size_t width = 0;
  bool full = false, exit_code = false, debuginfod = false;
};

std::string WholeNumber(const std::string& text) {
  uint64_t number;
  if (absl::SimpleAtoi(text, &number)) return "";
  return absl::StrCat("\"", text, "\" is not a whole number");
}

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

// What was left out gets a line on standard error, as from `memtrace report`.
void TellSkipped(const RunSummary& run, bool* skipped) {
  for (const std::string& one : run.skipped) {
    *skipped = true;
    ExitCodeOf(absl::InvalidArgumentError(one));
  }
}

absl::Status Diff(const Flags& flags, bool* grew, bool* skipped) {
  LimitMemory();
  DiffOptions options;
  const auto measure = ParseMeasure("--by", flags.by);
  if (!measure.ok()) return measure.status();
  options.measure = *measure;
  const auto per = ParsePer(flags.per);
  if (!per.ok()) return per.status();
  options.per = *per;
  const auto least = ParseLeast(flags.min);
  if (!least.ok()) return least.status();
  options.least = *least;
  if (options.per != Per::kRun && flags.min == "1") options.least = {};  // bytes, not a rate
  render::ReportFlags common;  // what the report takes as well
  common.format = flags.format;
  common.color = flags.color;
  common.sysroot = flags.sysroot;
  common.debug_dirs = flags.debug_dirs;
  common.debuginfod = flags.debuginfod;
  if (flags.format != "text" && flags.format != "json" && flags.format != "csv") {
    return absl::InvalidArgumentError(
        absl::StrCat("--format: \"", flags.format, "\" is none of text, json, csv"));
  }
  const auto shared = render::ParseReportFlags(common);
  if (!shared.ok()) return shared.status();
  for (const std::string& path : {flags.old_run, flags.new_run}) {
    const absl::Status status = RefuseToReplaceAny(path, flags.output);
    if (!status.ok()) return status;
  }

  render::Progress progress;
  SummaryOptions summary;
  summary.symbolizer = shared->symbolizer;
  summary.match = flags.match;
  summary.progress = [&](absl::string_view what, double share) { progress.Report(what, share); };
  const auto old_run = SummarizeRun({flags.old_run}, summary);
  if (!old_run.ok()) return old_run.status();
  const auto new_run = SummarizeRun({flags.new_run}, summary);
  if (!new_run.ok()) return new_run.status();
  const auto diff = CompareRuns(*old_run, *new_run, options);
  if (!diff.ok()) return diff.status();
  *grew = diff->grew();
  progress.Clear();
  TellSkipped(*old_run, skipped);
  TellSkipped(*new_run, skipped);

  auto out = render::Output::Open(flags.output);
  if (!out.ok()) return out.status();
  switch (shared->format) {
    case render::ReportFormat::kJson:
      RenderDiffJson(*diff, flags.top.value_or(flags.full ? render::kAllRows : render::kJsonRows), *out);
      break;
    case render::ReportFormat::kCsv:
      RenderDiffCsv(*diff, flags.top.value_or(render::kAllRows), *out);
      break;
    default: {
      render::TextOptions text;
      text.style = render::StyleFor(out->fd(), shared->color, flags.width);
      text.top = flags.top.value_or(10);
      text.full = flags.full;
      out->Write(RenderDiffText(*diff, text));
    }
  }
  return out->Commit();
}

}  // namespace

void RegisterDiffCommand(CLI::App& app, int* exit_code) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand("diff", "What changed from one run to another");
  command->add_option("OLD", flags->old_run, "A trace, or a directory of the traces of a run")
      ->required()->type_name("");
  command->add_option("NEW", flags->new_run, "Another")->required()->type_name("");
  command->add_option("--by", flags->by,
                      "live (default), live-blocks, peak, allocated,\n"
                      "allocations, temporary; where the memory was scanned\n"
                      "definite, indirect, possible, reachable")
      ->type_name("WHAT");
  command->add_option("--per", flags->per, "run (default), second, allocation: for runs that\n"
                      "did not do as much")
      ->type_name("UNIT");
  command->add_option("--min", flags->min, "Least change that counts: 4096, 64K, 10%")
      ->type_name("AMOUNT");
  command->add_option("--match", flags->match,
                      "Only sites with a frame whose function, file or\nmodule matches")
      ->type_name("REGEX");
  command->add_flag("--exit-code", flags->exit_code, "Exit with 1 when a site is new or grew");
  command->add_option("-f,--format", flags->format, "text (default), json, csv")->type_name("F");
  command->add_option("-o,--output", flags->output, "Write here, whole or not at all")
      ->type_name("OUT");
  command->add_option("--top", flags->top, "Rows of each table; text: 10; json: 1000; csv: all")
      ->type_name("N")->check(WholeNumber, "");
  command->add_flag("--full", flags->full, "Every row, with its stack, nothing shortened");
  command->add_option("--color", flags->color, "auto (default), always, never")->type_name("WHEN");
  command->add_option("--width", flags->width, "Columns of text, 60 to 200")
      ->type_name("N")->check(WholeNumber, "");
  command->add_option("--debug-dir", flags->debug_dirs,
                      "Separate debug files are here as well; repeatable")
      ->type_name("D")->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_option("--sysroot", flags->sysroot, "The traced machine's files are below here")
      ->type_name("D");
  command->add_flag("--debuginfod", flags->debuginfod,
                    "Fetch missing debug files from DEBUGINFOD_URLS");
  command->footer(
      "Examples:\n"
      "  memtrace diff last-week.mtr today.mtr\n"
      "  memtrace diff old/ new/ --by peak --min 1M\n"
      "  memtrace diff old.mtr new.mtr --per allocation --exit-code");
  command->callback([flags, exit_code] {
    bool grew = false, skipped = false;
    *exit_code = ExitCodeOf(Diff(*flags, &grew, &skipped));
    if (*exit_code == 0 && grew && flags->exit_code) *exit_code = kExitGrew;
    if (*exit_code == 0 && skipped) *exit_code = kExitFailed;
  });
}

}  // namespace memtrace::report
