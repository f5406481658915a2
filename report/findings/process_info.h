// What the records of a trace say of its process: who it was, how it ended, its modules.
//
// Plain values. Times are nanoseconds since the start of the traced process, sizes are bytes.

#ifndef MEMTRACE_REPORT_FINDINGS_PROCESS_INFO_H_
#define MEMTRACE_REPORT_FINDINGS_PROCESS_INFO_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "format/event_words.h"
#include "format/records.h"
#include "format/trace_format.h"
#include "report/base/page.h"
#include "report/base/strong_id.h"
#include "report/pressure/pressure_lane.h"

namespace memtrace::report {

struct ProcessInfo {
  uint32_t pid = 0;
  uint32_t ppid = 0;
  std::vector<std::string> command;
  std::string executable;
  std::string build_id;  // hexadecimal
  std::string library_version;
  std::string kernel;
  std::string host;
  std::string working_directory;
  int64_t start_realtime_ns = 0;  // 0 to 2^62; see start_known()
  // From the start to the last time in the trace; of one that is at work until this was opened.
  uint64_t duration_ns = 0;
  uint64_t last_event_ns = 0;
  // The part of duration_ns that is memtrace's own: at the exit it scanned memory
  // and looked at pages.
  uint64_t exit_work_ns = 0;
  // When that began behind all that the program did; UINT64_MAX: it was not so.
  uint64_t exit_work_begin_ns = UINT64_MAX;
  // Whether that is so much of the run that reports tell it; memtrace diff does not count it.
  bool has_exit_work() const {
    return exit_work_ns >= std::max<uint64_t>(1'000'000, duration_ns / 20);
  }
  uint64_t own_duration_ns() const { return duration_ns - std::min(duration_ns, exit_work_ns); }
  // It may be nothing but the work that fills the heap: of its end nothing is known.
  bool is_short_run() const { return own_duration_ns() < 2'000'000'000; }
  enum class End { kCut, kExit, kExec, kSignal } end = End::kCut;  // kCut: no kEnd record
  bool at_work = false;      // kCut: it had not ended when its trace was opened
  int exit_status = 0;       // kExit
  bool exit_at_once = false; // kExit by _exit() or quick_exit(): no destructors were run
  // kExit that `memtrace run` saw and the library did not: mostly a raw exit_group, as Go's runtime
  // makes. Where events are missing the end may be, too.
  bool exit_unseen = false;
  int end_signal = 0;        // kSignal, where `memtrace run` saw it
  KillInfo kill;             // of a SIGKILL: whether the OOM killer sent it
  bool forked = false;       // a fork child: its parent's blocks were live at the start
  format::AllocatorKind allocator = format::AllocatorKind::kUnknown;
  // False: the trace does not say whose it is. The process was killed before it had written that,
  // or the record is damaged. Of what stands above, only the pid is known.
  bool has_record = true;
  // Made of another tool's log (memtrace import), which has no start by the wall clock.
  bool imported() const { return has_record && start_realtime_ns == 0; }
  bool start_known() const { return start_realtime_ns != 0; }
  // Whether it is known what blocks take beyond what was asked for. The library does not look it up
  // for other allocators than glibc's; an imported log says it.
  bool waste_is_known() const { return imported() || allocator != format::AllocatorKind::kOther; }
  format::StackMode stack_mode = format::StackMode::kAll;
  uint64_t sample_bytes = 0;  // above 0, all sizes and counts of the heap are estimates
  format::ClockKind clock = format::ClockKind::kTsc;
  format::StampRule stamp_rule = format::StampRule::kUnknown;
  uint64_t page_bytes = kPageBytes;
  // These tell the process and its parent from others that had the same pids; 0: not known.
  uint64_t boot_ticks = 0;         // start, in clock ticks since boot: the same after an exec
  uint64_t parent_boot_ticks = 0;
  uint64_t pid_namespace = 0;
};

struct ModuleInfo {
  ModuleId id;
  uint32_t flags = 0;  // format::ModuleFlags
  uint64_t start = 0, end = 0, bias = 0;
  std::string path;
  std::string build_id;  // raw bytes
  uint64_t load_time_ns = 0;
  uint64_t unload_time_ns = 0;  // 0: still loaded at the end
  // The module's thread-local variables: where they begin below the thread pointer of each thread,
  // and their size. 0: there are none, or they are not at the same place in each thread.
  uint64_t below_thread_pointer = 0, thread_local_bytes = 0;
};

// The build-id of the executable, hexadecimal: from the process record, or else that of its module;
// empty: neither has one.
std::string ProcessBuildId(const ProcessInfo& process, const std::vector<ModuleInfo>& modules);

// A stack that libunwind did not confirm (MEMTRACE_CROSS_CHECK): the first few of each
// result. Both stacks innermost first; they are the same up to `first_different`.
struct CheckedStack {
  struct Frame {
    uint64_t pc = 0;        // as in StackNode
    uint32_t instance = 0;
    uint64_t sp = 0;        // libunwind's only
    bool guessed = false;   // libunwind's only: found by the frame pointer
  };
  format::CrossCheckResult result = format::CrossCheckResult::kDifferent;
  format::CrossCheckLayer layer = format::CrossCheckLayer::kMemo;
  ThreadId thread;
  uint64_t time_ns = 0;
  uint64_t pc = 0, sp = 0;    // the return address of the interposed function, and its CFA
  uint64_t first_different = 0;
  format::StackMarker marker = format::StackMarker::kNone;
  format::CrossCheckEnd end = format::CrossCheckEnd::kFirstFrame;
  uint64_t error = 0;         // libunwind's
  uint64_t our_frames = 0, their_frames = 0;  // in all; the trace has the inner ones
  std::vector<Frame> ours, theirs;
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_FINDINGS_PROCESS_INFO_H_
