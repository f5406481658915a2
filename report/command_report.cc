#include "report/command_report.h"

#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "report/analyzer.h"
#include "report/commands.h"
#include "report/memory_limit.h"
#include "report/options.h"
#include "report/render/escape.h"
#include "report/render/output.h"
#include "report/render/progress.h"
#include "report/render/valgrind_report.h"
#include "report/site_symbols.h"
#include "report/tree/command_tree.h"
#include "report/unseen_allocators.h"
#include "symbolizer/symbolizer_process.h"

namespace memtrace::report {
namespace {

using namespace render;  // NOLINT: this file joins the two

// Renders what was analyzed into `out`.
absl::Status Render(const ReportFlags& flags, const ReportOptions& options,
                    const ReportView& view, Output& out) {
  switch (options.format) {
    case ReportFormat::kText: {
      TextOptions text;
      text.style = StyleFor(out.fd(), options.color, flags.width);
      text.top = options.text_top;
      text.sort = options.sort;
      text.full = flags.full;
      text.sections = options.sections;
      out.Write(RenderText(view, text));
      break;
    }
    case ReportFormat::kJson:
      RenderJson(view, options.json_top, out);
      break;
    case ReportFormat::kCsv:
      RenderCsv(view, options.csv_table, options.sort, options.csv_top, out);
      break;
    case ReportFormat::kMtrace:
      RenderMtrace(view, out);
      break;
    case ReportFormat::kMassif:
      RenderMassif(view, out);
      break;
    case ReportFormat::kDhat:
      RenderDhat(view, out);
      break;
    case ReportFormat::kValgrind:
    case ReportFormat::kValgrindXml: {
      ValgrindStyle style;
      style.version = MEMTRACE_VERSION;
      style.tool_command = {"memtrace", "report", "--format", flags.format, flags.file};
      const LossList losses = CollectLosses(view, {});
      const absl::Status status = options.format == ReportFormat::kValgrind
                                      ? RenderValgrindText(view, losses, style, out)
                                      : RenderValgrindXml(view, losses, style, out);
      if (!status.ok()) return status;
      break;
    }
  }
  return out.Commit();
}

// CLI11 takes "-1" for a large number; its own check has an unreadable message.
std::string WholeNumber(const std::string& text) {
  uint64_t number;
  if (absl::SimpleAtoi(text, &number)) return "";
  const bool digits = !text.empty() && text.find_first_not_of("0123456789") == text.npos;
  return absl::StrCat("\"", text, "\" is ", digits ? "too large" : "not a whole number");
}

// A mistyped directory would silently cost all names.
absl::Status CheckDirectories(const ReportFlags& flags) {
  const auto check = [](absl::string_view option, const std::string& path) {
    struct stat st;
    if (stat(path.c_str(), &st) != 0) {
      return absl::NotFoundError(absl::StrCat(option, ": ", path, ": ", strerror(errno)));
    }
    return S_ISDIR(st.st_mode) ? absl::OkStatus()
                               : absl::InvalidArgumentError(
                                     absl::StrCat(option, ": ", path, " is no directory"));
  };
  for (const std::string& directory : flags.debug_dirs) {
    absl::Status status = check("--debug-dir", directory);
    if (!status.ok()) return status;
  }
  return flags.sysroot.empty() ? absl::OkStatus() : check("--sysroot", flags.sysroot);
}

absl::Status Report(const ReportFlags& flags) {
  if (!flags.executable.empty()) {
    return absl::InvalidArgumentError("--executable: is for the report of several traces");
  }
  LimitMemory();
  absl::StatusOr<ReportOptions> options = ParseReportFlags(flags);
  if (!options.ok()) return options.status();
  absl::Status status = RefuseToReplace(flags.file, flags.output);
  if (!status.ok()) return status;
  status = CheckDirectories(flags);
  if (!status.ok()) return status;

  Progress progress;
  options->analyze.progress = [&](uint64_t done, uint64_t total) {
    progress.Report("reading", total == 0 ? 1 : static_cast<double>(done) /
                                                    static_cast<double>(total));
  };
  absl::StatusOr<AnalyzedTrace> trace = AnalyzeTrace(flags.file, options->analyze);
  if (!trace.ok()) return trace.status();
  FillUnseenAllocators(ModuleNamesIn(options->symbolizer.sysroot), &trace->analysis);

  const StackTable& stacks = *trace->stacks;
  const auto walk = [&stacks](StackId id, std::vector<RawFrame>* raw) {
    for (; id; id = stacks.node(id).parent) {
      raw->push_back({stacks.node(id).instance, stacks.node(id).pc});
    }
  };
  symbolizer::SymbolizerProcess symbolizer(options->symbolizer);
  const SiteSymbols symbols(
      trace->analysis, walk,
      [&](const symbolizer::Module& module, std::span<const symbolizer::Address> addresses) {
        return symbolizer.Symbolize(module, addresses);
      },
      [&](double share) { progress.Report("symbolizing", share); });
  absl::StatusOr<ReportView> view = ReportView::Create(trace->analysis, symbols, flags.match);
  if (!view.ok()) return view.status();
  status = view->ChooseLeaks(options->scan, options->leak_kinds);
  if (!status.ok()) return status;
  progress.Clear();

  // Opened last: an error before this leaves no file, and an old one as it was.
  absl::StatusOr<Output> out = Output::Open(flags.output);
  if (!out.ok()) return out.status();
  return Render(flags, *options, *view, *out);
}

absl::Status CheckedReportTree(const ReportFlags& flags, bool* skipped) {
  const absl::Status status = CheckDirectories(flags);
  return status.ok() ? ReportTree(flags, skipped) : status;
}

}  // namespace

void RegisterReportCommand(CLI::App& app, int* exit_code) {
  auto flags = std::make_shared<ReportFlags>();
  CLI::App* command = app.add_subcommand("report", "Where the memory of a traced program went");
  command->add_option("FILE", flags->files, "The trace; several, or a directory of them:\n"
                      "the processes of a run")
      ->required()
      ->type_name("");
  command->add_option("-f,--format", flags->format, "text (default), json, csv, mtrace, valgrind,\n"
                      "valgrind-xml, massif, dhat")
      ->type_name("F");
  command->add_option("-o,--output", flags->output, "Write here, whole or not at all")
      ->type_name("OUT");
  command->add_option("--from", flags->from, "Only blocks allocated from then on:\n"
                  "1.5, 250ms, 90%")
      ->type_name("T");
  command->add_option("--to", flags->to, "Only blocks allocated before then")->type_name("T");
  command->add_option("--thread", flags->thread, "Only blocks of threads with this name or tid")
      ->type_name("NAME|TID");
  command->add_option("--match", flags->match,
                      "Only sites with a frame whose function, file or\n"
                      "module matches")
      ->type_name("REGEX");
  command->add_option("--executable", flags->executable,
                      "Of several traces, the sites of this program")
      ->type_name("NAME");
  command->add_option("--top", flags->top, "Rows of each table; text: 10; json: 1000; csv: all")
      ->type_name("N")
      ->check(WholeNumber, "");
  command->add_option("--sort", flags->sort,
                      "Allocators by total, wasted, live, blocks, peak,\n"
                      "allocations, frees, temporary, caller")
      ->type_name("COLUMN");
  command
      ->add_option("--table,--tables", flags->tables,
                   "text: summary leaks sites growth faults temporary\n"
                   "sizes threads mappings, separated by commas;\n"
                   "csv: one of sites leaks timeline threads mappings\n"
                   "sizes; of several traces: summary processes\n"
                   "executables leaks sites")
      ->type_name("LIST")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_option("--scan", flags->scan,
                      "The memory scan whose leaks are shown: its number,\n"
                      "or last (default)")
      ->type_name("N");
  command->add_option("--show-leak-kinds", flags->leak_kinds,
                      "Of definite, indirect, possible, reachable, or\n"
                      "all, none; text: definite,possible; json, csv: all")
      ->type_name("SET");
  command->add_option("--leak-resolution", flags->leak_resolution,
                      "Frames that make two stacks one: low (2), med (4),\n"
                      "high (all, default)")
      ->type_name("R");
  command->add_option("--leak-check-heuristics", flags->heuristics,
                      "Interior pointers that count: stdstring, length64,\n"
                      "newarray, multipleinheritance, all (default), none")
      ->type_name("SET");
  command->add_option("--leader", flags->leader,
                      "Of a lost cycle the definite one: by address\n"
                      "(default) or sequence of allocation")
      ->type_name("BY");
  command->add_flag("--full", flags->full, "Every row, every frame, nothing shortened");
  command->add_option("--color", flags->color, "auto (default), always, never")->type_name("WHEN");
  command->add_option("--width", flags->width, "Columns of text, 60 to 200")
      ->type_name("N")
      ->check(WholeNumber, "");
  command->add_option("--debug-dir", flags->debug_dirs,
                      "Separate debug files are here as well; repeatable")
      ->type_name("D")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_option("--sysroot", flags->sysroot, "The traced machine's files are below here")
      ->type_name("D");
  command->add_flag("--debuginfod", flags->debuginfod,
                    "Fetch missing debug files from DEBUGINFOD_URLS");
  command->footer(
      "Examples:\n"
      "  memtrace report app.mtr\n"
      "  memtrace report app.mtr --sort wasted --top 30\n"
      "  memtrace report traces/ --executable app\n"
      "  memtrace report app.mtr --from 90% --match 'cache|pool'\n"
      "  memtrace report app.mtr --format json -o report.json\n"
      "  memtrace report app.mtr --format csv --table timeline > timeline.csv");
  command->callback([flags, exit_code] {
    bool skipped = false;
    flags->file = flags->files.front();
    const absl::Status status = MeansATree(*flags)
                                    ? CheckedReportTree(*flags, &skipped)
                                    : Report(*flags);
    if (skipped) *exit_code = kExitFailed;
    if (status.ok()) return;
    std::fprintf(stderr, "memtrace: %s\n", EscapeControls(status.message()).c_str());
    *exit_code = kExitFailed;
  });
}

}  // namespace memtrace::report
