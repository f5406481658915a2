// What a memory scan found: the summary by kind as memcheck gives it, then the loss
// records, biggest first, each with its stack.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "report/analysis/coverage.h"
#include "report/leak/heuristics.h"
#include "report/leak/leak_kinds.h"
#include "report/leak/leak_scans.h"
#include "report/render/lines.h"
#include "report/render/scan_notes.h"
#include "report/render/selection_lines.h"
#include "report/render/text_report.h"
#include "report/words/escape.h"
#include "report/words/units.h"

namespace memtrace::report::render {
namespace {

std::string InstantText(const LeakScan& scan, const ProcessInfo& process) {
  std::string what(leak::ReasonText(scan.reason, process));
  if (!scan.label.empty()) absl::StrAppend(&what, " (", words::EscapeControls(scan.label), ")");
  return absl::StrCat("scan ", scan.number, ", ", what, ", at ", words::Duration(scan.time_ns));
}

std::string SummaryOf(const ReportView& view, const TextOptions& options) {
  const LeakScan& scan = *view.leak_scan();
  std::string out = Heading(options, "LEAK SUMMARY", InstantText(scan, view.analysis().process));
  for (const LeakKind kind : kScanKinds) {
    const LeakAmount& amount = scan.totals[static_cast<size_t>(kind)];
    const bool bad = kind != LeakKind::kReachable && amount.blocks != 0;
    absl::StrAppend(&out, absl::StrFormat("  %15s: ", KindPhrase(kind)),
                    options.style.Paint(bad ? Ink::kBad : Ink::kPlain, leak::AmountText(amount)),
                    "\n");
    if (kind == LeakKind::kPossible && scan.of_runtime.blocks != 0) {
      const std::string line =
          absl::StrCat("of which the runtime's own: ", leak::AmountText(scan.of_runtime));
      const size_t room = options.style.width - std::min(options.style.width, line.size());
      absl::StrAppend(&out, std::string(std::min<size_t>(19, room), ' '), line, "\n");
    }
  }
  bool any = false;
  for (size_t i = 1; i <= leak::kHeuristics; ++i) {
    const LeakAmount& amount = scan.by_heuristic[i];
    if (amount.blocks == 0) continue;
    if (!std::exchange(any, true)) out += "                   of which reachable via heuristic:\n";
    absl::StrAppend(&out, std::string(21, ' '), leak::HeuristicName(static_cast<leak::Pointer>(i)),
                    ": ", leak::AmountText(amount), "\n");
  }
  if (!scan.suppressions.empty() || scan.suppressed.blocks != 0) {
    absl::StrAppend(&out, absl::StrFormat("  %15s: ", "suppressed"),
                    leak::AmountText(scan.suppressed), "\n");
  }
  Lines lines(options);
  for (const std::string& note : NotesOnScan(view, scan)) lines.Add("", note);
  for (const UsedSuppression& each : scan.suppressions) {
    if (each.records != 0) continue;
    lines.Add("",
              words::EscapeControls(absl::StrCat("suppression ", each.name, " matched nothing (",
                                                 each.file, ":", each.line, ")")));
  }
  for (const LeakScan& other : view.analysis().leak_scans) {
    if (other.state == LeakScan::State::kDone) continue;
    lines.Add("", absl::StrCat("! scan ", other.number, " tells nothing: ",
                               words::EscapeControls(other.failure)), Ink::kWarning);
  }
  if (leak::EndWasNotScanned(view.analysis())) {
    lines.Add("", absl::StrCat("! ", leak::kEndWasNotScanned), Ink::kWarning);
  }
  for (const std::string& note : scan.notes) {
    lines.Add("", absl::StrCat("! ", words::EscapeControls(note)), Ink::kWarning);
  }
  if (view.analysis().leak_scans.size() > 1) {
    lines.Add("", absl::StrCat("one of ", view.analysis().leak_scans.size(), " scans of the trace",
                               options.scan_alone ? "" : ": --scan N shows another"));
  }
  return absl::StrCat(out, lines.Take());
}

// " (+10)": against the scan before.
std::string Change(uint64_t now, uint64_t before) {
  return now >= before ? absl::StrCat(" (+", words::Count(now - before), ")")
                       : absl::StrCat(" (-", words::Count(before - now), ")");
}

// "48 (16 direct, 32 indirect) bytes in 1 block".
std::string RecordAmount(const LossRecord& record, bool changes) {
  const auto change = [&](uint64_t now, uint64_t before) {
    return changes ? Change(now, before) : std::string();
  };
  const uint64_t bytes = record.bytes + record.indirect_bytes;
  const uint64_t before = record.before.bytes + record.indirect_before.bytes;
  std::string text = absl::StrCat(words::Count(bytes), change(bytes, before));
  if (record.indirect_bytes != 0) {
    absl::StrAppend(&text, " (", words::Count(record.bytes),
                    change(record.bytes, record.before.bytes), " direct, ",
                    words::Count(record.indirect_bytes),
                    change(record.indirect_bytes, record.indirect_before.bytes), " indirect)");
  }
  return absl::StrCat(text, bytes == 1 ? " byte in " : " bytes in ", words::Count(record.blocks),
                      change(record.blocks, record.before.blocks),
                      record.blocks == 1 ? " block" : " blocks");
}

// Why a scan has no records.
std::string WhyNone(const ReportView& view) {
  if (view.leak_scan()->ignored.blocks != 0) {
    return absl::StrCat("none: the program declared all that was live to be no leaks, ",
                        leak::AmountText(view.leak_scan()->ignored));
  }
  if (view.analysis().totals.allocations != 0) {
    return AllRecorded(view.analysis().coverage) ? "none: no block was live"
                                                 : "none: no block that was recorded was live";
  }
  return SelectionLines(view).empty() && view.analysis().range.whole()
             ? "none: no allocation was recorded"
             : "none: nothing was allocated of what was asked for";
}

}  // namespace

// The reason that is most likely to be asked for comes first.
std::string WhyLossesAreHidden(const ReportView& view, size_t shown) {
  if (view.leak_scan() == nullptr || shown == view.leak_scan()->records.size()) return "";
  const LeakScan& scan = *view.leak_scan();
  const ReportView::HiddenLosses hidden = view.CountHidden();
  if (hidden.by_kind > 0) return "--show-leak-kinds=all shows every kind";
  if (hidden.by_change > 0) {
    return absl::StrCat(scan.show == format::ScanShow::kNew ? "the others are not new"
                                                            : "the others have not changed so",
                        view.changes_alone() ? "" : ", --show-leak-kinds=all shows them");
  }
  if (hidden.suppressed > 0) return "the others are suppressed";
  if (hidden.of_runtime > 0) {
    return "the others are the runtime's own, --show-leak-kinds=possible shows them";
  }
  return "the others are not of what was asked for";
}

std::string LossRecordsText(const ReportView& view, const TextOptions& options) {
  const LeakScan& scan = *view.leak_scan();
  std::string out = SummaryOf(view, options);
  const std::vector<ReportView::Loss> losses = view.Losses(/*everything=*/false);
  if (scan.records.empty()) {
    return absl::StrCat(out, Heading(options, "LOSS RECORDS", WhyNone(view)));
  }
  const std::string hidden = WhyLossesAreHidden(view, losses.size());
  absl::StrAppend(&out, Heading(options, "LOSS RECORDS",
                                absl::StrCat(words::Count(losses.size()), " of ",
                                             words::Count(scan.records.size()),
                                             hidden.empty() ? "" : ": ", hidden)));
  const size_t shown = options.Shown(losses.size());
  const size_t number_width = absl::StrCat(shown).size();
  for (size_t i = 0; i < shown; ++i) {
    const LossRecord& record = *losses[i].record;
    const std::string number = absl::StrFormat("  %*d  ", static_cast<int>(number_width), i + 1);
    const bool changes = scan.show != format::ScanShow::kAny;
    const std::string amount = RecordAmount(record, changes);
    const bool bad = record.kind != LeakKind::kReachable;
    std::string what =
        absl::StrCat(record.blocks == 1 ? " is " : " are ", KindPhrase(record.kind),
                     record.of_runtime ? " (the runtime's own)" : "");
    const std::string by = AllocationName(view, record.stack, record.function);
    const bool by_below =
        number.size() + amount.size() + what.size() + 2 + by.size() > options.style.width;
    std::string remark = absl::StrCat(changes && record.is_new ? "new record " : "record ",
                                      losses[i].number, " of ", scan.records.size());
    if (!by_below) {
      absl::StrAppend(&what, ", ", by, "  ");
    } else {
      remark = absl::StrCat(by, "  ", remark);
      what += "  ";
    }
    const std::string first = words::Duration(record.first_time_ns),
                      last = words::Duration(record.last_time_ns);
    const std::string when = first == last ? absl::StrCat(", at ", first)
                                           : absl::StrCat(", from ", first, " to ", last);
    const size_t used = number.size() + amount.size() + what.size() + remark.size();
    if (used + when.size() <= options.style.width) remark += when;
    const std::string below =
        absl::StrCat("\n", std::string(number.size() + 2, ' '));  // as the stack is
    if (used > options.style.width || by_below) {
      what.resize(what.size() - 2);
      remark.insert(0, below);
    }
    const Ink ink = bad ? Ink::kBad : Ink::kPlain;
    std::string headline = absl::StrCat(options.style.Paint(ink, amount), what);
    if (number.size() + amount.size() + what.size() > options.style.width) {
      const size_t room = options.style.width - number.size() - 2;
      headline = absl::StrJoin(words::Wrapped(absl::StrCat(amount, what), room), below,
                               [&](std::string* to, const std::string& line) {
                                 absl::StrAppend(to, options.style.Paint(ink, line));
                               });
    }
    absl::StrAppend(&out, i > 0 ? "\n" : "", number, headline,
                    options.style.Paint(Ink::kDim, remark), "\n",
                    StackText(view, record.stack, number.size() + 2, options));
  }
  if (shown < losses.size()) {
    absl::StrAppend(&out, "\n", MoreLine(options, losses.size(), shown, "loss record"));
  }
  return out;
}

}  // namespace memtrace::report::render
