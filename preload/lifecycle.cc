#include "preload/lifecycle.h"

#include <atomic>
#include <cstdint>

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

bool EnsureRecording() {
  if (IsOffForGood()) return false;
  const SignalsBlocked no_handler;
  const OwnCalls own;
  if (!FindRealAllocator()) return false;  // called back from inside that search
  Mode mode = g_process.mode.load(std::memory_order_acquire);
  if (mode == Mode::kOff && IsOffForGood()) return false;  // by a handler, or another thread
  // Recording, but the switch is 0: the kernel wiped it, this is a fork child. So is one whose
  // recording ended, and nothing there says that it did.
  const bool child = mode == Mode::kRecording || mode == Mode::kOff;
  if (mode == Mode::kStarting ||
      !g_process.mode.compare_exchange_strong(mode, Mode::kStarting, std::memory_order_acq_rel)) {
    return false;
  }
  if (g_switch.recording.load(std::memory_order_acquire) != 0) {
    g_process.mode.store(Mode::kRecording, std::memory_order_release);
    return true;  // another thread did it meanwhile
  }
  const bool started = child ? StartForkChild() : StartProcess();
  g_process.mode.store(started ? Mode::kRecording : Mode::kOff, std::memory_order_release);
  if (started) {
    const bool stopped = g_process.stopped_by_program.load(std::memory_order_relaxed);
    g_switch.recording.store(stopped ? kRecordStopped : kRecordAll, std::memory_order_release);
  }
  return started;
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
