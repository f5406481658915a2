// --format json, html and csv of `memtrace diff`.

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "report/diff/diff_formats.h"
#include "report/html/page.h"
#include "report/render/json_parts.h"
#include "report/words/escape.h"
#include "report/words/units.h"

namespace memtrace::report {
namespace {

using render::Json;

// Whole where nothing was divided.
Json Number(Per per, double value) {
  return per == Per::kRun ? Json(static_cast<int64_t>(std::llround(value))) : Json(value);
}

Json AmountsJson(const Amounts& amounts, bool scanned, bool sampled) {
  Json json = {{"live_bytes", amounts[Measure::kLive]},
               {"live_blocks", amounts[Measure::kLiveBlocks]},
               {"peak_bytes", amounts[Measure::kPeak]},
               {"bytes_allocated", amounts[Measure::kAllocated]},
               {"allocations", amounts[Measure::kAllocations]}};
  json["temporary"] = sampled ? Json() : Json(amounts[Measure::kTemporary]);
  for (const Measure kind : {Measure::kDefinite, Measure::kIndirect, Measure::kPossible,
                             Measure::kReachable}) {
    json[absl::StrCat(MeasureName(kind), "_bytes")] = scanned ? Json(amounts[kind]) : Json();
  }
  return json;
}

Json RunJson(const RunSummary& run) {
  return {
      {"name", run.name},
      {"command", run.command},
      {"end", run.end},
      {"start_time", run.start_realtime_ns == 0 ? Json()  // of an imported log
                                                : Json(words::DateTimeIso(run.start_realtime_ns))},
      {"duration_s", render::Seconds(run.duration_ns)},
      {"only", run.only},
      {"processes", run.processes},
      {"executables", run.executables},
      {"estimated", run.sampled},
      {"leaks_known", run.scanned},
      {"all_recorded", run.all_recorded},
      {"notes", run.notes},
      {"totals", AmountsJson(run.totals, run.scanned, run.sampled)}};
}

Json SiteJson(const RunSite* site, const RunSummary& run) {
  return site == nullptr ? Json() : AmountsJson(site->amounts, run.scanned, run.sampled);
}

Json RowJson(const RunDiff& diff, const DiffRow& row) {
  const Per per = diff.options.per;
  Json json = {{"verdict", std::string(VerdictName(row.verdict))},
               {"fingerprint", row.fingerprint},
               {"executable", row.executable.empty() ? Json() : Json(row.executable)},
               {"old", Number(per, row.old_value)},
               {"new", Number(per, row.new_value)},
               {"change", Number(per, row.change())},
               {"old_amounts", SiteJson(row.in_old, *diff.old_run)},
               {"new_amounts", SiteJson(row.in_new, *diff.new_run)},
               {"allocator", row.site->allocator},
               {"caller", row.site->caller}};
  json["file"] = row.site->file.empty() ? Json() : Json(row.site->file);
  json["line"] = row.site->line == 0 ? Json() : Json(row.site->line);
  json["called_by"] = row.apart.called_by.empty() ? Json() : Json(row.apart.called_by);
  json["called_by_depth"] = row.apart.called_by.empty() ? Json() : Json(row.apart.callers);
  json["stack"] = row.site->stack;
  return json;
}

}  // namespace

void RenderDiffJson(const RunDiff& diff, size_t top, words::Sink& out) {
  const render::MemberWriter member(&out);
  out.Write("{\n  \"schema\": \"memtrace-diff/1\"");
  member("by", std::string(MeasureName(diff.options.measure)));
  member("per", std::string(PerName(diff.options.per)));
  member("grew", diff.grew());
  // "sites" and "counts" are of the sites that match; the totals are of all sites.
  const render::FrameFilter& frames = diff.new_run->frames;
  member("match", frames.match);
  member("function", frames.function);
  member("file", frames.file);
  member("module", frames.module);
  member("only", frames.all() ? Json::array() : Json::array({absl::StrCat("sites ", frames.Text())}));
  member("old", RunJson(*diff.old_run));
  member("new", RunJson(*diff.new_run));
  Json counts = Json::object();
  for (const Verdict verdict : {Verdict::kNew, Verdict::kGrown, Verdict::kShrunk, Verdict::kGone}) {
    counts[std::string(VerdictName(verdict))] =
        std::count_if(diff.rows.begin(), diff.rows.end(),
                      [&](const DiffRow& row) { return row.verdict == verdict; });
  }
  counts["same"] = diff.same;
  counts["by_chance"] = diff.by_chance;
  member("counts", counts);
  out.Write(",\n  \"sites\": ");
  render::WriteArray(diff.rows, top, [&](const DiffRow& row) { return RowJson(diff, row); }, out);
  member("sites_total", diff.rows.size());
  out.Write("\n}\n");
}

void RenderDiffHtml(const RunDiff& diff, size_t top, words::Sink& out) {
  html::WritePage(
      "diff",
      [&](words::Sink& data) {
        data.Write(",\"diff\":");
        RenderDiffJson(diff, top, data);
      },
      out);
}

void RenderDiffCsv(const RunDiff& diff, size_t top, words::Sink& out) {
  out.Write("verdict,executable,fingerprint,by,per,old,new,change,old_blocks,new_blocks,allocator,"
            "caller,file,line,stack\r\n");
  const Per per = diff.options.per;
  const auto number = [&](double value) {
    return per == Per::kRun ? absl::StrCat(std::llround(value)) : absl::StrFormat("%.9g", value);
  };
  const auto blocks = [](const RunSite* site) {
    return site == nullptr ? std::string() : absl::StrCat(site->amounts[Measure::kLiveBlocks]);
  };
  for (size_t i = 0; i < std::min(top, diff.rows.size()) && !out.done(); ++i) {
    const DiffRow& row = diff.rows[i];
    const std::string fields[] = {
        std::string(VerdictName(row.verdict)), words::CsvField(row.executable), row.fingerprint,
        std::string(MeasureName(diff.options.measure)), std::string(PerName(per)),
        number(row.old_value), number(row.new_value), number(row.change()), blocks(row.in_old),
        blocks(row.in_new), row.site->allocator, words::CsvField(row.site->caller),
        words::CsvField(row.site->file),
        row.site->line == 0 ? std::string() : absl::StrCat(row.site->line),
        words::CsvField(absl::StrJoin(row.site->stack, " < "))};
    out.Write(absl::StrCat(absl::StrJoin(fields, ","), "\r\n"));
  }
}

}  // namespace memtrace::report
