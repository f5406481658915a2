#include "preload/lifecycle.h"

#include <limits.h>
#include <linux/futex.h>

#include <atomic>
#include <cerrno>
#include <cstdint>

#include "preload/allowed_calls.h"
#include "preload/append_records.h"
#include "preload/clock.h"
#include "preload/cross_check.h"
#include "preload/exported.h"
#include "preload/first_process.h"
#include "preload/fork_child.h"
#include "preload/leak_scan/leak_scan.h"
#include "preload/process.h"
#include "preload/process_end.h"
#include "preload/process_start.h"
#include "preload/real_allocator.h"
#include "preload/recorder.h"
#include "preload/recording_switch.h"
#include "preload/signals_blocked.h"
#include "preload/sys.h"
#include "preload/thread_state.h"

namespace memtrace {

constinit ForkSensitivePage g_switch;
constinit Process g_process;

namespace {

// Runs before main and before the constructors of the program; with the first
// malloc of ld.so recording has usually begun already.
ENTERED __attribute__((constructor)) void OnLoad() {
  {
    const Section section;  // a trace even of a program that never allocates
    if (!section) return;
  }
  if (g_process.config.cross_check != 0) OpenCrossCheck(MaySay);
  PrepareScans();
  PrepareEnd();
}

long Futex(int operation, uint32_t value, const long* timeout) {
  return sys::Call(SYS_futex, reinterpret_cast<long>(&g_switch.starting),
                   operation | FUTEX_PRIVATE_FLAG, static_cast<long>(value),
                   reinterpret_cast<long>(timeout));
}

// By the one thread that has set g_switch.starting.
bool Start() {
  const Mode mode = g_process.mode.load(std::memory_order_acquire);
  if (g_switch.recording.load(std::memory_order_acquire) != 0) return true;  // done meanwhile
  if (mode == Mode::kOff && IsOffForGood()) return false;  // by a handler, or another thread
  if (mode == Mode::kStarting) {
    // A fork child of a process of which another thread was in the midst of this, for the first
    // time: nothing is as it must be.
    g_process.mode.store(Mode::kOff, std::memory_order_release);
    return false;
  }
  // Recording, but the switch is 0: the kernel wiped it, this is a fork child. So is one whose
  // recording ended, and nothing there says that it did. What is forked while it begins is one as
  // well.
  const bool child = mode == Mode::kRecording || mode == Mode::kOff;
  Mode starting = child ? Mode::kRecording : Mode::kStarting;
  g_process.mode.store(starting, std::memory_order_release);
  if (!(child ? StartForkChild() : StartProcess())) {
    g_process.mode.store(Mode::kOff, std::memory_order_release);
    return false;
  }
  // Or it has ended already.
  g_process.mode.compare_exchange_strong(starting, Mode::kRecording, std::memory_order_acq_rel);
  const bool stopped = g_process.stopped_by_program.load(std::memory_order_relaxed);
  g_switch.recording.store(stopped ? kRecordStopped : kRecordAll, std::memory_order_release);
  const uint32_t missed = g_switch.start_missed_events.load(std::memory_order_relaxed);
  if (missed != 0) CountMissedEvents(missed);
  return true;
}

}  // namespace

// They sleep until it is done: hundreds that look again and again would leave it no processor.
bool AwaitStart() {
  constexpr int kMostPauses = 10;
  constexpr long kPause[2] = {0, 100'000'000};
  for (int pauses = 0; g_switch.starting.load(std::memory_order_acquire) != 0;) {
    if (pauses == kMostPauses) g_switch.start_takes_long.store(1, std::memory_order_relaxed);
    if (g_switch.start_takes_long.load(std::memory_order_relaxed) != 0) return false;
    if (const OtherCalls calls; calls) {
      uint32_t as_yet = kStarting;
      g_switch.starting.compare_exchange_strong(as_yet, kStartAwaited, std::memory_order_relaxed);
      pauses += Futex(FUTEX_WAIT, kStartAwaited, kPause) == -ETIMEDOUT;
    } else {
      for (int spin = 0; spin < 100'000'000; ++spin) {
        if (g_switch.starting.load(std::memory_order_relaxed) == 0) break;
      }
      ++pauses;
    }
  }
  return true;
}

bool EnsureRecording() {
  while (!IsOffForGood()) {
    if (!AwaitStart()) {
      if (g_switch.recording.load(std::memory_order_relaxed) != 0) {
        CountMissedEvent();
      } else {
        g_switch.start_missed_events.fetch_add(1, std::memory_order_relaxed);
      }
      return false;
    }
    const SignalsBlocked no_handler;
    const OwnCalls own;
    if (!FindRealAllocator()) return false;  // called back from inside that search
    uint32_t nobody = 0;
    if (!g_switch.starting.compare_exchange_strong(nobody, kStarting, std::memory_order_acq_rel))
      continue;
    const bool started = Start();
    if (g_switch.starting.exchange(0, std::memory_order_acq_rel) == kStartAwaited && no_handler)
      Futex(FUTEX_WAKE, INT_MAX, nullptr);
    return started;
  }
  return false;
}

void StopRecording(format::RecordingStop why, long error) {
  g_switch.ended.store(1, std::memory_order_relaxed);
  // The limit is one for each file. What a filter forbids, it forbids to what is
  // forked from here as well.
  if (why == format::RecordingStop::kMaxBytes) {
    g_process.ended_for_itself.store(true, std::memory_order_relaxed);
  }
  g_process.mode.store(Mode::kOff, std::memory_order_release);
  if (g_switch.recording.exchange(0, std::memory_order_acq_rel) == 0) return;
  const uint64_t now = g_clock.Now();
  g_process.file.status().NoteStop(now, why, error);
  AppendRecords<64>([&](format::RecordEncoder& out) {
    out.Begin(format::RecordTag::kRecordingStopped);
    out.Number(static_cast<uint64_t>(why));
    out.Number(now);
    out.Number(static_cast<uint64_t>(error));
    out.End();
  });
}

}  // namespace memtrace
