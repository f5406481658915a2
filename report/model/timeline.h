// Timeline: the heap over time, in a few hundred equal intervals whatever the
// program's run time: when kMaxPoints are full, neighbours are merged and the
// interval doubles.
//
//   Advance(now, model)   before each event; `now` may go back a little and then
//                         counts as the latest time seen
//   Finish(end, ...)      closes the last interval and fills in what the usage
//                         samples tell: resident bytes and faults
//
// It also tells the model when an interval of the sites' series ends: each is
// kPointsPerInterval of its own.
//
// Single-threaded.

#ifndef MEMTRACE_REPORT_MODEL_TIMELINE_H_
#define MEMTRACE_REPORT_MODEL_TIMELINE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "report/findings/over_time.h"
#include "report/model/fault_marks.h"
#include "report/model/heap_model.h"

namespace memtrace::report {

struct Analysis;

class Timeline {
 public:
  static constexpr size_t kMaxPoints = 1024;
  static constexpr size_t kPointsPerInterval = kMaxPoints / SiteSeries::kMostIntervals;
  static constexpr uint64_t kFirstIntervalNs = 1000;

  explicit Timeline(uint64_t from_ns) : from_ns_(from_ns), end_(from_ns + kFirstIntervalNs) {}

  // Advance() does nothing before this.
  uint64_t next_ns() const { return end_; }
  void Advance(uint64_t now, HeapModel& model) {
    while (now >= end_) [[unlikely]] Close(model);
  }

  // `samples` are in the order of time, of the whole trace; `marks` of single faults,
  // where they are known.
  void Finish(uint64_t end_ns, HeapModel& model, std::span<const UsageSample> samples,
              std::span<const FaultMarks::Mark> marks, Analysis* analysis);

  // Writes the state into an archive, or reads it out of one (state/state_archive.h).
  template <typename Archive>
  void Fold(Archive& archive);

 private:
  void Close(HeapModel& model);
  void Halve(HeapModel& model);

  uint64_t from_ns_;
  uint64_t interval_ = kFirstIntervalNs;
  uint64_t end_;  // of the open interval
  HeapCounters last_;
  std::vector<TimelinePoint> points_;
};

// The process's faults, the tracer's own taken off, at a time between samples: as single
// faults that are known came, else in proportion. Before the first and after the last
// sample they stand still.
struct FaultCounts {
  double minor = 0, major = 0;
  uint64_t rss_bytes = 0;  // of the last sample before
};
FaultCounts FaultsAt(std::span<const UsageSample> samples, std::span<const FaultMarks::Mark> marks,
                     uint64_t time_ns);

// Resident bytes, where `memtrace run` sampled them as well: at a point, of the last sample before
// it, from inside or outside. A program that allocates nothing takes none from inside.
void FillResident(const PressureLane& lane, std::span<const UsageSample> samples,
                  std::vector<TimelinePoint>* points);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_MODEL_TIMELINE_H_
