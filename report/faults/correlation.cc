#include "report/faults/correlation.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace memtrace::report {
namespace {

constexpr size_t kMostBins = 128;
constexpr size_t kBinsOfLag = 4;       // a lag is at most this part of the run
constexpr double kClearlyBetter = 0.1;  // than no lag
constexpr double kStrong = 0.5;

// Pearson's, of x[i] and y[i + lag]. NaN: one of them does not vary.
double Pearson(const std::vector<double>& x, const std::vector<double>& y, size_t lag) {
  const size_t n = x.size() - lag;
  double mean_x = 0, mean_y = 0;
  for (size_t i = 0; i < n; ++i) {
    mean_x += x[i];
    mean_y += y[i + lag];
  }
  mean_x /= static_cast<double>(n);
  mean_y /= static_cast<double>(n);
  double xx = 0, yy = 0, xy = 0;
  for (size_t i = 0; i < n; ++i) {
    const double dx = x[i] - mean_x, dy = y[i + lag] - mean_y;
    xx += dx * dx;
    yy += dy * dy;
    xy += dx * dy;
  }
  return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : std::nan("");
}

LaggedCorrelation Lagged(const std::vector<double>& x, const std::vector<double>& y,
                         uint64_t bin_ns) {
  LaggedCorrelation found;
  found.now = Pearson(x, y, 0);
  if (std::isnan(found.now)) return {};
  found.known = true;
  found.best = found.now;
  for (size_t lag = 1; lag <= x.size() / kBinsOfLag; ++lag) {
    const double r = Pearson(x, y, lag);
    if (std::isnan(r) || r < kStrong ||
        r <= found.best + (found.lag_ns == 0 ? kClearlyBetter : 0)) {
      continue;
    }
    found.best = r;
    found.lag_ns = lag * bin_ns;
  }
  return found;
}

}  // namespace

FaultCorrelation CorrelateFaults(std::span<const UsageSample> samples) {
  FaultCorrelation found;
  if (samples.size() < kFewestCorrelated) return found;
  const uint64_t begin = samples.front().time_ns, end = samples.back().time_ns;
  const size_t bins = std::min(kMostBins, samples.size() / 2);
  if (end - begin < bins) return found;
  found.bins = bins;
  found.bin_ns = (end - begin) / bins;
  // By how much a value grew in each bin.
  const auto increments = [&](auto value) {
    std::vector<double> added;
    double before = value(samples.front());
    size_t next = 1;
    for (size_t bin = 1; bin <= bins; ++bin) {
      const uint64_t time = begin + found.bin_ns * bin;
      while (next + 1 < samples.size() && samples[next].time_ns < time) ++next;
      const UsageSample& a = samples[next - 1];
      const UsageSample& b = samples[next];
      const double span = static_cast<double>(std::max<uint64_t>(b.time_ns - a.time_ns, 1));
      const double part =
          std::clamp((static_cast<double>(time) - static_cast<double>(a.time_ns)) / span, 0.0, 1.0);
      const double now = value(a) + part * (value(b) - value(a));
      added.push_back(now - before);
      before = now;
    }
    return added;
  };
  const auto live =
      increments([](const UsageSample& s) { return static_cast<double>(s.live_bytes); });
  const auto allocated =
      increments([](const UsageSample& s) { return static_cast<double>(s.bytes_allocated); });
  const auto minor = increments([](const UsageSample& s) {
    return static_cast<double>(s.program_minor_faults());
  });
  const auto major =
      increments([](const UsageSample& s) { return static_cast<double>(s.major_faults); });
  found.live_minor = Lagged(live, minor, found.bin_ns);
  found.allocated_minor = Lagged(allocated, minor, found.bin_ns);
  found.live_major = Lagged(live, major, found.bin_ns);
  found.allocated_major = Lagged(allocated, major, found.bin_ns);
  return found;
}

}  // namespace memtrace::report
