#include "report/leak/leak_scans.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "report/findings/analysis.h"
#include "report/words/signal_name.h"
#include "report/words/units.h"

namespace memtrace::report::leak {

absl::string_view ReasonName(format::ScanReason reason) {
  switch (reason) {
    case format::ScanReason::kExitLate: return "exit-late";
    case format::ScanReason::kExitEarly: return "exit-early";
    case format::ScanReason::kRequest: return "request";
    case format::ScanReason::kOutside: return "outside";
  }
  return "unknown";
}

absl::string_view ReasonText(format::ScanReason reason, const ProcessInfo& process) {
  switch (reason) {
    case format::ScanReason::kExitLate:
      return process.exit_at_once ? "at the exit, which ran no destructors"
                                  : "at the exit, after the destructors";
    case format::ScanReason::kExitEarly: return "at the exit, before the destructors";
    case format::ScanReason::kRequest: return "at the program's request";
    case format::ScanReason::kOutside: return "asked for from outside";
  }
  return "for a reason this version does not know";
}

absl::string_view ShowName(format::ScanShow show) {
  switch (show) {
    case format::ScanShow::kAny: return "any";
    case format::ScanShow::kNew: return "new";
    case format::ScanShow::kIncreased: return "increased";
    case format::ScanShow::kChanged: return "changed";
  }
  return "any";
}

absl::string_view StateName(LeakScan::State state) {
  switch (state) {
    case LeakScan::State::kDone: return "done";
    case LeakScan::State::kCutShort: return "cut_short";
    case LeakScan::State::kFailed: return "failed";
  }
  return "failed";
}

bool ExitWasScanned(const Analysis& analysis) {
  return std::ranges::any_of(analysis.leak_scans, [](const LeakScan& scan) {
    return scan.state == LeakScan::State::kDone && IsAtExit(scan);
  });
}

bool EndWasNotScanned(const Analysis& analysis) {
  if (ChooseScan(analysis, 0) == nullptr || !analysis.range.whole()) return false;
  return !ExitWasScanned(analysis);
}

// The end of a trace that lacks parts may be in these.
bool EndedUnseen(const Analysis& analysis) {
  return analysis.process.exit_unseen && analysis.coverage.lost_end.empty() &&
         !analysis.coverage.events_missing && !analysis.coverage.recording_end_ns.has_value();
}

const LeakScan* ChooseScan(const Analysis& analysis, uint32_t number) {
  const LeakScan* last = nullptr;
  for (const LeakScan& scan : analysis.leak_scans) {
    if (scan.state != LeakScan::State::kDone) continue;
    if (number == 0 || scan.number == number) last = &scan;
  }
  return last;
}

std::string AmountText(const LeakAmount& amount) {
  return absl::StrCat(words::ExactBytes(amount.bytes), " in ",
                      words::Plural(amount.blocks, "block"));
}

std::string LostScanText(const Analysis& analysis) {
  const LostScans& lost = analysis.coverage.lost_scans;
  const bool later_one =
      !analysis.leak_scans.empty() && analysis.leak_scans.back().number >= lost.last;
  if (lost.last == 0 || later_one) return "";
  return absl::StrCat("scan ", lost.last, " could not be written to the trace: ", lost.why);
}

std::string WhyNoScan(const Analysis& analysis) {
  if (std::string lost = LostScanText(analysis); analysis.range.whole() && !lost.empty()) {
    return lost;
  }
  if (!analysis.leak_scans.empty()) {
    const LeakScan& scan = analysis.leak_scans.back();
    return absl::StrCat("scan ", scan.number, ": ", scan.failure);
  }
  if (analysis.coverage.live_until_ns != 0) {
    return absl::StrCat("the process is at work: memtrace leaks ", analysis.process.pid,
                        " asks it for one");
  }
  if (!analysis.range.whole()) {
    return analysis.coverage.interrupted ? "the reading was interrupted, and had come to none"
                                         : "none was taken in this range";
  }
  if (analysis.process.imported()) return "an imported log has none";
  if (!analysis.coverage.lost_end.empty()) {
    return absl::StrCat("the end of the program could not be written to the trace: ",
                        analysis.coverage.lost_end);
  }
  switch (analysis.process.end) {
    case ProcessInfo::End::kSignal:
      return absl::StrCat("the program was killed by ",
                          words::SignalName(analysis.process.end_signal),
                          " before it could be scanned");
    case ProcessInfo::End::kExec:
      return "the program became another one";
    case ProcessInfo::End::kCut:
      return "the trace ends without the program's end: it was killed, still runs, could no longer "
             "write, or made a raw exit_group, as Go's runtime does";
    case ProcessInfo::End::kExit:
      break;
  }
  if (analysis.coverage.recording_end_ns.has_value())
    return "the recording ended before the program did";
  if (EndedUnseen(analysis)) {
    return absl::StrCat("the program ", kEndedUnseen,
                        " (libc's exit() is scanned, in Go C.exit(); before the end "
                        "memtrace_leak_check() and memtrace leaks ask for a scan)");
  }
  return "none was asked for (MEMTRACE_LEAK_CHECK), or the program ended without a call of exit";
}

}  // namespace memtrace::report::leak
