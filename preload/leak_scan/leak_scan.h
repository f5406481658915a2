// LeakScan: when memory is scanned, and by whom.
//
// The threads of the process stand for a moment, a copy of it is made by fork (scan_copy.h), they
// go on, and the copy looks through its memory and writes to the trace which words point where
// (format/memory_scan.h). What is lost follows from that and the events; docs/leaks.md.
//
//   at exit      the process waits for the copy, a minute at most. Where no copy can be made
//                it scans itself, while its other threads stand.
//   on request   the process goes on. One copy at a time: a request while it works is refused.
//
// Threads: any. At most one scan is begun at a time.

#ifndef MEMTRACE_PRELOAD_LEAK_SCAN_LEAK_SCAN_H_
#define MEMTRACE_PRELOAD_LEAK_SCAN_LEAK_SCAN_H_

#include <cstdint>
#include <string_view>

#include "format/memory_scan.h"
#include "preload/arch/arch.h"
#include "preload/leak_scan/exit_stop.h"

namespace memtrace {

struct ThreadState;

struct ScanResult {
  enum State {
    kComplete,  // it is in the trace as a whole
    kUnderWay,  // a copy works on it
    kFailed,    // `why`
  } state = kFailed;
  uint32_t number = 0;     // of the scan, as in the trace; 0 without one
  std::string_view why;    // static
};

// Who asks, and from where on its stack is the program's: what lies below is not looked at.
struct ScanCaller {
  uintptr_t stack_pointer = 0;
  bool has_registers = false;  // those a function must keep, if they are not on the stack
  arch::KeptRegisters registers = {};
  // The ucontext of a signal that interrupted the program: it has all registers, the stack pointer
  // among them. Between that and the handler's frame are frames of the kernel's and ours, and old
  // words: the kernel leaves room for vector registers that it does not write.
  const void* interrupted = nullptr;
  ExitStop* stop = nullptr;  // at the exit: by whom threads stand
};

// Scans now. `label` is copied. `wait`: returns when the scan is over, or a minute later.
// A function that the program calls passes {MEMTRACE_KEPT_REGISTERS_ON_STACK()}, expanded in
// that very function.
ScanResult RequestScan(format::ScanReason reason, std::string_view label, format::ScanShow show,
                       bool wait, const ScanCaller& caller);

// The process is about to end. Nothing if MEMTRACE_LEAK_CHECK does not say so. Waits for a scan
// on request that is under way. With `stop` the other threads stand afterwards, most often. One
// kExitLate of a process: who ends it by another way meanwhile waits for that, or, in a handler that
// interrupted it, for a moment. Not `final`: the process may go on, and end again.
void ScanAtExit(format::ScanReason reason, const ScanCaller& caller, ExitStop* stop = nullptr,
                bool final = true);

// Whether another program asks for a scan (StatusArea). To be called in a section, where
// clocks are looked at.
bool IsScanRequested();
// Begins that scan. `unblocked`: the signals that the program does not block here; the caller
// blocks all. `interrupted`: see ScanCaller; null: this is in a function that the program called.
void AnswerScanRequest(ThreadState& state, uint64_t unblocked, const void* interrupted = nullptr);

// At load: finds libc's exit(), and installs the handler of MEMTRACE_LEAK_SIGNAL.
void PrepareScans();
// Installs only that handler: again, when threads turn out to share an alternate stack.
void PrepareLeakSignal();
// The signal's bit of a mask, as long as its handler is ours; 0: there is none.
uint64_t OwnLeakSignal();

// Waits for a scan that is under way, and ends it if it takes more than a minute: before exec.
void FinishScan();

// To be called in a fork child: its parent's scans are not its own.
void ForgetScans();

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_LEAK_SCAN_LEAK_SCAN_H_
