#include "report/faults/thrash.h"

#include <algorithm>

namespace memtrace::report {
namespace {

// The live bytes of the last sample up to `time_ns`; before the first sample, those of the first.
uint64_t LiveAt(std::span<const UsageSample> samples, uint64_t time_ns) {
  if (samples.empty()) return 0;
  auto after = std::upper_bound(
      samples.begin(), samples.end(), time_ns,
      [](uint64_t time, const UsageSample& sample) { return time < sample.time_ns; });
  return after == samples.begin() ? after->live_bytes : std::prev(after)->live_bytes;
}

}  // namespace

void ThrashDetector::Add(uint64_t time_ns, uint64_t page, bool major) {
  if (pages_.size() >= kMostPages) {
    limited_ = true;
    if (!pages_.contains(page)) return;
  } else if (pages_.insert(page).second) {
    return;
  }
  if (!major) return;
  ++refaults_;
  if (steps_.size() < kMostSteps) ++steps_[time_ns / kStepNs];
}

std::vector<ThrashStretch> ThrashDetector::Stretches(std::span<const UsageSample> samples) const {
  std::vector<ThrashStretch> found;
  for (const auto& [step, refaults] : steps_) {
    if (refaults < kFewestRefaults) continue;
    const uint64_t begin = step * kStepNs, end = begin + kStepNs;
    const uint64_t before = LiveAt(samples, begin), after = LiveAt(samples, end);
    if (static_cast<double>(after) > static_cast<double>(before) * (1 + kMostGrowth)) continue;
    if (!found.empty() && found.back().end_ns == begin) {
      found.back().end_ns = end;
      found.back().refaults += refaults;
      found.back().live_bytes = after;
    } else {
      found.push_back({begin, end, refaults, after});
    }
  }
  return found;
}

}  // namespace memtrace::report
