#include "preload/trace_begin.h"

#include <cstring>

#include "format/checksum.h"
#include "format/trace_format.h"
#include "preload/clock.h"
#include "preload/cross_check.h"
#include "preload/first_process.h"
#include "preload/process.h"
#include "preload/process_record.h"
#include "preload/raw_log.h"
#include "preload/recorder.h"
#include "preload/sys.h"
#include "preload/text.h"

namespace memtrace {

bool BeginTrace(uint64_t parent_trace_id) {
  const uint64_t realtime = NowNs(CLOCK_REALTIME);
  const uint64_t start_ns = NowNs(CLOCK_MONOTONIC);
  const uint64_t ticks = g_clock.Now();
  g_process.pid = sys::Getpid();
  const uint64_t seed[] = {realtime, start_ns, ticks, static_cast<uint64_t>(g_process.pid),
                           parent_trace_id};
  g_process.trace_id = format::Checksum(seed, sizeof(seed));

  format::FileHeader header = {};
  memcpy(header.magic, format::kFileMagic, sizeof(header.magic));
  header.version = format::kFormatVersion;
  header.header_bytes = sizeof(header);
  header.trace_id = g_process.trace_id;
  header.parent_trace_id = parent_trace_id;
  header.pid = static_cast<uint32_t>(g_process.pid);
  if (parent_trace_id != 0) header.flags = format::kFileForked;
  if (g_process.config.keep_newest) header.flags |= format::kFileNewest;
  header.header_checksum = format::HeaderChecksum(header);
  Text<256> program;
  NameProgram(program);
  g_process.file.SetLimit(g_process.config.max_bytes, g_process.config.keep_newest);
  g_process.file.SetLeakSignal(g_process.config.leak_signal);
  const long created = g_process.file.Create(
      g_process.config.out.c_str(),
      {g_process.working_directory.c_str(), program.view(), g_process.pid, realtime}, header);
  if (sys::Failed(created)) {
    if (parent_trace_id != 0) {
      g_process.file.NoteUntracedChild(created);  // reports of the parent tell it
    } else if (MaySay()) {
      RawLog("cannot create the trace ", g_process.file.path(), ": ", ErrorText(created),
             "; the program runs untraced (set MEMTRACE_OUT to a file in a writable directory)");
    }
    return false;
  }
  g_process.next_serial.store(1, std::memory_order_relaxed);
  g_process.missed_events.store(0, std::memory_order_relaxed);
  g_process.abandoned_events.store(0, std::memory_order_relaxed);
  g_process.private_rings.store(0, std::memory_order_relaxed);
  g_process.arena_heaps.Clear();
  g_process.sample_seed =
      g_process.config.sample_seed != 0 ? g_process.config.sample_seed : g_process.trace_id;
  g_process.next_sample_stream.store(1, std::memory_order_relaxed);
  g_process.first_break = static_cast<uintptr_t>(sys::Call(SYS_brk));
  g_process.seen_break.store(reinterpret_cast<uintptr_t>(__curbrk), std::memory_order_relaxed);
  WriteProcess(realtime, start_ns, ticks, /*forked=*/parent_trace_id != 0);
  RestartCrossCheck(/*forked=*/parent_trace_id != 0);
  return true;
}

}  // namespace memtrace
