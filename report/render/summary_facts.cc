#include "report/render/summary_facts.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "report/analysis/coverage.h"
#include "report/leak/leak_kinds.h"
#include "report/leak/leak_scans.h"
#include "report/render/numbers.h"
#include "report/render/selection_lines.h"
#include "report/render/text_report.h"
#include "report/words/process_end.h"
#include "report/words/shell_words.h"
#include "report/words/units.h"

namespace memtrace::report::render {
namespace {

using Facts = std::vector<Fact>;

std::string CommandLine(const ProcessInfo& process) {
  return process.command.empty() ? process.executable : words::ShellCommand(process.command);
}

std::string ExitWork(const ProcessInfo& process) {
  if (!process.has_exit_work()) return "";
  return absl::StrCat(", ", words::Duration(process.exit_work_ns),
                      " of it memtrace's work at the exit");
}

// How it ended, and until when there is something to see.
Fact Ended(const Analysis& analysis) {
  const ProcessInfo& process = analysis.process;
  if (process.imported()) {
    return {"Ended",
            absl::StrCat("not in the log, which is of ", words::Duration(process.duration_ns))};
  }
  const bool cut = process.end == ProcessInfo::End::kCut;
  const std::optional<uint64_t> recording_end = analysis.coverage.recording_end_ns;
  const absl::string_view after = cut                         ? "; the last event is after "
                                  : recording_end.has_value() ? "; the recording, before it, after "
                                                              : ", after ";
  return {"Ended",
          absl::StrCat(words::EndPhrase(process), after,
                       words::Duration(cut ? process.last_event_ns
                                           : recording_end.value_or(process.duration_ns)),
                       recording_end.has_value() ? "" : ExitWork(process)),
          (cut && !process.at_work) || process.end == ProcessInfo::End::kSignal ? Ink::kWarning
                                                                                : Ink::kPlain};
}

// Adds what there was when the process was killed, and how the verdict is known.
void AddKill(const Analysis& analysis, const Numbers& numbers, Facts* facts) {
  const KillInfo& kill = analysis.process.kill;
  if (!kill.told() || kill.verdict == format::KillVerdict::kNotOomKiller) return;
  std::vector<std::string> parts = {
      absl::StrCat("the heap held ", numbers.Amount(analysis.totals.live_bytes), " in ",
                   numbers.Plural(analysis.totals.live_blocks, "block"))};
  if (const ColumnSummary rss = Summarize(analysis.pressure.ResidentBytes());
      rss.known && analysis.range.whole()) {
    parts.push_back(absl::StrCat(words::HumanBytes(rss.last), " resident when last seen"));
  }
  if (kill.limit_bytes != 0) {
    parts.push_back(absl::StrCat("the memory limit was ", words::HumanBytes(kill.limit_bytes)));
  }
  facts->push_back({"Then", absl::StrJoin(parts, ", "), Ink::kWarning});
  facts->push_back({"Then", kill.why});
}

std::string Started(const ProcessInfo& process) {
  return absl::StrCat(words::DateTime(process.start_realtime_ns), ", pid ", process.pid,
                      process.host.empty() ? "" : " on ", process.host,
                      process.forked ? absl::StrCat(", forked by ", process.ppid) : "");
}

// Adds what the figures are of, where that is not all.
void AddOnly(const ReportView& view, Facts* facts) {
  const Analysis& analysis = view.analysis();
  if (!analysis.range.whole()) {
    const uint64_t earlier = analysis.totals.earlier_frees;
    facts->push_back(
        {"Only",
         absl::StrCat("blocks allocated from ", words::Duration(BeginNs(analysis)), " to ",
                      words::Duration(EndNs(analysis)),
                      earlier == 0 ? ""
                                   : absl::StrCat("; not ", words::Plural(earlier, "free"),
                                                  " of earlier ones")),
         Ink::kWarning});
  }
  for (std::string& only : SelectionLines(view)) {
    facts->push_back({"Only", std::move(only), Ink::kWarning});
  }
}

Fact Unfreed(const Analysis& analysis, const Numbers& numbers) {
  const Totals& totals = analysis.totals;
  const Coverage& coverage = analysis.coverage;
  const bool all_recorded = AllRecorded(coverage);
  const Ink unsure = all_recorded ? Ink::kPlain : Ink::kWarning;
  if (totals.live_blocks > 0) {
    return {"Unfreed",
            absl::StrCat(numbers.Amount(totals.live_bytes), numbers.Interval(totals.live_sample),
                         " in ", numbers.Plural(totals.live_blocks, "block"),
                         !analysis.range.whole()                 ? " at the end of the range"
                         : coverage.recording_end_ns.has_value() ? " when the recording ended"
                                                                 : " at the end"),
            Ink::kBad};
  }
  if (numbers.estimated()) {
    return {"Unfreed", "nothing of what was sampled, which is little of all", Ink::kWarning};
  }
  if (totals.allocations == 0) {
    return {"Unfreed",
            all_recorded ? "nothing: nothing was allocated"
                         : "not known: no allocation was recorded, see Coverage",
            unsure};
  }
  if (!all_recorded) {
    return {"Unfreed", "nothing of what was recorded, which is not all: see Coverage", unsure};
  }
  return {"Unfreed", "nothing: every block was freed", Ink::kGood};
}

// Only a scan tells which blocks are lost; a block that was freed cannot be.
std::optional<Fact> Lost(const ReportView& view) {
  const Totals& totals = view.analysis().totals;
  const LeakScan* scan = view.leak_scan();
  if (scan == nullptr) {
    if (totals.live_blocks == 0) return std::nullopt;
    return Fact{"Lost", "not known: no scan told what is reachable"};
  }
  std::vector<std::string> parts;
  for (const LeakKind kind : {LeakKind::kDefinite, LeakKind::kIndirect, LeakKind::kPossible}) {
    LeakAmount amount = scan->totals[static_cast<size_t>(kind)];
    if (kind == LeakKind::kPossible) {  // what the runtime keeps is told behind
      amount.bytes -= std::min(amount.bytes, scan->of_runtime.bytes);
      amount.blocks -= std::min(amount.blocks, scan->of_runtime.blocks);
    }
    if (amount.blocks == 0) continue;
    parts.push_back(absl::StrCat(words::ExactOrHumanBytes(amount.bytes), " in ",
                                 words::Plural(amount.blocks, "block"), " ", KindPhrase(kind)));
  }
  const bool all_recorded = AllRecorded(view.analysis().coverage);
  if (totals.allocations == 0 && !all_recorded && parts.empty()) {
    return Fact{"Lost", "not known: no allocation was recorded, see Coverage", Ink::kWarning};
  }
  const bool definite = scan->totals[static_cast<size_t>(LeakKind::kDefinite)].blocks > 0;
  return Fact{
      "Lost",
      absl::StrCat(parts.empty() ? "nothing" : absl::StrJoin(parts, ", "), " at ",
                   leak::IsAtExit(*scan) ? "the exit" : absl::StrCat("scan ", scan->number),
                   scan->of_runtime.blocks == 0
                       ? ""
                       : absl::StrCat("; ", words::ExactOrHumanBytes(scan->of_runtime.bytes),
                                      " that look so are the runtime's own"),
                   scan->frees_unseen && definite ? "; some frees are not seen" : "",
                   all_recorded ? "" : "; not all was recorded: see Coverage"),
      !parts.empty() ? Ink::kBad
      : all_recorded ? Ink::kPlain
                     : Ink::kWarning};
}

std::string CountedFaults(const Analysis& analysis) {
  if (analysis.process.imported()) return "not in the log";
  const Faults& faults = analysis.faults;
  if (!faults.counted) return "not known: the trace ends before they were counted";
  return absl::StrCat(words::Count(faults.minor), " minor, ", words::Count(faults.major),
                      " major, without memtrace's own ", words::Count(faults.tool_minor), " minor");
}

std::string PeakMemory(const Analysis& analysis) {
  const uint64_t peak = analysis.faults.peak_rss_bytes;
  const uint64_t own = analysis.coverage.tool_memory_bytes;
  if (peak == 0) return "peak RSS not known";
  // memtrace's own memory is counted in address space, which may be more than all that is
  // resident.
  return absl::StrCat("peak RSS ", words::HumanBytes(peak),
                      own == 0      ? ""
                      : own <= peak ? ", of which memtrace's own at most "
                                    : ", some of it of memtrace's own mappings of ",
                      own == 0 ? "" : words::HumanBytes(own));
}

}  // namespace

std::vector<Fact> SummaryFacts(const ReportView& view) {
  const Analysis& analysis = view.analysis();
  const ProcessInfo& process = analysis.process;
  const Totals& totals = analysis.totals;
  const Numbers numbers(view, Style{});
  const auto share = [](uint64_t part, uint64_t whole) {
    return part == 0 ? std::string() : absl::StrCat(" (", words::Percent(part, whole), ")");
  };
  Facts facts;
  facts.push_back({"Program", CommandLine(process), Ink::kStrong});
  facts.push_back(Ended(analysis));
  AddKill(analysis, numbers, &facts);
  // 0: of an imported trace it is not known.
  if (process.start_realtime_ns != 0) facts.push_back({"Started", Started(process)});
  AddOnly(view, &facts);
  if (numbers.estimated()) {
    facts.push_back({"Sampled", absl::StrCat("every ", words::HumanBytes(process.sample_bytes),
                                             ": estimates from ",
                                             words::Plural(totals.bytes_sample.samples, "sample"),
                                             ", marked ~; 95 % intervals in brackets")});
  }
  facts.push_back(
      {"Heap", absl::StrCat(numbers.Plural(totals.allocations, "allocation"), ", ",
                            numbers.Plural(totals.frees, "free"), ", ",
                            numbers.Amount(totals.bytes_allocated),
                            numbers.Interval(totals.bytes_sample), " in all")});
  facts.push_back({"Peak", totals.peak_live_bytes == 0
                               ? std::string("nothing was ever live")
                               : absl::StrCat(numbers.Amount(totals.peak_live_bytes), " in ",
                                              numbers.Plural(totals.peak_live_blocks, "block"),
                                              " at ", words::Duration(totals.peak_time_ns))});
  facts.push_back(Unfreed(analysis, numbers));
  if (std::optional<Fact> lost = Lost(view)) facts.push_back(*std::move(lost));
  if (!numbers.estimated()) {
    facts.push_back(
        {"Temporary", absl::StrCat(words::Plural(totals.temporary_allocations, "allocation"),
                                   share(totals.temporary_allocations, totals.allocations),
                                   " freed before the thread's next")});
  }
  facts.push_back({"Wasted", process.waste_is_known()
                                 ? absl::StrCat(numbers.Amount(totals.wasted_bytes),
                                                share(totals.wasted_bytes, totals.bytes_allocated),
                                                " usable but not asked for")
                                 : "not known: the allocator is not glibc's"});
  if (totals.failed_allocations > 0) {
    facts.push_back({"Failed",
                     absl::StrCat(numbers.Plural(totals.failed_allocations, "allocation"),
                                  " returned NULL"),
                     Ink::kWarning});
  }
  facts.push_back({"Faults", CountedFaults(analysis)});
  facts.push_back({"Memory", PeakMemory(analysis)});
  return facts;
}

}  // namespace memtrace::report::render
