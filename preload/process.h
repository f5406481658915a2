// Process: what the whole process shares besides the recording switch: the file, the settings, the
// counters.

#ifndef MEMTRACE_PRELOAD_PROCESS_H_
#define MEMTRACE_PRELOAD_PROCESS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "preload/arena_heaps.h"
#include "preload/config.h"
#include "preload/sys.h"
#include "preload/text.h"
#include "preload/trace_file.h"

namespace memtrace {

enum class Mode : uint32_t { kNotStarted, kStarting, kRecording, kOff };

struct Process {
  std::atomic<Mode> mode{Mode::kNotStarted};
  Config config;
  TraceFile file;
  int pid = 0;
  uint64_t trace_id = 0;
  bool allocator_is_glibc = false;
  // The module of the real malloc, where that is not glibc's.
  struct {
    uintptr_t begin = 0;
    size_t bytes = 0;
  } other_allocator;
  // The recording of this process, or of the one that it is forked from, has ended for a reason
  // that was its own: its trace was full.
  std::atomic<bool> ended_for_itself{false};
  // As g_switch.recording says; not wiped in a fork child.
  std::atomic<bool> stopped_by_program{false};
  std::atomic<uint32_t> next_serial{1};
  std::atomic<uint64_t> missed_events{0};   // could not be recorded at all
  // Events that a signal handler jumped out of: the event may be missing, or its call
  // may not have happened.
  std::atomic<uint64_t> abandoned_events{0};
  std::atomic<uint64_t> private_rings{0};
  // A process that we made would be the first of a new namespace, and with its end the
  // program could have no other there; or a fork would wait for a thread of the program
  // that stands meanwhile; or Valgrind would end the program for it.
  std::atomic<bool> must_not_clone{false};
  // As the kernel counts it, of programs before an exec; 0: it is less than ours.
  long inherited_peak_kb = 0;
  std::atomic<uintptr_t> seen_break{0};     // libc's program break after the last event
  uintptr_t first_break = 0;                // the kernel's, while libc's is 0: not yet asked for
  ArenaHeaps arena_heaps;
  uint64_t sample_seed = 0;                 // MEMTRACE_SAMPLE_BYTES
  std::atomic<uint64_t> next_sample_stream{1};
  Text<4096> working_directory;
  Text<4096> executable;
};
extern Process g_process;

// A child by vfork() has the memory of its parent, whose trace goes on; the process is another one.
// So is a fork child before its first event. To be asked where an OtherCalls says yes.
inline bool IsVforkChild() { return g_process.pid != sys::Getpid(); }

// The peak of this program, made from the peak that getrusage says; in KiB. 0: not
// known, for a program that this process was before an exec had as much, or its parent
// while it was a vfork child.
inline long OwnPeakKb(long peak_kb) { return peak_kb > g_process.inherited_peak_kb ? peak_kb : 0; }

inline void CountMissedEvents(uint64_t count) {
  const uint64_t missed =
      g_process.missed_events.fetch_add(count, std::memory_order_relaxed) + count;
  g_process.file.status().NoteMissed(missed);
}
inline void CountMissedEvent() { CountMissedEvents(1); }

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_PROCESS_H_
