#include "report/command/command_report.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "report/analysis/analyzer.h"
#include "report/analysis/coverage.h"
#include "report/analysis/unseen_allocators.h"
#include "report/base/interruption.h"
#include "report/base/memory_limit.h"
#include "report/cli/exit_status.h"
#include "report/cli/options.h"
#include "report/cli/refusals.h"
#include "report/command/add_report_options.h"
#include "report/command/heap_questions.h"
#include "report/html/page.h"
#include "report/index/grouping_store.h"
#include "report/index/indexed_analysis.h"
#include "report/index/summary_store.h"
#include "report/leak/leak_scans.h"
#include "report/leak/operator_new.h"
#include "report/names/site_symbols.h"
#include "report/render/output.h"
#include "report/render/progress.h"
#include "report/render/site_series_table.h"
#include "report/render/valgrind_report.h"
#include "report/run/reader_lock.h"
#include "report/sqlite/sqlite_report.h"
#include "report/suppress/suppress_records.h"
#include "report/trace/byte_source.h"
#include "report/trace/live_trace.h"
#include "report/trace/trace_reader.h"
#include "report/tree/command_tree.h"
#include "report/viewers/viewers.h"
#include "report/words/escape.h"
#include "symbolizer/symbolizer_process.h"

namespace memtrace::report {
namespace {

using namespace render;  // NOLINT: this file joins the two

TextOptions TextOptionsOf(const ReportFlags& flags, const ReportOptions& options, int fd) {
  TextOptions text;
  text.style = StyleFor(fd, options.color, flags.width);
  text.top = options.text_top;
  text.sort = options.sort;
  text.full = flags.full;
  text.sections = options.sections;
  text.timeline_by = options.timeline_by;
  text.scan_alone = LiveTrace::Find(flags.file) != nullptr;  // part of memtrace leaks
  return text;
}

// Renders what was analyzed into `out`.
absl::Status Render(const ReportFlags& flags, const ReportOptions& options,
                    const ReportView& view, const GraphView* graph, Output& out) {
  const absl::Status known = CheckMeasure(view.analysis(), options.measure);
  if (!known.ok()) return known;
  switch (options.format) {
    case ReportFormat::kText: {
      const TextOptions text = TextOptionsOf(flags, options, out.fd());
      // A question about some blocks has its answer alone.
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
      style.free_errors = CollectFreeErrors(view);
      const absl::Status status = options.format == ReportFormat::kValgrind
                                      ? RenderValgrindText(view, losses, style, out)
                                      : RenderValgrindXml(view, losses, style, out);
      if (!status.ok()) return status;
      break;
    }
  }
  return out.Commit();
}

// The scan that `view`, which is of `analysis`, is about; nullptr: it is about none.
LeakScan* ChosenScan(const ReportView& view, Analysis* analysis) {
  for (LeakScan& scan : analysis->leak_scans) {
    if (&scan == view.leak_scan()) return &scan;
  }
  return nullptr;
}

// Chooses the scan that `view`, which is of `analysis`, is about, and marks there what the user
// suppresses and what is the runtime's own. `held`: nullptr, or that scan.
absl::Status PrepareLeaks(const ReportFlags& flags, const ReportOptions& options,
                          const leak::HeldScan* held, suppress::Suppressions* suppressions,
                          ReportView* view, Analysis* analysis) {
  // `memtrace leaks --new` is asked for what is new, of whatever kinds.
  const absl::Status status =
      view->ChooseLeaks(options.scan, options.leak_kinds, LiveTrace::Find(flags.file) != nullptr);
  if (!status.ok()) return status;
  LeakScan* const scan = ChosenScan(*view, analysis);
  if (scan == nullptr && !flags.suppressions.empty()) {
    return absl::NotFoundError(absl::StrCat("--suppressions: is for what a memory scan found, and ",
                                            flags.file, " has none: ",
                                            leak::WhyNoScan(*analysis)));
  }
  if (scan == nullptr) return absl::OkStatus();
  if (!flags.suppressions.empty()) {
    suppress::SuppressRecords(*view, suppressions, scan);
    if (held != nullptr && flags.suppress_children) {
      suppress::SuppressWhatTheyLeadTo(*held, view->symbols().stacks(),
                                       options.analyze.leaks.resolution, scan);
    }
    scan->suppressions = suppress::Used(*suppressions);
  }
  suppress::MarkOfRuntime(*view, scan);
  return absl::OkStatus();
}

index::IndexOptions IndexOf(const ReportOptions& options) {
  index::IndexOptions index;
  index.use = options.index_beside || !options.summary_dir.empty();
  index.directory = options.summary_dir;
  index.beside = options.index_beside;
  index.warn = [](const std::string& why) {
    std::fprintf(stderr, "memtrace: %s\n", words::EscapeControls(why).c_str());
  };
  return index;
}

// What is kept of the trace, to keep more beside it. No file: nothing is.
struct Summary {
  std::string file;
  index::TraceIdentity identity;
};

// The file to report on, which stays what it is for all readings of it, though its process may end
// meanwhile, and `memtrace run` pack and remove it.
class ReportedFile {
 public:
  explicit ReportedFile(const std::string& name) : name_(name), held_(name), lock_(name) {}

  // Names are looked up for minutes, and a pager may stay open for hours.
  void ReadingIsOver() {
    if (const LiveTrace* live = LiveTrace::Find(name_); live != nullptr) live->ReadingIsOver();
    lock_.ReadingIsOver();
  }

 private:
  const std::string& name_;
  const HeldFile held_;
  RawTraceLock lock_;
};

// Blocks that the program told of by memtrace.h, whose bytes are not those of the blocks that they
// lie in.
bool HasCustomBlocks(const Analysis& analysis) {
  return std::ranges::any_of(analysis.sites, [](const Site& site) {
    return site.function == format::AllocFunction::kPoolAlloc ||
           site.function == format::AllocFunction::kBlockAlloc;
  });
}

// Whether the trace is read once more when the sites that were chosen by their names are known. A
// series is of one site alone, and needs it only where bytes went from one to another.
bool NeedsSecondPass(const ReportOptions& options, const Analysis& analysis) {
  return !options.frames.all() && (!options.series || HasCustomBlocks(analysis));
}

// Ctrl-C ends the reading, not the report.
absl::StatusOr<AnalyzedTrace> AnalyzeUntilInterrupted(const ReportFlags& flags,
                                                      ReportOptions* options,
                                                      symbolizer::SymbolizerProcess* symbolizer,
                                                      ReportedFile* file, Summary* summary) {
  const Interruption interruption;
  options->analyze.stop = [&] { return interruption.requested(); };
  const std::string& sysroot = options->symbolizer.sysroot;
  // A second pass (a filter by names has one too) adds to the stacks, which those of a summary
  // are not made for.
  const bool second_pass =
      options->format == ReportFormat::kHeaptrack || !options->frames.all();
  if (options->series) {
    index::IndexOptions index = IndexOf(*options);
    auto series = index::SeriesByIndex(flags.file, options->analyze, index);
    const bool again = series.ok() && NeedsSecondPass(*options, series->analysis);
    if (again && series->event_bytes_decoded == 0) {  // of what was kept, as with a summary
      index.build = false;
      series = index::AnalyzeByIndex(flags.file, options->analyze, index);
    }
    options->analyze.stop = nullptr;
    if (!again) file->ReadingIsOver();
    return series;
  }
  index::SummaryStore store(second_pass ? "" : options->summary_dir);
  store.set_index(IndexOf(*options));
  auto trace = store.Analyze(flags.file, options->analyze, sysroot, [&](Analysis* analysis) {
    if (!second_pass) file->ReadingIsOver();
    FillUnseenAllocators(ModuleNamesBy(symbolizer), analysis);
  });
  options->analyze.stop = nullptr;
  *summary = {store.file(), store.identity()};
  return trace;
}

// Whether what was read has the memory scan without which what is asked for has no answer.
bool HasNeededScan(const ReportFlags& flags, const ReportOptions& options,
                   const Analysis& analysis) {
  if (options.scan != 0) {
    return std::ranges::any_of(analysis.leak_scans, [&options](const LeakScan& each) {
      return each.number == options.scan;
    });
  }
  const bool needs_one = flags.questions.any() || !flags.suppressions.empty() ||
                         options.format == ReportFormat::kValgrind ||
                         options.format == ReportFormat::kValgrindXml;
  return !needs_one || leak::ChooseScan(analysis, 0) != nullptr;
}

// False: before it came to what was asked for.
bool WarnInterrupted(const ReportFlags& flags, const ReportOptions& options,
                     const Analysis& analysis) {
  // Where all events were read and none is of that scan, the trace has none, which is said as of
  // any other.
  const bool has_any =
      InterruptedBehindTheEvents(analysis) || (analysis.range.to_ns > analysis.range.from_ns &&
                                               HasNeededScan(flags, options, analysis));
  std::fprintf(stderr, "memtrace: %s\n",
               has_any ? InterruptionText(analysis).c_str()
                       : "the reading was interrupted before it came to what was asked for: there "
                         "is nothing to report");
  return has_any;
}

// Whether there is something to report, though the reading may have been interrupted: then it says
// so, and the exit status will.
bool GoesOn(const ReportFlags& flags, const ReportOptions& options, const Analysis& analysis,
            Progress* progress, int* exit_code) {
  if (!analysis.coverage.interrupted) return true;
  *exit_code = kExitInterrupted;
  progress->Clear();
  return WarnInterrupted(flags, options, analysis);
}

// For the sites that were chosen by their names. An interruption that came before was
// of the first reading, which has also made the index where it was to be made.
absl::StatusOr<AnalyzedTrace> ReadAgain(const ReportFlags& flags, ReportOptions* options,
                                        bool interrupted) {
  std::optional<Interruption> interruption;
  if (!interrupted) {
    interruption.emplace();
    options->analyze.stop = [&] { return interruption->requested(); };
  }
  index::IndexOptions index = IndexOf(*options);
  index.build = false;
  auto again = index::AnalyzeByIndex(flags.file, options->analyze, index);
  options->analyze.stop = nullptr;
  return again;
}

// Which sites are asked for is known when they have names, in `view`: then every
// figure is of these.
absl::StatusOr<AnalyzedTrace> ChooseSites(const ReportFlags& flags, const AnalyzedTrace& trace,
                                          const ReportView& view, ReportOptions* options) {
  const Coverage& of_trace = trace.analysis.coverage;
  options->analyze.stacks = trace.stacks.get();
  // A process that is at work has done more since, or has ended.
  if (of_trace.interrupted || of_trace.live_until_ns != 0) {
    options->analyze.Only(trace.analysis.range);
  }
  options->analyze.filter.sites = [&view](StackId stack) { return view.Matches(stack); };
  absl::StatusOr<AnalyzedTrace> chosen = ReadAgain(flags, options, of_trace.interrupted);
  if (!chosen.ok()) return chosen.status();
  const Coverage of_sites = std::move(chosen->analysis.coverage);
  // What is about the trace, not the sites.
  chosen->analysis.process = trace.analysis.process;
  chosen->analysis.coverage = of_trace;
  chosen->analysis.coverage.marked_stacks = of_sites.marked_stacks;  // but this is of allocations
  if (of_sites.interrupted && !of_trace.interrupted) {
    chosen->analysis.coverage.interrupted = true;
    chosen->analysis.coverage.read_share = of_sites.read_share;
  }
  return chosen;
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
    out->Write(SeriesText(view, TextOptionsOf(flags, options, out->fd())));
  } else if (options.format == ReportFormat::kCsv) {
    SeriesCsv(view, options.csv_top, *out);
  } else {
    SeriesJson(view, options.json_top, *out);
  }
  return out->Commit();
}

// Files of other tools have no place for what is missing in them.
void WarnAboutLosses(const ReportFlags& flags, ReportFormat format, const Coverage& coverage) {
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
  for (const std::string& text : LossTexts(coverage)) {
    std::fprintf(stderr, "memtrace: %s\n",
                 words::EscapeControls(absl::StrCat(flags.file, ": ", text)).c_str());
  }
}

// What a report is made of is never destroyed, and goes with the process: to take it apart, site by
// site, is a tenth of the time of a report from what was kept. Once for each type.
template <typename T>
T& LeakUntilExit(T thing) {
  static T* const left = new T(std::move(thing));
  return *left;
}

// What would make the report fail when all the work is done: no page to put it into, an output that
// is a file it reads, or no database, or a terminal.
absl::Status CheckOutputs(const ReportFlags& flags, const ReportOptions& options) {
  absl::Status status =
      options.format == ReportFormat::kHtml ? html::PageIsThere() : absl::OkStatus();
  if (options.format == ReportFormat::kHtml || options.format == ReportFormat::kPprof) {
    status.Update(RefuseTerminal(flags.format, flags.output));
  }
  if (!status.ok()) return status;
  status = RefuseToReplace(flags.file, flags.output);
  for (const std::string& file : flags.suppressions) {
    status.Update(RefuseToReplace(file, flags.output, "a file of suppressions that is read"));
  }
  if (!status.ok()) return status;
  if (options.format == ReportFormat::kSqlite) return sqlite::CheckSqliteOutput(flags.output);
  return absl::OkStatus();
}

// Which functions are operator new, where loss records are told apart by their frames.
absl::Status CompleteResolution(const std::string& file,
                                symbolizer::SymbolizerProcess* symbolizer,
                                ReportOptions* options) {
  leak::Resolution& resolution = options->analyze.leaks.resolution;
  if (resolution.frames == 0) return absl::OkStatus();
  const auto reader = TraceReader::Open(file);
  if (!reader.ok()) return reader.status();
  resolution.operator_new = FindOperatorNew((*reader)->metadata().modules, symbolizer);
  return absl::OkStatus();
}

absl::Status Write(const ReportFlags& flags, const ReportOptions& options, const ReportView& view,
                   StackTable* stacks, const GraphView* answers) {
  if (options.format == ReportFormat::kSqlite) return sqlite::WriteSqlite(view, flags.output);

  // Opened last: an error before this leaves no file, and an old one as it was.
  absl::StatusOr<Output> out = Output::Open(flags.output);
  if (!out.ok()) return out.status();
  if (options.format == ReportFormat::kHeaptrack) {
    const absl::Status status = viewers::RenderHeaptrack(view, flags.file, stacks, *out);
    return status.ok() ? out->Commit() : status;
  }
  return Render(flags, options, view, answers, *out);
}

absl::Status Report(const ReportFlags& flags, int* exit_code) {
  if (!flags.executable.empty()) {
    return absl::InvalidArgumentError("--executable needs several traces or a directory");
  }
  absl::StatusOr<ReportOptions> options = ParseReportFlags(flags);
  if (!options.ok()) return options.status();
  absl::Status status = CheckOutputs(flags, *options);
  if (!status.ok()) return status;

  Progress progress;
  options->analyze.progress = [&](const ReadProgress& read) {
    progress.Report("reading", read.share(), read.events);
  };
  suppress::Suppressions suppressions;
  for (const std::string& file : flags.suppressions) {
    status = suppressions.AddFile(file);
    if (!status.ok()) return status;
  }
  symbolizer::SymbolizerProcess symbolizer(options->symbolizer);
  symbolizer.StartForkServer();
  ReportedFile file(flags.file);
  HeapQuestions questions(flags.questions, options->scan, flags.suppress_children);
  options->analyze.leak_observer = questions.Observer();
  status = CompleteResolution(flags.file, &symbolizer, &*options);
  if (!status.ok()) return status;
  Summary summary;
  auto& trace =
      LeakUntilExit(AnalyzeUntilInterrupted(flags, &*options, &symbolizer, &file, &summary));
  if (!trace.ok()) return trace.status();
  if (!GoesOn(flags, *options, trace->analysis, &progress, exit_code)) return absl::OkStatus();

  const StackTable& stacks = *trace->stacks;
  const SiteSymbols& symbols = LeakUntilExit(SiteSymbols(
      trace->analysis, stacks, SymbolizeBy(&symbolizer),
      [&](double share) { progress.Report("symbolizing", share); }, questions.Stacks()));
  auto& view = LeakUntilExit(ViewOf(trace->analysis, symbols, options->frames, summary));
  if (!view.ok()) return view.status();
  AnalyzedTrace chosen;
  if (NeedsSecondPass(*options, trace->analysis)) {
    absl::StatusOr<AnalyzedTrace> of_sites = ChooseSites(flags, *trace, *view, &*options);
    if (!of_sites.ok()) return of_sites.status();
    chosen = *std::move(of_sites);
    if (options->format != ReportFormat::kHeaptrack) file.ReadingIsOver();
    if (!trace->analysis.coverage.interrupted &&
        !GoesOn(flags, *options, chosen.analysis, &progress, exit_code)) {
      return absl::OkStatus();
    }
    view = ReportView::Create(chosen.analysis, symbols, options->frames);
    if (!view.ok()) return view.status();
  }
  if (options->series) {
    progress.Clear();
    WarnAboutLosses(flags, options->format, trace->analysis.coverage);
    return WriteSeries(flags, *options, *view);
  }
  Analysis& viewed = view->filtered() ? chosen.analysis : trace->analysis;
  status = PrepareLeaks(flags, *options, questions.held(), &suppressions, &*view, &viewed);
  if (!status.ok()) return status;
  status = questions.Answer(*view, stacks, options->analyze.leaks.resolution, &symbolizer);
  if (!status.ok()) return status;
  progress.Clear();
  WarnAboutLosses(flags, options->format, trace->analysis.coverage);
  return Write(flags, *options, *view, trace->stacks.get(), questions.answers());
}

}  // namespace

void RegisterReportCommand(CLI::App& app, int* exit_code) {
  auto flags = std::make_shared<ReportFlags>();
  CLI::App* command = app.add_subcommand("report", "Where the memory of a traced program went");
  AddReportOptions(command, flags.get());
  command->callback([flags, exit_code] {
    flags->file = flags->files.front();
    LimitMemory();
    const absl::Status status = MeansATree(*flags)
                                    ? ReportTree(*flags, exit_code)
                                    : Report(*flags, exit_code);
    if (!status.ok()) *exit_code = ExitCodeOf(status);
  });
}

}  // namespace memtrace::report
