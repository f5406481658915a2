#include "report/diff/run_summary.h"

#include <algorithm>
#include <set>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "report/analysis/coverage.h"
#include "report/base/path.h"
#include "report/leak/leak_kinds.h"
#include "report/leak/leak_scans.h"
#include "report/names/frames_filter.h"
#include "report/names/site_symbols.h"
#include "report/render/selection_lines.h"
#include "report/tree/run_span.h"
#include "report/tree/trace_set.h"
#include "report/tree/tree_analysis.h"
#include "report/tree/tree_view.h"
#include "report/words/process_end.h"
#include "report/words/shell_words.h"
#include "symbolizer/symbolizer_process.h"

namespace memtrace::report {
namespace {

using render::ReportView;

constexpr absl::string_view kNames[kMeasures] = {
    "live", "live-blocks", "peak", "allocated", "allocations",
    "temporary", "definite", "indirect", "possible", "reachable",
};

constexpr size_t kFramesKept = 12;  // of a stack that is shown
constexpr size_t kCommandKept = 200;
constexpr size_t kMostNamed = 5;  // of processes that were not scanned

std::string EndOf(const ProcessInfo& process) {
  return process.imported() ? "an imported log" : words::ShortEnd(process);
}

std::string CommandText(const ProcessInfo& process) {
  std::vector<std::string> command = process.command;
  if (command.empty() && !process.executable.empty()) command = {process.executable};
  return words::ShellCommand(command, kCommandKept);
}

Measure MeasureOf(LeakKind kind) {
  switch (kind) {
    case LeakKind::kDefinite: return Measure::kDefinite;
    case LeakKind::kIndirect: return Measure::kIndirect;
    case LeakKind::kPossible: return Measure::kPossible;
    case LeakKind::kReachable:
    case LeakKind::kUnfreed: break;
  }
  return Measure::kReachable;
}

// The scan of the end; nullptr: the end was not scanned. What was lost until some instant before it
// cannot be compared with what another run had lost until an instant of its own.
const LeakScan* FinalScan(const Analysis& analysis) {
  // In a range there may be an earlier one alone.
  return leak::ExitWasScanned(analysis) ? leak::ChooseScan(analysis, 0) : nullptr;
}

void NoteCoverage(absl::string_view file, uint64_t dropped, bool truncated,
                  std::string_view damage, const std::string& part, RunSummary* run) {
  std::vector<std::string> missing = MissingTexts(dropped, truncated, damage);
  if (!part.empty()) missing.push_back(part);
  for (const std::string& text : missing) {
    run->notes.push_back(absl::StrCat(file, ": ", text));
    run->incomplete.push_back(run->notes.back());
  }
}

// The sites of a module that is gone or another build now have no functions: they would be
// others than they were.
void NoteNameless(const ReportView& view, RunSummary* run) {
  std::set<std::string> modules;
  for (const Site* site : view.sites()) modules.insert(view.NamelessModule(site->stack));
  modules.erase("");
  run->nameless.insert(run->nameless.end(), modules.begin(), modules.end());
}

Amounts AmountsOf(const Site& site) {
  Amounts amounts;
  amounts[Measure::kLive] = site.live_bytes;
  amounts[Measure::kLiveBlocks] = site.live_blocks;
  amounts[Measure::kPeak] = site.bytes_at_peak;
  amounts[Measure::kAllocated] = site.bytes_allocated;
  amounts[Measure::kAllocations] = site.allocations;
  amounts[Measure::kTemporary] = site.temporary;
  return amounts;
}

class Sites {
 public:
  Sites(const ReportView& view, std::string executable, Measure measure, RunSummary* run)
      : view_(view), executable_(std::move(executable)), measure_(measure), run_(run) {}

  // `estimated`: what of a site's amounts is.
  template <typename Estimated>
  void AddAll(Estimated estimated) {
    for (const Site* site : view_.sites()) {
      RunSite& into = Add(site->stack, site->function, AmountsOf(*site));
      into.estimated.Add(estimated(*site));
      if (site->bytes_sample.made()) into.bytes_sample.Add(*site->bytes_sample);
      if (site->live_sample.made()) into.live_sample.Add(*site->live_sample);
    }
  }
  void AddLeaks(const std::vector<LossRecord>& records) {
    for (const LossRecord& record : records) {
      if (!view_.Matches(record.stack)) continue;
      Amounts amounts;
      amounts[MeasureOf(record.kind)] = record.bytes;
      Add(record.stack, record.function, amounts);
    }
  }

 private:
  RunSite& Add(StackId stack, format::AllocFunction function, const Amounts& amounts) {
    RunSite& site = run_->sites[{executable_, view_.Fingerprint(stack, function)}];
    const std::pair weight(amounts[measure_], amounts[Measure::kAllocated]);
    if (site.allocator.empty() || weight > site.weight) {
      site.weight = weight;
      Describe(stack, function, &site);
    }
    site.amounts.Add(amounts);
    return site;
  }

  void Describe(StackId stack, format::AllocFunction function, RunSite* site) const {
    site->allocator = std::string(render::FunctionName(function));
    site->caller = site->file = "";
    site->line = 0;
    site->stack.clear();
    site->callers_begin = 0;
    const std::vector<const Frame*> frames = view_.Frames(stack);
    if (frames.empty()) return;
    const names::Cut cut = names::CutStack(frames);
    const Frame& caller = *frames[cut.caller];
    site->caller = render::FrameName(caller);
    site->file = caller.file;
    site->line = caller.line;
    site->callers_begin = cut.caller + 1 - cut.via;
    for (size_t i = cut.via; i < cut.end && site->stack.size() < kFramesKept; ++i) {
      const std::string place = render::PlaceText(*frames[i]);
      site->stack.push_back(place.empty()
                                ? render::FrameName(*frames[i])
                                : absl::StrCat(render::FrameName(*frames[i]), "  ", place));
    }
  }

  const ReportView& view_;
  const std::string executable_;
  const Measure measure_;
  RunSummary* const run_;
};

Amounts AmountsOf(const Totals& totals) {
  Amounts amounts;
  amounts[Measure::kLive] = totals.live_bytes;
  amounts[Measure::kLiveBlocks] = totals.live_blocks;
  amounts[Measure::kPeak] = totals.peak_live_bytes;
  amounts[Measure::kAllocated] = totals.bytes_allocated;
  amounts[Measure::kAllocations] = totals.allocations;
  amounts[Measure::kTemporary] = totals.temporary_allocations;
  return amounts;
}

void AddLeakTotals(const LeakScan& scan, Amounts* amounts) {
  for (const LeakKind kind : kScanKinds) {
    (*amounts)[MeasureOf(kind)] += scan.totals[static_cast<size_t>(kind)].bytes;
  }
}

// Collects the leaks of the traces of a tree, while each trace is there.
class TreeLosses {
 public:
  void See(size_t image, const AnalyzedTrace& trace, MergedSites& sites) {
    const LeakScan* scan = FinalScan(trace.analysis);
    if (scan == nullptr) {
      // A process that becomes another program loses nothing.
      if (trace.analysis.process.end != ProcessInfo::End::kExec) not_scanned_.push_back(image);
      return;
    }
    AddLeakTotals(*scan, &totals_);
    std::vector<StackId> stacks;
    for (const LossRecord& record : scan->records) stacks.push_back(record.stack);
    stacks = sites.Translate(trace, stacks);
    for (size_t i = 0; i < stacks.size(); ++i) {
      LossRecord record = scan->records[i];
      record.stack = stacks[i];
      of_images_[image].push_back(record);
    }
  }

  // With the images in place: by executable.
  std::map<size_t, std::vector<LossRecord>> ByExecutable(const TreeAnalysis& tree) const {
    std::map<size_t, std::vector<LossRecord>> records;
    for (const auto& [image, own] : of_images_) {
      std::vector<LossRecord>& all = records[tree.images[image].executable];
      all.insert(all.end(), own.begin(), own.end());
    }
    return records;
  }
  const Amounts& totals() const { return totals_; }
  const std::vector<size_t>& not_scanned() const { return not_scanned_; }  // images

 private:
  Amounts totals_;  // of leaks
  std::map<size_t, std::vector<LossRecord>> of_images_;
  std::vector<size_t> not_scanned_;
};

// Collects which part of a tree's sites its samples gave, while each trace is there. Keeps nothing
// of a tree without samples.
class TreeSamples {
 public:
  void See(size_t image, const AnalyzedTrace& trace, MergedSites& sites) {
    if (trace.analysis.process.sample_bytes == 0) return;
    std::vector<StackId> stacks;
    for (const Site& site : trace.analysis.sites) stacks.push_back(site.stack);
    stacks = sites.Translate(trace, stacks);
    for (size_t i = 0; i < stacks.size(); ++i) {
      const Site& site = trace.analysis.sites[i];
      of_images_[image].push_back({stacks[i], site.function, AmountsOf(site)});
    }
  }

  using BySite = absl::flat_hash_map<std::pair<StackId, format::AllocFunction>, Amounts>;
  // With the images in place: by executable.
  std::map<size_t, BySite> ByExecutable(const TreeAnalysis& tree) const {
    std::map<size_t, BySite> executables;
    for (const auto& [image, parts] : of_images_) {
      BySite& sites = executables[tree.images[image].executable];
      for (const Part& part : parts) sites[{part.stack, part.function}].Add(part.amounts);
    }
    return executables;
  }

 private:
  struct Part {
    StackId stack;
    format::AllocFunction function;
    Amounts amounts;
  };
  std::map<size_t, std::vector<Part>> of_images_;
};

absl::StatusOr<RunSummary> SummarizeTrace(const std::string& path, const SummaryOptions& options) {
  symbolizer::SymbolizerProcess symbolizer(options.symbolizer);
  symbolizer.StartForkServer();
  AnalyzeOptions analyze = options.analyze;
  analyze.leaks.leader = leak::LeaderBy::kCode;
  if (options.progress) {
    analyze.progress = [&](const ReadProgress& read) { options.progress("reading", read.share()); };
  }
  absl::StatusOr<AnalyzedTrace> trace = AnalyzeTrace(path, analyze);
  if (!trace.ok()) return trace.status();
  const Analysis& analysis = trace->analysis;
  const LeakScan* scan = FinalScan(analysis);
  std::vector<StackId> of_leaks;
  if (scan != nullptr) {
    for (const LossRecord& record : scan->records) of_leaks.push_back(record.stack);
  }
  const SiteSymbols symbols(
      analysis, *trace->stacks, SymbolizeBy(&symbolizer),
      [&](double share) {
        if (options.progress) options.progress("symbolizing", share);
      },
      of_leaks);
  const absl::StatusOr<ReportView> view = ReportView::Create(analysis, symbols, options.frames);
  if (!view.ok()) return view.status();

  RunSummary run;
  run.name = path;
  run.command = CommandText(analysis.process);
  run.end = EndOf(analysis.process);
  run.start_realtime_ns = analysis.process.start_realtime_ns;
  run.duration_ns = analysis.process.own_duration_ns();
  run.without_exit_work = analysis.process.has_exit_work();
  run.sampled = analysis.process.sample_bytes != 0;
  if (const Range& range = analysis.range; !range.whole()) {
    run.range_ns =
        std::min(range.to_ns, run.duration_ns) - std::min(range.from_ns, run.duration_ns);
  }
  run.frames = options.frames;
  run.only = render::BlockLines(analysis);
  run.scanned = scan != nullptr;
  run.all_recorded = AllRecorded(analysis.coverage);
  run.executables = {std::string(FileNameOf(analysis.process.executable))};
  if (run.sampled) run.sample_bytes[run.executables.front()] = analysis.process.sample_bytes;
  run.totals = AmountsOf(analysis.totals);
  NoteCoverage(path, analysis.coverage.dropped_events, analysis.coverage.truncated,
               analysis.coverage.damage, PartText(analysis.coverage), &run);
  if (std::string stops = StopsNote(analysis.coverage).text; !stops.empty()) {
    run.notes.push_back(std::move(stops));
  }
  for (const CoverageNote& note : analysis.coverage.notes) run.notes.push_back(note.text);
  // This is among the notes already.
  if (analysis.coverage.live_until_ns != 0)
    run.incomplete.push_back(absl::StrCat(path, ": ", RunPartText(analysis.coverage)));
  for (const std::string& note : symbols.notes()) run.notes.push_back(note);
  NoteNameless(*view, &run);
  Sites sites(*view, run.executables.front(), options.measure, &run);
  sites.AddAll([&](const Site& site) { return run.sampled ? AmountsOf(site) : Amounts(); });
  if (scan != nullptr) {
    sites.AddLeaks(scan->records);
    AddLeakTotals(*scan, &run.totals);
    for (const std::string& note : scan->notes) run.notes.push_back(note);
  }
  return run;
}

// The process that the run is named after: the first, and no log of the kernel beside it, nor one
// that was killed before it had written who it is.
const ProcessImage& FirstOf(const TreeAnalysis& tree) {
  const auto first = std::ranges::find_if(
      tree.tree.order, [&](size_t image) { return tree.images[image].process.start_known(); });
  return tree.images[first != tree.tree.order.end() ? *first : tree.tree.order.front()];
}

absl::StatusOr<RunSummary> SummarizeTree(const std::vector<std::string>& paths,
                                         const SummaryOptions& options) {
  const auto set = FindTraces(paths);
  if (!set.ok()) return set.status();
  const auto report = [&](absl::string_view what, double share) {
    if (options.progress) options.progress(what, share);
  };
  symbolizer::SymbolizerProcess symbolizer(options.symbolizer);
  symbolizer.StartForkServer();
  TreeLosses losses;
  TreeSamples samples;
  const TreeAnalysis tree = AnalyzeTree(
      *set, [&](double share) { report("reading", share); },
      [&](size_t image, AnalyzedTrace& trace, MergedSites& sites) {
        losses.See(image, trace, sites);
        samples.See(image, trace, sites);
      },
      {.leader = leak::LeaderBy::kCode});
  if (tree.images.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("no trace could be read: ",
                                                   tree.skipped.front().file, ": ",
                                                   tree.skipped.front().why));
  }
  const auto view = TreeView::Create(
      tree, SymbolizeBy(&symbolizer),
      [&](double share) { report("symbolizing", share); }, "", options.frames);
  if (!view.ok()) return view.status();

  RunSummary run;
  run.name = paths.size() == 1 ? paths.front()
                               : absl::StrCat(paths.front(), " and ", paths.size() - 1, " more");
  const ProcessImage& first = FirstOf(tree);
  run.command = CommandText(first.process);
  run.end = EndOf(first.process);
  run.processes = tree.tree.processes;
  run.sampled = tree.sample_bytes != 0;
  run.all_recorded = tree.not_all_recorded == 0 &&
                     std::ranges::all_of(tree.skipped, &TreeAnalysis::Skipped::is_copy);
  run.frames = options.frames;
  run.totals = AmountsOf(tree.totals);
  run.totals.Add(losses.totals());
  // An executed trace that was not the last of its process is told from a cut one afterwards.
  size_t not_scanned = 0;
  for (const size_t image : losses.not_scanned()) {
    if (tree.images[image].process.end == ProcessInfo::End::kExec) continue;
    if (++not_scanned > kMostNamed) continue;
    run.notes.push_back(
        absl::StrCat(tree.images[image].file, ": its memory was not scanned at its end"));
  }
  run.scanned = not_scanned == 0;
  if (not_scanned > kMostNamed) {
    run.notes.push_back(absl::StrCat(not_scanned - kMostNamed, " more processes were not scanned"));
  }
  const RunSpan span = RunSpanOf(tree.images);
  run.start_realtime_ns = span.start_realtime_ns;
  run.duration_ns = span.own_duration_ns;
  for (const ProcessImage& image : tree.images) {
    run.without_exit_work |= image.process.has_exit_work();
    NoteCoverage(image.file, image.dropped_events, image.truncated, image.damage, image.part, &run);
  }
  for (const TreeAnalysis::Skipped& one : tree.skipped) {
    run.skipped.push_back(absl::StrCat("skipped ", one.file, ": ", one.why));
    run.notes.push_back(run.skipped.back());
  }
  for (const TreeAnalysis::Note& note : tree.notes) run.notes.push_back(NoteText(tree, note));
  for (const std::string& note : view->symbols().notes()) run.notes.push_back(note);
  std::set<std::string> executables;
  const auto leaks = losses.ByExecutable(tree);
  const auto sampled = samples.ByExecutable(tree);
  for (const size_t index : view->executables()) {
    const std::string name(FileNameOf(view->executable(index).path));
    executables.insert(name);
    NoteNameless(view->sites_of(index), &run);
    Sites sites(view->sites_of(index), name, options.measure, &run);
    const TreeSamples::BySite none;
    const auto found = sampled.find(index);
    const TreeSamples::BySite& estimated = found == sampled.end() ? none : found->second;
    sites.AddAll([&](const Site& site) {
      const auto part = estimated.find({site.stack, site.function});
      return part == estimated.end() ? Amounts() : part->second;
    });
    if (const uint64_t bytes = view->executable(index).analysis.process.sample_bytes; bytes != 0) {
      uint64_t& largest = run.sample_bytes[name];
      largest = std::max(largest, bytes);
    }
    if (const auto lost = leaks.find(index); lost != leaks.end()) sites.AddLeaks(lost->second);
  }
  run.executables.assign(executables.begin(), executables.end());
  return run;
}

}  // namespace

absl::string_view MeasureName(Measure measure) { return kNames[static_cast<size_t>(measure)]; }

absl::StatusOr<Measure> ParseMeasure(absl::string_view option, absl::string_view name) {
  for (size_t i = 0; i < kMeasures; ++i) {
    if (kNames[i] == name) return static_cast<Measure>(i);
  }
  return absl::InvalidArgumentError(
      absl::StrCat(option, ": \"", name, "\" is none of ", absl::StrJoin(kNames, ", ")));
}

bool IsBytes(Measure measure) {
  return measure != Measure::kLiveBlocks && measure != Measure::kAllocations &&
         measure != Measure::kTemporary;
}

bool IsLeakKind(Measure measure) { return measure >= Measure::kDefinite; }

void Amounts::Add(const Amounts& other) {
  for (size_t i = 0; i < kMeasures; ++i) of[i] += other.of[i];
}

absl::StatusOr<RunSummary> SummarizeRun(const std::vector<std::string>& paths,
                                        const SummaryOptions& options) {
  if (paths.size() == 1 && !IsDirectory(paths.front()))
    return SummarizeTrace(paths.front(), options);
  return SummarizeTree(paths, options);
}

absl::StatusOr<Per> ParsePer(absl::string_view name) {
  for (const Per per : {Per::kRun, Per::kSecond, Per::kAllocation}) {
    if (PerName(per) == name) return per;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--per: \"", name, "\" is none of run, second, allocation"));
}

absl::string_view PerName(Per per) {
  switch (per) {
    case Per::kRun: return "run";
    case Per::kSecond: return "second";
    case Per::kAllocation: return "allocation";
  }
  return "run";
}

std::optional<double> Divisor(Per per, uint64_t duration_ns, const Amounts& totals) {
  switch (per) {
    case Per::kRun: return 1;
    case Per::kSecond:
      if (duration_ns == 0) return std::nullopt;
      return static_cast<double>(duration_ns) / 1e9;
    case Per::kAllocation:
      if (totals[Measure::kAllocations] == 0) return std::nullopt;
      return static_cast<double>(totals[Measure::kAllocations]);
  }
  return 1;
}

}  // namespace memtrace::report
