#include "report/trend/command_trend.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "report/base/clock.h"
#include "report/base/memory_limit.h"
#include "report/cli/common_options.h"
#include "report/cli/exit_status.h"
#include "report/cli/refusals.h"
#include "report/diff/comparison_options.h"
#include "report/render/progress.h"
#include "report/trend/history.h"
#include "report/trend/trend.h"
#include "report/trend/trend_formats.h"
#include "report/words/units.h"

namespace memtrace::report {
namespace {

constexpr int kExitGrows = 1;

struct Flags : ComparisonFlags {
  std::vector<std::string> paths;
  bool add = false;
  std::string label, chance = "0.01";
  size_t nights = 5, last = SIZE_MAX;
};

// The same traces once more would be a night that grew by nothing.
absl::Status RefuseKnownNight(const std::string& directory, const RunSummary& run) {
  const auto history = ReadHistory(directory);
  if (!history.ok() || run.start_realtime_ns == 0) return absl::OkStatus();
  for (const Night& night : history->nights) {
    if (night.run.start_realtime_ns != run.start_realtime_ns || night.run.command != run.command)
      continue;
    return absl::AlreadyExistsError(
        absl::StrCat(run.name, ": its run, started ", words::DateTimeIso(run.start_realtime_ns),
                     ", is a night of ", HistoryFile(directory), " already",
                     night.label.empty() ? "" : ", ", night.label));
  }
  return absl::OkStatus();
}

absl::Status Add(const Flags& flags, bool* skipped) {
  if (flags.paths.size() < 2) {
    return absl::InvalidArgumentError(
        "trend --add: traces, and behind them the history's directory");
  }
  LimitMemory();
  const auto common = ParseCommon(flags);
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
  // A night of a part of the events would look like one that needed less, and end a growth.
  if (!run->incomplete.empty()) {
    return absl::DataLossError(absl::StrCat(run->incomplete.front(), "; the night was not added"));
  }
  // A night whose sites have other names than those of the nights before would do so too.
  if (!run->nameless.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(run->nameless.front(),
                     " is gone or another build now, so that the functions that allocate have no "
                     "names; the night was not added: add it before the program is built anew"));
  }
  if (const absl::Status known = RefuseKnownNight(flags.paths.back(), *run); !known.ok())
    return known;
  Night night;
  night.label = flags.label;
  night.added_realtime_ns = static_cast<int64_t>(NowNs(CLOCK_REALTIME));
  night.run = *std::move(run);
  return AppendNight(flags.paths.back(), night);
}

absl::Status Show(const Flags& flags, int* verdict) {
  if (flags.paths.size() != 1) {
    return absl::InvalidArgumentError(
        "trend: one directory of a history; --add puts traces into it");
  }
  if (!flags.label.empty()) {
    return absl::InvalidArgumentError("--label needs --add");
  }
  const auto common = ParseCommon(flags);
  if (!common.ok()) return common.status();
  TrendOptions options;
  const auto compared = ParseComparison(flags);
  if (!compared.ok()) return compared.status();
  options.measure = compared->measure;
  options.per = compared->per;
  options.least = compared->least;
  if (!absl::SimpleAtod(flags.chance, &options.chance) || !(options.chance > 0) ||
      options.chance > 0.5) {
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

  absl::Status status = RefuseToReplace(HistoryFile(directory), flags.output, "the history itself");
  if (!status.ok()) return status;
  status = WriteComparison(
      flags, *common,
      {[&](size_t top, words::Sink& out) { RenderTrendJson(*trend, top, out); },
       [&](size_t top, words::Sink& out) { RenderTrendCsv(*trend, top, out); },
       /*html=*/nullptr,
       [&](const render::TextOptions& text) { return RenderTrendText(*trend, directory, text); }});
  if (status.ok() && flags.exit_code && *verdict == kExitFailed) {
    std::fprintf(stderr, "memtrace: %zu %s: %zu are needed to tell growth from chance\n",
                 trend->nights.size(), trend->nights.size() == 1 ? "night" : "nights",
                 options.fewest);
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
  const auto add_filters = [command, flags] {
    command->add_option("--match", flags->match, "Only sites whose caller or file matches")
        ->type_name("REGEX");
  };
  AddComparisonOptions(command, flags.get(), add_filters,
                       {"run (default), second, allocation",
                        "Least growth over all nights that counts: 4096,\n64K, 10%",
                        "Exit with 1 when a site grows, with 2 when there\nare too few nights",
                        "Every row, also of sites that are steady", "With --add: "});
  command->add_option("--last", flags->last, "Only the last so many nights")
      ->type_name("N")->check(PositiveNumber, "");
  command->add_option("--nights", flags->nights, "Fewest nights that tell a trend (5; at least 3)")
      ->type_name("N")
      ->check([](const std::string& text) {
        const std::string wrong = WholeNumber(text);
        return wrong.empty() && text.find_first_not_of('0') != text.npos && std::stoull(text) >= 3
                   ? ""
                   : wrong.empty() ? "fewer than 3 nights tell no trend" : wrong;
      }, "");
  command->add_option("--chance", flags->chance,
                      "Call a site growing when chance alone does that at\nmost so often (0.01)")
      ->type_name("P");
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
