#include "report/growth/rising_floor.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "report/growth/rank_trend.h"
#include "report/growth/steady_flow.h"

namespace memtrace::report {
namespace {

constexpr size_t kMostSteps = 32;  // of the series that is tested
constexpr size_t kFewestSteps = 9;
constexpr size_t kFewestFloors = 6;  // a few blocks now and then are no rate
constexpr size_t kFewestGrowths = 4;  // of a container
constexpr double kFloorSignificance = 0.01;
constexpr double kLeastRise = 0.05;     // of the level at the end
constexpr double kLeastGoingOn = 0.25;  // what the last third rises, of what the one before did

// The lowest level that lasted for more than a moment: a program that frees all to build it anew
// holds nothing between the two. When the interval ends the level is back, at what it was and near
// the most; in the teeth of a saw it is still low then.
double LowBesidesMoments(const SiteHistory& history, size_t i) {
  constexpr double kBack = 0.9;
  const Level& level = history.levels[i];
  const double before = i == 0 ? 0 : history.levels[i - 1].live;
  const bool is_back = level.live >= kBack * before && level.live >= kBack * level.high;
  return is_back ? std::min(level.live, std::max(before, level.low)) : level.low;
}

// The lowest levels behind the warm-up, at most kMostSteps.
std::vector<double> Floor(const SiteHistory& history, double* step_ns) {
  const size_t all = history.levels.size() - std::min(history.first_level, history.levels.size());
  const size_t begin = history.first_level + (all + 9) / 10;
  const size_t n = history.levels.size() - std::min(begin, history.levels.size());
  const size_t together = std::max<size_t>(1, (n + kMostSteps - 1) / kMostSteps);
  std::vector<double> floor;
  for (size_t i = history.levels.size() - n / together * together;
       i + together <= history.levels.size(); i += together) {
    double low = LowBesidesMoments(history, i);
    for (size_t k = 1; k < together; ++k) low = std::min(low, LowBesidesMoments(history, i + k));
    floor.push_back(low);
  }
  *step_ns = static_cast<double>(together) * static_cast<double>(history.interval_ns);
  return floor;
}

// Neighbours that are alike hold less than two values' worth: the variance of S grows by
// (1 + r) / (1 - r), r the serial correlation of what the line leaves (Bayley and Hammersley 1946;
// for this test Hamed and Rao 1998).
double SerialCorrelation(const std::vector<double>& series, const RankTrend& trend) {
  std::vector<double> left;
  for (size_t i = 0; i < series.size(); ++i) {
    left.push_back(series[i] - trend.slope * static_cast<double>(i));
  }
  const double middle = Median(left);
  double most = 0, squares = 0, products = 0;
  for (double& each : left) {
    each -= middle;
    most = std::max(most, std::fabs(each));
    squares += each * each;
  }
  // Where the line explains nearly all, what is left is no noise.
  if (most < 0.05 * std::fabs(trend.slope) * static_cast<double>(series.size())) return 0;
  for (size_t i = 1; i < left.size(); ++i) products += left[i - 1] * left[i];
  return squares == 0 ? 0 : std::clamp(products / squares, 0.0, 0.9);
}

double MedianOf(const std::vector<double>& series, size_t begin, size_t end) {
  return Median({series.begin() + static_cast<std::ptrdiff_t>(begin),
                 series.begin() + static_cast<std::ptrdiff_t>(end)});
}

double ChanceOfRise(const std::vector<double>& series, const RankTrend& trend) {
  if (trend.deviation == 0) return 1;
  const double r = SerialCorrelation(series, trend);
  const double z = (static_cast<double>(trend.s) - 1) / trend.deviation;
  return NormalTail(z * std::sqrt((1 - r) / (1 + r)));
}

}  // namespace

// Each point of the series brings two levels at most, its lowest and its last, and before the first
// there is nothing. A container needs one more level than growths.
bool MayRise(const Site& site) {
  return 1 + 2 * site.series.size() >= kFewestFloors || site.series.size() > kFewestGrowths;
}

GrowthEvidence FloorEvidence(const SiteHistory& history) {
  double step_ns = 0;
  const std::vector<double> floor = Floor(history, &step_ns);
  const size_t n = floor.size();
  if (n < kFewestSteps) return {};
  const double first = MedianOf(floor, 0, n / 3), middle = MedianOf(floor, n / 3, 2 * n / 3),
               last = MedianOf(floor, 2 * n / 3, n);
  // Cheap, and no for nearly every site.
  if (last <= middle || last - first < kLeastRise * last ||
      last - middle < kLeastGoingOn * (middle - first) || history.levels.back().live < 0.7 * last) {
    return {};
  }
  if (std::set<double>(floor.begin(), floor.end()).size() < kFewestFloors) return {};
  std::vector<double> rises;
  double highest = 0;
  for (const double each : floor) {
    rises.push_back(std::max(each - highest, 0.0));
    highest = std::max(highest, each);
  }
  if (HasStopped(rises)) return {};
  const RankTrend trend = FindTrend(floor);
  const double chance = ChanceOfRise(floor, trend);
  if (trend.slope <= 0 || chance >= kFloorSignificance) return {};
  if (SteadyFlowExplains(history, floor, step_ns)) return {};
  const double per_second = 1e9 / step_ns;
  return {true, trend.slope * per_second, std::max(trend.slope_low, 0.0) * per_second,
          trend.slope_high * per_second, 1 - chance};
}

GrowthEvidence StepEvidence(const SiteHistory& history) {
  constexpr double kFactor = 1.4;  // vectors grow by 1.5 at least
  // After steps that double, the next one is twice as far away as the last was.
  constexpr double kLongestWait = 2.5;
  std::vector<double> at, level;
  for (size_t i = history.first_level; i < history.levels.size(); ++i) {
    const double live = history.levels[i].live;
    if (!level.empty() && live < 0.9 * level.back()) return {};
    if (live <= 0 || (!level.empty() && live <= 1.05 * level.back())) continue;
    at.push_back(static_cast<double>(i));
    level.push_back(live);
  }
  if (level.size() <= kFewestGrowths || level.size() > 24) return {};
  for (size_t i = level.size() - kFewestGrowths; i < level.size(); ++i) {
    if (level[i] < kFactor * level[i - 1]) return {};
  }
  const double gap = at.back() - at[at.size() - 2];
  const double waited = static_cast<double>(history.levels.size()) - at.back();
  if (waited > kLongestWait * gap) return {};
  double step_ns = 0;
  const std::vector<double> floor = Floor(history, &step_ns);
  if (floor.size() < 2) return {};
  const RankTrend trend = FindTrend(floor);
  // From the first step to the last: a line through a few steps has no use for medians.
  const double seconds = (static_cast<double>(history.levels.size()) - at.front()) *
                         static_cast<double>(history.interval_ns) / 1e9;
  const double rate = (level.back() - level.front()) / seconds;
  const double per_second = 1e9 / step_ns;
  return {true, rate, std::min(rate, std::max(trend.slope_low, 0.0) * per_second),
          std::max(rate, trend.slope_high * per_second), 1 - ChanceOfRise(floor, trend)};
}

}  // namespace memtrace::report
