// Trend: which sites hold, or allocate, more from night to night.
//
// Pure functions of a history.

#ifndef MEMTRACE_REPORT_TREND_TREND_H_
#define MEMTRACE_REPORT_TREND_TREND_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "report/diff/run_diff.h"
#include "report/diff/told_apart.h"
#include "report/growth/rank_trend.h"
#include "report/trend/history.h"

namespace memtrace::report {

enum class TrendVerdict {
  kGrowing,    // rises, and not by chance
  kStepped,    // rose once and stayed there
  kSteady,
  kShrinking,
  kUnknown,    // too few nights to tell, of any site
};
inline constexpr TrendVerdict kTrendVerdicts[] = {TrendVerdict::kGrowing, TrendVerdict::kStepped,
                                                  TrendVerdict::kSteady, TrendVerdict::kShrinking,
                                                  TrendVerdict::kUnknown};
absl::string_view TrendName(TrendVerdict verdict);

struct TrendOptions {
  Measure measure = Measure::kLive;
  Per per = Per::kRun;
  Least least;             // of the growth over all nights, slope times nights
  size_t last = SIZE_MAX;  // nights
  size_t fewest = 5;       // nights; with less, chance cannot be told from growth
  double chance = 0.01;    // of a site that does not grow to be called growing
  std::string match;       // POSIX extended regular expression on caller and file
};

struct TrendRow {
  TrendVerdict verdict = TrendVerdict::kSteady;
  std::string executable, fingerprint;
  const RunSite* site = nullptr;  // of the last night that has it
  std::vector<double> series;     // a value for each night; 0 where the site is not in it
  RankTrend trend;
  ToldApart apart;                // from the other rows
  double growth() const { return trend.slope * static_cast<double>(series.size() - 1); }
};

struct Trend {
  TrendOptions options;
  std::vector<const Night*> nights;  // that were looked at
  uint64_t nights_left_out = 0;      // do not know what was asked
  uint64_t bad_lines = 0;
  bool enough = false;               // nights
  std::vector<double> totals;        // of each night
  RankTrend total_trend;
  std::vector<TrendRow> rows;        // by verdict, then the largest growth first
  bool grows() const { return !rows.empty() && rows.front().verdict == TrendVerdict::kGrowing; }
};

// The history outlives the result.
absl::StatusOr<Trend> FindTrends(const History& history, const TrendOptions& options);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_TREND_TREND_H_
