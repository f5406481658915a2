#include "preload/process_end.h"

#include <atomic>
#include <cstdlib>

#include "format/records.h"
#include "preload/allowed_calls.h"
#include "preload/arch/arch.h"
#include "preload/exported.h"
#include "preload/leak_scan/exit_call.h"
#include "preload/leak_scan/exit_stop.h"
#include "preload/leak_scan/leak_scan.h"
#include "preload/process.h"
#include "preload/recorder.h"
#include "preload/trace_end.h"

extern "C" int __cxa_at_quick_exit(void (*function)(void*), void* module);

namespace memtrace {
namespace {

// Our handler runs, the last one of exit() or quick_exit(), which libc has taken off its list: also
// of a child that is forked now.
constinit std::atomic<bool> g_at_exit{false}, g_at_quick_exit{false};

constinit std::atomic<int> g_quick_exit_status{0};

// libc takes a handler off its list before it calls it, and a thread that finds the list empty ends
// the process at once, while another one's is still at work. So there are as many of ours as
// threads may well end at once, handlers of signals included: each finds one, until one is through.
// Of the 32 entries that libc's lists have before they allocate.
constexpr int kExitHandlers = 4, kQuickExitHandlers = 8;

// The trace whose end was told by such a handler, or in its place.
constinit std::atomic<uint64_t> g_ended_trace{0};
bool EndIsTold() { return g_ended_trace.load(std::memory_order_relaxed) == g_process.trace_id; }

// The last scan, and the end. Not `now`: the process may go on.
void EndWith(format::EndReason reason, int status, const ScanCaller& caller, bool now) {
  ExitStop stop(now);
  // One hold from here to the end, or a signal that came during the scan would end the process
  // before that is written. Where nothing is recorded there is nothing to hold it for.
  const bool hold = now && g_process.mode.load(std::memory_order_acquire) == Mode::kRecording;
  if (hold) stop.BlockSignals();
  ScanAtExit(format::ScanReason::kExitLate, caller, &stop, now);
  if (hold) stop.BlockSignals();    // again, where the scan took long
  if (!now) stop.ReleaseIfAsked();  // by what ends the process otherwise
  NoteEnd(reason, status & 0xff);
  if (now) stop.End();
}

// The same by exit() or quick_exit(): noted for the handlers of ours that are still to be called.
// By _exit() it is not: so ends a child by vfork(), which cannot always be told from its parent.
void EndForGood(format::EndReason reason, int status, const ScanCaller& caller) {
  EndWith(reason, status, caller, /*now=*/true);
  // Not by a child by vfork() that calls exit(): the end of its parent is still to be told. Where
  // nothing is recorded any more that is not asked: a filter that ended it may forbid the call.
  if (g_process.mode.load(std::memory_order_acquire) == Mode::kRecording) {
    if (const OtherCalls calls; calls && IsVforkChild()) return;
  }
  g_ended_trace.store(g_process.trace_id, std::memory_order_relaxed);
}

ENTERED void AtExit(int status, void*) {
  if (EndIsTold()) return;
  g_at_exit.store(true, std::memory_order_relaxed);
  const auto frame = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  const ScanCaller caller =
      CallerOfExit(reinterpret_cast<uintptr_t>(__builtin_return_address(0)),
                   frame + arch::kFrameAddressToCfa, *reinterpret_cast<const uintptr_t*>(frame));
  EndForGood(format::EndReason::kExit, status, caller);
}

ENTERED void AtQuickExit(void*) {
  if (EndIsTold()) return;
  g_at_quick_exit.store(true, std::memory_order_relaxed);
  EndForGood(format::EndReason::kUnderscoreExit,
             g_quick_exit_status.load(std::memory_order_relaxed),
             {MEMTRACE_KEPT_REGISTERS_ON_STACK()});
}

}  // namespace

void PrepareEnd() {
  // Registered first, so run last: after the destructors of the program.
  for (int i = 0; i < kExitHandlers; ++i) on_exit(&AtExit, nullptr);
  // This is what at_quick_exit() calls, which itself is not a name in the shared libc. Any address
  // in the module names the module.
  for (int i = 0; i < kQuickExitHandlers; ++i) __cxa_at_quick_exit(&AtQuickExit, &g_process);
}

void ExitIsCalled(int status, const ScanCaller& caller) {
  {
    const Section section;  // the thread's state is made before the first destructor runs
  }
  // Our handler has run, or runs, and will not be called: for a signal's handler that leaves by
  // exit(), another thread, a child that was forked meanwhile.
  if (!g_at_exit.load(std::memory_order_relaxed)) return;
  EndForGood(format::EndReason::kExit, status, caller);
}

void EndAtOnce(int status, uintptr_t stack_pointer, bool now) {
  EndWith(format::EndReason::kUnderscoreExit, status, {stack_pointer}, now);
}

void QuickExitIsCalled(int status, uintptr_t stack_pointer) {
  g_quick_exit_status.store(status, std::memory_order_relaxed);
  // As in ExitIsCalled().
  if (!g_at_quick_exit.load(std::memory_order_relaxed)) return;
  EndForGood(format::EndReason::kUnderscoreExit, status, {stack_pointer});
}

}  // namespace memtrace
