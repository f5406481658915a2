#include "report/growth/rank_trend.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "report/growth/site_history.h"

namespace memtrace::report {
namespace {

// Places of the values when sorted; equal values have one place.
std::vector<int> Ranks(const std::vector<double>& series) {
  std::vector<double> sorted = series;
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  std::vector<int> ranks;
  for (const double value : series) {
    ranks.push_back(static_cast<int>(std::lower_bound(sorted.begin(), sorted.end(), value) -
                                     sorted.begin()));
  }
  return ranks;
}

int64_t Score(const std::vector<int>& ranks) {
  int64_t s = 0;
  for (size_t i = 0; i < ranks.size(); ++i) {
    for (size_t j = i + 1; j < ranks.size(); ++j)
      s += (ranks[j] > ranks[i]) - (ranks[j] < ranks[i]);
  }
  return s;
}

struct Exact {
  std::map<int64_t, uint64_t> orders;  // by S, of the distinct orders of the values
  uint64_t all = 0;
};

// Every order of the values. Sites have few patterns of equal values: each is counted once.
const Exact& ExactOf(std::vector<int> sorted_ranks) {
  static thread_local std::map<std::vector<int>, Exact> known;
  const auto [it, is_new] = known.try_emplace(sorted_ranks);
  if (is_new) {
    do {
      ++it->second.orders[Score(sorted_ranks)];
      ++it->second.all;
    } while (std::next_permutation(sorted_ranks.begin(), sorted_ranks.end()));
  }
  return it->second;
}

}  // namespace

RankTrend FindTrend(const std::vector<double>& series) {
  RankTrend trend;
  const size_t n = series.size();
  if (n < 2) return trend;
  const std::vector<int> ranks = Ranks(series);
  trend.s = Score(ranks);

  std::vector<double> slopes;
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = i + 1; j < n; ++j) {
      slopes.push_back((series[j] - series[i]) / static_cast<double>(j - i));
    }
  }
  std::sort(slopes.begin(), slopes.end());
  const size_t middle = slopes.size() / 2;
  trend.slope = slopes.size() % 2 == 1 ? slopes[middle] : (slopes[middle - 1] + slopes[middle]) / 2;

  std::vector<int> sorted = ranks;
  std::sort(sorted.begin(), sorted.end());
  const auto weight = [](double k) { return k * (k - 1) * (2 * k + 5); };
  double variance = weight(static_cast<double>(n));
  for (size_t i = 0; i < n;) {
    size_t j = i;
    while (j < n && sorted[j] == sorted[i]) ++j;
    variance -= weight(static_cast<double>(j - i));
    i = j;
  }
  trend.deviation = std::sqrt(std::max(variance / 18, 0.0));
  // This many of the slopes are outside of the interval on each side.
  const double outside = (static_cast<double>(slopes.size()) - 1.96 * trend.deviation) / 2;
  const auto cut = static_cast<size_t>(std::max(outside, 0.0));
  trend.slope_low = slopes[cut];
  trend.slope_high = slopes[slopes.size() - 1 - cut];
  if (n <= kExactNights) {
    const Exact& exact = ExactOf(sorted);
    uint64_t rise = 0, fall = 0;
    for (const auto& [s, orders] : exact.orders) {
      if (s >= trend.s) rise += orders;
      if (s <= trend.s) fall += orders;
    }
    trend.p_rise = static_cast<double>(rise) / static_cast<double>(exact.all);
    trend.p_fall = static_cast<double>(fall) / static_cast<double>(exact.all);
    return trend;
  }
  if (trend.deviation <= 0) return trend;  // all are equal
  const auto s = static_cast<double>(trend.s);
  trend.p_rise = NormalTail((s - 1) / trend.deviation);
  trend.p_fall = NormalTail((-s - 1) / trend.deviation);
  return trend;
}

}  // namespace memtrace::report
