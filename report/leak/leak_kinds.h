// Names of what leak scans find, and which of a trace's scans a report is about.

#ifndef MEMTRACE_REPORT_LEAK_LEAK_KINDS_H_
#define MEMTRACE_REPORT_LEAK_LEAK_KINDS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "report/analysis.h"

namespace memtrace::report::leak {

absl::string_view KindName(LeakKind kind);      // "definite"
absl::string_view KindSentence(LeakKind kind);  // "definitely lost"
absl::string_view ReasonName(format::ScanReason reason);  // "exit-late"
absl::string_view ShowName(format::ScanShow show);        // "any"

// Bit 1 << LeakKind.
using KindSet = uint32_t;
constexpr KindSet BitOf(LeakKind kind) { return 1u << static_cast<int>(kind); }
inline constexpr KindSet kAllKinds = 0xf;
inline constexpr KindSet kDefaultKinds = BitOf(LeakKind::kDefinite) | BitOf(LeakKind::kPossible);

// memcheck's sets: names separated by commas, "all", "none". Errors begin with `option`.
absl::StatusOr<KindSet> ParseKinds(absl::string_view option, absl::string_view set);

// It looked at what the program left behind.
inline bool IsAtExit(const LeakScan& scan) {
  return scan.reason == format::ScanReason::kExitLate ||
         scan.reason == format::ScanReason::kExitEarly;
}

// The scan that a report is about. `number` 0: the last one at an exit that was finished, or
// else the last that was. nullptr: there is none.
const LeakScan* ChooseScan(const Analysis& analysis, uint32_t number);

// Why there is no such scan: a sentence without a full stop, never empty.
std::string WhyNoScan(const Analysis& analysis);

// "1,484 bytes in 7 blocks"
std::string AmountText(const LeakAmount& amount);

}  // namespace memtrace::report::leak

#endif  // MEMTRACE_REPORT_LEAK_LEAK_KINDS_H_
