#include "preload/lifecycle.h"

#include <atomic>
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

}  // namespace

namespace {

// While another thread begins the trace. False: it has taken too long, and nobody waits any more;
// it may be the other one that waits, for a lock of the loader's that this thread has.
bool AwaitStart() {
  constexpr int kMostPauses = 5000;  // with what the kernel adds to each, half a second
  for (int i = 0; g_switch.starting.load(std::memory_order_acquire) != 0; ++i) {
    if (i == kMostPauses) g_switch.start_takes_long.store(1, std::memory_order_relaxed);
    if (g_switch.start_takes_long.load(std::memory_order_relaxed) != 0) {
      g_switch.start_missed_events.store(1, std::memory_order_relaxed);
      return false;
    }
    if (const OtherCalls calls; calls) {
      const long pause[2] = {0, 50'000};
      sys::Call(SYS_nanosleep, reinterpret_cast<long>(pause), 0);
    } else {
      for (int spin = 0; spin < 10'000; ++spin) std::atomic_signal_fence(std::memory_order_seq_cst);
    }
  }
  return true;
}

// By the one thread that has set g_switch.starting.
bool Start() {
  const Mode mode = g_process.mode.load(std::memory_order_acquire);
  if (g_switch.recording.load(std::memory_order_acquire) != 0) return true;  // done meanwhile
  if (mode == Mode::kOff && IsOffForGood()) return false;  // by a handler, or another thread
  if (mode == Mode::kStarting) {
    // A fork child of a process of which another thread was in the midst of this.
    g_process.mode.store(Mode::kOff, std::memory_order_release);
    return false;
  }
  // Recording, but the switch is 0: the kernel wiped it, this is a fork child. So is one whose
  // recording ended, and nothing there says that it did.
  const bool child = mode == Mode::kRecording || mode == Mode::kOff;
  g_process.mode.store(Mode::kStarting, std::memory_order_release);
  if (!(child ? StartForkChild() : StartProcess())) {
    g_process.mode.store(Mode::kOff, std::memory_order_release);
    return false;
  }
  // The mode first: what is forked in between is a fork child, and finds out by it.
  Mode starting = Mode::kStarting;  // or it has ended already
  g_process.mode.compare_exchange_strong(starting, Mode::kRecording, std::memory_order_acq_rel);
  const bool stopped = g_process.stopped_by_program.load(std::memory_order_relaxed);
  g_switch.recording.store(stopped ? kRecordStopped : kRecordAll, std::memory_order_release);
  if (g_switch.start_missed_events.load(std::memory_order_relaxed) != 0) CountMissedEvent();
  return true;
}

}  // namespace

bool EnsureRecording() {
  while (!IsOffForGood() && AwaitStart()) {
    const SignalsBlocked no_handler;
    const OwnCalls own;
    if (!FindRealAllocator()) return false;  // called back from inside that search
    if (g_switch.starting.exchange(1, std::memory_order_acq_rel) != 0) continue;
    const bool started = Start();
    g_switch.starting.store(0, std::memory_order_release);
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
