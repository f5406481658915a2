// What changed in the course of a run: points of the timeline, samples of what the kernel counts,
// and what the program named.
//
// Plain values. Times are nanoseconds since the start of the traced process, sizes are bytes.

#ifndef MEMTRACE_REPORT_FINDINGS_OVER_TIME_H_
#define MEMTRACE_REPORT_FINDINGS_OVER_TIME_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace memtrace::report {

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
  bool correlation_known = false;    // fewer than 3 samples, no variance, or of some blocks
  bool counted = true;  // false: the trace has no sample and no end, which would have them
  std::vector<UsageSample> samples;  // thinned to a few thousand
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

// All marks of one name, however many there are.
struct NamedMarks {
  struct Instant {
    uint64_t time_ns = 0;
    uint64_t live_bytes = 0;
  };
  std::string name;
  uint64_t times = 0;
  Instant first, last;
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_FINDINGS_OVER_TIME_H_
