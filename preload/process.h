// Process: what the whole process shares: the switch, the file, the settings.
//
// The switch lies alone on a page that the kernel wipes in a fork child
// (MADV_WIPEONFORK): the first event of a child finds it 0 and begins a trace of
// its own, without atfork handlers and without asking for the pid on every event.
// A vfork child shares the memory, the switch and the ring, and records into them.

#ifndef MEMTRACE_PRELOAD_PROCESS_H_
#define MEMTRACE_PRELOAD_PROCESS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "format/record_encoder.h"
#include "preload/config.h"
#include "preload/trace_file.h"

namespace memtrace {

// ForkSensitivePage::recording, when it is not 0.
inline constexpr uint32_t kRecordAll = 1, kRecordStopped = 2;

struct alignas(4096) ForkSensitivePage {
  // kRecordStopped: by the program (memtrace_stop()); blocks are still told, without stacks.
  std::atomic<uint32_t> recording{0};
  // 0 while one thread alone has had events. Then: the table of BlockOwners, which is page
  // aligned, and in the low bits an epoch. A thread that finds another epoch than at its
  // last stamp takes one: so that no thread rests between two stamps for long while others
  // go on, and its events are not taken for older than they are.
  std::atomic<uintptr_t> sharing{0};
  // 1: this process's recording has ended. What it forks begins one of its own.
  std::atomic<uint32_t> ended{0};
  char padding[4072] = {};
};
static_assert(sizeof(ForkSensitivePage) == 4096);
extern ForkSensitivePage g_switch;
inline constexpr uintptr_t kEpochMask = 4095;

enum class Mode : uint32_t { kNotStarted, kStarting, kRecording, kOff };

// How large the heaps of other arenas were when the trace was told last, by whatever
// thread. Blocks change hands, so that one thread sees many arenas in turn: each
// would be news to it every time. Hashed, a few probes; a heap that finds no place is
// told again, which is harmless.
class ArenaHeaps {
 public:
  // True when that is news.
  bool Update(uintptr_t base, size_t bytes) {
    const size_t home = base >> 26;
    for (size_t probe = 0; probe < kProbes; ++probe) {
      Entry& entry = entries_[(home + probe) % kEntries];
      uintptr_t found = entry.base.load(std::memory_order_relaxed);
      if (found == 0) entry.base.compare_exchange_strong(found, base, std::memory_order_relaxed);
      if (found != 0 && found != base) continue;
      return entry.bytes.exchange(bytes, std::memory_order_relaxed) != bytes;
    }
    return true;
  }
  // visit(base, bytes)
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (const Entry& entry : entries_) {
      const uintptr_t base = entry.base.load(std::memory_order_relaxed);
      if (base != 0) visit(base, entry.bytes.load(std::memory_order_relaxed));
    }
  }
  void Clear() {
    for (Entry& entry : entries_) {
      entry.base.store(0, std::memory_order_relaxed);
      entry.bytes.store(0, std::memory_order_relaxed);
    }
  }

 private:
  static constexpr size_t kEntries = 256, kProbes = 8;
  struct Entry {
    std::atomic<uintptr_t> base{0};
    std::atomic<size_t> bytes{0};
  };
  Entry entries_[kEntries];
};

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

// The peak of this program, made from the peak that getrusage says; in KiB. 0: not
// known, for a program that this process was before an exec had as much, or its parent
// while it was a vfork child.
inline long OwnPeakKb(long peak_kb) { return peak_kb > g_process.inherited_peak_kb ? peak_kb : 0; }

inline void CountMissedEvent() {
  const uint64_t missed = g_process.missed_events.fetch_add(1, std::memory_order_relaxed) + 1;
  g_process.file.status().NoteMissed(missed);
}

// Called when the switch is 0: first event, fork child, or recording is off.
// True when events are recorded from now on.
bool EnsureRecording();

// No more events. Told in the trace, if it can still be written.
void StopRecording(format::RecordingStop why, long error);

// Appends records as one metadata block. `build` gets a RecordEncoder.
template <size_t kCapacity, typename Build>
bool AppendRecords(Build build, TraceFile::Keep keep = TraceFile::Keep::kForEver) {
  uint8_t buffer[kCapacity];
  format::RecordEncoder encoder(buffer, kCapacity);
  build(encoder);
  format::BlockHeader header = {};
  header.kind = format::BlockKind::kMetadata;
  header.payload_bytes = header.content_bytes = static_cast<uint32_t>(encoder.size());
  return g_process.file.Append(header, buffer, keep) && !encoder.overflowed();
}
// The same with a buffer mapped for the purpose: long paths, memory maps.
template <typename Build>
bool AppendBigRecords(size_t capacity, Build build,
                      TraceFile::Keep keep = TraceFile::Keep::kForEver);

}  // namespace memtrace

#include "preload/own_memory.h"

template <typename Build>
bool memtrace::AppendBigRecords(size_t capacity, Build build, TraceFile::Keep keep) {
  const OwnFaultsScope faults;
  auto* buffer = static_cast<uint8_t*>(OwnMap(capacity, /*touch=*/false));
  if (buffer == nullptr) return false;
  format::RecordEncoder encoder(buffer, capacity);
  build(encoder);
  format::BlockHeader header = {};
  header.kind = format::BlockKind::kMetadata;
  header.payload_bytes = header.content_bytes = static_cast<uint32_t>(encoder.size());
  const bool written = g_process.file.Append(header, buffer, keep) && !encoder.overflowed();
  OwnUnmap(buffer, capacity);
  return written;
}

#endif  // MEMTRACE_PRELOAD_PROCESS_H_
