// Process: what the whole process shares: the switch, the file, the settings.
//
// The switch lies alone on a page that the kernel wipes in a fork child
// (MADV_WIPEONFORK): the first event of a child finds it 0 and begins a trace of
// its own, without atfork handlers and without asking for the pid on every event.
// A vfork child shares the memory, the switch and the ring, and records into them.

#ifndef MEMTRACE_PRELOAD_PROCESS_H_
#define MEMTRACE_PRELOAD_PROCESS_H_

#include <atomic>
#include <cstdint>

#include "format/record_encoder.h"
#include "preload/config.h"
#include "preload/trace_file.h"

namespace memtrace {

struct alignas(4096) ForkSensitivePage {
  std::atomic<uint32_t> recording{0};
  char padding[4092] = {};
};
extern ForkSensitivePage g_switch;

enum class Mode : uint32_t { kNotStarted, kStarting, kRecording, kOff };

struct Process {
  std::atomic<Mode> mode{Mode::kNotStarted};
  Config config;
  TraceFile file;
  int pid = 0;
  uint64_t trace_id = 0;
  bool allocator_is_glibc = false;
  std::atomic<uint32_t> next_serial{1};
  std::atomic<uint64_t> missed_events{0};   // could not be recorded at all
  std::atomic<uint64_t> private_rings{0};
  std::atomic<uintptr_t> seen_break{0};     // libc's program break after the last event
  uintptr_t first_break = 0;                // the kernel's, while libc's is 0: not yet asked for
  Text<4096> working_directory;
  Text<4096> executable;
};
extern Process g_process;

// Called when the switch is 0: first event, fork child, or recording is off.
// True when events are recorded from now on.
bool EnsureRecording();

// No more events. Told in the trace, if it can still be written.
void StopRecording(format::RecordingStop why, long error);

// Appends records as one metadata block. `build` gets a RecordEncoder.
template <size_t kCapacity, typename Build>
bool AppendRecords(Build build) {
  uint8_t buffer[kCapacity];
  format::RecordEncoder encoder(buffer, kCapacity);
  build(encoder);
  format::BlockHeader header = {};
  header.kind = format::BlockKind::kMetadata;
  header.payload_bytes = header.content_bytes = static_cast<uint32_t>(encoder.size());
  return g_process.file.Append(header, buffer) && !encoder.overflowed();
}
// The same with a buffer mapped for the purpose: long paths, memory maps.
template <typename Build>
bool AppendBigRecords(size_t capacity, Build build);

}  // namespace memtrace

#include "preload/own_memory.h"

template <typename Build>
bool memtrace::AppendBigRecords(size_t capacity, Build build) {
  const OwnFaultsScope faults;
  auto* buffer = static_cast<uint8_t*>(OwnMap(capacity, /*touch=*/false));
  if (buffer == nullptr) return false;
  format::RecordEncoder encoder(buffer, capacity);
  build(encoder);
  format::BlockHeader header = {};
  header.kind = format::BlockKind::kMetadata;
  header.payload_bytes = header.content_bytes = static_cast<uint32_t>(encoder.size());
  const bool written = g_process.file.Append(header, buffer) && !encoder.overflowed();
  OwnUnmap(buffer, capacity);
  return written;
}

#endif  // MEMTRACE_PRELOAD_PROCESS_H_
