// Lifecycle: every change of state of the process, as the trace sees it.
//
//   not started -> recording   first interposed call, or our constructor
//   recording -> recording     a fork child, with a trace of its own
//   recording -> off           MEMTRACE_MAX_BYTES, no trace file, CHILDREN=off, no memory, a filter
//                              of system calls
//   the end                    exit, _exit, exec: the last words; recording goes on,
//                              for a handler may still allocate and an exec may fail
//
// What happens on these ways is in process_start.h, fork_child.h and process_end.h;
// docs/lifecycle.md has the whole table.

#ifndef MEMTRACE_PRELOAD_LIFECYCLE_H_
#define MEMTRACE_PRELOAD_LIFECYCLE_H_

#include <atomic>

#include "format/records.h"
#include "preload/process.h"
#include "preload/recording_switch.h"

namespace memtrace {

// Nothing is recorded in this process any more, or ever. That is not so where only the recording of
// the process that it was forked from has ended: its own may begin.
inline bool IsOffForGood() {
  return g_switch.ended.load(std::memory_order_relaxed) != 0 ||
         (g_process.mode.load(std::memory_order_acquire) == Mode::kOff &&
          !g_process.ended_for_itself.load(std::memory_order_relaxed));
}

// Called when the switch is 0: first event, fork child, or recording is off.
// True when events are recorded from now on.
bool EnsureRecording();

// While another thread begins the trace. False: it has taken too long, and nobody waits any more;
// it may be the other one that waits, for a lock of the loader's that this thread has.
bool AwaitStart();

// No more events. Told in the trace, if it can still be written.
void StopRecording(format::RecordingStop why, long error);

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_LIFECYCLE_H_
