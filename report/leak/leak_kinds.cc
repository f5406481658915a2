#include "report/leak/leak_kinds.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "report/render/signal_name.h"
#include "report/render/units.h"

namespace memtrace::report::leak {

absl::string_view KindName(LeakKind kind) {
  switch (kind) {
    case LeakKind::kDefinite: return "definite";
    case LeakKind::kIndirect: return "indirect";
    case LeakKind::kPossible: return "possible";
    case LeakKind::kReachable: return "reachable";
    case LeakKind::kUnfreed: break;
  }
  return "unfreed";
}

absl::string_view KindSentence(LeakKind kind) {
  switch (kind) {
    case LeakKind::kDefinite: return "definitely lost";
    case LeakKind::kIndirect: return "indirectly lost";
    case LeakKind::kPossible: return "possibly lost";
    case LeakKind::kReachable: return "still reachable";
    case LeakKind::kUnfreed: break;
  }
  return "not freed";
}

absl::string_view ReasonName(format::ScanReason reason) {
  switch (reason) {
    case format::ScanReason::kExitLate: return "exit-late";
    case format::ScanReason::kExitEarly: return "exit-early";
    case format::ScanReason::kRequest: return "request";
    case format::ScanReason::kOutside: return "outside";
  }
  return "unknown";
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

absl::StatusOr<KindSet> ParseKinds(absl::string_view option, absl::string_view set) {
  if (set == "all") return kAllKinds;
  if (set == "none") return KindSet{0};
  KindSet kinds = 0;
  for (const absl::string_view word : absl::StrSplit(set, ',')) {
    KindSet bit = 0;
    for (int i = 0; i < 4; ++i) {
      const auto kind = static_cast<LeakKind>(i);
      if (word == KindName(kind)) bit = BitOf(kind);
    }
    if (bit == 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          option, ": \"", word, "\" is none of definite, indirect, possible, reachable, all, none"));
    }
    kinds |= bit;
  }
  return kinds;
}

const LeakScan* ChooseScan(const Analysis& analysis, uint32_t number) {
  const LeakScan* last = nullptr;
  for (const LeakScan& scan : analysis.leak_scans) {
    if (scan.state != LeakScan::State::kDone) continue;
    if (number != 0) {
      if (scan.number == number) last = &scan;
      continue;
    }
    if (last == nullptr || IsAtExit(scan) || !IsAtExit(*last)) last = &scan;
  }
  return last;
}

std::string AmountText(const LeakAmount& amount) {
  return absl::StrCat(render::ExactBytes(amount.bytes), " in ", render::Plural(amount.blocks, "block"));
}

std::string WhyNoScan(const Analysis& analysis) {
  if (!analysis.leak_scans.empty()) {
    const LeakScan& scan = analysis.leak_scans.back();
    return absl::StrCat("scan ", scan.number, ": ", scan.failure);
  }
  if (!analysis.range.whole()) return "none was taken in this range";
  if (analysis.process.imported()) return "an imported log has none";
  switch (analysis.process.end) {
    case ProcessInfo::End::kSignal:
      return absl::StrCat("the program was killed by ", render::SignalName(analysis.process.end_signal),
                          " before it could be scanned");
    case ProcessInfo::End::kExec:
      return "the program became another one";
    case ProcessInfo::End::kCut:
      return "the trace ends before the program did";
    case ProcessInfo::End::kExit:
      break;
  }
  if (analysis.coverage.recording_end_ns.has_value()) return "the recording ended before the program did";
  return "none was asked for (MEMTRACE_LEAK_CHECK), or the program ended without a call of exit";
}

}  // namespace memtrace::report::leak
