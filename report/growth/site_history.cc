#include "report/growth/site_history.h"

#include <algorithm>
#include <cmath>

#include "report/growth/site_series.h"

namespace memtrace::report {

std::vector<Level> LevelsOf(const Site& site, uint64_t interval_ns, uint64_t from_ns,
                            uint64_t end_ns) {
  if (interval_ns == 0 || end_ns <= from_ns) return {};
  const auto whole =
      std::min<uint64_t>((end_ns - from_ns) / interval_ns, SiteSeries::kMostIntervals);
  std::vector<Level> levels(whole);
  double live = 0;
  size_t next = 0;
  for (size_t i = 0; i < whole; ++i) {
    if (next < site.series.size() && site.series[next].interval == i) {
      const SeriesPoint& point = site.series[next++];
      live = static_cast<double>(point.live_bytes);
      levels[i] = {static_cast<double>(point.low_bytes), static_cast<double>(point.high_bytes),
                   live};
    } else {
      levels[i] = {live, live, live};
    }
  }
  return levels;
}

Births BirthsFromLevels(const SiteHistory& history) {
  Births births;
  const auto window = static_cast<double>(history.end_ns - history.first_ns);
  double before = 0;
  for (const SeriesPoint& point : history.site->series) {
    // Evenly over the part of the interval that is the site's.
    const double begin =
        static_cast<double>(history.from_ns) +
        static_cast<double>(point.interval) * static_cast<double>(history.interval_ns);
    const double first = std::max(begin, static_cast<double>(history.first_ns));
    const double last = std::min(begin + static_cast<double>(history.interval_ns),
                                 static_cast<double>(history.end_ns));
    if (last <= first) break;
    const double bytes = static_cast<double>(point.high_bytes) - before;
    before = static_cast<double>(point.high_bytes);
    const auto part = [&](double time) {
      return (time - static_cast<double>(history.first_ns)) / window * Births::kParts;
    };
    const double from = part(first), to = part(last);
    for (auto i = static_cast<size_t>(from); i < Births::kParts && static_cast<double>(i) < to;
         ++i) {
      const auto left = static_cast<double>(i);
      const double share = (std::min(to, left + 1) - std::max(from, left)) / (to - from);
      births.blocks[i] += share * point.allocations;
      births.bytes[i] += share * bytes;
    }
  }
  return births;
}

bool HasStopped(const std::vector<double>& amounts) {
  constexpr double kMissing = 4.6;  // of a Poisson process e^-4.6 is the chance of none
  size_t with = 0, last = 0;
  for (size_t i = 0; i < amounts.size(); ++i) {
    if (amounts[i] <= 0) continue;
    ++with;
    last = i + 1;
  }
  if (last == 0) return true;
  return static_cast<double>(with) / static_cast<double>(last) *
             static_cast<double>(amounts.size() - last) >=
         kMissing;
}

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  const size_t middle = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(middle),
                   values.end());
  return values[middle];
}

double NormalTail(double z) { return 0.5 * std::erfc(z / std::sqrt(2.0)); }

}  // namespace memtrace::report
