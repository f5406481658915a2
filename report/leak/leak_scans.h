// Which of a trace's scans a report is about, and the names of what scans are told.

#ifndef MEMTRACE_REPORT_LEAK_LEAK_SCANS_H_
#define MEMTRACE_REPORT_LEAK_LEAK_SCANS_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "report/findings/leaks.h"

namespace memtrace::report {
struct Analysis;
struct ProcessInfo;
}

namespace memtrace::report::leak {

absl::string_view ReasonName(format::ScanReason reason);  // "exit-late"
// The same in words: "at the exit, after the destructors".
absl::string_view ReasonText(format::ScanReason reason, const ProcessInfo& process);
absl::string_view ShowName(format::ScanShow show);        // "any"
absl::string_view StateName(LeakScan::State state);       // "cut_short"

// It looked at what the program left behind.
inline bool IsAtExit(const LeakScan& scan) {
  return scan.reason == format::ScanReason::kExitLate ||
         scan.reason == format::ScanReason::kExitEarly;
}

// There is a finished scan at the exit, or two.
bool ExitWasScanned(const Analysis& analysis);
// There are finished scans, but none at the exit, in a report on all of the run: what was lost
// after the last of them is not known.
bool EndWasNotScanned(const Analysis& analysis);
inline constexpr char kEndWasNotScanned[] =
    "the end of the program was not scanned: nothing is known of what it lost after its last scan";

// The program is known to have ended in a way that the library does not see, so that its end was
// not scanned, whatever was asked for. Rarer than a raw exit_group is a return from main after a
// child by vfork() has called exit().
bool EndedUnseen(const Analysis& analysis);
// Behind "it" or "the program".
inline constexpr char kEndedUnseen[] =
    "ended in a way that the library does not see, most likely by a raw exit_group as Go's runtime "
    "makes, and was not scanned then";

// The scan that a report is about. `number` 0: the last that was finished; where the exit was
// scanned, that one, or one behind it, in an exit handler, which knows what was lost until then.
// nullptr: there is none. All commands and formats ask here; some refuse what they get.
const LeakScan* ChooseScan(const Analysis& analysis, uint32_t number);

// Why the program's last scan is not in the trace at all, where it could not be written: "scan 2
// could not be written to the trace: the size limit was reached (...)". Empty: it is, or there was
// none.
std::string LostScanText(const Analysis& analysis);

// Why there is no such scan: a sentence without a full stop, never empty.
std::string WhyNoScan(const Analysis& analysis);

// "1,484 bytes in 7 blocks"
std::string AmountText(const LeakAmount& amount);

}  // namespace memtrace::report::leak

#endif  // MEMTRACE_REPORT_LEAK_LEAK_SCANS_H_
