#include "report/rings/command_rings.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "report/analysis/analyzer.h"
#include "report/analysis/coverage.h"
#include "report/base/memory_limit.h"
#include "report/cli/common_options.h"
#include "report/cli/exit_status.h"
#include "report/cli/filter_options.h"
#include "report/cli/options.h"
#include "report/cli/refusals.h"
#include "report/names/site_symbols.h"
#include "report/render/output.h"
#include "report/render/progress.h"
#include "report/render/selection_lines.h"
#include "report/rings/rings_formats.h"
#include "report/rings/source_tree.h"
#include "report/words/units.h"
#include "symbolizer/symbolizer_process.h"

namespace memtrace::report {
namespace {

struct Flags {
  render::ReportFlags common;
  std::string measure = "live", start;
  std::optional<size_t> depth;
  bool no_static = false;
};

// Adds the footprint of each file that was mapped, once, however often it was mapped.
void AddFootprints(const Analysis& analysis, symbolizer::SymbolizerProcess* symbolizer,
                   render::Progress* progress, rings::SourceTree* tree,
                   std::vector<std::string>* notes) {
  std::set<std::pair<std::string, std::string>> seen;
  size_t done = 0, without = 0;
  std::string first;
  for (const ModuleInfo& module : analysis.modules) {
    progress->Report("reading files", static_cast<double>(++done) /
                                          static_cast<double>(analysis.modules.size()));
    const bool no_file = module.path.empty() || module.path[0] == '[' ||
                         (module.flags & (format::kModuleVdso | format::kModuleTracer)) != 0;
    if (no_file || !seen.insert({module.path, module.build_id}).second) continue;
    const symbolizer::StaticFootprint footprint = symbolizer->FindFootprint(
        {module.path, module.build_id,
         SiteSymbols::LoadedNs(analysis.process.start_realtime_ns, module)});
    tree->AddFootprint(module.path, footprint);
    // A reason that holds for all modules, such as that no server was named, is one note.
    if (!footprint.missed.empty() && std::ranges::find(*notes, footprint.missed) == notes->end()) {
      notes->push_back(footprint.missed);
    }
    if (footprint.state == symbolizer::ModuleState::kDebugInfo ||
        footprint.state == symbolizer::ModuleState::kSymbolsOnly) {
      continue;
    }
    if (++without == 1) {
      first = footprint.message.empty() ? absl::StrCat(module.path, " was not found")
                                        : footprint.message;
    }
  }
  if (without > 0) {
    notes->push_back(absl::StrCat("the static footprint of ", without,
                                  without == 1 ? " file" : " files", " is not known: ", first));
  }
}

// What the figures and names are not: of all events, exact, known.
void AddNotes(const Analysis& analysis, const SiteSymbols& symbols,
              std::vector<std::string>* notes) {
  const auto add = [notes](std::string note) {
    if (std::ranges::find(*notes, note) == notes->end()) notes->push_back(std::move(note));
  };
  if (const uint64_t every = analysis.process.sample_bytes; every != 0) {
    add(absl::StrCat("sampled every ", words::HumanBytes(every),
                     ": what was allocated is estimated"));
  }
  const Coverage& coverage = analysis.coverage;
  for (std::string& text :
       MissingTexts(coverage.dropped_events, coverage.truncated, coverage.damage)) {
    add(std::move(text));
  }
  if (std::string stops = StopsNote(coverage).text; !stops.empty()) add(std::move(stops));
  for (const CoverageNote& note : coverage.notes) add(note.text);
  for (const std::string& note : symbols.notes()) add(note);
}

absl::Status Rings(Flags flags) {
  LimitMemory();
  const std::string format = flags.common.format;
  if (format != "text" && format != "json" && format != "csv") {
    return absl::InvalidArgumentError(
        absl::StrCat("--format: \"", format, "\" is none of text, json, csv"));
  }
  const auto weight = rings::ParseWeight(flags.measure);
  if (!weight.ok()) return weight.status();
  if (flags.no_static && weight->fixed != rings::Weight::Fixed::kNone) {
    return absl::InvalidArgumentError(
        absl::StrCat("--measure ", flags.measure, " is what --no-static leaves out"));
  }
  const auto options = render::ParseReportFlags(flags.common);
  if (!options.ok()) return options.status();
  const absl::Status refused = RefuseToReplace(flags.common.file, flags.common.output);
  if (!refused.ok()) return refused;

  render::Progress progress;
  symbolizer::SymbolizerProcess symbolizer(options->symbolizer);
  symbolizer.StartForkServer();
  AnalyzeOptions analyze = options->analyze;
  analyze.progress = [&](const ReadProgress& read) {
    progress.Report("reading", read.share(), read.events);
  };
  auto trace = AnalyzeTrace(flags.common.file, analyze);
  if (!trace.ok()) return trace.status();
  const SiteSymbols symbols(
      trace->analysis, *trace->stacks, SymbolizeBy(&symbolizer),
      [&](double share) { progress.Report("symbolizing", share); });
  const auto view = render::ReportView::Create(trace->analysis, symbols, options->frames);
  if (!view.ok()) return view.status();
  const absl::Status known = render::CheckMeasure(trace->analysis, weight->measure);
  if (!known.ok()) return known;

  rings::SourceTree tree;
  rings::RingsOptions rings;
  tree.AddSites(*view);
  rings.footprints = !flags.no_static;
  rings.only = render::SelectionLinesWithRange(*view);
  if (rings.footprints) {
    AddFootprints(trace->analysis, &symbolizer, &progress, &tree, &rings.notes);
  }
  AddNotes(trace->analysis, symbols, &rings.notes);
  tree.Finish();
  const rings::Node* start = &tree.root();
  if (!flags.start.empty()) {
    const auto found = tree.Find(flags.start, trace->analysis.process.working_directory);
    if (!found.ok()) return found.status();
    start = *found;
  }
  progress.Clear();

  auto out = render::Output::Open(flags.common.output);
  if (!out.ok()) return out.status();
  rings.weight = *weight;
  rings.style = render::StyleFor(out->fd(), options->color, flags.common.width);
  rings.full = flags.common.full;
  rings.depth = flags.depth.value_or(flags.common.full ? SIZE_MAX : 4);
  rings.top = flags.common.top.value_or(flags.common.full ? SIZE_MAX : 10);
  if (format == "json") {
    RenderRingsJson(tree, *start, flags.common.file, rings, *out);
  } else if (format == "csv") {
    RenderRingsCsv(tree, *start, rings, *out);
  } else {
    out->Write(RenderRingsText(tree, *start, flags.common.file, rings));
  }
  return out->Commit();
}

}  // namespace

void RegisterRingsCommand(CLI::App& app, int* exit_code) {
  auto flags = std::make_shared<Flags>();
  render::ReportFlags& common = flags->common;
  CLI::App* command = app.add_subcommand("rings", "Memory by source folder, file and function");
  command->add_option("FILE", common.file, "The trace")->required()->type_name("");
  command->add_option("--measure", flags->measure,
                      "What the tree is sorted by: live (default),\n"
                      "blocks, allocated, allocations, peak, peak-blocks,\n"
                      "wasted, temporary, resident, peak-resident, text,\n"
                      "data, bss, static")
      ->type_name("WHAT");
  command->add_option("--start", flags->start, "Only this folder, file or function: its path or\n"
                      "the end of it")
      ->type_name("BRANCH");
  command->add_option("--depth", flags->depth, "Levels below the start in text, 4 by default")
      ->type_name("N")->check(WholeNumber, "");
  command->add_option("--top", common.top, "Rows below each row in text, 10 by default")
      ->type_name("N")->check(WholeNumber, "");
  command->add_flag("--full", common.full, "Every level, every row");
  command->add_flag("--no-static", flags->no_static,
                    "Without text, data and bss: no file is read for\nthem");
  command->add_option("-f,--format", common.format, "text (default), json, csv")->type_name("F");
  command->add_option("-o,--output", common.output, "Write here, whole or not at all")
      ->type_name("OUT");
  AddTimeFilters(command, &common);
  AddBlockFilters(command, &common);
  AddTextOptions(command, &common.color, &common.width);
  AddNameOptions(command, {&common.debug_dirs, &common.sysroot, &common.debuginfod});
  command->footer(
      "Examples:\n"
      "  memtrace rings app.mtr --measure peak\n"
      "  memtrace rings app.mtr --start src/net --depth 2\n"
      "  memtrace rings app.mtr --measure static --format json -o rings.json");
  command->callback([flags, exit_code] { *exit_code = ExitCodeOf(Rings(*flags)); });
}

}  // namespace memtrace::report
