#include "preload/trace_end.h"

#include <sys/resource.h>

#include <cstring>

#include "preload/append_records.h"
#include "preload/clock.h"
#include "preload/confinement.h"
#include "preload/coverage_notes.h"
#include "preload/cross_check.h"
#include "preload/descriptor_table.h"
#include "preload/faults/faults.h"
#include "preload/faults/page_snapshot.h"
#include "preload/memory_map_record.h"
#include "preload/own_memory.h"
#include "preload/own_proc.h"
#include "preload/proc_text.h"
#include "preload/process.h"
#include "preload/recorder.h"
#include "preload/recording_switch.h"
#include "preload/signals_blocked.h"
#include "preload/sys.h"
#include "preload/thread_spool.h"
#include "preload/thread_state.h"
#include "preload/usage_samples.h"

namespace memtrace {
namespace {

// Writes the library's counters, and the record that ends the trace. Returns its ticks; 0: it could
// not be written.
uint64_t WriteLastRecords(format::EndReason reason, int status, const rusage& usage,
                      const SignalsBlocked& calls) {
  const uint64_t ticks = g_clock.Now();
  const bool told = AppendRecords<1024>([&](format::RecordEncoder& out) {
    unwind::UnwindCounters sum;
    uint64_t missed = g_process.missed_events.load(std::memory_order_relaxed);
    uint64_t nodes = 0;
    ForEachThread([&](const ThreadState& state) {
      const unwind::UnwindCounters& each = state.unwinder.counters();
      sum.memo_hits += each.memo_hits;
      sum.joined_whole += each.joined_whole;
      sum.joined_part += each.joined_part;
      sum.frames_joined += each.frames_joined;
      sum.walked += each.walked;
      sum.generic += each.generic;
      sum.frames += each.frames;
      sum.marked += each.marked;
      sum.rule_misses += each.rule_misses;
      sum.table_full += each.table_full;
      nodes += state.slots.defined();
    });
    out.Counter("tool_memory_bytes", own_bytes());
    out.Counter("tool_minor_faults", own_minor_faults());
    out.Counter("missed_events", missed);
    out.Counter("abandoned_events", g_process.abandoned_events.load(std::memory_order_relaxed));
    out.Counter("coverage_notes_left_out", unwritten_coverage_notes());
    out.Counter("private_rings", g_process.private_rings.load(std::memory_order_relaxed));
    out.Counter("stacks_memo_hits", sum.memo_hits);
    out.Counter("stacks_joined_whole", sum.joined_whole);
    out.Counter("stacks_joined_part", sum.joined_part);
    out.Counter("stacks_walked", sum.walked);
    out.Counter("stacks_generic", sum.generic);
    out.Counter("stacks_marked", sum.marked);
    out.Counter("stack_frames_walked", sum.frames);
    out.Counter("stack_frames_joined", sum.frames_joined);
    out.Counter("rule_misses", sum.rule_misses);
    out.Counter("rule_table_full", sum.table_full);
    out.Counter("stack_nodes_defined", nodes);
    out.Begin(format::RecordTag::kEnd);
    out.Number(static_cast<uint64_t>(reason));
    out.Number(static_cast<uint64_t>(status));
    out.Number(ticks);
    out.Number(g_clock.MonotonicNs());
    out.Number(static_cast<uint64_t>(usage.ru_minflt));
    out.Number(static_cast<uint64_t>(usage.ru_majflt));
    out.Number(static_cast<uint64_t>(usage.ru_maxrss) * 1024);
    // Without calls who asks cannot be told: a child by vfork() that execs or ends has the memory
    // of its parent. It does not call exit().
    if (reason != format::EndReason::kExit) out.Number(!calls);
    if (reason == format::EndReason::kExec) out.Number(!!calls);
    out.End();
  }, TraceFile::Keep::kWhileNew);
  if (!told) g_process.file.NoteLostEnd();
  return told ? ticks : 0;
}

// 0: not known.
long PeakKbOfStatus() {
  // For a thread that has ended there is no such line.
  const long peak = ReadOwnProc("status", [](const char* path) {
    char status[4096];
    const long bytes = ReadFile(path, status, sizeof(status));
    uint64_t kb = 0;
    StatusKb({status, bytes > 0 ? static_cast<size_t>(bytes) : 0}, "VmHWM:", &kb);
    return static_cast<long>(kb);
  });
  return peak > 0 ? peak : 0;
}

// Whether the thread `tid` is another than the one that `state` was of: that one has ended, and the
// kernel has given its number out again. Each thread has the larger serial than those before it,
// and its handlers' states have larger ones than its own.
bool IsOfLaterThread(int tid, const ThreadState& state) {
  bool later = false;
  ForEachThread([&](const ThreadState& other) {
    later |= other.owner_tid.load(std::memory_order_relaxed) == tid && other.handlers_of == 0 &&
             other.serial > state.serial;
  });
  return later;
}

// Writes what a reader wants of the end: the memory map, usage, thread names, counters, kEnd.
// `current`: of the section that the caller has open; null: it has none. Returns as
// WriteLastRecords().
uint64_t WriteEnd(ThreadState* current, const SignalsBlocked& calls, format::EndReason reason,
                  int status) {
  rusage usage = UsageBeforeFilter();
  if (calls) {
    const OwnFaultsScope faults;  // that are counted before the counters are written
    if (current != nullptr) SampleUsageWithin(*current, calls);
    WriteMemoryMap(format::MapReason::kEnd);
    TakePageSnapshot(format::SnapshotReason::kEnd);
    if (current != nullptr) current->events_to_stamp = 1;  // what follows is later
    DrainFaults(DrainWhen::kAtEnd);
    sys::Getrusage(RUSAGE_SELF, &usage);
    if (OwnPeakKb(usage.ru_maxrss) == 0) usage.ru_maxrss = PeakKbOfStatus();
    WriteThreadNames();
  }
  const OwnFaultsScope faults;
  WritePrivateRings(current);
  WriteCrossCheckCounters();
  return WriteLastRecords(reason, status, usage, calls);
}

// The same of a trace that is full. For that there is room (TraceReserve::kLastWordsBytes, and
// beyond MEMTRACE_MAX_BYTES).
uint64_t WriteEndOfFullTrace(const SignalsBlocked& calls, format::EndReason reason, int status) {
  rusage usage = UsageBeforeFilter();
  if (calls) {
    sys::Getrusage(RUSAGE_SELF, &usage);
  } else if (g_switch.ended.load(std::memory_order_relaxed) == 0) {
    return 0;  // a fork child, whose switch the kernel has wiped
  }
  return WriteLastRecords(reason, status, usage, calls);
}

// Handlers jumped out of all the states that this thread has, where it could not be proven
// (nested_section.h): no section is to be had. The process ends no less.
bool HasNoStateLeft() {
  return t_slot.mode == ThreadMode::kInside &&
         g_switch.recording.load(std::memory_order_relaxed) != 0;
}

// The recording ended for want of room.
bool IsTraceFull() {
  const format::RecordingStop why = g_process.file.last_stop();
  return g_process.mode.load(std::memory_order_acquire) == Mode::kOff &&
         (why == format::RecordingStop::kMaxBytes || why == format::RecordingStop::kReserveUsedUp);
}

}  // namespace

void WriteThreadNames() {
  const Text<32> process = OwnProcDirectory();
  ForEachThread([&process](ThreadState& state) {
    Text<64> path;
    const int tid = state.owner_tid.load(std::memory_order_relaxed);
    path << process.view() << "/task/" << tid << "/comm";
    char name[16];
    long bytes = ReadFile(path.c_str(), name, sizeof(name));
    if (bytes > 0 && name[bytes - 1] == '\n') --bytes;
    if (bytes <= 0) return;
    if (static_cast<size_t>(bytes) == strnlen(state.name, sizeof(state.name)) &&
        memcmp(name, state.name, static_cast<size_t>(bytes)) == 0) {
      return;
    }
    // Without a serial it is about to become a thread's, which tells its name itself.
    if (state.serial == 0 || IsOfLaterThread(tid, state)) return;
    AppendRecords<64>([&](format::RecordEncoder& out) {
      out.Begin(format::RecordTag::kThread);
      out.Number(state.serial);
      out.Number(static_cast<uint64_t>(tid));
      out.Number(0);
      out.Bytes({name, static_cast<size_t>(bytes)});
      out.End();
    }, TraceFile::Keep::kWhileNew);
  });
}

uint64_t NoteEnd(format::EndReason reason, int status) {
  const Section section;
  const bool recorded = section || HasNoStateLeft();
  if (!recorded && !IsTraceFull()) return 0;
  const SignalsBlocked calls;
  if (calls && IsVforkChild()) return 0;
  if (section) return WriteEnd(&section.state(), calls, reason, status);
  const OwnCalls own;
  if (recorded) return WriteEnd(nullptr, calls, reason, status);
  return WriteEndOfFullTrace(calls, reason, status);
}

void NoteExecFailed(uint64_t end_ticks) {
  const Section section;
  if (!section && !HasNoStateLeft() && !IsTraceFull()) return;
  const SignalsBlocked calls;
  const OwnCalls own;
  AppendRecords<64>([end_ticks](format::RecordEncoder& out) {
    out.Begin(format::RecordTag::kExecFailed);
    out.Number(end_ticks);
    out.End();
  }, TraceFile::Keep::kWhileNew);
}

}  // namespace memtrace
