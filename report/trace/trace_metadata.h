// TraceMetadata: what the records of a trace say (format/records.h), collected
// from all its kMetadata blocks. Times are ticks here: they can be converted only
// once every clock pair of the trace is known.
//
// A text longer than any that a kernel or a loader gives is cut, and ends in "...".

#ifndef MEMTRACE_REPORT_TRACE_TRACE_METADATA_H_
#define MEMTRACE_REPORT_TRACE_TRACE_METADATA_H_

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "format/records.h"
#include "format/trace_format.h"
#include "report/findings/process_info.h"
#include "report/pressure/pressure_lane.h"
#include "report/trace/clock_map.h"
#include "report/trace/exec_attempts.h"

namespace memtrace::report {

struct ModuleRecord {
  ModuleInfo info;  // without times
  uint64_t load_ticks = 0;
  uint64_t unload_ticks = 0;  // 0: never
};

struct ThreadRecord {
  uint32_t tid = 0;
  uint64_t first_ticks = 0;
  uint32_t handlers_of = 0;         // these are events of signal handlers of that thread
  std::string name;                 // the last
  std::vector<std::string> names;   // every one it had, as records tell
};

struct MapRecord {
  uint64_t ticks = 0;
  std::string text;          // of /proc/self/maps
  uint64_t tool_bytes = 0;   // private memory in it that is the tracer's
};

struct EndRecord {
  format::EndReason reason = format::EndReason::kExit;
  int exit_status = 0;
  uint64_t ticks = 0;
  uint64_t monotonic_ns = 0;
  uint64_t minor_faults = 0, major_faults = 0, peak_rss_bytes = 0;
  bool doubtful = false;  // a child by vfork() may have written it
  bool failure_is_told = false;  // of an exec: see ExecAttempts
};
EndRecord ReadEndRecord(format::RecordBody& body);

struct ObservedEndRecord {
  format::ObservedEndKind kind = format::ObservedEndKind::kExit;
  int status_or_signal = 0;
  uint64_t realtime_ns = 0;
  uint64_t cpu_ns = 0;
  uint64_t peak_rss_bytes = 0;
  bool core_dumped = false;
};

struct ConfinementRecord {
  uint32_t what = 0;  // format::Confinement
  uint64_t ticks = 0;
  std::string call;
  uint64_t reserve_begin = 0, reserve_end = 0;  // offsets in the raw file
};

struct StopRecord {
  uint32_t why = 0;  // format::RecordingStop
  uint64_t ticks = 0;
  int error = 0;     // errno
};

// Events that could not be written; from the status area of the raw file.
struct LostEventsRecord {
  uint64_t lost_events = 0;
  uint64_t first_ticks = 0, last_ticks = 0;
  uint32_t why = 0;  // format::RecordingStop
  int error = 0;     // errno
  uint64_t missed_events = 0;
};

// What else could not be written; from the status area, too.
struct LostScansRecord {
  uint32_t first = 0, last = 0;  // numbers of memory scans; 0: none
  uint32_t why = 0;              // format::RecordingStop, of the last
  int error = 0;                 // errno
};
struct LostEndRecord {
  uint32_t why = 0;  // format::RecordingStop; 0: kEnd is not known to be lost
  int error = 0;     // errno
};

// Children by fork() that are in no trace; from the status area.
struct UntracedChildrenRecord {
  uint32_t count = 0;
  int error = 0;  // errno, of the last
};

struct CheckedStackRecord {
  CheckedStack stack;  // without time_ns; libunwind's frames without instances
  uint64_t ticks = 0;
};

struct TraceMetadata {
  static constexpr size_t kLongestArgument = 128 << 10;   // MAX_ARG_STRLEN
  static constexpr size_t kMostNotes = 1000;
  static constexpr size_t kMostCounters = 1000;           // the library has a few dozen

  ProcessInfo process = {.has_record = false};  // what kProcess says of it
  uint64_t start_ticks = 0;
  uint64_t start_monotonic_ns = 0;
  uint64_t ticks_per_second = 0;
  std::vector<ModuleRecord> modules;
  std::map<uint32_t, ThreadRecord> threads;  // by serial
  std::optional<MapRecord> map_at_start;
  std::optional<MapRecord> map_at_end;  // or the last at growth, without one at the end
  bool has_end_map = false;
  std::optional<EndRecord> end;
  ExecAttempts execs;  // those whose failure is told
  std::optional<ObservedEndRecord> observed_end;
  KillInfo kill;
  PressureCollector pressure;
  std::optional<StopRecord> stopped;
  std::vector<ConfinementRecord> confinements;
  LostEventsRecord losses;
  LostScansRecord lost_scans;
  LostEndRecord lost_end;
  UntracedChildrenRecord untraced_children;
  std::optional<uint64_t> seal;  // of the block that was read last
  uint64_t window_ticks = 0;  // of a packed flight recorder; 0: nothing was given up
  std::vector<std::string> notes;  // each once
  uint64_t notes_left_out = 0;  // beyond kMostNotes
  std::vector<CheckedStackRecord> checked_stacks;
  std::vector<std::pair<std::string, uint64_t>> counters;  // the last value of each name
  // Where to find them: a hostile trace has as many as fit.
  absl::flat_hash_map<uint32_t, size_t> module_index;       // instance -> the last in `modules`
  absl::flat_hash_map<uint32_t, uint64_t> early_unloads;    // told before their module; ticks
  absl::flat_hash_map<std::string, size_t> counter_index;   // name -> in `counters`
  absl::flat_hash_set<std::string> known_notes;             // those in `notes`
  uint64_t records = 0;

  // Reads the records of one kMetadata block. False: one of them is malformed; those
  // before it were read. `clock` receives clock pairs.
  bool Read(std::span<const uint8_t> content, ClockMap* clock);

  // The notes, but for those on an RTLD_DEEPBIND of what was loaded before the program began, on
  // which the flag has no effect.
  std::vector<std::string> NotesThatHold() const;

  // Whether `offset` of the raw file is in a reserve: nothing need be written up to its end.
  bool IsReserved(uint64_t offset) const;

  // Takes over what the status block of a raw trace says.
  void Take(const format::StatusArea& area);

  uint64_t counter(std::string_view name) const;  // 0 when there is none
};

std::string HexOf(std::string_view bytes);

// The file of a note on a library that was opened with RTLD_DEEPBIND (format/notes.h). Empty: it is
// another note.
absl::string_view DeepboundFile(absl::string_view note);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_TRACE_TRACE_METADATA_H_
