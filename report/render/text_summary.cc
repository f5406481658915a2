// The first screen: what ran, how it ended, how much, and what the trace lacks.

#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "report/analysis/coverage.h"
#include "report/leak/leak_kinds.h"
#include "report/leak/leak_scans.h"
#include "report/render/escape.h"
#include "report/render/lines.h"
#include "report/render/process_end.h"
#include "report/render/selection_lines.h"
#include "report/render/shell_words.h"
#include "report/render/text_report.h"
#include "report/render/units.h"
#include "report/render/verdict.h"

namespace memtrace::report::render {
namespace {

// Of a long command (the files of a whole directory, a class path).
constexpr size_t kMostCommandLines = 4;

std::string CommandLine(const Style& style, const ProcessInfo& process) {
  return style.Name(process.command.empty() ? process.executable : ShellCommand(process.command));
}

// Adds what there was when the process was killed, and how the verdict is known.
void AddKill(const Analysis& analysis, const Numbers& numbers, Lines* lines) {
  if (!analysis.process.kill.told()) return;
  const KillInfo& kill = analysis.process.kill;
  if (kill.verdict == format::KillVerdict::kNotOomKiller) return;
  std::vector<std::string> parts = {
      absl::StrCat("the heap held ", numbers.Amount(analysis.totals.live_bytes), " in ",
                   numbers.Plural(analysis.totals.live_blocks, "block"))};
  if (const ColumnSummary rss = Summarize(analysis.pressure.ResidentBytes());
      rss.known && analysis.range.whole()) {
    parts.push_back(absl::StrCat(HumanBytes(rss.last), " resident when last seen"));
  }
  if (kill.limit_bytes != 0) {
    parts.push_back(absl::StrCat("the memory limit was ", HumanBytes(kill.limit_bytes)));
  }
  lines->Add("Then", absl::StrJoin(parts, ", "), Ink::kWarning);
  lines->Add("", EscapeControls(kill.why));
}

void AddCoverage(const Analysis& analysis, const SiteSymbols& symbols, const Numbers& numbers,
                 Lines* lines) {
  const Coverage& coverage = analysis.coverage;
  std::vector<std::string> bad, remarks;
  if (coverage.interrupted) {
    bad.push_back(absl::StrCat(InterruptionText(analysis), "; what was live then may have been "
                               "freed later"));
  }
  if (coverage.dropped_events > 0) {
    bad.push_back(absl::StrCat(Plural(coverage.dropped_events, "event"),
                               analysis.process.imported()
                                   ? " lost, as the log says"
                                   : " lost: the library could not write them"));
  }
  if (coverage.truncated) {
    bad.push_back(absl::StrCat("the trace is incomplete",
                               coverage.damage.empty() ? "" : ": ",
                               EscapeControls(coverage.damage)));
  }
  if (coverage.unordered_events > 0) {
    bad.push_back(absl::StrCat(Plural(coverage.unordered_events, "event"),
                               " could not be ordered across threads"));
  }
  const InvalidFrees& invalid = analysis.invalid_frees;
  if (invalid.told > 0) {
    bad.push_back(absl::StrCat(InvalidFreesPhrase(invalid), ": see INVALID FREES"));
  }
  if (coverage.unknown_frees > invalid.told) {
    const bool known = invalid.looked_for && invalid.not_looked_for == 0;
    bad.push_back(absl::StrCat(Plural(coverage.unknown_frees - invalid.told, "free"),
                               " of blocks whose allocation the trace does not have",
                               known ? "" : ", or that were freed before"));
  }
  if (coverage.cross_check_differences > 0) {
    bad.push_back(absl::StrCat(Plural(coverage.cross_check_differences, "stack"),
                               " differed from libunwind's, of ", Count(coverage.cross_checked)));
  }
  if (coverage.marked_stacks > 0) {
    bad.push_back(absl::StrCat(numbers.Plural(coverage.marked_stacks, "allocation"), " (",
                               Percent(coverage.marked_stacks, analysis.totals.allocations),
                               ") with a stack that is not complete: the last frame says why"));
  }
  if (coverage.recovered_events > 0) {
    remarks.push_back(absl::StrCat(Plural(coverage.recovered_events, "event"),
                                   " recovered from the rings: the process did not write its end"));
  }
  if (coverage.stops > 0) {
    remarks.push_back(absl::StrCat("recording stopped by the program ",
                                   Plural(coverage.stops, "time"), " for ",
                                   Duration(coverage.stopped_ns), ": ",
                                   Plural(coverage.stopped_allocations, "allocation"),
                                   " then are in no figure"));
  }
  // Lost page faults are no events of the heap, so its coverage does not count them.
  if (const uint64_t lost = analysis.fault_details.lost; lost > 0) {
    remarks.push_back(absl::StrCat(Plural(lost, "page fault"),
                                   lost == 1 ? " was" : " were", " lost: whose, nobody knows"));
  }
  if (coverage.inherited_frees > 0) {
    remarks.push_back(absl::StrCat(
        Plural(coverage.inherited_frees, "free"), " of blocks that the parent process allocated",
        invalid.not_looked_for == 0 ? "" : ", or, of a few, that were freed before"));
  }
  if (coverage.cross_checked > 0 && coverage.cross_check_differences == 0) {
    remarks.push_back(absl::StrCat(Plural(coverage.cross_checked, "stack"),
                                   " cross-checked with libunwind: no difference"));
  }
  if (analysis.process.stack_mode == format::StackMode::kOff) {
    remarks.emplace_back("stacks were off: a call site is the frame that called, and no more");
  }
  // The analyzer's notes tell of lost blocks, of frees it did not see, of an early stop.
  for (const std::string& note : coverage.notes) remarks.push_back(EscapeControls(note));
  for (const std::string& note : symbols.notes()) remarks.push_back(note);  // escaped there

  const bool nothing_lost = !coverage.events_missing && !coverage.truncated;
  lines->Add("Coverage", absl::StrCat(Plural(coverage.events, "event"),
                                      numbers.estimated() ? " of sampled blocks" : "",
                                      nothing_lost ? ", none lost" : ""));
  for (const std::string& line : bad) lines->Add("", absl::StrCat("! ", line), Ink::kWarning);
  for (const std::string& line : remarks) lines->Add("", line);
}

void AddUnfreed(const Analysis& analysis, const Numbers& numbers, Lines* lines) {
  const Totals& totals = analysis.totals;
  const Coverage& coverage = analysis.coverage;
  const bool all_recorded = AllRecorded(coverage);
  if (totals.live_blocks > 0) {
    lines->Add("Unfreed",
               absl::StrCat(numbers.Amount(totals.live_bytes), numbers.Interval(totals.live_sample),
                            " in ", numbers.Plural(totals.live_blocks, "block"),
                            !analysis.range.whole()                 ? " at the end of the range"
                            : coverage.recording_end_ns.has_value() ? " when the recording ended"
                                                                    : " at the end"),
               Ink::kBad);
  } else if (numbers.estimated()) {
    lines->Add("Unfreed", "nothing of what was sampled, which is little of all", Ink::kWarning);
  } else if (totals.allocations == 0) {
    lines->Add("Unfreed", all_recorded ? "nothing: nothing was allocated"
                                       : "not known: no allocation was recorded, see Coverage",
               all_recorded ? Ink::kPlain : Ink::kWarning);
  } else if (!all_recorded) {
    lines->Add("Unfreed", "nothing of what was recorded, which is not all: see Coverage",
               Ink::kWarning);
  } else {
    lines->Add("Unfreed", "nothing: every block was freed", Ink::kGood);
  }
}

// Adds the lost blocks. Only a scan tells which blocks are lost; a block that was freed cannot be.
void AddLost(const ReportView& view, Lines* lines) {
  const LeakScan* scan = view.leak_scan();
  if (scan == nullptr) {
    if (view.analysis().totals.live_blocks > 0) {
      lines->Add("Lost", absl::StrCat("not known: no scan told what is reachable, see ",
                                      UnfreedTitle(view)));
    }
    return;
  }
  std::vector<std::string> parts;
  for (const LeakKind kind : {LeakKind::kDefinite, LeakKind::kIndirect, LeakKind::kPossible}) {
    LeakAmount amount = scan->totals[static_cast<size_t>(kind)];
    if (kind == LeakKind::kPossible) {  // what the runtime keeps is told behind
      amount.bytes -= std::min(amount.bytes, scan->of_runtime.bytes);
      amount.blocks -= std::min(amount.blocks, scan->of_runtime.blocks);
    }
    if (amount.blocks == 0) continue;
    parts.push_back(absl::StrCat(ExactOrHumanBytes(amount.bytes), " in ",
                                 Plural(amount.blocks, "block"), " ", KindPhrase(kind)));
  }
  const bool all_recorded = AllRecorded(view.analysis().coverage);
  if (view.analysis().totals.allocations == 0 && !all_recorded && parts.empty()) {
    lines->Add("Lost", "not known: no allocation was recorded, see Coverage", Ink::kWarning);
    return;
  }
  lines->Add("Lost",
             absl::StrCat(parts.empty() ? "nothing" : absl::StrJoin(parts, ", "), " at ",
                          leak::IsAtExit(*scan) ? "the exit" : absl::StrCat("scan ", scan->number),
                          scan->of_runtime.blocks == 0
                              ? ""
                              : absl::StrCat("; ", ExactOrHumanBytes(scan->of_runtime.bytes),
                                             " that look so are the runtime's own"),
                          scan->frees_unseen &&
                                  scan->totals[static_cast<size_t>(LeakKind::kDefinite)].blocks > 0
                              ? "; some frees are not seen"
                              : "",
                          all_recorded ? "" : "; not all was recorded: see Coverage"),
             !parts.empty() ? Ink::kBad
             : all_recorded ? Ink::kPlain
                            : Ink::kWarning);
}

void AddVerdicts(const ReportView& view, const TextOptions& options, Lines* lines) {
  for (const std::string& verdict : Verdicts(view, options)) {
    lines->Add("Verdict", verdict, Ink::kBad);
  }
}

std::string ExitWork(const ProcessInfo& process) {
  if (!process.has_exit_work()) return "";
  return absl::StrCat(", ", Duration(process.exit_work_ns), " of it memtrace's work at the exit");
}

}  // namespace

std::string SummaryText(const ReportView& view, const TextOptions& options) {
  const Analysis& analysis = view.analysis();
  const ProcessInfo& process = analysis.process;
  const Totals& totals = analysis.totals;
  Lines lines(options);

  AddVerdicts(view, options, &lines);
  lines.Add("Program", CommandLine(options.style, process), Ink::kStrong,
            kMostCommandLines);
  if (process.imported()) {
    lines.Add("Ended", absl::StrCat("not in the log, which is of ", Duration(process.duration_ns)));
  } else {
    const bool cut = process.end == ProcessInfo::End::kCut;
    const std::optional<uint64_t> recording_end = analysis.coverage.recording_end_ns;
    const absl::string_view after = cut ? "; the last event is after "
                                    : recording_end.has_value()
                                        ? "; the recording, before it, after "
                                        : ", after ";
    const bool live = analysis.coverage.live_until_ns != 0;
    lines.Add(
        "Ended",
        absl::StrCat(
            live ? "not yet: it is at work" : EndPhrase(process), after,
            Duration(cut ? process.duration_ns : recording_end.value_or(process.duration_ns)),
            recording_end.has_value() ? "" : ExitWork(process)),
        (cut && !live) || process.end == ProcessInfo::End::kSignal ? Ink::kWarning : Ink::kPlain);
  }
  AddKill(analysis, Numbers(view, options), &lines);
  if (process.start_realtime_ns != 0) {  // 0: of an imported trace it is not known
    lines.Add("Started", absl::StrCat(DateTime(process.start_realtime_ns), ", pid ", process.pid,
                                      process.host.empty() ? "" : " on ",
                                      options.style.Name(process.host),
                                      process.forked ? ", forked by " : "",
                                      process.forked ? absl::StrCat(process.ppid) : ""));
  }
  if (!analysis.range.whole()) {
    lines.Add("Only", absl::StrCat("blocks allocated from ", Duration(BeginNs(analysis)), " to ",
                                   Duration(EndNs(analysis)),
                                   totals.earlier_frees == 0
                                       ? "" : absl::StrCat("; not ", Plural(totals.earlier_frees,
                                                                            "free"),
                                                           " of earlier ones")), Ink::kWarning);
  }
  for (const std::string& only : SelectionLines(view)) {
    lines.Add("Only", options.style.Name(only), Ink::kWarning);
  }
  const Numbers numbers(view, options);
  if (numbers.estimated()) {
    lines.Add("Sampled",
              absl::StrCat("every ", HumanBytes(process.sample_bytes), ": estimates from ",
                           Plural(totals.bytes_sample.samples, "sample"),
                           ", marked ~; 95 % intervals in brackets"));
  }
  lines.Add("Heap", absl::StrCat(numbers.Plural(totals.allocations, "allocation"), ", ",
                                 numbers.Plural(totals.frees, "free"), ", ",
                                 numbers.Amount(totals.bytes_allocated),
                                 numbers.Interval(totals.bytes_sample), " in all"));
  lines.Add("Peak", totals.peak_live_bytes == 0
                        ? std::string("nothing was ever live")
                        : absl::StrCat(numbers.Amount(totals.peak_live_bytes), " in ",
                                       numbers.Plural(totals.peak_live_blocks, "block"), " at ",
                                       Duration(totals.peak_time_ns)));
  AddUnfreed(analysis, numbers, &lines);
  AddLost(view, &lines);
  const auto share = [](uint64_t part, uint64_t whole) {
    return part == 0 ? std::string() : absl::StrCat(" (", Percent(part, whole), ")");
  };
  if (!numbers.estimated())
    lines.Add("Temporary", absl::StrCat(Plural(totals.temporary_allocations, "allocation"),
                                        share(totals.temporary_allocations, totals.allocations),
                                        " freed before the thread's next"));
  lines.Add("Wasted", process.waste_is_known()
                          ? absl::StrCat(numbers.Amount(totals.wasted_bytes),
                                         share(totals.wasted_bytes, totals.bytes_allocated),
                                         " usable but not asked for")
                          : "not known: the allocator is not glibc's");
  if (totals.failed_allocations > 0) {
    lines.Add("Failed", absl::StrCat(numbers.Plural(totals.failed_allocations, "allocation"),
                                     " returned NULL"), Ink::kWarning);
  }
  lines.Add("Faults",
            process.imported() ? "not in the log"
            : !analysis.faults.counted
                ? "not known: the trace ends before they were counted"
                : absl::StrCat(Count(analysis.faults.minor), " minor, ",
                               Count(analysis.faults.major), " major, without memtrace's own ",
                               Count(analysis.faults.tool_minor), " minor"));
  lines.Add("Memory", absl::StrCat(
      analysis.faults.peak_rss_bytes == 0
          ? std::string("peak RSS not known")
          : absl::StrCat("peak RSS ", HumanBytes(analysis.faults.peak_rss_bytes)),
      analysis.coverage.tool_memory_bytes == 0
          ? ""
          // memtrace's own memory is counted in address space, which may be more than
          // all that is resident.
          : analysis.coverage.tool_memory_bytes <= analysis.faults.peak_rss_bytes
              ? absl::StrCat(", of which memtrace's own at most ",
                             HumanBytes(analysis.coverage.tool_memory_bytes))
              : absl::StrCat(", some of it of memtrace's own mappings of ",
                             HumanBytes(analysis.coverage.tool_memory_bytes))));
  AddCoverage(analysis, view.symbols(), numbers, &lines);
  return absl::StrCat(options.style.Paint(Ink::kHeading, "memtrace report"), "  ",
                      options.style.Name(analysis.file), "\n\n", lines.Take());
}

}  // namespace memtrace::report::render
