// Analysis: everything that a pass over a trace finds out, before symbols.
//
// The analyzer fills it, the renderers read it; neither knows the other. Times
// are nanoseconds since the start of the traced process, sizes are bytes.

#ifndef MEMTRACE_REPORT_FINDINGS_ANALYSIS_H_
#define MEMTRACE_REPORT_FINDINGS_ANALYSIS_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "report/findings/fault_details.h"
#include "report/findings/growth.h"
#include "report/findings/heap_figures.h"
#include "report/findings/invalid_free.h"
#include "report/findings/leaks.h"
#include "report/findings/over_time.h"
#include "report/findings/process_info.h"
#include "report/findings/range.h"
#include "report/findings/rss_bridge.h"
#include "report/findings/site.h"
#include "report/findings/usage.h"
#include "report/pressure/pressure_lane.h"

namespace memtrace::report {

// An allocator whose blocks are not in the trace, or not all: see unseen_allocators.h.
struct UnseenAllocator {
  enum class Way {
    kComesFirst,  // its malloc is found before ours: nothing of it is recorded
    kHidden,      // it is inside a module that does not export it
    kOwnNames,    // what other modules get, or free, by its own functions
  };
  std::string module;
  std::string allocator;  // "jemalloc"; empty: not known
  Way way = Way::kComesFirst;
};

// A sentence of what the trace lacks, or of what else there is to know of it.
struct CoverageNote {
  std::string text;
  std::string without_times = {};  // the text without the times in it; empty: it tells none
  bool harmless = false;           // nothing is missing because of what it says
  bool of_lists = false;           // it is of what a report lists: a verdict has no such list
  bool of_evidence = false;        // a verdict tells it as evidence that is missing

  // As it is told of several traces together: in times alone those of workers that did the same
  // differ.
  const std::string& of_many() const { return without_times.empty() ? text : without_times; }
};

// Memory scans that the library could not write.
struct LostScans {
  uint32_t first = 0, last = 0;  // their numbers, or those of some in between; 0: there are none
  std::string why;               // of the last, and what helps: a phrase
};

// Children by fork() that could not create a trace: what they did is in none.
struct UntracedChildren {
  uint64_t count = 0;
  std::string why;  // of the last, and what helps: a phrase
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
  bool interrupted = false;        // the reading was: `range` ends where it did among the events
  double read_share = 1;           // of the events, when it was
  bool truncated = false;          // damage or a cut: `damage` says where
  // Events that happened are not in the trace, or cannot be read (dropped_events and lost_blocks
  // among them): what looks freed or leaked may be neither.
  bool events_missing = false;
  std::string damage;
  LostScans lost_scans;
  // The process ended in order, and that could not be written: why, and what helps. Empty: it was.
  std::string lost_end;
  UntracedChildren untraced_children;
  std::vector<CoverageNote> notes;
  std::vector<UnseenAllocator> unseen_allocators;
  // The program, or a library, has an operator delete that all call in place of the C++ runtime's:
  // what that ends is its own affair.
  bool own_operator_delete = false;
  bool pymalloc = false;  // a CPython gave out objects of arenas: see kPymallocHides
  uint64_t modules_not_examined = 0;  // for that: the file is not here, or another one
  std::vector<std::pair<std::string, uint64_t>> counters;  // kCounter records
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
  // Whose code mapped kLargeMmapBytes or more of private memory of no file at once, whatever the
  // range, up to its end. ModuleId{}: that of nobody who is known, or what the process had of such
  // memory when its recording began is not.
  std::vector<ModuleId> large_mappers;
  // Whose code mapped as much of it as an arena of CPython's pymalloc, as far as that is known.
  std::vector<ModuleId> arena_mappers;
  std::vector<ModuleInfo> modules;
  SizeHistogram sizes;
  std::vector<LiveBlock> live;          // by address; see LiveBlock
  std::vector<CheckedStack> checked_stacks;
  std::vector<Pool> pools;              // in order of first creation
  std::vector<Phase> phases;            // of the first 10,000 names of the run
  uint64_t phases_left_out = 0;         // begins of others
  std::vector<Mark> marks;              // the first 10,000
  uint64_t marks_left_out = 0;
  std::vector<NamedMarks> named_marks;  // of the first 10,000 names, also those not in `marks`
  uint64_t named_marks_left_out = 0;    // marks of others
  std::vector<LeakScan> leak_scans;     // in order; empty: nothing is known of what is reachable

  // Sites are judged by the run from `range.from_ns` to here. While memtrace was at work at the
  // exit the program was not: no silence of it.
  uint64_t judged_until_ns() const {
    const uint64_t end = std::min({process.duration_ns, process.exit_work_begin_ns, range.to_ns});
    return std::max(end, range.from_ns);
  }
  // Whether blocks were chosen otherwise than by the time: the figures of the heap are of these
  // alone, while what the kernel counts is of the whole process.
  bool of_some_blocks() const { return some_threads || !selection.all(); }
  // Whether page faults were counted. The log that a trace was imported from has none, though the
  // trace has an end.
  bool faults_known() const { return faults.counted && !process.imported(); }
  // Whether the run is too short to show that something grows without end.
  bool too_short_for_growth() const {
    return judged_until_ns() - range.from_ns < kLeastGrowthRunNs;
  }
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_FINDINGS_ANALYSIS_H_
