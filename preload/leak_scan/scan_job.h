// ScanJob: what is known of the process when its threads stand, for whoever then looks through
// its memory: a copy of the process, or the process itself.

#ifndef MEMTRACE_PRELOAD_LEAK_SCAN_SCAN_JOB_H_
#define MEMTRACE_PRELOAD_LEAK_SCAN_SCAN_JOB_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "format/memory_scan.h"
#include "preload/arch/arch.h"
#include "preload/leak_scan/thread_stop.h"
#include "preload/own_memory.h"
#include "preload/text.h"

namespace memtrace {

// How far a scan is; on a page that the copy and the process share.
struct ScanProgress {
  std::atomic<uint32_t> over{0};      // 1: nothing will be written any more. A futex.
  std::atomic<uint64_t> stood_ns{0};  // 0: not known yet
  std::atomic<uint64_t> fork_ns{0};
  std::atomic<uint32_t> blocks{0};    // of the trace that were written
  // What is known of the scan, for the record of one whose copy died.
  std::atomic<uint32_t> number{0};
  format::ScanReason reason = format::ScanReason::kExitLate;
  format::ScanShow show = format::ScanShow::kAny;
  bool hurry = false;  // somebody waits for it
  Text<256> label;

  // Whether the scan with this number, whose copy is gone, did not say that it was over.
  // Another thread may have begun the next scan here: that has another number, which is
  // written before all else.
  bool DidNotEnd(uint32_t of) const { return over.load() == 0 && number.load() == of; }
};

// The data that the copy shares with the process that made it. Another thread may see the copy end,
// and begin the next scan, before the thread that waits for it looks: so it is kept for longer
// which scans are complete, that is, wrote kDone.
struct ScanPage {
  ScanProgress now;
  std::atomic<uint32_t> complete[16] = {};  // numbers of scans, each at its remainder
  // The number of the scan whose copy may have the program's table of descriptors; 0: none.
  std::atomic<uint32_t> shares_files{0};
  void NoteLeftFiles(uint32_t of) { shares_files.compare_exchange_strong(of, 0); }

  void NoteComplete(uint32_t number) { complete[number % std::size(complete)].store(number); }
  bool IsComplete(uint32_t number) const {
    return complete[number % std::size(complete)].load() == number;
  }
};

struct ScanJob {
  uint32_t number = 0;
  format::ScanReason reason = format::ScanReason::kExitLate;
  format::ScanShow show = format::ScanShow::kAny;
  std::string_view label;
  // Why it is the process itself that scans; of a copy, what it does not have. Empty: nothing.
  std::string_view note;
  uint64_t ticks = 0;     // the instant
  uint64_t monotonic_ns = 0;

  int pid = 0;
  // The thread that asked.
  int tid = 0;
  uintptr_t control_block = 0;
  uintptr_t stack_pointer = 0;  // what lies below on its stack is dead or ours
  uintptr_t red_zone = 0;  // below it, what is in use as well
  bool has_registers = false;
  uint64_t registers[arch::kRegisterCount] = {};
  uintptr_t alternate_begin = 0, alternate_end = 0;

  bool shares_files = false;  // the copy does, until it has closed them
  const ThreadStop* others = nullptr;
  ScanProgress* progress = nullptr;

  static constexpr size_t kMostOwn = 8192;
  OwnRange own[kMostOwn];  // memory of the tracer
  size_t own_count = 0;
  uintptr_t library_begin = 0, library_end = 0;  // this library's module
  uintptr_t bootstrap_begin = 0, bootstrap_end = 0;  // in it, but the program's
};

// Looks through the memory and writes the scan to the trace. False: it was cut short.
bool ScanMemory(const ScanJob& job);

// A scan that does not take place, in the trace.
void WriteFailedScan(uint32_t number, format::ScanReason reason, std::string_view label,
                     format::ScanShow show, uint64_t ticks, std::string_view why);

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_LEAK_SCAN_SCAN_JOB_H_
