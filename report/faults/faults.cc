#include "report/faults/faults.h"

#include <algorithm>
#include <cmath>

#include "report/model/timeline.h"

namespace memtrace::report {
namespace {

// No process has as many faults: it is damage, and differences must not overflow.
constexpr uint64_t kImpossible = uint64_t{1} << 52;

// Pearson's coefficient of pairs, in one pass.
class Correlation {
 public:
  void Add(double x, double y) {
    ++n_;
    const double dx = x - mean_x_, dy = y - mean_y_;
    mean_x_ += dx / n_;
    mean_y_ += dy / n_;
    xx_ += dx * (x - mean_x_);
    yy_ += dy * (y - mean_y_);
    xy_ += dx * (y - mean_y_);
  }
  bool known() const { return n_ >= 2 && xx_ > 0 && yy_ > 0; }
  double value() const { return known() ? xy_ / std::sqrt(xx_ * yy_) : 0; }

 private:
  double n_ = 0, mean_x_ = 0, mean_y_ = 0, xx_ = 0, yy_ = 0, xy_ = 0;
};

// What was counted between two times of cumulative counts. In a damaged trace, or where
// FaultCollector::Add() took some back, there may be fewer at the end.
uint64_t Between(double begin, double end) {
  return static_cast<uint64_t>(
      std::max<long long>(std::llround(end) - std::llround(begin), 0));
}

// The faults of a part of a run. One that begins with the process has those before the first sample
// as well, like the whole run: of the program's start.
void CountWithin(const Range& range, std::span<const UsageSample> samples, Faults* faults) {
  std::vector<UsageSample> own(samples.begin(), samples.end());
  for (UsageSample& sample : own) {
    sample.minor_faults -= sample.program_minor_faults();
    sample.tool_minor_faults = 0;
  }
  const auto at_begin = [&range](std::span<const UsageSample> counts) {
    return range.from_ns == 0 ? FaultCounts() : FaultsAt(counts, {}, range.from_ns);
  };
  const FaultCounts from = at_begin(samples), to = FaultsAt(samples, {}, range.to_ns);
  faults->minor = Between(from.minor, to.minor);
  faults->major = Between(from.major, to.major);
  faults->tool_minor = Between(at_begin(own).minor, FaultsAt(own, {}, range.to_ns).minor);
}

}  // namespace

void FaultCollector::Add(UsageSample sample) {
  if (std::max(sample.minor_faults, sample.major_faults) >= kImpossible) return;
  if (any_ && (sample.minor_faults < last_.minor_faults ||
               sample.major_faults < last_.major_faults || sample.time_ns < last_.time_ns)) {
    return;
  }
  // The library may have counted faults of its own that the kernel's figure does not have yet.
  if (any_ && sample.program_minor_faults() < last_.program_minor_faults()) {
    sample.tool_minor_faults = sample.minor_faults - last_.program_minor_faults();
  }
  any_ = true;
  last_ = sample;
  peak_rss_bytes_ = std::max({peak_rss_bytes_, sample.rss_bytes, sample.peak_rss_bytes});
  if (count_++ % stride_ != 0) return;
  if (samples_.size() == kMaxSamples) {
    for (size_t i = 0; i < kMaxSamples / 2; ++i) samples_[i] = samples_[2 * i];
    samples_.resize(kMaxSamples / 2);
    stride_ *= 2;
  }
  samples_.push_back(sample);
}

std::span<const UsageSample> FaultCollector::samples() {
  if (any_ && samples_.back().time_ns != last_.time_ns) {
    if (samples_.size() > kMaxSamples) samples_.pop_back();
    samples_.push_back(last_);
  }
  return samples_;
}

void FaultCollector::Finish(const Range& range, const UsageSample* at_end, Faults* faults) {
  const std::span<const UsageSample> all = samples();
  if (all.empty()) return;
  std::vector<UsageSample> inside;
  Correlation live, allocated;
  for (const UsageSample& sample : all) {
    if (sample.time_ns < range.from_ns || sample.time_ns > range.to_ns) continue;
    if (!inside.empty()) {
      const UsageSample& before = inside.back();
      const auto minor = static_cast<double>(sample.program_minor_faults()) -
                         static_cast<double>(before.program_minor_faults());
      live.Add(static_cast<double>(sample.live_bytes) - static_cast<double>(before.live_bytes),
               minor);
      allocated.Add(static_cast<double>(sample.bytes_allocated - before.bytes_allocated), minor);
    }
    inside.push_back(sample);
  }
  if (range.whole()) {
    // Also the faults before the first sample: of the program's start.
    faults->minor = all.back().program_minor_faults();
    faults->major = all.back().major_faults;
    faults->tool_minor = all.back().tool_minor_faults;
  } else {
    std::vector<UsageSample> known(all.begin(), all.end());
    if (at_end != nullptr && at_end->time_ns > last_.time_ns &&
        at_end->program_minor_faults() >= last_.program_minor_faults() &&
        at_end->major_faults >= last_.major_faults && at_end->minor_faults < kImpossible) {
      known.push_back(*at_end);
    }
    CountWithin(range, known, faults);
  }
  faults->peak_rss_bytes = peak_rss_bytes_;
  faults->correlation_known = inside.size() >= 3 && live.known() && allocated.known();
  if (faults->correlation_known) {
    faults->correlation_live = live.value();
    faults->correlation_allocated = allocated.value();
  }
  faults->samples = std::move(inside);
}

void CountToTheEnd(uint64_t minor, uint64_t major, uint64_t own, Faults* faults) {
  if (std::max(minor, major) >= kImpossible || minor < faults->minor) return;
  // The library may have counted faults of its own that the kernel's figure does not have yet.
  own = std::min(minor - faults->minor, std::max(own, faults->tool_minor));
  faults->minor = minor - own;
  faults->tool_minor = own;
  faults->major = std::max(faults->major, major);
}

void CountTheSeen(const FaultSums& seen, uint64_t own, Faults* faults) {
  if (std::max(seen.minor, seen.major) >= kImpossible) return;
  const uint64_t counted = faults->minor + faults->tool_minor;
  const uint64_t more = std::max(seen.minor, counted) - counted;
  const uint64_t more_own = std::min(more, std::max(own, faults->tool_minor) - faults->tool_minor);
  faults->tool_minor += more_own;
  faults->minor += more - more_own;
  faults->major = std::max(faults->major, seen.major);
}

}  // namespace memtrace::report
