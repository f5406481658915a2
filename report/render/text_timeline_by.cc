// The heap over time by what the user asked for: a line for each part, all of one scale.

#include <algorithm>
#include <functional>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "report/render/plot.h"
#include "report/render/stacked_timeline.h"
#include "report/render/table.h"
#include "report/render/text_report.h"
#include "report/words/escape.h"
#include "report/words/units.h"

namespace memtrace::report::render {

std::string TimelineByText(const ReportView& view, const TextOptions& options) {
  if (options.timeline_by == StackBy::kNone) return "";
  const StackedTimeline timeline = StackTimeline(
      view, options.timeline_by, options.full ? SIZE_MAX : std::max<size_t>(options.top, 1));
  const std::string title =
      absl::StrCat("HEAP OVER TIME BY ", absl::AsciiStrToUpper(StackByName(options.timeline_by)));
  if (timeline.series.empty()) return Heading(options, title, "nothing was ever live");
  uint64_t most = std::max<uint64_t>(timeline.other.most(), 1);
  for (const StackedTimeline::Series& series : timeline.series) {
    most = std::max(most, series.most());
  }
  const Numbers numbers(view, options.style);
  const Style& style = options.style;
  const uint64_t end = EndNs(view.analysis());
  const TimeAxis axis{timeline.from_ns, std::max(end, timeline.from_ns + 1),
                      std::clamp<size_t>(style.width / 3, 20, 64)};
  TextTable table(
      {{"most"}, {"at the end"}},
      absl::StrCat("from ", words::Duration(timeline.from_ns), " to ", words::Duration(end)));
  const auto name_in = [&](const StackedTimeline::Series& series, size_t width) {
    if (series.caller != nullptr) {
      return FrameText(view, *series.caller, width, options, Ink::kPlain);
    }
    // What tells two folders apart is at their end.
    const auto keep =
        options.timeline_by == StackBy::kFolder ? words::KeepEnd : words::KeepBeginning;
    return keep(style.Name(series.name), width, style.ellipsis());
  };
  const auto add = [&](const StackedTimeline::Series& series,
                       const std::function<std::string(size_t width)>& name) {
    std::vector<Sample> samples;
    for (size_t i = 0; i < series.live_bytes.size(); ++i) {
      samples.push_back({std::min(timeline.from_ns + (i + 1) * timeline.interval_ns, axis.to_ns),
                         static_cast<double>(series.live_bytes[i])});
    }
    const std::string line =
        Bars(ResampleMax(samples, axis), static_cast<double>(most), 1, style)[0];
    table.AddRow({numbers.Bytes(series.most()), numbers.Bytes(series.live_bytes.back())},
                 [&style, line, name](size_t width) {
                   const size_t used = words::DisplayWidth(line) + 2;
                   return absl::StrCat(style.Paint(Ink::kPlot, line), "  ",
                                       name(width > used ? width - used : 0));
                 });
  };
  for (const StackedTimeline::Series& series : timeline.series) {
    add(series, [&name_in, &series](size_t width) { return name_in(series, width); });
  }
  if (timeline.others > 0) {
    add(timeline.other, [&](size_t width) {
      return words::KeepBeginning(absl::StrCat(words::Count(timeline.others), " others"), width,
                                  style.ellipsis());
    });
  }
  // What comes and goes within an interval is not in it, so that "most" may be less than the peak.
  return absl::StrCat(
      Heading(options, title,
              absl::StrCat("live bytes every ", words::Duration(timeline.interval_ns),
                           ", all of one scale")),
      table.Render(style, 2));
}

}  // namespace memtrace::report::render
