// Analysis: everything that a pass over a trace finds out, before symbols.
//
// The analyzer fills it, the renderers read it; neither knows the other. Times
// are nanoseconds since the start of the traced process, sizes are bytes.

#ifndef MEMTRACE_REPORT_ANALYSIS_ANALYSIS_H_
#define MEMTRACE_REPORT_ANALYSIS_ANALYSIS_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "format/event_words.h"
#include "format/records.h"
#include "format/trace_format.h"
#include "report/base/on_demand.h"
#include "report/base/strong_id.h"
#include "report/faults/fault_details.h"
#include "report/faults/rss_bridge.h"
#include "report/growth/growth.h"
#include "report/growth/lifetime_histogram.h"
#include "report/growth/site_series.h"
#include "report/leak/leaks.h"
#include "report/model/sampling.h"
#include "report/pressure/pressure_lane.h"
#include "report/usage/held_series.h"
#include "report/usage/invalid_free.h"
#include "report/usage/usage.h"

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
  int64_t start_realtime_ns = 0;  // 0 to 2^62; see imported()
  uint64_t duration_ns = 0;  // from the start to the last time in the trace
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
  enum class End { kCut, kExit, kExec, kSignal } end = End::kCut;  // kCut: no kEnd record
  int exit_status = 0;       // kExit
  bool exit_at_once = false; // kExit by _exit() or quick_exit(): no destructors were run
  int end_signal = 0;        // kSignal, where `memtrace run` saw it
  KillInfo kill;             // of a SIGKILL: whether the OOM killer sent it
  bool forked = false;       // a fork child: its parent's blocks were live at the start
  format::AllocatorKind allocator = format::AllocatorKind::kUnknown;
  // Made of another tool's log (memtrace import), which has no start by the wall clock.
  bool imported() const { return start_realtime_ns == 0; }
  // Whether it is known what blocks take beyond what was asked for. The library does not look it up
  // for other allocators than glibc's; an imported log says it.
  bool waste_is_known() const { return imported() || allocator != format::AllocatorKind::kOther; }
  format::StackMode stack_mode = format::StackMode::kAll;
  uint64_t sample_bytes = 0;  // above 0, all sizes and counts of the heap are estimates
  format::ClockKind clock = format::ClockKind::kTsc;
  format::StampRule stamp_rule = format::StampRule::kUnknown;
  uint64_t page_bytes = 4096;
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

// An allocator whose blocks are not in the trace, or not all: see unseen_allocators.h.
struct UnseenAllocator {
  enum class Way {
    kComesFirst,  // its malloc is found before ours: nothing of it is recorded
    kHidden,      // it is inside a module that does not export it
    kOwnNames,    // what other modules get by its own functions
  };
  std::string module;
  std::string allocator;  // "jemalloc"; empty: not known
  Way way = Way::kComesFirst;
};

// What the trace does and does not contain.
struct Coverage {
  uint64_t events = 0;             // allocation events: alloc, realloc, free
  uint64_t dropped_events = 0;     // the library could not write them
  uint64_t recovered_events = 0;   // read from a ring of a process without an end
  uint64_t unordered_events = 0;   // their order across threads could not be decided
  uint64_t marked_stacks = 0;      // allocations whose stack ends in a marker
  uint64_t inherited_frees = 0;    // frees of blocks that the parent process allocated
  uint64_t unknown_frees = 0;      // frees of blocks whose allocation the trace does not have
  uint64_t unseen_frees = 0;       // blocks whose address was allocated again without a free
  uint64_t window_begin_ns = 0;    // a flight recorder's: nothing is known from before; 0: all is
  uint64_t lost_blocks = 0;        // of the file: damaged, or absent though later ones are there
  uint64_t cross_checked = 0;      // stacks that were compared with libunwind's
  uint64_t cross_check_differences = 0;
  uint64_t tool_memory_bytes = 0;
  uint64_t tool_minor_faults = 0;
  // The program stopped the recording (memtrace_stop): so often, and so long together. Blocks of
  // that time are known and in no figure.
  uint64_t stops = 0, stopped_ns = 0, stopped_allocations = 0, stopped_frees = 0;
  // The recording ended before the process did: nothing is known of what came
  // later. A note says why.
  std::optional<uint64_t> recording_end_ns;
  uint64_t live_until_ns = 0;      // not 0: the process was at work then, when its trace was opened
  bool interrupted = false;        // the reading was: `range` ends where it did
  double read_share = 1;           // of the events, when it was
  bool truncated = false;          // damage or a cut: `damage` says where
  // Events that happened are not in the trace, or cannot be read: what looks freed or
  // leaked may be neither.
  bool events_missing = false;
  std::string damage;
  std::vector<std::string> notes;
  uint64_t harmless_notes = 0;  // as many of them say of what is not missing
  // Those of them that tell times, each with how it reads without: see NoteOfMany().
  std::vector<std::pair<std::string, std::string>> timed_notes;
  std::vector<UnseenAllocator> unseen_allocators;
  // The program, or a library, has an operator delete that all call in place of the C++ runtime's:
  // what that ends is its own affair.
  bool own_operator_delete = false;
  uint64_t modules_not_examined = 0;  // for that: the file is not here, or another one
  std::vector<std::pair<std::string, uint64_t>> counters;  // kCounter records
};

struct Totals {
  uint64_t allocations = 0;  // a successful realloc counts as one allocation and one free
  uint64_t frees = 0;
  uint64_t bytes_allocated = 0;
  uint64_t live_bytes = 0;   // at the end (of the range)
  uint64_t live_blocks = 0;
  uint64_t peak_live_bytes = 0;
  uint64_t peak_live_blocks = 0;  // live blocks at the instant of peak_live_bytes
  uint64_t peak_time_ns = 0;
  uint64_t wasted_bytes = 0;      // usable minus requested, over all allocations
  uint64_t temporary_allocations = 0;
  uint64_t reallocations = 0;
  uint64_t failed_allocations = 0;
  uint64_t earlier_frees = 0;     // in the range, of blocks from before it
  SampledSum bytes_sample, live_sample;  // as in Site
};

// A distinct allocating stack together with the function that was called.
struct Site {
  StackId stack;
  format::AllocFunction function = format::AllocFunction::kMalloc;
  uint64_t allocations = 0;
  uint64_t frees = 0;
  uint64_t bytes_allocated = 0;
  uint64_t live_bytes = 0;
  uint64_t live_blocks = 0;
  uint64_t peak_bytes = 0;          // the most this site ever held
  uint64_t blocks_at_own_peak = 0;  // when it held peak_bytes for the first time
  uint64_t bytes_at_peak = 0;       // held at the peak of the whole program
  uint64_t blocks_at_peak = 0;
  uint64_t wasted_bytes = 0;        // over all allocations
  uint64_t live_wasted_bytes = 0;   // of the live blocks; at most 65535 of each
  uint64_t temporary = 0;
  uint64_t freed_by_other_thread = 0;
  uint64_t largest_bytes = 0;
  uint64_t first_time_ns = 0;       // of any allocation here
  uint64_t last_time_ns = 0;
  uint64_t live_first_time_ns = 0;  // of the blocks that are live at the end
  uint64_t live_last_time_ns = 0;
  double freed_lifetime_ns = 0;     // from allocation to free, over all blocks that were freed
  double live_time_sum_ns = 0;      // of the allocations of those that are live at the end
  Growth growth;
  SiteLifetimes lifetimes;          // of the blocks that were freed; of a sample not weighted
  SiteSizes sizes;                  // its allocations by size; of a sample not weighted
  OnDemand<SiteMoves> moves;
  SeriesPoints series;  // in order; intervals in which nothing changed are left out
  // Where the trace is of a sample (ProcessInfo::sample_bytes): the sums behind bytes_allocated and
  // live_bytes, for the intervals of confidence.
  OnDemand<SampledSum> bytes_sample, live_sample;
};

struct ThreadSummary {
  ThreadId id;
  uint32_t tid = 0;
  // Whether this is the stream of the thread's signal handlers that interrupted the tracer.
  bool in_signal_handlers = false;
  std::string name;
  uint64_t allocations = 0, frees = 0, bytes_allocated = 0;
  uint64_t live_bytes = 0;  // allocated by this thread and live at the end
  uint64_t live_blocks = 0;
  uint64_t temporary = 0;
  uint64_t first_time_ns = 0, last_time_ns = 0;
  HeldSeries held;  // live bytes at the end of each interval of the series, and now
};

struct TimelinePoint {
  uint64_t time_ns = 0;        // end of the interval
  uint64_t live_bytes = 0, live_blocks = 0;  // at its end
  uint64_t usable_bytes = 0;    // of these blocks: live bytes and what they waste
  uint64_t max_live_bytes = 0;  // within it
  uint64_t allocations = 0, frees = 0, bytes_allocated = 0;  // within it
  uint64_t rss_bytes = 0;      // last known, 0 never known
  uint64_t minor_faults = 0, major_faults = 0;  // within it, the tracer's own taken off
};

struct UsageSample {
  uint64_t time_ns = 0;
  uint64_t minor_faults = 0, major_faults = 0;  // cumulative, the tracer's own included
  uint64_t tool_minor_faults = 0;               // cumulative
  uint64_t rss_bytes = 0;       // last known, 0 never known: not every sample asks for it
  uint64_t peak_rss_bytes = 0;
  uint64_t live_bytes = 0, bytes_allocated = 0;  // of the heap at that time

  uint64_t program_minor_faults() const {
    return minor_faults - std::min(tool_minor_faults, minor_faults);
  }
};

struct Faults {
  uint64_t minor = 0, major = 0;  // of the process in the range, the tracer's own taken off
  uint64_t tool_minor = 0;
  uint64_t peak_rss_bytes = 0;
  double correlation_live = 0;       // Pearson, of increments between samples: live bytes and
  double correlation_allocated = 0;  //   minor faults; bytes allocated and minor faults
  bool correlation_known = false;    // fewer than 3 samples, or no variance
  bool counted = true;  // false: the trace has no sample and no end, which would have them
  std::vector<UsageSample> samples;  // thinned to a few thousand
};

// Memory the program or its allocator got from the kernel, by stack.
struct MappingSite {
  enum class Kind { kMmap, kBrk, kShm, kHeapGrowth, kArenaGrowth, kMappedBlock };
  Kind kind = Kind::kMmap;
  StackId stack;
  std::string file;  // kMmap of a file
  uint64_t calls = 0;
  uint64_t bytes = 0;       // over all calls
  uint64_t live_bytes = 0;  // still mapped at the end
};

// What the trace explains of the memory map at the end.
struct MemoryMapSummary {
  bool known = false;
  uint64_t heap_bytes = 0;               // [heap] at the end
  uint64_t heap_at_start_bytes = 0;
  uint64_t heap_growth_seen_bytes = 0;   // by kHeapGrowth and kBrk
  uint64_t anonymous_bytes = 0;          // private writable anonymous mappings at the end
  uint64_t anonymous_at_start_bytes = 0;
  uint64_t mapped_blocks_bytes = 0;      // live blocks with a mapping of their own
  uint64_t arena_bytes = 0;              // heaps of other arenas
  uint64_t thread_stack_bytes = 0;
  uint64_t program_mmap_bytes = 0;       // the program's own anonymous mmaps, private and writable
  uint64_t program_other_mmap_bytes = 0;  // and those that are not, in none of these
  uint64_t program_mmap_at_start_bytes = 0;  // of the one that began the recording
  uint64_t tool_bytes = 0;
  int64_t unexplained_bytes = 0;         // growth in the map that no event explains
};

inline constexpr size_t kSizeClasses = 64;  // class k: sizes in [2^(k-1), 2^k), class 0: size 0
struct SizeHistogram {
  std::array<uint64_t, kSizeClasses> allocations{};
  std::array<uint64_t, kSizeClasses> bytes{};
  std::array<uint64_t, kSizeClasses> live_blocks{};
  std::array<uint64_t, kSizeClasses> live_bytes{};
};
// The sizes of a class; both belong to it.
constexpr uint64_t SmallestOfClass(size_t size_class) {
  return size_class == 0 ? 0 : uint64_t{1} << (size_class - 1);
}
constexpr uint64_t LargestOfClass(size_t size_class) { return (uint64_t{1} << size_class) - 1; }

// A block that is live at the end (of the range). Kept only when asked for
// (AnalyzeOptions::keep_live_blocks): there may be millions.
struct LiveBlock {
  uint64_t address = 0;
  uint64_t bytes = 0;
  StackId stack;
  format::AllocFunction function = format::AllocFunction::kMalloc;
  uint64_t time_ns = 0;
  // Never a leak, and as good as a root: memtrace_ignore_object(), memtrace_disable(); or
  // allocated while the recording was stopped, so that nothing is known of it.
  bool ignored = false;
  // Custom blocks lie in it: of a pool, or told by memtrace_block_alloc(). They take its place
  // in the graph of pointers, as in memcheck's.
  bool holds_blocks = false;
  uint32_t pool = 0;  // of a custom block: index in Analysis::pools plus 1; 0 of no pool
};

// The pools (memtrace_pool_create) that have one name and one creating stack, together. Their
// blocks are those of sites whose function is kPoolAlloc.
struct Pool {
  std::string name;
  StackId stack;              // of their creation; none if that is not in the trace
  uint64_t created = 0, destroyed = 0;
  uint64_t first_created_ns = 0;
  uint64_t allocations = 0, frees = 0;  // of blocks; frees with those of destroyed pools
  uint64_t bytes_allocated = 0;
  uint64_t live_bytes = 0, live_blocks = 0;  // at the end (of the range)
  uint64_t peak_bytes = 0;    // the most they ever held together
};

// All stretches of the run that the program gave one name (memtrace_phase_begin and _end), in
// the order of their first begin. They may nest and overlap; what happens in one is
// counted of all threads.
struct Phase {
  struct Instant {
    uint64_t time_ns = 0;
    uint64_t live_bytes = 0, live_blocks = 0;
    uint64_t allocations = 0, frees = 0, bytes_allocated = 0;  // since the start
    uint64_t minor_faults = 0, major_faults = 0;  // likewise, as last sampled; not the tracer's
  };
  std::string name;
  uint64_t times = 0;        // that it has begun
  uint64_t open = 0;         // of these, not ended: `last_end` is the end of the run then
  uint64_t total_ns = 0;     // the following of all its times together
  uint64_t allocations = 0, frees = 0, bytes_allocated = 0;
  uint64_t minor_faults = 0, major_faults = 0;
  int64_t growth_bytes = 0, growth_blocks = 0;  // live at the end minus at the begin
  int64_t largest_growth_bytes = 0;             // of one time
  Instant first_begin, first_end, last_begin, last_end;
};

struct Mark {  // memtrace_mark()
  std::string name;
  uint64_t time_ns = 0;
  uint64_t live_bytes = 0, live_blocks = 0;
};

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

struct Range {
  uint64_t from_ns = 0;
  uint64_t to_ns = UINT64_MAX;
  bool whole() const { return from_ns == 0 && to_ns == UINT64_MAX; }
};

struct Analysis {
  std::string file;  // as named by the user
  Range range;
  BlockSelection selection;
  bool some_threads = false;  // of what these allocated only
  std::string only_thread;    // their name or tid, as it was asked for; empty: all
  ProcessInfo process;
  Coverage coverage;
  Totals totals;
  Faults faults;
  FaultDetails fault_details;
  ResidentMemory resident;
  MemoryMapSummary memory_map;
  PressureLane pressure;                // as `memtrace run` saw the program from outside
  uint64_t timeline_interval_ns = 0;
  uint64_t series_interval_ns = 0;      // of Site::series; the first begins where the range does
  uint64_t shutdown_ns = UINT64_MAX;    // from here on the program only gave back; none: it did not
  std::vector<TimelinePoint> timeline;  // a few hundred
  std::vector<Site> sites;              // no particular order
  std::vector<ThreadSummary> threads;
  uint32_t held_intervals = 0;              // of ThreadSummary::held
  std::vector<ThreadExchange> exchanges;    // most blocks first
  ExchangeSum exchanges_left_out;           // by more pairs of threads than are told apart
  std::vector<BlockEnds> block_ends;        // most first; of sites of a selection alone
  uint64_t frees_with_stack = 0;  // MEMTRACE_FREE_STACKS; 0: block_ends has reallocs alone
  InvalidFrees invalid_frees;               // of Coverage::unknown_frees; of the whole run alone
  std::vector<MappingSite> mappings;
  std::vector<ModuleInfo> modules;
  SizeHistogram sizes;
  std::vector<LiveBlock> live;          // by address; see LiveBlock
  std::vector<CheckedStack> checked_stacks;
  std::vector<Pool> pools;              // in order of first creation
  std::vector<Phase> phases;
  std::vector<Mark> marks;              // the first thousand
  std::vector<LeakScan> leak_scans;     // in order; empty: nothing is known of what is reachable

  // Sites are judged by the run from `range.from_ns` to here. While memtrace was at work at the
  // exit the program was not: no silence of it.
  uint64_t judged_until_ns() const {
    const uint64_t end = std::min({process.duration_ns, process.exit_work_begin_ns, range.to_ns});
    return std::max(end, range.from_ns);
  }
  // Whether the run is too short to show that something grows without end.
  bool too_short_for_growth() const {
    return judged_until_ns() - range.from_ns < kLeastGrowthRunNs;
  }
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_ANALYSIS_ANALYSIS_H_
