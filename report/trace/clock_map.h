// ClockMap: ticks of the event clock -> nanoseconds since the process started.
//
// Every block header, and some records, hold both clocks read together. Between
// two such pairs time runs linearly; before the first and after the last at the
// mean pace of the whole trace. Pairs closer than 10 ms tell the pace badly (a
// thread may be preempted between its two reads) and are left out.
//
// Rings have such pairs too, but no checksum. A pair of theirs is believed where a clock that
// runs between half and twice as fast as the guarded ones say would show it, give or take a second.
//
// Filled first, then built, then constant.

#ifndef MEMTRACE_REPORT_TRACE_CLOCK_MAP_H_
#define MEMTRACE_REPORT_TRACE_CLOCK_MAP_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace memtrace::report {

// The first and the last of the pairs that checksums guard, and what they say of others.
class ClockBounds {
 public:
  void Add(uint64_t ticks, uint64_t monotonic_ns);
  // May both clocks have stood so? `ticks_per_second`, 0 not known, tells the pace
  // where two pairs do not.
  bool Allows(uint64_t ticks, uint64_t monotonic_ns, uint64_t ticks_per_second) const;

 private:
  uint64_t first_ticks_ = UINT64_MAX, first_ns_ = 0;
  uint64_t last_ticks_ = 0, last_ns_ = 0;
};

class ClockMap {
 public:
  void Add(uint64_t ticks, uint64_t monotonic_ns);
  // One that no checksum guards.
  void AddUnguarded(uint64_t ticks, uint64_t monotonic_ns);

  // `ticks_per_second` is used where there are no two pairs; 0: not known.
  // Time 0 is `start_ns` on CLOCK_MONOTONIC; 0: not known, then the first pair is.
  void Build(uint64_t start_ns, uint64_t ticks_per_second);

  // Never decreases; 0 before the start.
  uint64_t ToNs(uint64_t ticks) const;

  // The same, for a caller whose ticks mostly lie near the ones before.
  uint64_t ToNs(uint64_t ticks, size_t* hint) const;

  // The latest moment that both clocks were read, as ToNs() gives it.
  uint64_t LastNs() const { return ToNs(points_.back().ticks); }

  size_t pairs() const { return points_.size(); }

 private:
  struct Point {
    uint64_t ticks;
    uint64_t ns;         // CLOCK_MONOTONIC
    double ns_per_tick;  // from here to the next point
  };

  uint64_t At(size_t point, uint64_t ticks) const;

  std::vector<Point> unguarded_;  // until built
  std::vector<Point> points_;  // ascending in both; never empty once built
  uint64_t start_ns_ = 0;
  double mean_ = 1.0;          // ns a tick
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_TRACE_CLOCK_MAP_H_
