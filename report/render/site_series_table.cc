#include "report/render/site_series_table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "report/render/csv_record.h"
#include "report/render/json_parts.h"
#include "report/render/lines.h"
#include "report/render/selection_lines.h"
#include "report/render/table.h"
#include "report/words/escape.h"
#include "report/words/units.h"

namespace memtrace::report::render {
namespace {

constexpr size_t kTextSteps = 16;

uint64_t BeginOf(const Analysis& analysis) {
  return std::max(analysis.range.from_ns, analysis.coverage.window_begin_ns);
}

uint64_t EndOf(const Analysis& analysis) {
  return std::min(analysis.process.duration_ns, analysis.range.to_ns);
}

}  // namespace

std::vector<SeriesStep> StepsOf(const Analysis& analysis, const Site& site, size_t most) {
  std::vector<SeriesStep> steps;
  const uint64_t interval = analysis.series_interval_ns;
  const uint64_t begin = BeginOf(analysis), end = std::max(EndOf(analysis), begin);
  if (interval == 0) return steps;
  const size_t count = std::max<size_t>((end - begin + interval - 1) / interval, 1);
  const size_t each = most >= count ? 1 : (count + most - 1) / most;
  auto point = site.series.begin();
  uint64_t live_bytes = 0, live_blocks = 0;
  for (size_t i = 0; i < count; i += each) {
    SeriesStep step;
    step.time_ns = std::min(begin + (i + each) * interval, end);
    const bool is_last = i + each >= count;  // it has what is at the very end
    for (; point != site.series.end() && (is_last || point->interval < i + each); ++point) {
      step.allocations += point->allocations;
      step.bytes_allocated += point->bytes_allocated;
      step.frees += point->frees;
      live_bytes = point->live_bytes;
      live_blocks = point->live_blocks;
    }
    step.live_bytes = live_bytes;
    step.live_blocks = live_blocks;
    steps.push_back(step);
  }
  return steps;
}

std::vector<const Site*> SeriesSites(const ReportView& view, size_t top) {
  std::vector<const Site*> sites = view.sites();
  std::stable_sort(sites.begin(), sites.end(), [](const Site* a, const Site* b) {
    return a->peak_bytes > b->peak_bytes;
  });
  if (sites.size() > top) sites.resize(top);
  return sites;
}

std::string SeriesText(const ReportView& view, const TextOptions& options) {
  const Analysis& analysis = view.analysis();
  const Numbers numbers(view, options.style);
  const auto sites = SeriesSites(view, options.full ? SIZE_MAX : options.top);
  std::string text =
      Heading(options, "SITES OVER TIME",
              absl::StrCat(words::Count(sites.size()), " of ", words::Count(view.sites().size()),
                           " sites, highest peak first"));
  Lines only(options);
  for (const std::string& line : SelectionLinesWithRange(view)) {
    only.Add("Only", options.style.Name(line), Ink::kWarning);
  }
  text += only.Take();
  for (const Site* site : sites) {
    const std::string fingerprint = view.Fingerprint(site->stack, site->function);
    const size_t room = options.style.width - fingerprint.size() - 4;
    text += absl::StrCat("\n  ", CallerWithin(view, site->stack, room, options), "  ", fingerprint,
                         "\n");
    TextTable table({{"until"}, {"live"}, {"blocks"}, {"allocated"}, {"allocations"}, {"frees"}},
                    "");
    for (const SeriesStep& step :
         StepsOf(analysis, *site, options.full ? SIZE_MAX : kTextSteps)) {
      table.AddRow({words::Duration(step.time_ns), numbers.Bytes(step.live_bytes),
                    words::Count(step.live_blocks), numbers.Bytes(step.bytes_allocated),
                    words::Count(step.allocations), words::Count(step.frees)},
                   {});
    }
    text += table.Render(options.style, 2);
  }
  return text;
}

void SeriesCsv(const ReportView& view, size_t top, words::Sink& out) {
  out.Write(
      "time_s,live_bytes,live_blocks,bytes_allocated,allocations,frees,caller,file,line,module,"
      "fingerprint\r\n");
  for (const Site* site : SeriesSites(view, top)) {
    const std::string fingerprint = view.Fingerprint(site->stack, site->function);
    for (const SeriesStep& step : StepsOf(view.analysis(), *site)) {
      CsvRecord()
          .Seconds(step.time_ns)
          .Number(step.live_bytes)
          .Number(step.live_blocks)
          .Number(step.bytes_allocated)
          .Number(step.allocations)
          .Number(step.frees)
          .Caller(view, site->stack)
          .Text(fingerprint)
          .WriteTo(out);
    }
  }
}

void SeriesJson(const ReportView& view, size_t top, words::Sink& out) {
  const Analysis& analysis = view.analysis();
  out.Write(absl::StrCat(
      "{\n  \"schema\": \"memtrace-series/1\",\n  \"begin_s\": ",
      Dump(static_cast<double>(BeginOf(analysis)) / 1e9), ",\n  \"end_s\": ",
      Dump(static_cast<double>(EndOf(analysis)) / 1e9), ",\n  \"interval_s\": ",
      Dump(static_cast<double>(analysis.series_interval_ns) / 1e9), ",\n  \"only\": ",
      Dump(Json(SelectionLinesWithRange(view))), ",\n  \"sites\": "));
  WriteArray(SeriesSites(view, top), SIZE_MAX, [&](const Site* site) {
    Json json;
    json["fingerprint"] = view.Fingerprint(site->stack, site->function);
    json["function"] = std::string(FunctionName(site->function));
    json["peak_bytes"] = site->peak_bytes;
    for (const char* name :
         {"live_bytes", "live_blocks", "bytes_allocated", "allocations", "frees"}) {
      json[name] = Json::array();
    }
    for (const SeriesStep& step : StepsOf(analysis, *site)) {
      json["live_bytes"].push_back(step.live_bytes);
      json["live_blocks"].push_back(step.live_blocks);
      json["bytes_allocated"].push_back(step.bytes_allocated);
      json["allocations"].push_back(step.allocations);
      json["frees"].push_back(step.frees);
    }
    json["stack"] = StackJson(view, site->stack);
    return json;
  }, out);
  out.Write("\n}\n");
}

}  // namespace memtrace::report::render
