#include "report/findings/lifetime_histogram.h"

#include <algorithm>
#include <cmath>

namespace memtrace::report {

double LifetimeHistogram::Quantile(double q, double sum_ns) const {
  const auto all = static_cast<double>(blocks());
  if (all == 0) return 0;
  const double rank = std::max(1.0, std::ceil(std::clamp(q, 0.0, 1.0) * all));
  double below = 0;
  for (size_t i = 0; i < kClasses; ++i) {
    const auto here = static_cast<double>(freed[i]);
    if (here > 0 && below + here >= rank) {
      const auto begin = static_cast<double>(BeginOf(i)), end = static_cast<double>(BeginOf(i + 1));
      if (here == all && sum_ns > 0) return std::clamp(sum_ns / all, begin, end);
      return begin + (end - begin) * (rank - below - 0.5) / here;
    }
    below += here;
  }
  return 0;
}

double LifetimeHistogram::ShareAbove(double ns) const {
  const auto all = static_cast<double>(blocks());
  if (all == 0) return 0;
  // The class that it falls into counts in part, those above as a whole.
  const size_t at = ns >= 0x1p63 ? kClasses - 1 : ClassOf(static_cast<uint64_t>(std::max(ns, 0.0)));
  const auto begin = static_cast<double>(BeginOf(at)), end = static_cast<double>(BeginOf(at + 1));
  double above = static_cast<double>(freed[at]) * std::clamp((end - ns) / (end - begin), 0.0, 1.0);
  for (size_t i = at + 1; i < kClasses; ++i) above += static_cast<double>(freed[i]);
  return above / all;
}

}  // namespace memtrace::report
