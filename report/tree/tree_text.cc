// The text of a report on several processes: the whole, the tree, the executables, and of
// each executable the stacks of all its processes.

#include <algorithm>
#include <span>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "report/base/path.h"
#include "report/leak/leak_kinds.h"
#include "report/render/lines.h"
#include "report/render/numbers.h"
#include "report/render/table.h"
#include "report/tree/run_span.h"
#include "report/tree/tree_rows.h"
#include "report/tree/tree_view.h"
#include "report/words/escape.h"
#include "report/words/process_end.h"
#include "report/words/shell_words.h"
#include "report/words/units.h"

namespace memtrace::report {
namespace {

using namespace render;  // NOLINT: this file is a part of it

constexpr size_t kMostRows = 500;    // of the tree, without --full
constexpr size_t kSkippedShown = 5;
constexpr size_t kNotesShown = 10;

class TreeText {
 public:
  TreeText(const TreeView& view, const TreeTextOptions& options)
      : view_(view), analysis_(view.analysis()), options_(options), style_(options.text.style),
        numbers_(style_, analysis_.sample_bytes != 0, /*waste_is_known=*/false) {}

  std::string Summary() const;
  // What of the figures is of some sites alone; empty: nothing is. For tables without the summary.
  std::string Selection() const;
  std::string Processes() const;
  std::string Executables() const;
  // The leaks, the sites, or both, of each executable.
  std::string Sites(bool leaks, bool sites) const;

 private:
  Numbers NumbersOf(const ProcessInfo& process) const {
    return Numbers(style_, process.sample_bytes != 0, process.waste_is_known());
  }
  std::string Ends() const;
  std::string Lost() const;
  void AddSelection(Lines* lines) const;
  // What the figures are of, and what is missing of them.
  void AddCoverage(Lines* lines) const;
  void AddDamage(Lines* lines) const;
  // Of the first few, unless all are asked for.
  void AddNotes(Lines* lines) const;
  void AddSkipped(Lines* lines) const;
  std::string Branch(const TreeRow& row) const;
  std::string RowText(const TreeRow& row, size_t width) const;
  std::string NameOf(const MergedExecutable& executable) const;

  const TreeView& view_;
  const TreeAnalysis& analysis_;
  const TreeTextOptions& options_;
  const Style& style_;
  const Numbers numbers_;  // of sums over all processes, in which waste is not told
};

std::string TreeText::Ends() const {
  uint64_t well = 0, exec = 0, failed = 0, killed = 0, cut = 0, at_work = 0, logs = 0;
  for (const ProcessImage& image : analysis_.images) {
    if (image.process.imported()) {  // a log does not tell
      ++logs;
      continue;
    }
    switch (image.process.end) {
      case ProcessInfo::End::kExit: ++(image.process.exit_status == 0 ? well : failed); break;
      case ProcessInfo::End::kExec: ++exec; break;
      case ProcessInfo::End::kSignal: ++killed; break;
      case ProcessInfo::End::kCut: ++(image.process.at_work ? at_work : cut); break;
    }
  }
  std::vector<std::string> parts;
  const auto add = [&](uint64_t count, absl::string_view what) {
    if (count > 0) parts.push_back(absl::StrCat(words::Count(count), " ", what));
  };
  add(well, "with exit status 0");
  add(failed, well > 0 ? "with another" : "with an exit status that is not 0");
  add(killed, "by a signal");
  add(exec, "by becoming another program");
  add(at_work, at_work == 1 ? "not yet: it is at work" : "not yet: they are at work");
  add(cut, "without an end in the trace: killed, or still running");
  add(logs, logs == 1 ? "imported log, which does not tell" : "imported logs, which do not tell");
  return absl::StrJoin(parts, ", ");
}

// A process that was not scanned may have lost anything.
std::string TreeText::Lost() const {
  if (analysis_.scanned == 0) return "not known: no process was scanned";
  std::vector<std::string> parts;
  const LeakAmount of_runtime = view_.OfRuntime();
  for (const LeakKind kind : kScanKinds) {
    LeakAmount amount = analysis_.leaks[static_cast<size_t>(kind)];
    if (kind == LeakKind::kPossible) {  // what the runtime keeps is told behind
      amount.bytes -= std::min(amount.bytes, of_runtime.bytes);
      amount.blocks -= std::min(amount.blocks, of_runtime.blocks);
    }
    if (amount.blocks == 0 && kind != LeakKind::kDefinite) continue;
    parts.push_back(absl::StrCat(words::ExactOrHumanBytes(amount.bytes), " in ",
                                 words::Plural(amount.blocks, "block"), " ", KindPhrase(kind)));
  }
  const uint64_t unknown = analysis_.images.size() - analysis_.scanned;
  return absl::StrCat(
      absl::StrJoin(parts, ", "), " in ", words::Plural(analysis_.scanned, "trace"),
      of_runtime.blocks == 0 ? ""
                             : absl::StrCat("; ", words::ExactOrHumanBytes(of_runtime.bytes),
                                            " that look possibly lost are the runtime's own"),
      analysis_.scanned_early == 0
          ? ""
          : absl::StrCat("; of ", analysis_.scanned_early,
                         " only until the last scan, for the end was not scanned"),
      unknown == 0 ? ""
                   : absl::StrCat("; not known of ", unknown,
                                  unknown == 1 ? " that was" : " that were", " not scanned"),
      analysis_.not_all_recorded == 0 ? "" : "; not all was recorded: see Coverage");
}

void TreeText::AddSelection(Lines* lines) const {
  if (view_.executables().empty() || view_.filter().all()) return;
  lines->Add("Only", absl::StrCat("sites ", style_.Name(view_.filter().Text()),
                                  ", where sites are listed; the other figures are of all"),
             Ink::kWarning);
}

std::string TreeText::Selection() const {
  Lines lines(options_.text);
  AddSelection(&lines);
  return lines.Take();
}

std::string TreeText::Summary() const {
  Lines lines(options_.text);
  const std::vector<ProcessImage>& images = analysis_.images;
  const Totals& totals = analysis_.totals;
  std::string traces = words::Plural(images.size(), "trace");
  if (!analysis_.skipped.empty()) {
    absl::StrAppend(&traces, "; ", words::Plural(analysis_.skipped.size(), "file"), " skipped");
  }
  lines.Add("Traces", traces);
  if (analysis_.not_read != 0) {
    lines.Add("", absl::StrCat("! ", NotReadText(analysis_)), Ink::kWarning);
  }
  lines.Add("Processes",
            absl::StrCat(words::Count(analysis_.tree.processes),
                         analysis_.tree.processes == 1 ? " process of " : " processes of ",
                         words::Plural(analysis_.sites.executables().size(), "executable")));
  AddSelection(&lines);
  lines.Add("Ended", Ends());
  if (const RunSpan span = RunSpanOf(images); span.start_realtime_ns != 0) {
    const bool at_work = std::ranges::any_of(
        images, [](const ProcessImage& image) { return image.process.at_work; });
    lines.Add("Started",
              absl::StrCat(words::DateTime(span.start_realtime_ns),
                           at_work ? ", the last was at work still " : ", the last ended ",
                           words::Duration(span.duration_ns), " later"));
  }
  lines.Add("Heap", absl::StrCat(numbers_.Plural(totals.allocations, "allocation"), ", ",
                                 numbers_.Plural(totals.frees, "free"), ", ",
                                 numbers_.Amount(totals.bytes_allocated), " in all"));
  lines.Add("Peak",
            absl::StrCat(numbers_.Amount(totals.peak_live_bytes), " in the largest process"));
  lines.Add("Unfreed", absl::StrCat(numbers_.Amount(totals.live_bytes), " in ",
                                    numbers_.Plural(totals.live_blocks, "block"),
                                    " at the ends of the processes"));
  if (totals.live_blocks > 0 || analysis_.scanned > 0) lines.Add("Lost", Lost());
  if (analysis_.leaks[static_cast<size_t>(LeakKind::kDefinite)].blocks > 0) {
    lines.Add("", "which blocks these are: memtrace check of the same traces", Ink::kDim);
  }
  if (analysis_.sample_bytes != 0) {
    lines.Add("Sampled", "sizes and counts of the heap are estimates: see memtrace report of one "
                         "trace for their intervals");
  }
  AddCoverage(&lines);
  return absl::StrCat(style_.Paint(Ink::kHeading, "memtrace report"), "  ",
                      style_.Name(analysis_.name), "\n\n", lines.Take());
}

void TreeText::AddCoverage(Lines* lines) const {
  const std::vector<ProcessImage>& images = analysis_.images;
  const bool none_lost = std::ranges::none_of(images, &ProcessImage::events_missing);
  lines->Add("Coverage", absl::StrCat(words::Plural(analysis_.events, "event"),
                                      none_lost ? ", none lost" : ""));
  if (analysis_.dropped_events > 0) {
    uint64_t with_losses = 0;
    for (const ProcessImage& image : images) with_losses += image.dropped_events > 0;
    lines->Add("",
               absl::StrCat(words::Plural(analysis_.dropped_events, "event"), " lost, in ",
                            words::Plural(with_losses, "trace")),
               Ink::kWarning);
  }
  AddDamage(lines);
  if (analysis_.invalid_frees > 0) {
    lines->Add(
        "",
        absl::StrCat("! ", words::Plural(analysis_.invalid_frees, "free"), " of no live block, in ",
                     words::Plural(analysis_.with_invalid_frees, "trace"),
                     ": INVALID FREES in the report of each shows of what"),
        Ink::kWarning);
  }
  AddNotes(lines);
  AddSkipped(lines);
  for (const std::string& spool : analysis_.spools) {
    lines->Add("", absl::StrCat("a run has left traces in ", style_.Name(spool),
                                ": memtrace run --finish packs them"),
               Ink::kWarning);
  }
  for (const std::string& note : view_.symbols().notes()) lines->Add("", note, Ink::kWarning);
}

void TreeText::AddDamage(Lines* lines) const {
  uint64_t damaged = 0;
  const ProcessImage* example = nullptr;
  for (const ProcessImage& image : analysis_.images) {
    // The trace of a process that was killed, or still runs, may have all events.
    if (!image.truncated ||
        (image.process.end == ProcessInfo::End::kCut && !image.events_missing)) {
      continue;
    }
    ++damaged;
    if (example == nullptr) example = &image;
  }
  if (example != nullptr) {
    lines->Add("",
               absl::StrCat(
                   words::Plural(damaged, "trace"), " incomplete: ", style_.Name(example->file),
                   example->damage.empty() ? "" : absl::StrCat(": ", style_.Name(example->damage)),
                   damaged > 1 ? "; ..." : ""),
               Ink::kWarning);
  }
}

void TreeText::AddNotes(Lines* lines) const {
  for (size_t i = 0; i < analysis_.notes.size(); ++i) {
    if (i == kNotesShown && !options_.text.full) {
      lines->Add("", absl::StrCat("and ", words::Plural(analysis_.notes.size() - i, "more note"),
                                  ": --full"));
      break;
    }
    lines->Add("", words::EscapeControls(NoteText(analysis_, analysis_.notes[i])));
  }
}

void TreeText::AddSkipped(Lines* lines) const {
  for (size_t i = 0; i < analysis_.skipped.size(); ++i) {
    if (i == kSkippedShown && !options_.text.full) {
      lines->Add("",
                 absl::StrCat("and ", words::Plural(analysis_.skipped.size() - i, "more file"),
                              " skipped: --full"),
                 Ink::kWarning);
      break;
    }
    lines->Add("", absl::StrCat("skipped ", style_.Name(analysis_.skipped[i].file), ": ",
                                style_.Name(analysis_.skipped[i].why)),
               Ink::kWarning);
  }
}

// The text before the name: the lines of the ancestors, then this one's own.
std::string TreeText::Branch(const TreeRow& row) const {
  const bool utf8 = style_.utf8;
  std::string out;
  const size_t depth = row.depth;
  // A root has no line of its own: its children's lines begin below it.
  if (depth > kDrawnDepth) {  // deeper ones say how deep they are
    absl::StrAppend(&out, "[", depth, "] ");
  } else {
    for (size_t i = 1; i < depth; ++i) {
      absl::StrAppend(&out, row.goes_on[i] ? (utf8 ? "\u2502 " : "| ") : "  ");
    }
  }
  if (depth == 0) return row.replaces ? (utf8 ? "\u21d2 " : "=> ") : "";
  absl::StrAppend(&out, row.last ? (utf8 ? "\u2514" : "`") : (utf8 ? "\u251c" : "|"),
                  row.replaces ? (utf8 ? "\u21d2 " : "=> ") : (utf8 ? "\u2500 " : "- "));
  return out;
}

std::string TreeText::RowText(const TreeRow& row, size_t width) const {
  const ProcessImage& image = analysis_.images[row.image];
  const std::string& executable = image.process.executable;
  const std::string name = style_.Name(FileNameOf(executable.empty() ? image.file : executable));
  const absl::string_view ellipsis = style_.ellipsis();
  if (row.more > 0) {
    std::string text =
        absl::StrCat(Branch(row), ellipsis, " and ", words::Count(row.more), " more like ", name);
    if (row.more_images > row.more) {
      absl::StrAppend(&text, ", ", words::Count(row.more_images), " traces");
    }
    return options_.text.full ? text : words::KeepBeginning(text, width, ellipsis);
  }
  const std::string own = absl::StrCat(Branch(row), name, " ", image.process.pid);
  std::string arguments;
  // A fork child has its parent's.
  if (image.parent_trace_id == 0 && image.process.command.size() > 1) {
    arguments = style_.Name(words::ShellCommand(std::span(image.process.command).subspan(1)));
  }
  const size_t used = words::DisplayWidth(own);
  if (options_.text.full) {
    return arguments.empty() ? own : absl::StrCat(own, "  ", style_.Paint(Ink::kDim, arguments));
  }
  if (used > width) return words::KeepBeginning(own, width, ellipsis);
  if (arguments.empty() || used + 6 > width) return own;
  return absl::StrCat(
      own, "  ",
      style_.Paint(Ink::kDim, words::KeepBeginning(arguments, width - used - 2, ellipsis)));
}

std::string TreeText::Processes() const {
  if (analysis_.images.empty()) return "";
  const bool full = options_.text.full, wide = style_.wide();
  const TreeRows tree =
      LayOutTree(analysis_.images, analysis_.tree, full ? SIZE_MAX : options_.text.top,
                 full ? SIZE_MAX : std::max(kMostRows, options_.text.top));
  TextTable table({{wide ? "allocations" : "allocs"}, {"total"}, {"live"}, {"peak"}, {"time"},
                   {"end", /*left=*/true}},
                  "process");
  for (const TreeRow& row : tree.rows) {
    const ProcessInfo& process = analysis_.images[row.image].process;
    const Numbers numbers = row.more > 0 ? numbers_ : NumbersOf(process);
    table.AddRow({numbers.Events(row.allocations), numbers.Bytes(row.bytes),
                  numbers.Bytes(row.live), numbers.Bytes(row.peak),
                  row.more > 0 ? "" : words::Duration(process.duration_ns),
                  row.more > 0         ? ""
                  : process.imported() ? "log"
                                       : words::ShortEnd(process)},
                 [this, &row](size_t width) { return RowText(row, width); });
  }
  std::string out = absl::StrCat(
      Heading(options_.text, "PROCESSES",
              absl::StrCat(words::Count(analysis_.tree.processes),
                           wide ? ", the parent above its children" : "; bytes in K = 1024")),
      table.Render(style_, 2));
  if (tree.images_left_out > 0) {
    absl::StrAppend(
        &out,
        style_.Paint(Ink::kDim,
                     absl::StrCat("  and ", words::Plural(tree.images_left_out, "more trace"),
                                  ": --full shows them")),
        "\n");
  }
  return out;
}

std::string TreeText::NameOf(const MergedExecutable& executable) const {
  for (const MergedExecutable& other : analysis_.sites.executables()) {
    if (&other != &executable && other.path == executable.path) {  // two builds of one name
      return absl::StrCat(executable.path, " (build-id ", executable.build_id.substr(0, 8), ")");
    }
  }
  return executable.path.empty() ? "[not known]" : executable.path;
}

std::string TreeText::Executables() const {
  if (view_.executables().empty()) return "";
  const bool wide = style_.wide();
  TextTable table({{"traces"}, {wide ? "allocations" : "allocs"}, {"total"}, {"live"},
                   {wide ? "most live" : "max"}, {wide ? "largest peak" : "peak"}},
                  "executable");
  const size_t shown = options_.text.Shown(view_.executables().size());
  for (size_t i = 0; i < shown; ++i) {
    const MergedExecutable& one = view_.executable(view_.executables()[i]);
    const Totals& totals = one.analysis.totals;
    const Numbers numbers = NumbersOf(one.analysis.process);
    table.AddRow({words::Count(one.images), numbers.Events(totals.allocations),
                  numbers.Bytes(totals.bytes_allocated), numbers.Bytes(totals.live_bytes),
                  numbers.Bytes(one.most_live_bytes), numbers.Bytes(one.most_peak_bytes)},
                 [this, &one](size_t width) {
                   const std::string name = style_.Name(NameOf(one));
                   return options_.text.full ? name
                                             : words::KeepEnd(name, width, style_.ellipsis());
                 });
  }
  return absl::StrCat(
      Heading(options_.text, "EXECUTABLES",
              wide ? "sums over their processes"
                   : "sums; max: live in one; peak: of one"),
      table.Render(style_, 2),
      MoreLine(options_.text, view_.executables().size(), shown, "executable"));
}

std::string TreeText::Sites(bool leaks, bool sites) const {
  std::string out;
  const size_t shown = options_.text.Shown(view_.executables().size());
  for (size_t i = 0; i < shown; ++i) {
    const size_t index = view_.executables()[i];
    const MergedExecutable& one = view_.executable(index);
    TextOptions text = options_.text;
    text.top = options_.sites;
    text.processes = one.images;
    text.processes_of = [&one](const SiteGroup& group) { return one.ImagesOf(group.sites); };
    const ReportView& view = view_.sites_of(index);
    absl::StrAppend(
        &out,
        Heading(text, style_.Name(NameOf(one)),
                one.images == 1 ? "1 trace" : absl::StrCat(words::Count(one.images), " traces")));
    if (leaks) absl::StrAppend(&out, LeaksText(view, text));
    if (sites) absl::StrAppend(&out, SitesText(view, text));
  }
  return absl::StrCat(out, MoreLine(options_.text, view_.executables().size(), shown,
                                    "executable"));
}

}  // namespace

std::string RenderTreeText(const TreeView& view, const TreeTextOptions& options) {
  const auto wanted = [&](TreeTable table) {
    return options.tables.empty() ||
           std::find(options.tables.begin(), options.tables.end(), table) != options.tables.end();
  };
  const TreeText text(view, options);
  std::string out;
  if (wanted(TreeTable::kSummary)) {
    out = text.Summary();
  } else if (wanted(TreeTable::kProcesses) || wanted(TreeTable::kExecutables)) {
    out = text.Selection();
  }
  if (wanted(TreeTable::kProcesses)) absl::StrAppend(&out, text.Processes());
  if (wanted(TreeTable::kExecutables)) absl::StrAppend(&out, text.Executables());
  const bool leaks = wanted(TreeTable::kLeaks), sites = wanted(TreeTable::kSites);
  if (leaks || sites) absl::StrAppend(&out, text.Sites(leaks, sites));
  absl::string_view whole = out;
  absl::ConsumePrefix(&whole, "\n");
  return std::string(whole);
}

}  // namespace memtrace::report
