#include "report/growth/lifetime_histogram.h"

#include <algorithm>

namespace memtrace::report {

double LifetimeHistogram::Quantile(double q) const {
  const auto all = static_cast<double>(blocks());
  if (all == 0) return 0;
  const double wanted = std::clamp(q, 0.0, 1.0) * all;
  double below = 0;
  for (size_t i = 0; i < kClasses; ++i) {
    const auto here = static_cast<double>(freed[i]);
    if (here > 0 && below + here >= wanted) {
      const auto begin = static_cast<double>(BeginOf(i)), end = static_cast<double>(BeginOf(i + 1));
      return begin + (end - begin) * (wanted - below) / here;
    }
    below += here;
  }
  return 0;
}

double LifetimeHistogram::ShareAbove(double ns) const {
  const auto all = static_cast<double>(blocks());
  if (all == 0) return 0;
  double above = 0;
  for (size_t i = 0; i < kClasses; ++i) {
    const auto begin = static_cast<double>(BeginOf(i)), end = static_cast<double>(BeginOf(i + 1));
    above += static_cast<double>(freed[i]) * std::clamp((end - ns) / (end - begin), 0.0, 1.0);
  }
  return above / all;
}

}  // namespace memtrace::report
