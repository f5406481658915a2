// --format html: the document of --format json inside the page that shows it.

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "report/html/page.h"
#include "report/render/formats.h"
#include "report/render/json_parts.h"
#include "report/render/stack_numbers.h"

namespace memtrace::report::render {

namespace {

// "series": for each site of the document what it did over time, as rows of six numbers: interval,
// allocations and frees in it, live blocks and bytes at its end, and by how much more was live in it.
void WriteSeries(const ReportView& view, size_t top, words::Sink& out) {
  const Analysis& analysis = view.analysis();
  if (analysis.series_interval_ns == 0) return;
  out.Write(absl::StrCat(",\n\"series\":{\"begin_s\":",
                         Dump(static_cast<double>(analysis.range.from_ns) / 1e9),
                         ",\"interval_s\":",
                         Dump(static_cast<double>(analysis.series_interval_ns) / 1e9),
                         ",\"points\":["));
  const size_t count = std::min(top, view.sites().size());
  for (size_t i = 0; i < count && !out.done(); ++i) {
    std::string row = i == 0 ? "[" : ",[";
    for (const SeriesPoint& point : view.sites()[i]->series) {
      absl::StrAppend(&row, row.back() == '[' ? "" : ",", point.interval, ",", point.allocations,
                      ",", point.frees, ",", point.live_blocks, ",", point.live_bytes, ",",
                      point.high_bytes - std::min(point.high_bytes, point.live_bytes));
    }
    out.Write(absl::StrCat(row, "]"));
  }
  out.Write("]}");
}

// "samples": of a sampled trace, for each site of the document what its estimates are made of, from
// which the page has the interval of any sum of them: rows of the bytes that were seen, the
// estimate, its variance, and N.
void WriteSamples(const ReportView& view, size_t top, words::Sink& out) {
  if (!view.sampled()) return;
  const size_t count = std::min(top, view.sites().size());
  const auto member = [&](absl::string_view begin, const auto& sum_of) {
    out.Write(begin);
    for (size_t i = 0; i < count && !out.done(); ++i) {
      const SampledSum& sum = sum_of(*view.sites()[i]);
      const Json row = {sum.seen, sum.estimate, sum.variance, sum.sample_bytes};
      out.Write(absl::StrCat(i == 0 ? "" : ",", Dump(row)));
    }
    out.Write("]");
  };
  member(",\n\"samples\":{\"bytes_allocated\":[",
         [](const Site& site) -> const SampledSum& { return site.bytes_sample; });
  member(",\"live_bytes\":[",
         [](const Site& site) -> const SampledSum& { return site.live_sample; });
  out.Write("}");
}

}  // namespace

void RenderHtml(ReportView view, size_t top, words::Sink& out) {
  StackNumbers numbers(&view);
  view.set_stack_numbers(&numbers);
  html::WritePage(
      "report",
      [&](words::Sink& data) {
        data.Write(absl::StrCat(",\"file\":", Dump(view.analysis().file), ",\"report\":"));
        RenderJson(view, top, data);
        numbers.WriteTables(data);
        WriteSeries(view, top, data);
        WriteSamples(view, top, data);
      },
      out);
}

}  // namespace memtrace::report::render
