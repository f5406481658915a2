#include "report/trend/trend.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "report/render/regex.h"

namespace memtrace::report {
namespace {

// One change, upwards: a cache that became larger, a table for a new feature.
bool RoseOnce(const std::vector<double>& series) {
  size_t rises = 0, falls = 0;
  for (size_t i = 1; i < series.size(); ++i) {
    rises += series[i] > series[i - 1];
    falls += series[i] < series[i - 1];
  }
  return rises == 1 && falls == 0;
}

TrendVerdict Judge(const TrendRow& row, const TrendOptions& options, bool enough) {
  if (!enough) return TrendVerdict::kUnknown;
  const double first = row.series.front(), growth = row.growth();
  const double size = std::fabs(row.series.back() - first);
  const bool counts = std::max(std::fabs(growth), size) >= options.least.amount &&
                      std::max(std::fabs(growth), size) >= options.least.share * first;
  if (!counts) return TrendVerdict::kSteady;
  if (RoseOnce(row.series)) return TrendVerdict::kStepped;
  if (row.trend.p_rise <= options.chance && growth > 0) return TrendVerdict::kGrowing;
  if (row.trend.p_fall <= options.chance && growth < 0) return TrendVerdict::kShrinking;
  return TrendVerdict::kSteady;
}

}  // namespace

absl::string_view TrendName(TrendVerdict verdict) {
  switch (verdict) {
    case TrendVerdict::kGrowing: return "growing";
    case TrendVerdict::kStepped: return "stepped";
    case TrendVerdict::kSteady: return "steady";
    case TrendVerdict::kShrinking: return "shrinking";
    case TrendVerdict::kUnknown: return "unknown";
  }
  return "";
}

absl::StatusOr<Trend> FindTrends(const History& history, const TrendOptions& options) {
  render::Regex match("--match");
  if (const absl::Status status = match.Compile(options.match); !status.ok()) return status;
  const auto matches = [&](const RunSite& site) {
    return !match.given() || match.Finds(site.caller) || match.Finds(site.file);
  };

  Trend trend;
  trend.options = options;
  trend.bad_lines = history.bad_lines;
  std::vector<double> divisors;
  bool by_executable = false;
  for (const Night& night : history.nights) {
    const auto divisor = Divisor(options.per, night.run.duration_ns, night.run.totals);
    const bool known = divisor.has_value() && (!IsLeakKind(options.measure) || night.run.scanned) &&
                       !(options.measure == Measure::kTemporary && night.run.sampled);
    if (!known) {
      ++trend.nights_left_out;
      continue;
    }
    trend.nights.push_back(&night);
    divisors.push_back(*divisor);
  }
  if (trend.nights.size() > options.last) {
    const auto cut = static_cast<std::ptrdiff_t>(trend.nights.size() - options.last);
    trend.nights.erase(trend.nights.begin(), trend.nights.begin() + cut);
    divisors.erase(divisors.begin(), divisors.begin() + cut);
  }
  if (trend.nights.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("no night of the history knows ", MeasureName(options.measure), " per ",
                     PerName(options.per), history.nights.empty() ? ": it is empty" : ""));
  }
  trend.enough = trend.nights.size() >= options.fewest;
  for (const Night* night : trend.nights) by_executable |= night->run.executables.size() > 1;

  std::map<SiteKey, TrendRow> rows;
  for (size_t i = 0; i < trend.nights.size(); ++i) {
    const RunSummary& run = trend.nights[i]->run;
    trend.totals.push_back(static_cast<double>(run.totals[options.measure]) / divisors[i]);
    for (const auto& [key, site] : run.sites) {
      TrendRow& row = rows[{by_executable ? key.first : "", key.second}];
      row.series.resize(trend.nights.size());
      row.series[i] += static_cast<double>(site.amounts[options.measure]) / divisors[i];
      row.site = &site;
    }
  }
  trend.total_trend = FindTrend(trend.totals);
  for (auto& [key, row] : rows) {
    const bool any =
        std::any_of(row.series.begin(), row.series.end(), [](double v) { return v > 0; });
    if (!any || !matches(*row.site)) continue;
    row.executable = key.first;
    row.fingerprint = key.second;
    row.trend = FindTrend(row.series);
    row.verdict = Judge(row, options, trend.enough);
    trend.rows.push_back(std::move(row));
  }
  std::sort(trend.rows.begin(), trend.rows.end(), [](const TrendRow& a, const TrendRow& b) {
    return std::tuple(a.verdict, -std::fabs(a.growth()), -a.series.back(), a.executable,
                      a.fingerprint) < std::tuple(b.verdict, -std::fabs(b.growth()),
                                                  -b.series.back(), b.executable, b.fingerprint);
  });
  std::vector<SiteInTable> table;
  for (const TrendRow& row : trend.rows) table.push_back({row.executable, row.site});
  std::vector<ToldApart> apart = TellApart(table);
  for (size_t i = 0; i < trend.rows.size(); ++i) trend.rows[i].apart = std::move(apart[i]);
  return trend;
}

}  // namespace memtrace::report
