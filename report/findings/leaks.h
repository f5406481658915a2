// What memory scans found: leaks by memcheck's kinds.
//
// Filled by the analyzer from the scans of a trace (format/memory_scan.h), read by the
// renderers and the gate. Times are nanoseconds since the start of the process.
//
// Words: a *block* is lost when no chain of pointers leads to it from a root; a *loss record*
// is all blocks of one kind with one allocating stack, as in memcheck.

#ifndef MEMTRACE_REPORT_FINDINGS_LEAKS_H_
#define MEMTRACE_REPORT_FINDINGS_LEAKS_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "format/event_words.h"
#include "format/memory_scan.h"
#include "report/base/strong_id.h"

namespace memtrace::report {

// The kinds, the worst first; the names in reports are "definite", "indirect",
// "possible", "reachable", "unfreed". kUnfreed: there was no scan, so nothing is known but that it
// was not freed.
enum class LeakKind : uint8_t { kDefinite, kIndirect, kPossible, kReachable, kUnfreed };
inline constexpr size_t kLeakKinds = 5;
// For certain, by itself or with another one.
constexpr bool IsLost(LeakKind kind) {
  return kind == LeakKind::kDefinite || kind == LeakKind::kIndirect;
}

struct LeakAmount {
  uint64_t bytes = 0;
  uint64_t blocks = 0;
};

struct LossRecord {
  LeakKind kind = LeakKind::kUnfreed;
  StackId stack;
  format::AllocFunction function = format::AllocFunction::kMalloc;
  uint64_t bytes = 0;           // direct
  uint64_t blocks = 0;          // direct
  uint64_t indirect_bytes = 0;  // kDefinite: of the blocks that only these lead to; these have
  uint64_t indirect_blocks = 0; //   records of their own as well, of kind kIndirect
  uint64_t heuristic_blocks = 0;  // of `blocks`, reachable by a heuristic only
  uint64_t first_time_ns = 0;   // of the allocations of these blocks
  uint64_t last_time_ns = 0;
  // Against the scan before it; 0 in the first. The record is new when it had no blocks.
  LeakAmount before, indirect_before;
  bool is_new = false;
  bool suppressed = false;  // as the user wanted: in no total of its kind
  // Of kind kPossible: kept by the C or C++ runtime by design, as a thread's variables are. See
  // LeakScan::of_runtime.
  bool of_runtime = false;
};

// A suppression of a user's file, and what it matched.
struct UsedSuppression {
  std::string name, file;
  uint32_t line = 0;
  uint64_t records = 0;
  LeakAmount amount;
};

// What a scan cost the process. Scanned bytes are those of pages that are there.
struct LeakScanCost {
  uint64_t stood_ns = 0;    // its other threads stood still until the copy was made
  uint64_t fork_ns = 0;     // of these, until the copy was made
  uint64_t cpu_ns = 0;      // of the copy, or of the process where there was none (`in_process`)
  uint64_t elapsed_ns = 0;  // until the scan was over
  uint64_t root_bytes = 0, heap_bytes = 0;  // that were looked through
  bool in_process = false;
};

struct LeakScan {
  uint32_t number = 0;
  format::ScanReason reason = format::ScanReason::kExitLate;
  format::ScanShow show = format::ScanShow::kAny;
  std::string label;           // of who asked, empty if unnamed
  uint64_t time_ns = 0;
  // kDone: every conclusion holds. Otherwise `failure` says why, and there are no records.
  enum class State { kDone, kCutShort, kFailed } state = State::kCutShort;
  std::string failure;
  std::vector<std::string> notes;  // what was not scanned, which threads did not stop, ...
  // Some frees are known to be in no trace: what is definitely lost may have been freed by who made
  // these. A note says who.
  bool frees_unseen = false;
  bool allocations_unseen = false;  // the same of allocations
  std::array<LeakAmount, kLeakKinds> totals;  // by LeakKind
  LeakAmount ignored;  // that the program declared to be no leaks (memtrace.h): in no total
  std::array<LeakAmount, 7> by_heuristic;     // of kReachable: index 1..6 as leak::Pointer
  LeakScanCost cost;                          // of kDone
  std::vector<LossRecord> records;            // smallest first, as memcheck numbers them
  LeakAmount suppressed;                      // not in `totals`
  // Of totals[kPossible]. The report of one trace fills it (suppress_records.h), for the scan that
  // it is about; it is 0 in other scans, and in the gate, in diff and in a tree of processes, which
  // has a sum over all (TreeView::OfRuntime()).
  LeakAmount of_runtime;
  uint64_t suppressed_records = 0;
  std::vector<UsedSuppression> suppressions;  // that were asked for
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_FINDINGS_LEAKS_H_
