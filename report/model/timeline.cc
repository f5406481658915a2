#include "report/model/timeline.h"

#include <algorithm>
#include <cmath>

#include "report/findings/analysis.h"

namespace memtrace::report {

void Timeline::Close(HeapModel& model) {
  const HeapCounters& now = model.counters();
  TimelinePoint point;
  point.time_ns = end_;
  point.live_bytes = now.live_bytes;
  point.live_blocks = now.live_blocks;
  point.usable_bytes = now.live_bytes + now.live_wasted_bytes;
  point.max_live_bytes = model.TakeWindowMax();
  point.allocations = now.allocations - last_.allocations;
  point.frees = now.frees - last_.frees;
  point.bytes_allocated = now.bytes_allocated - last_.bytes_allocated;
  last_ = now;
  points_.push_back(point);
  if (points_.size() % kPointsPerInterval == 0) model.NextInterval(end_ - from_ns_);
  if (points_.size() == kMaxPoints) Halve(model);
  end_ += interval_;
}

void Timeline::Halve(HeapModel& model) {
  model.MergeIntervals();
  for (size_t i = 0; i < kMaxPoints / 2; ++i) {
    const TimelinePoint& a = points_[2 * i];
    TimelinePoint b = points_[2 * i + 1];
    b.max_live_bytes = std::max(a.max_live_bytes, b.max_live_bytes);
    b.allocations += a.allocations;
    b.frees += a.frees;
    b.bytes_allocated += a.bytes_allocated;
    points_[i] = b;
  }
  points_.resize(kMaxPoints / 2);
  interval_ *= 2;
}

void Timeline::Finish(uint64_t end_ns, HeapModel& model, std::span<const UsageSample> samples,
                      std::span<const FaultMarks::Mark> marks, Analysis* analysis) {
  Advance(std::max(end_ns, from_ns_), model);
  Close(model);
  FaultCounts before = FaultsAt(samples, marks, from_ns_);
  for (TimelinePoint& point : points_) {
    const FaultCounts now = FaultsAt(samples, marks, point.time_ns);
    // Rounded as sums, so that the parts add up to the whole.
    point.minor_faults =
        static_cast<uint64_t>(std::llround(now.minor) - std::llround(before.minor));
    point.major_faults =
        static_cast<uint64_t>(std::llround(now.major) - std::llround(before.major));
    point.rss_bytes = now.rss_bytes;
    before = now;
  }
  analysis->timeline_interval_ns = interval_;
  analysis->series_interval_ns = interval_ * kPointsPerInterval;
  analysis->timeline = std::move(points_);
}

namespace {

// The known faults until a time; between two marks in proportion.
double MarkedUntil(std::span<const FaultMarks::Mark> marks, uint64_t FaultMarks::Mark::*count,
                   uint64_t time_ns) {
  const auto after = std::upper_bound(
      marks.begin(), marks.end(), time_ns,
      [](uint64_t time, const FaultMarks::Mark& mark) { return time < mark.time_ns; });
  const auto before = after == marks.begin() ? FaultMarks::Mark() : *(after - 1);
  const auto so_far = static_cast<double>(before.*count);
  // Nothing tells when the faults before the first mark began.
  if (after == marks.end() || after == marks.begin()) return so_far;
  return so_far + (static_cast<double>((*after).*count) - so_far) *
                      static_cast<double>(time_ns - before.time_ns) /
                      static_cast<double>(std::max<uint64_t>(after->time_ns - before.time_ns, 1));
}

// Which part of the faults between two samples was taken until a time.
double PartUntil(std::span<const FaultMarks::Mark> marks, uint64_t FaultMarks::Mark::*count,
                 uint64_t begin_ns, uint64_t end_ns, uint64_t time_ns) {
  const double begin = MarkedUntil(marks, count, begin_ns),
               all = MarkedUntil(marks, count, end_ns) - begin;
  if (all >= 1) return (MarkedUntil(marks, count, time_ns) - begin) / all;
  return static_cast<double>(time_ns - begin_ns) /
         static_cast<double>(std::max<uint64_t>(end_ns - begin_ns, 1));
}

}  // namespace

FaultCounts FaultsAt(std::span<const UsageSample> samples, std::span<const FaultMarks::Mark> marks,
                     uint64_t time_ns) {
  if (samples.empty()) return {};
  const auto own = [](const UsageSample& s) {
    return static_cast<double>(s.program_minor_faults());
  };
  const auto after = std::upper_bound(
      samples.begin(), samples.end(), time_ns,
      [](uint64_t time, const UsageSample& sample) { return time < sample.time_ns; });
  if (after == samples.begin()) {
    return {own(*after), static_cast<double>(after->major_faults), 0};
  }
  const UsageSample& a = *(after - 1);
  FaultCounts at{own(a), static_cast<double>(a.major_faults), a.rss_bytes};
  if (after == samples.end()) return at;
  using Mark = FaultMarks::Mark;
  at.minor +=
      PartUntil(marks, &Mark::minor, a.time_ns, after->time_ns, time_ns) * (own(*after) - at.minor);
  at.major += PartUntil(marks, &Mark::major, a.time_ns, after->time_ns, time_ns) *
              (static_cast<double>(after->major_faults) - at.major);
  return at;
}

void FillResident(const PressureLane& lane, std::span<const UsageSample> samples,
                  std::vector<TimelinePoint>* points) {
  const auto outside = lane.ResidentBytes();
  // A sample from inside repeats the last value where it did not ask: only another one is news.
  std::vector<std::pair<uint64_t, uint64_t>> inside;
  for (const UsageSample& sample : samples) {
    if (sample.rss_bytes == 0) continue;
    if (inside.empty() || inside.back().second != sample.rss_bytes) {
      inside.emplace_back(sample.time_ns, sample.rss_bytes);
    }
  }
  size_t next_outside = 0, next_inside = 0;
  for (TimelinePoint& point : *points) {
    while (next_outside < outside.size() && outside[next_outside].first <= point.time_ns)
      ++next_outside;
    while (next_inside < inside.size() && inside[next_inside].first <= point.time_ns) ++next_inside;
    if (next_outside == 0) continue;
    const auto& seen = outside[next_outside - 1];
    if (next_inside == 0 || inside[next_inside - 1].first <= seen.first)
      point.rss_bytes = seen.second;
  }
}

}  // namespace memtrace::report
