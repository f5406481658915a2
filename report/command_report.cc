#include "report/command_report.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "report/analyzer.h"
#include "report/commands.h"
#include "report/common_options.h"
#include "report/coverage.h"
#include "report/gate/suppress_records.h"
#include "report/heap_questions.h"
#include "report/html/page.h"
#include "report/index/grouping_store.h"
#include "report/index/indexed_analysis.h"
#include "report/index/summary_store.h"
#include "report/interruption.h"
#include "report/leak/leak_scans.h"
#include "report/memory_limit.h"
#include "report/operator_new.h"
#include "report/options.h"
#include "report/render/escape.h"
#include "report/render/output.h"
#include "report/render/progress.h"
#include "report/render/site_series_table.h"
#include "report/render/valgrind_report.h"
#include "report/site_symbols.h"
#include "report/sqlite/sqlite_report.h"
#include "report/trace_reader.h"
#include "report/tree/command_tree.h"
#include "report/unseen_allocators.h"
#include "report/viewers/viewers.h"
#include "symbolizer/symbolizer_process.h"

namespace memtrace::report {
namespace {

using namespace render;  // NOLINT: this file joins the two

// Renders what was analyzed into `out`.
absl::Status Render(const ReportFlags& flags, const ReportOptions& options,
                    const ReportView& view, const GraphView* graph, Output& out) {
  const absl::Status known = CheckMeasure(view.analysis(), options.measure);
  if (!known.ok()) return known;
  switch (options.format) {
    case ReportFormat::kText: {
      TextOptions text;
      text.style = StyleFor(out.fd(), options.color, flags.width);
      text.top = options.text_top;
      text.sort = options.sort;
      text.full = flags.full;
      text.sections = options.sections;
      // A question about some blocks has its answer alone.
      text.timeline_by = options.timeline_by;
      if (graph == nullptr || flags.questions.summary) out.Write(RenderText(view, text));
      if (graph != nullptr) out.Write(GraphText(*graph, text));
      break;
    }
    case ReportFormat::kJson:
      RenderJson(view, options.json_top, out, graph, options.sort);
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
    case ReportFormat::kFolded:
      viewers::RenderFolded(view, options.measure, out);
      break;
    case ReportFormat::kSpeedscope:
      viewers::RenderSpeedscope(view, options.measure, out);
      break;
    case ReportFormat::kCallgrind:
      viewers::RenderCallgrind(view, options.measure, out);
      break;
    case ReportFormat::kPprof: {
      const absl::Status status = viewers::RenderPprof(view, options.measure, out);
      if (!status.ok()) return status;
      break;
    }
    case ReportFormat::kHtml:
      RenderHtml(view, options.html_top, out);
      break;
    case ReportFormat::kHeaptrack:  // these two need more than the view
    case ReportFormat::kSqlite:
      break;
    case ReportFormat::kValgrind:
    case ReportFormat::kValgrindXml: {
      ValgrindStyle style;
      style.version = MEMTRACE_VERSION;
      // All kinds are in it, which memtrace compare and others read here.
      style.tool_command = {"memtrace", "report", "--show-leak-kinds=all", "--format", flags.format,
                            flags.file};
      const LossList losses = CollectLosses(view, {});
      style.free_errors = CollectFreeErrors(view, kMostCallers);
      const absl::Status status = options.format == ReportFormat::kValgrind
                                      ? RenderValgrindText(view, losses, style, out)
                                      : RenderValgrindXml(view, losses, style, out);
      if (!status.ok()) return status;
      break;
    }
  }
  return out.Commit();
}

absl::Status Suppress(const ReportFlags& flags, const ReportOptions& options,
                      const ReportView& view, const leak::HeldScan* held,
                      gate::Suppressions* suppressions, const StackTable& stacks,
                      Analysis* analysis) {
  if (flags.suppressions.empty()) return absl::OkStatus();
  if (view.leak_scan() == nullptr) {
    return absl::NotFoundError(absl::StrCat("--suppressions: is for what a memory scan found, and ",
                                            flags.file, " has none: ",
                                            leak::WhyNoScan(*analysis)));
  }
  for (LeakScan& scan : analysis->leak_scans) {
    if (&scan != view.leak_scan()) continue;
    gate::SuppressRecords(view, suppressions, &scan);
    if (held != nullptr && flags.suppress_children) {
      gate::SuppressWhatTheyLeadTo(*held, stacks, options.analyze.leaks.resolution, &scan);
    }
    scan.suppressions = gate::Used(*suppressions);
  }
  return absl::OkStatus();
}

index::IndexOptions IndexOf(const ReportOptions& options) {
  index::IndexOptions index;
  index.use = options.index_beside || !options.summary_dir.empty();
  index.directory = options.summary_dir;
  index.beside = options.index_beside;
  index.warn = [](const std::string& why) {
    std::fprintf(stderr, "memtrace: %s\n", EscapeControls(why).c_str());
  };
  return index;
}

// What is kept of the trace, to keep more beside it. No file: nothing is.
struct Summary {
  std::string file;
  index::TraceIdentity identity;
};

// Ctrl-C ends the reading, not the report.
absl::StatusOr<AnalyzedTrace> AnalyzeUntilInterrupted(const ReportFlags& flags,
                                                      ReportOptions* options,
                                                      symbolizer::SymbolizerProcess* symbolizer,
                                                      Summary* summary) {
  const Interruption interruption;
  options->analyze.stop = [&] { return interruption.requested(); };
  const std::string& sysroot = options->symbolizer.sysroot;
  // A second pass (a filter by names has one too) adds to the stacks, which those of a summary
  // are not made for.
  const bool second_pass =
      options->format == ReportFormat::kHeaptrack || !options->frames.all();
  if (options->series) {
    auto series = index::SeriesByIndex(flags.file, options->analyze, IndexOf(*options), nullptr);
    options->analyze.stop = nullptr;
    return series;
  }
  index::SummaryStore store(second_pass ? "" : options->summary_dir);
  store.set_index(IndexOf(*options));
  auto trace = store.Analyze(flags.file, options->analyze, sysroot, [&](Analysis* analysis) {
    FillUnseenAllocators(ModuleNamesBy(symbolizer), analysis);
  });
  options->analyze.stop = nullptr;
  *summary = {store.file(), store.identity()};
  return trace;
}

// False: before it came to what was asked for.
bool SayThatItWasInterrupted(const Analysis& analysis) {
  const bool has_any = analysis.range.to_ns > analysis.range.from_ns;
  std::fprintf(stderr, "memtrace: %s\n",
               has_any ? InterruptionText(analysis).c_str()
                       : "the reading was interrupted before it came to what was asked for: there is nothing to report");
  return has_any;
}

// For the sites that were chosen by their names. An interruption that came before was of the first reading.
absl::StatusOr<AnalyzedTrace> ReadAgain(const ReportFlags& flags, ReportOptions* options, bool interrupted) {
  std::optional<Interruption> interruption;
  if (!interrupted) {
    interruption.emplace();
    options->analyze.stop = [&] { return interruption->requested(); };
  }
  auto again = index::AnalyzeByIndex(flags.file, options->analyze, IndexOf(*options), nullptr);
  options->analyze.stop = nullptr;
  return again;
}

absl::StatusOr<ReportView> ViewOf(const Analysis& analysis, const SiteSymbols& symbols,
                                  const FrameFilter& frames, const Summary& summary) {
  if (!frames.all() || summary.file.empty()) return ReportView::Create(analysis, symbols, frames);
  const index::GroupingStore store(summary.file, summary.identity, symbols.checksum());
  std::optional<render::Grouping> grouping = store.Recall(analysis);
  if (!grouping.has_value()) {
    grouping = render::GroupSites(analysis, symbols);
    store.Keep(*grouping);
  }
  return ReportView::Create(analysis, symbols, *grouping);
}

absl::Status WriteSeries(const ReportFlags& flags, const ReportOptions& options,
                         const ReportView& view) {
  absl::StatusOr<Output> out = Output::Open(flags.output);
  if (!out.ok()) return out.status();
  if (options.format == ReportFormat::kText) {
    TextOptions text;
    text.style = StyleFor(out->fd(), options.color, flags.width);
    text.top = options.text_top;
    text.full = flags.full;
    out->Write(SeriesText(view, text));
  } else if (options.format == ReportFormat::kCsv) {
    SeriesCsv(view, options.csv_top, *out);
  } else {
    SeriesJson(view, options.json_top, *out);
  }
  return out->Commit();
}

// Files of other tools have no place for what is missing in them.
void SayWhatIsMissing(const ReportFlags& flags, ReportFormat format, const Coverage& coverage) {
  switch (format) {
    case ReportFormat::kCsv:
    case ReportFormat::kMtrace:
    case ReportFormat::kMassif:
    case ReportFormat::kDhat:
    case ReportFormat::kFolded:
    case ReportFormat::kPprof:
    case ReportFormat::kSpeedscope:
    case ReportFormat::kCallgrind:
    case ReportFormat::kHeaptrack:
      break;
    default:
      return;
  }
  for (const std::string& text : MissingTexts(coverage.dropped_events, coverage.truncated, coverage.damage)) {
    std::fprintf(stderr, "memtrace: %s\n", EscapeControls(absl::StrCat(flags.file, ": ", text)).c_str());
  }
}

// What a report is made of is left to the end of the process: to take it apart, site by site, is a
// tenth of the time of a report from what was kept. Once for each type.
template <typename T>
T& LeaveToTheEnd(T thing) {
  static T* const left = new T(std::move(thing));
  return *left;
}

absl::Status Report(const ReportFlags& flags, int* exit_code) {
  if (!flags.executable.empty()) {
    return absl::InvalidArgumentError("--executable needs several traces or a directory");
  }
  absl::StatusOr<ReportOptions> options = ParseReportFlags(flags);
  if (!options.ok()) return options.status();
  absl::Status status = options->format == ReportFormat::kHtml ? html::PageIsThere()
                                                               : absl::OkStatus();
  if (!status.ok()) return status;
  status = RefuseToReplace(flags.file, flags.output);
  for (const std::string& file : flags.suppressions) {
    status.Update(RefuseToReplace(file, flags.output, "a file of suppressions that is read"));
  }
  if (!status.ok()) return status;
  if (options->format == ReportFormat::kSqlite) {
    status = sqlite::CheckSqliteOutput(flags.output);
    if (!status.ok()) return status;
  }

  Progress progress;
  options->analyze.progress = [&](const ReadProgress& read) {
    progress.Report("reading", read.share(), read.events);
  };
  gate::Suppressions suppressions;
  for (const std::string& file : flags.suppressions) {
    status = suppressions.AddFile(file);
    if (!status.ok()) return status;
  }
  HeapQuestions questions(flags.questions, options->scan, flags.suppress_children);
  options->analyze.leak_observer = questions.Observer();
  leak::Resolution& resolution = options->analyze.leaks.resolution;
  if (resolution.frames != 0) {
    const auto reader = TraceReader::Open(flags.file);
    if (!reader.ok()) return reader.status();
    resolution.operator_new = FindOperatorNew((*reader)->metadata().modules, options->symbolizer);
  }
  symbolizer::SymbolizerProcess symbolizer(options->symbolizer);
  symbolizer.Settle();
  Summary summary;
  auto& trace = LeaveToTheEnd(AnalyzeUntilInterrupted(flags, &*options, &symbolizer, &summary));
  if (!trace.ok()) return trace.status();
  if (trace->analysis.coverage.interrupted) {
    *exit_code = kExitInterrupted;
    progress.Clear();
    if (!SayThatItWasInterrupted(trace->analysis)) return absl::OkStatus();
  }

  const StackTable& stacks = *trace->stacks;
  const SiteSymbols& symbols = LeaveToTheEnd(SiteSymbols(
      trace->analysis, stacks,
      [&](const symbolizer::Module& module, std::span<const symbolizer::Address> addresses) {
        return symbolizer.Symbolize(module, addresses);
      },
      [&](double share) { progress.Report("symbolizing", share); }, questions.Stacks()));
  auto& view = LeaveToTheEnd(ViewOf(trace->analysis, symbols, options->frames, summary));
  if (!view.ok()) return view.status();
  // Which sites are asked for is known now that they have names: then every figure is of these.
  AnalyzedTrace chosen;
  if (view->filtered() && !options->series) {
    options->analyze.stacks = trace->stacks.get();
    if (trace->analysis.coverage.interrupted) options->analyze.Only(trace->analysis.range);
    options->analyze.filter.sites = [&](StackId stack) { return view->Matches(stack); };
    absl::StatusOr<AnalyzedTrace> again = ReadAgain(flags, &*options, trace->analysis.coverage.interrupted);
    if (!again.ok()) return again.status();
    chosen = *std::move(again);
    const Coverage of_sites = std::move(chosen.analysis.coverage);
    chosen.analysis.coverage = trace->analysis.coverage;  // it is about the trace, not the sites
    if (of_sites.interrupted && !trace->analysis.coverage.interrupted) {
      chosen.analysis.coverage.interrupted = true;
      chosen.analysis.coverage.read_share = of_sites.read_share;
      *exit_code = kExitInterrupted;
      progress.Clear();
      if (!SayThatItWasInterrupted(chosen.analysis)) return absl::OkStatus();
    }
    view = ReportView::Create(chosen.analysis, symbols, options->frames);
    if (!view.ok()) return view.status();
  }
  if (options->series) {
    progress.Clear();
    SayWhatIsMissing(flags, options->format, trace->analysis.coverage);
    return WriteSeries(flags, *options, *view);
  }
  status = view->ChooseLeaks(options->scan, options->leak_kinds);
  if (!status.ok()) return status;
  status = Suppress(flags, *options, *view, questions.held(), &suppressions, stacks,
                    view->filtered() ? &chosen.analysis : &trace->analysis);
  if (!status.ok()) return status;
  for (LeakScan& scan : (view->filtered() ? chosen : *trace).analysis.leak_scans) {
    if (&scan == view->leak_scan()) gate::MarkOfRuntime(*view, &scan);
  }
  status = questions.Answer(*view, stacks, options->analyze.leaks.resolution,
                            options->symbolizer);
  if (!status.ok()) return status;
  progress.Clear();
  SayWhatIsMissing(flags, options->format, trace->analysis.coverage);
  if (options->format == ReportFormat::kSqlite) return sqlite::WriteSqlite(*view, flags.output);

  // Opened last: an error before this leaves no file, and an old one as it was.
  absl::StatusOr<Output> out = Output::Open(flags.output);
  if (!out.ok()) return out.status();
  if (options->format == ReportFormat::kHeaptrack) {
    status = viewers::RenderHeaptrack(*view, flags.file, trace->stacks.get(), *out);
    return status.ok() ? out->Commit() : status;
  }
  return Render(flags, *options, *view, questions.answers(), *out);
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
                      "valgrind-xml, massif, dhat, folded, pprof,\n"
                      "speedscope, callgrind, heaptrack, sqlite, html")
      ->type_name("F");
  command->add_option("-o,--output", flags->output, "Write here, whole or not at all")
      ->type_name("OUT");
  command->add_option("--from", flags->from, "Only blocks allocated from then on:\n"
                  "1.5, 250ms, 90%")
      ->type_name("T");
  command->add_option("--to", flags->to, "Only blocks allocated until then")->type_name("T");
  command->add_option("--at", flags->at, "The heap as it was at that instant: as --to T")
      ->type_name("T");
  command->add_flag("--series", flags->series,
                    "Each site over time: live, allocated, freed;\n"
                    "in text, csv and json");
  command->add_option("--thread", flags->thread, "Only blocks of threads with this name or tid")
      ->type_name("NAME|TID")->check(ThreadName, "");
  command->add_option("--match", flags->match,
                      "Only sites with a frame whose function, file or\n"
                      "module matches: all figures are of these")
      ->type_name("REGEX");
  command->add_option("--function", flags->function,
                      "Only sites with a frame of such a function; with\n"
                      "--file and --module, of one frame all of them")
      ->type_name("REGEX");
  command->add_option("--file", flags->source_file, "Only sites with a frame in such a source file")
      ->type_name("REGEX");
  command->add_option("--module", flags->module, "Only sites with a frame in such a module")
      ->type_name("REGEX");
  command->add_option("--size", flags->size, "Only blocks of this size: 64, 1K..64K, 1M..")
      ->type_name("RANGE");
  command->add_option("--lifetime", flags->lifetime,
                      "Only blocks that lived so long: ..10us, 1s..2min")
      ->type_name("RANGE");
  command->add_option("--age", flags->age,
                      "Only blocks live at the end and then so old: 1h..")
      ->type_name("RANGE");
  command->add_option("--timeline-by", flags->timeline_by,
                      "The heap over time by site, thread, module, folder")
      ->type_name("WHAT");
  command->add_option("--executable", flags->executable,
                      "Of several traces, the sites of this program")
      ->type_name("NAME");
  command->add_option("--top", flags->top, "Rows of each table; text: 10; json: 1000;\n"
                      "html: 20000; csv: all")
      ->type_name("N")
      ->check(WholeNumber, "");
  command->add_option("--sort", flags->sort,
                      "Allocators by total, wasted, live, blocks, peak,\n"
                      "allocations, frees, temporary, caller")
      ->type_name("COLUMN");
  command->add_option("--measure", flags->measure,
                      "Of folded, pprof, speedscope, callgrind the number\n"
                      "of each site: live (default), blocks, allocated,\n"
                      "allocations, peak, peak-blocks, wasted, temporary,\n"
                      "resident, peak-resident")
      ->type_name("WHAT");
  command
      ->add_option("--table,--tables", flags->tables,
                   "text: summary leaks growing sites growth faults\n"
                   "pressure temporary lifetimes reallocs (and pairs\n"
                   "that do not match) sizes modules threads mappings,\n"
                   "separated by commas;\n"
                   "csv: one of sites leaks timeline threads mappings\n"
                   "sizes lifetimes reallocs modules exchanges\n"
                   "site-sizes timeline-by-site (-thread, -module,\n"
                   "-folder) pressure; of several traces:\n"
                   "summary processes executables leaks sites")
      ->type_name("LIST")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_option("--scan", flags->scan,
                      "The memory scan whose leaks are shown: its number,\n"
                      "or last (default)")
      ->type_name("N");
  command->add_option("--show-leak-kinds", flags->leak_kinds,
                      "Of definite, indirect, possible, reachable, or\n"
                      "all, none; text: definite,possible; else all")
      ->type_name("SET");
  command->add_option("--suppressions", flags->suppressions,
                      "Leaks to count apart: a file of Valgrind's or of\n"
                      "LeakSanitizer's syntax; repeatable")
      ->type_name("FILE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_flag("--suppress-children", flags->suppress_children,
                    "And what only they lead to, as LeakSanitizer does");
  command->add_option("--leak-resolution", flags->leak_resolution,
                      "Frames that make two stacks one: low (2), med (4),\n"
                      "high (all, default)")
      ->type_name("R");
  command->add_option("--leak-check-heuristics", flags->heuristics,
                      "Interior pointers that count: stdstring, length64,\n"
                      "newarray, multipleinheritance, gobject, gslice,\n"
                      "all (default), none")
      ->type_name("SET");
  command->add_option("--leader", flags->leader,
                      "Of a lost cycle the definite one: by address\n"
                      "(default) or sequence of allocation")
      ->type_name("BY");
  command->add_flag("--graph", flags->questions.summary,
                    "What keeps the heap: by root (variables, stacks,\n"
                    "registers) and by site, what would go with it");
  command->add_option("--why", flags->questions.why,
                      "What keeps the blocks of a site: the number in\n"
                      "front of a loss record, a fingerprint, or a\n"
                      "block's 0xADDRESS")
      ->type_name("SITE");
  command->add_option("--who-points-at", flags->questions.who_points_at,
                      "Every pointer into the block at that address")
      ->type_name("0xADDRESS");
  command->add_flag("--full", flags->full, "Every row, every frame, nothing shortened");
  command->add_option("--color", flags->color, "auto (default), always, never")->type_name("WHEN");
  command->add_option("--width", flags->width, "Columns of text, 60 to 200")
      ->type_name("N")
      ->check(TextColumns, "");
  command->add_option("--jobs", flags->jobs, "Threads that read the trace: one a processor")
      ->type_name("N")
      ->check(WholeNumber, "");
  AddNameOptions(command, {&flags->debug_dirs, &flags->sysroot, &flags->debuginfod});
  command->add_option("--symbol-cache", flags->symbol_cache,
                      "Keep names here for the next report, or off;\n"
                      "default: MEMTRACE_SYMBOL_CACHE, ~/.cache/memtrace")
      ->type_name("D");
  command->add_option("--index", flags->index,
                      "Keep here what makes the next report of a trace\n"
                      "fast, or off; default: ~/.cache/memtrace, and\n"
                      "FILE.idx for --at, --from, --to, --series")
      ->type_name("D");
  command->footer(
      "Examples:\n"
      "  memtrace report app.mtr\n"
      "  memtrace report app.mtr --sort wasted --top 30\n"
      "  memtrace report traces/ --executable app\n"
      "  memtrace report app.mtr --from 90% --match 'cache|pool'\n"
      "  memtrace report app.mtr --at 90%\n"
      "  memtrace report app.mtr --series --top 5\n"
      "  memtrace report app.mtr --why 1\n"
      "  memtrace report app.mtr --format json -o report.json\n"
      "  memtrace report app.mtr --format html -o report.html\n"
      "  memtrace report app.mtr --format csv --table timeline > timeline.csv");
  command->callback([flags, exit_code] {
    bool skipped = false;
    flags->file = flags->files.front();
    LimitMemory();
    const absl::Status status = MeansATree(*flags)
                                    ? ReportTree(*flags, &skipped)
                                    : Report(*flags, exit_code);
    if (skipped) *exit_code = kExitFailed;
    if (status.ok()) return;
    std::fprintf(stderr, "memtrace: %s\n", EscapeControls(status.message()).c_str());
    *exit_code = kExitFailed;
  });
}

}  // namespace memtrace::report
