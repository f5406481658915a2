// Does a series rise? The rank test of Mann and Kendall, and the slope of Theil and Sen.
//
// Nights are few and uneven: a single wild one must not make a trend, nor hide one. Both look
// at pairs of nights only. S is the number of pairs whose later value is larger minus those
// whose later value is smaller; under "no trend" every order of the values is as likely, which
// gives the probability of an S at least so large (exactly up to kExactNights values, behind
// that by the normal approximation, with its correction for equal values). The slope is the
// median of the slopes of all pairs: up to 29 % of the nights may be anything.
//
//   H. B. Mann, Nonparametric tests against trend, Econometrica 13 (1945) 245-259
//   M. G. Kendall, Rank Correlation Methods, 4th ed. (1975)
//   P. K. Sen, Estimates of the regression coefficient based on Kendall's tau,
//     J. Am. Stat. Assoc. 63 (1968) 1379-1389; after H. Theil (1950)
//
// Pure functions, any thread.

#ifndef MEMTRACE_REPORT_GROWTH_RANK_TREND_H_
#define MEMTRACE_REPORT_GROWTH_RANK_TREND_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace memtrace::report {

inline constexpr size_t kExactNights = 8;

struct RankTrend {
  int64_t s = 0;
  double p_rise = 1;  // probability of such an S or a larger one without a trend
  double p_fall = 1;  // of such a one or a smaller
  double slope = 0;   // a step of the series
  double slope_low = 0, slope_high = 0;  // Sen's 95 % interval of it
  double deviation = 0;  // of S without a trend, with equal values taken into account
};

RankTrend FindTrend(const std::vector<double>& series);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_GROWTH_RANK_TREND_H_
