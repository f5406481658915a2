// --format json and csv of `memtrace trend`.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "report/render/json_parts.h"
#include "report/trend/trend_formats.h"
#include "report/words/escape.h"
#include "report/words/units.h"

namespace memtrace::report {
namespace {

using render::Json;

// Empty: an imported log does not tell.
std::string StartOf(const Night& night) {
  const int64_t start = night.run.start_realtime_ns;
  return start == 0 ? "" : words::DateTimeIso(start);
}

Json NightJson(const Night& night, double total) {
  const std::string start = StartOf(night);
  return {{"start_time", start.empty() ? Json() : Json(start)},
          {"label", night.label},
          {"duration_s", render::Seconds(night.run.duration_ns)},
          {"end", night.run.end},
          {"processes", night.run.processes},
          {"estimated", night.run.sampled},
          {"leaks_known", night.run.scanned},
          {"total", total}};
}

Json RowJson(const Trend& trend, const TrendRow& row) {
  Json json = {{"verdict", std::string(TrendName(row.verdict))},
               {"fingerprint", row.fingerprint},
               {"executable", row.executable.empty() ? Json() : Json(row.executable)},
               {"slope_per_night", row.trend.slope},
               {"growth", row.growth()},
               {"s", row.trend.s},
               {"p_rise", trend.enough ? Json(row.trend.p_rise) : Json()},
               {"p_fall", trend.enough ? Json(row.trend.p_fall) : Json()},
               {"values", row.series},
               {"allocator", row.site->allocator},
               {"caller", row.site->caller}};
  json["file"] = row.site->file.empty() ? Json() : Json(row.site->file);
  json["line"] = row.site->line == 0 ? Json() : Json(row.site->line);
  json["called_by"] = row.apart.called_by.empty() ? Json() : Json(row.apart.called_by);
  json["called_by_depth"] = row.apart.called_by.empty() ? Json() : Json(row.apart.callers);
  return json;
}

}  // namespace

void RenderTrendJson(const Trend& trend, size_t top, words::Sink& out) {
  const render::MemberWriter member(&out);
  out.Write("{\n  \"schema\": \"memtrace-trend/1\"");
  member("by", std::string(MeasureName(trend.options.measure)));
  member("per", std::string(PerName(trend.options.per)));
  member("match", trend.options.match);  // of "sites" and "counts"
  member("enough_nights", trend.enough);
  member("fewest_nights", trend.options.fewest);
  member("chance", trend.options.chance);
  member("grows", trend.grows());
  member("nights_left_out", trend.nights_left_out);
  member("bad_lines", trend.bad_lines);
  out.Write(",\n  \"nights\": ");
  std::vector<size_t> indexes(trend.nights.size());
  for (size_t i = 0; i < indexes.size(); ++i) indexes[i] = i;
  render::WriteArray(indexes, SIZE_MAX,
                     [&](size_t i) { return NightJson(*trend.nights[i], trend.totals[i]); }, out);
  member("total", {{"slope_per_night", trend.total_trend.slope},
                   {"p_rise", trend.enough ? Json(trend.total_trend.p_rise) : Json()}});
  Json counts = Json::object();
  for (const TrendVerdict verdict : kTrendVerdicts) {
    counts[std::string(TrendName(verdict))] =
        std::count_if(trend.rows.begin(), trend.rows.end(),
                      [&](const TrendRow& row) { return row.verdict == verdict; });
  }
  member("counts", counts);
  out.Write(",\n  \"sites\": ");
  render::WriteArray(
      trend.rows, top, [&](const TrendRow& row) { return RowJson(trend, row); }, out);
  member("sites_total", trend.rows.size());
  out.Write("\n}\n");
}

void RenderTrendCsv(const Trend& trend, size_t top, words::Sink& out) {
  out.Write("verdict,executable,fingerprint,by,per,night,start_time,label,value,slope_per_night,"
            "p_rise,caller,file,line\r\n");
  for (size_t i = 0; i < std::min(top, trend.rows.size()) && !out.done(); ++i) {
    const TrendRow& row = trend.rows[i];
    for (size_t night = 0; night < row.series.size(); ++night) {
      const std::string fields[] = {
          std::string(TrendName(row.verdict)), words::CsvField(row.executable), row.fingerprint,
          std::string(MeasureName(trend.options.measure)), std::string(PerName(trend.options.per)),
          absl::StrCat(night + 1), StartOf(*trend.nights[night]),
          words::CsvField(trend.nights[night]->label), absl::StrFormat("%.12g", row.series[night]),
          absl::StrFormat("%.9g", row.trend.slope),
          trend.enough ? absl::StrFormat("%.6g", row.trend.p_rise) : std::string(),
          words::CsvField(row.site->caller), words::CsvField(row.site->file),
          row.site->line == 0 ? std::string() : absl::StrCat(row.site->line)};
      out.Write(absl::StrCat(absl::StrJoin(fields, ","), "\r\n"));
    }
  }
}

}  // namespace memtrace::report
