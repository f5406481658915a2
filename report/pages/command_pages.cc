#include "report/pages/command_pages.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "report/base/memory_limit.h"
#include "report/cli/common_options.h"
#include "report/cli/exit_status.h"
#include "report/cli/refusals.h"
#include "report/pages/collect.h"
#include "report/pages/pages_report.h"
#include "report/pages/trace_pages.h"
#include "report/render/output.h"

namespace memtrace::report {
namespace {

using namespace pages;  // NOLINT: this file joins the parts

constexpr char kFooter[] =
    "Nothing is stopped or changed. As root the pages of every process are counted\n"
    "exactly; otherwise those of your own, and what is not known is said.\n"
    "\n"
    "Examples:\n"
    "  memtrace pages 4711 --maps\n"
    "  memtrace pages app.mtr --maps\n"
    "  memtrace pages --all --format json -o pages.json\n"
    "  memtrace pages --all --format html -o pages.html";

struct PagesFlags {
  std::vector<std::string> targets;
  uint32_t snapshot = 0;
  bool all = false;
  bool maps = false;
  bool no_counts = false;
  bool no_compare = false;
  std::string format = "text", table = "regions", output, color = "auto";
  size_t top = 20, width = 0;
};

constexpr std::pair<PagesTable, const char*> kTables[] = {
    {PagesTable::kRegions, "regions"}, {PagesTable::kMappings, "mappings"},
    {PagesTable::kUnits, "units"}, {PagesTable::kAlerts, "alerts"}};

absl::StatusOr<CollectOptions> ParseTargets(const PagesFlags& flags) {
  CollectOptions options;
  options.ask_counts = !flags.no_counts;
  for (const std::string& target : flags.targets) {
    uint32_t pid = 0;
    if (!absl::SimpleAtoi(target, &pid) || pid == 0) {
      std::error_code error;
      if (std::filesystem::exists(target, error)) {
        return absl::InvalidArgumentError(absl::StrCat(
            "'", target, "': a trace is looked at alone, without others and without process ids"));
      }
      return absl::InvalidArgumentError(absl::StrCat(
          "'", target,
          "' is no process id and no file; memtrace pages takes numbers, a trace, or --all"));
    }
    options.pids.push_back(pid);
  }
  std::sort(options.pids.begin(), options.pids.end());
  options.pids.erase(std::unique(options.pids.begin(), options.pids.end()), options.pids.end());
  if (flags.all && !options.pids.empty()) {
    return absl::InvalidArgumentError("--all takes every process; leave the numbers out");
  }
  if (!flags.all && options.pids.empty()) {
    return absl::InvalidArgumentError("whose pages? Give process ids, or --all");
  }
  return options;
}

// A trace's name; nullptr: processes are asked for. A number is a process, also where there is a
// file of that name ("./4711" is the file).
const std::string* TraceOf(const PagesFlags& flags) {
  uint32_t pid = 0;
  const bool one = flags.targets.size() == 1 && !flags.all;
  if (!one || absl::SimpleAtoi(flags.targets[0], &pid)) return nullptr;
  std::error_code error;
  return std::filesystem::exists(flags.targets[0], error) ? &flags.targets[0] : nullptr;
}

absl::StatusOr<PagesSnapshot> Take(const PagesFlags& flags) {
  if (const std::string* trace = TraceOf(flags)) return PagesOfTrace(*trace, flags.snapshot);
  if (flags.snapshot != 0) {
    return absl::InvalidArgumentError("--snapshot is of a trace; give its file");
  }
  const auto options = ParseTargets(flags);
  if (!options.ok()) return options.status();
  auto snapshot = Collect(*options);
  if (!snapshot.ok()) return snapshot;
  snapshot->source = flags.all ? "of all processes" : "of " + absl::StrJoin(options->pids, ", ");
  return snapshot;
}

absl::Status Pages(const PagesFlags& flags) {
  LimitMemory();
  if (flags.format == "html") {
    const absl::Status status = RefuseTerminal(flags.format, flags.output);
    if (!status.ok()) return status;
  }
  if (const std::string* trace = TraceOf(flags)) {
    const absl::Status status = RefuseToReplace(*trace, flags.output);
    if (!status.ok()) return status;
  }
  auto snapshot = Take(flags);
  if (!snapshot.ok()) return snapshot.status();
  // The contents of pages are not in a trace.
  const bool compare = !flags.no_compare && TraceOf(flags) == nullptr;
  const PagesReport report = MakeReport(*std::move(snapshot), compare);
  auto out = render::Output::Open(flags.output);
  if (!out.ok()) return out.status();
  if (flags.format == "text") {
    PagesTextOptions text;
    const render::ColorMode color = flags.color == "always"  ? render::ColorMode::kAlways
                                    : flags.color == "never" ? render::ColorMode::kNever
                                                             : render::ColorMode::kAuto;
    text.style = render::StyleFor(out->fd(), color, flags.width);
    text.maps = flags.maps;
    text.top = flags.top;
    RenderPagesText(report, text, *out);
  } else if (flags.format == "csv") {
    for (const auto& [table, name] : kTables) {
      if (flags.table == name) RenderPagesCsv(report, table, *out);
    }
  } else if (flags.format == "json") {
    RenderPagesJson(report, *out);
  } else if (flags.format == "svg") {
    RenderPagesSvg(report, *out);
  } else if (flags.format == "html") {
    RenderPagesHtml(report, *out);
  } else {
    RenderPagesRaw(report, *out);
  }
  const absl::Status written = out->Commit();
  // The others are shown; but whoever named this one has to know.
  if (!written.ok() || flags.all || report.snapshot.skipped.empty()) return written;
  const Skipped& missing = report.snapshot.skipped.front();
  return absl::NotFoundError(absl::StrCat("process ", missing.pid, " is not shown: ", missing.why));
}

}  // namespace

void RegisterPagesCommand(CLI::App& app, int* exit_code) {
  auto flags = std::make_shared<PagesFlags>();
  CLI::App* pages = app.add_subcommand("pages", "The pages of processes: whose, shared by whom");
  pages->footer(kFooter);
  pages
      ->add_option("PID", flags->targets,
                   "Processes, by number; or a trace with snapshots\n(memtrace run --faults auto)")
      ->type_name("");
  pages
      ->add_option("--snapshot", flags->snapshot, "Of a trace: which, by number; default: the last")
      ->type_name("N")
      ->check(PositiveNumber, "");
  pages->add_flag("--all", flags->all, "Every process");
  pages->add_flag("--maps", flags->maps, "A line for each mapping, with its page map");
  pages->add_option("-f,--format", flags->format, "text, csv, json, html, svg, or raw: every page")
      ->type_name("F")
      ->default_str("text")
      ->check(CLI::IsMember({"text", "csv", "json", "html", "svg", "raw"}));
  pages->add_option("--table", flags->table, "Of csv: regions, mappings, units or alerts")
      ->type_name("NAME")
      ->default_str("regions")
      ->check(CLI::IsMember({"regions", "mappings", "units", "alerts"}));
  pages->add_option("-o,--output", flags->output, "Write to this file, whole or not at all")
      ->type_name("OUT");
  pages->add_flag("--no-counts", flags->no_counts, "Do not ask how often each page is mapped");
  pages->add_flag("--no-compare", flags->no_compare,
                  "Do not read the contents of private copies");
  pages->add_option("--top", flags->top, "Rows of executables and libraries")
      ->type_name("N")
      ->default_str("20")
      ->check(PositiveNumber, "");
  AddTextOptions(pages, &flags->color, &flags->width);
  pages->get_option("--color")->check(CLI::IsMember({"auto", "always", "never"}));
  pages->callback([flags, exit_code] { *exit_code = ExitCodeOf(Pages(*flags)); });
}

}  // namespace memtrace::report
