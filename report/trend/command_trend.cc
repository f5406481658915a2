#include "report/trend/command_trend.h"

#include <time.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "report/commands.h"
#include "report/memory_limit.h"
#include "report/options.h"
#include "report/render/formats.h"
#include "report/render/output.h"
#include "report/render/progress.h"
#include "report/trend/history.h"
#include "report/trend/trend.h"
#include "report/trend/trend_formats.h"

namespace memtrace::report {
namespace {

constexpr int kExitGrows = 1;

struct Flags {
  std::vector<std::string> paths;
  bool add = false;
  std::string label, by = "live", per = "run", min = "1", match, chance = "0.01";
  std::string format = "text", output, color = "auto", sysroot;
  std::vector<std::string> debug_dirs;
  std::optional<size_t> top;
  size_t width = 0, nights = 5, last = SIZE_MAX;
  bool full = false, exit_code = false, debuginfod = false;
};

std::string WholeNumber(const std::string& text) {
  uint64_t number;
  if (absl::SimpleAtoi(text, &number)) return "";
  return absl::StrCat("\"", text, "\" is not a whole number");
}

absl::StatusOr<render::ReportOptions> CommonOptions(const Flags& flags) {
  if (flags.format != "text" && flags.format != "json" && flags.format != "csv") {
    return absl::InvalidArgumentError(
        absl::StrCat("--format: \"", flags.format, "\" is none of text, json, csv"));
  }
  render::ReportFlags common;
  common.format = flags.format;
  common.color = flags.color;
  common.sysroot = flags.sysroot;
  common.debug_dirs = flags.debug_dirs;
  common.debuginfod = flags.debuginfod;
  return render::ParseReportFlags(common);
}

absl::Status Add(const Flags& flags, bool* skipped) {
  if (flags.paths.size() < 2) {
    return absl::InvalidArgumentError("trend --add: traces, and behind them the history's directory");
  }
  LimitMemory();
  const auto common = CommonOptions(flags);
  if (!common.ok()) return common.status();
  render::Progress progress;
  SummaryOptions options;
  options.symbolizer = common->symbolizer;
  options.progress = [&](absl::string_view what, double share) { progress.Report(what, share); };
  auto run = SummarizeRun({flags.paths.begin(), flags.paths.end() - 1}, options);
  if (!run.ok()) return run.status();
  progress.Clear();
  for (const std::string& one : run->skipped) {
    *skipped = true;
    ExitCodeOf(absl::InvalidArgumentError(one));
  }
  Night night;
  night.label = flags.label;
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  night.added_realtime_ns = int64_t{now.tv_sec} * 1000000000 + now.tv_nsec;
  night.run = *std::move(run);
  return AppendNight(flags.paths.back(), night);
}

absl::Status Show(const Flags& flags, int* verdict) {
  if (flags.paths.size() != 1) {
    return absl::InvalidArgumentError("trend: one directory of a history; --add puts traces into it");
  }
  const auto common = CommonOptions(flags);
  if (!common.ok()) return common.status();
  TrendOptions options;
  const auto measure = ParseMeasure("--by", flags.by);
  if (!measure.ok()) return measure.status();
  options.measure = *measure;
  const auto per = ParsePer(flags.per);
  if (!per.ok()) return per.status();
  options.per = *per;
  const auto least = ParseLeast(flags.min);
  if (!least.ok()) return least.status();
  options.least = *least;
  if (options.per != Per::kRun && flags.min == "1") options.least = {};
  if (!absl::SimpleAtod(flags.chance, &options.chance) || !(options.chance > 0) || options.chance > 0.5) {
    return absl::InvalidArgumentError(
        absl::StrCat("--chance: \"", flags.chance, "\" is no share above 0 and up to 0.5"));
  }
  options.match = flags.match;
  options.last = std::max<size_t>(flags.last, 1);
  options.fewest = std::max<size_t>(flags.nights, 3);
  const std::string& directory = flags.paths.front();
  const auto history = ReadHistory(directory);
  if (!history.ok()) return history.status();
  const auto trend = FindTrends(*history, options);
  if (!trend.ok()) return trend.status();
  *verdict = trend->grows() ? kExitGrows : trend->enough ? 0 : kExitFailed;

  absl::Status status = RefuseToReplace(HistoryFile(directory), flags.output);
  if (!status.ok()) return status;
  auto out = render::Output::Open(flags.output);
  if (!out.ok()) return out.status();
  switch (common->format) {
    case render::ReportFormat::kJson:
      RenderTrendJson(*trend, flags.top.value_or(flags.full ? render::kAllRows : render::kJsonRows), *out);
      break;
    case render::ReportFormat::kCsv:
      RenderTrendCsv(*trend, flags.top.value_or(render::kAllRows), *out);
      break;
    default: {
      render::TextOptions text;
      text.style = render::StyleFor(out->fd(), common->color, flags.width);
      text.top = flags.top.value_or(10);
      text.full = flags.full;
      out->Write(RenderTrendText(*trend, directory, text));
    }
  }
  status = out->Commit();
  if (status.ok() && flags.exit_code && *verdict == kExitFailed) {
    std::fprintf(stderr, "memtrace: %zu nights: %zu are needed to tell growth from chance\n",
                 trend->nights.size(), options.fewest);
  }
  return status;
}

}  // namespace

void RegisterTrendCommand(CLI::App& app, int* exit_code) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand("trend", "Which call sites grow from night to night");
  command->add_option("DIR", flags->paths, "The directory of the history; with --add before\n"
                      "it the traces of a night, or their directories")
      ->required()->type_name("");
  command->add_flag("--add", flags->add, "Append a night: memtrace trend --add FILE... DIR");
  command->add_option("--label", flags->label, "With --add: what to call the night, e.g. a commit")
      ->type_name("TEXT");
  command->add_option("--by", flags->by,
                      "live (default), live-blocks, peak, allocated,\n"
                      "allocations, temporary; where the memory was scanned\n"
                      "definite, indirect, possible, reachable")
      ->type_name("WHAT");
  command->add_option("--per", flags->per, "run (default), second, allocation")->type_name("UNIT");
  command->add_option("--min", flags->min,
                      "Least growth over all nights that counts: 4096,\n64K, 10%")
      ->type_name("AMOUNT");
  command->add_option("--match", flags->match, "Only sites whose caller or file matches")
      ->type_name("REGEX");
  command->add_option("--last", flags->last, "Only the last so many nights")
      ->type_name("N")->check(WholeNumber, "");
  command->add_option("--nights", flags->nights, "Fewest nights that tell a trend (5; at least 3)")
      ->type_name("N")->check(WholeNumber, "");
  command->add_option("--chance", flags->chance,
                      "Call a site growing when chance alone does that at\nmost so often (0.01)")
      ->type_name("P");
  command->add_flag("--exit-code", flags->exit_code,
                    "Exit with 1 when a site grows, with 2 when there\nare too few nights");
  command->add_option("-f,--format", flags->format, "text (default), json, csv")->type_name("F");
  command->add_option("-o,--output", flags->output, "Write here, whole or not at all")
      ->type_name("OUT");
  command->add_option("--top", flags->top, "Rows of each table; text: 10; json: 1000; csv: all")
      ->type_name("N")->check(WholeNumber, "");
  command->add_flag("--full", flags->full, "Every row, also of sites that are steady");
  command->add_option("--color", flags->color, "auto (default), always, never")->type_name("WHEN");
  command->add_option("--width", flags->width, "Columns of text, 60 to 200")
      ->type_name("N")->check(WholeNumber, "");
  command->add_option("--debug-dir", flags->debug_dirs,
                      "With --add: separate debug files are here as well")
      ->type_name("D")->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_option("--sysroot", flags->sysroot,
                      "With --add: the traced machine's files are below\nhere")
      ->type_name("D");
  command->add_flag("--debuginfod", flags->debuginfod,
                    "With --add: fetch missing debug files from\nDEBUGINFOD_URLS");
  command->footer(
      "Examples:\n"
      "  memtrace trend --add app.mtr history/ --label \"$(git rev-parse --short HEAD)\"\n"
      "  memtrace trend history/\n"
      "  memtrace trend history/ --by peak --last 30 --exit-code");
  command->callback([flags, exit_code] {
    int verdict = 0;
    bool skipped = false;
    *exit_code = ExitCodeOf(flags->add ? Add(*flags, &skipped) : Show(*flags, &verdict));
    if (*exit_code == 0 && skipped) *exit_code = kExitFailed;
    if (*exit_code == 0 && flags->exit_code) *exit_code = verdict;
  });
}

}  // namespace memtrace::report
