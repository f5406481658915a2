// Heap growth and faults over time, on the same axis, and what they say together.

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "report/render/fault_words.h"
#include "report/render/plot.h"
#include "report/render/table.h"
#include "report/render/text_report.h"
#include "report/words/escape.h"
#include "report/words/units.h"

namespace memtrace::report::render {
namespace {

constexpr size_t kMargin = 12;  // of value labels; the same in every plot, to share the axis
constexpr size_t kHeapRows = 12;
constexpr size_t kRssRows = 3;
constexpr uint64_t kFewestBusyFaults = 16;  // fewer are no burst worth a line
constexpr size_t kFaultRows = 4;

TimeAxis AxisOf(const Analysis& analysis, const Style& style) {
  // Two columns for the axis, one free at the right so that no terminal wraps.
  return {BeginNs(analysis), EndNs(analysis), style.width - kMargin - 3};
}

std::vector<Sample> Samples(const Analysis& analysis, uint64_t TimelinePoint::*member) {
  std::vector<Sample> samples;
  for (const TimelinePoint& point : analysis.timeline) {
    samples.push_back({point.time_ns, static_cast<double>(point.*member)});
  }
  return samples;
}

std::string AxisText(const TimeAxis& axis, const Style& style) {
  const std::string space(kMargin, ' ');
  std::vector<std::string> lines = TimeAxisLines(axis, style);
  absl::StripTrailingAsciiWhitespace(&lines[1]);
  return absl::StrCat(space, style.utf8 ? " \u2514" : " +", lines[0], "\n", space, "  ", lines[1],
                      "\n");
}

// The line above the plot that points at the peak's column.
std::string PeakLine(const TimeAxis& axis, size_t column, absl::string_view text,
                     const Style& style) {
  const absl::string_view arrow = style.utf8 ? "\u25bc" : "v";
  const size_t text_width = words::DisplayWidth(text);
  std::string line;
  if (column + 2 + text_width <= axis.columns) {
    line = absl::StrCat(std::string(column, ' '), arrow, " ", text);
  } else if (text_width + 1 <= column) {
    line = absl::StrCat(std::string(column - text_width - 1, ' '), text, " ", arrow);
  } else {
    line = absl::StrCat(std::string(column, ' '), arrow);
  }
  return absl::StrCat(std::string(kMargin + 2, ' '), style.Paint(Ink::kBad, line), "\n");
}

std::string PeakSites(const ReportView& view, const TextOptions& options) {
  std::vector<SiteGroup> groups;
  for (const SiteGroup& group : view.callers()) {
    if (group.bytes_at_peak > 0) groups.push_back(group);
  }
  if (groups.empty()) return "";
  SortGroups(view, SortColumn::kPeak, &groups);
  const Numbers numbers(view, options.style);
  TextTable table({{"at the peak"}, {"share"}, {"blocks"}}, "caller");
  const size_t shown = options.Shown(groups.size());
  for (size_t i = 0; i < shown; ++i) {
    const SiteGroup& group = groups[i];
    table.AddRow({numbers.estimated() ? numbers.Amount(group.bytes_at_peak)
                                      : words::HumanBytes(group.bytes_at_peak),
                  words::Percent(group.bytes_at_peak, view.analysis().totals.peak_live_bytes),
                  numbers.estimated() ? numbers.Events(group.blocks_at_peak)
                                      : words::Count(group.blocks_at_peak)},
                 [&view, &options, stack = group.stack](size_t width) {
                   return CallerCell(view, stack, width, options);
                 });
  }
  return absl::StrCat("\n", table.Render(options.style, 2),
                      MoreLine(options, groups.size(), shown, "caller"));
}

// The stretch of the timeline in which faults came at more than twice their mean
// rate, and most of them: the largest sum of (faults - 2 * mean) over neighbours.
struct Burst {
  uint64_t begin_ns = 0, end_ns = 0, faults = 0;
};

Burst BusiestStretch(const Analysis& analysis) {
  uint64_t all = 0;
  for (const TimelinePoint& point : analysis.timeline) all += point.minor_faults;
  const double usual = 2 * static_cast<double>(all) /
                       static_cast<double>(std::max<size_t>(analysis.timeline.size(), 1));
  Burst best, now;
  double best_sum = 0, sum = 0;
  uint64_t begin = BeginNs(analysis);
  for (const TimelinePoint& point : analysis.timeline) {
    if (sum <= 0) {
      sum = 0;
      now = {begin, begin, 0};
    }
    sum += static_cast<double>(point.minor_faults) - usual;
    now.faults += point.minor_faults;
    now.end_ns = begin = point.time_ns;
    if (sum > best_sum) {
      best_sum = sum;
      best = now;
    }
  }
  return best;
}

// Faults while the heap grew to its peak, over that growth. (A range is about the
// blocks allocated in it: its heap begins at 0, like the process's.) Not where blocks were chosen
// otherwise: the faults are those of all.
std::string FaultsUntilPeak(const ReportView& view, const TextOptions& options) {
  const Analysis& analysis = view.analysis();
  if (analysis.of_some_blocks()) return "";
  const uint64_t growth = analysis.totals.peak_live_bytes;
  uint64_t until_peak = 0, begin = BeginNs(analysis);
  for (const TimelinePoint& point : analysis.timeline) {
    if (begin < analysis.totals.peak_time_ns) until_peak += point.minor_faults;
    begin = point.time_ns;
  }
  if (growth < 65536 || until_peak == 0) return "";
  constexpr double kMib = 1048576.0;
  const std::string grown =
      view.sampled() ? Numbers(view, options.style).Amount(growth) : words::HumanBytes(growth);
  return absl::StrCat(
      Sentence(options, absl::StrFormat("Up to the peak %s for %s of growth: %.0f per MiB.",
                                        words::Plural(until_peak, "minor fault"), grown,
                                        static_cast<double>(until_peak) /
                                            (static_cast<double>(growth) / kMib))),
      Sentence(options,
               absl::StrFormat("(%.0f is every page of it touched once; code, stacks and files "
                               "fault as well.)",
                               kMib / static_cast<double>(analysis.process.page_bytes))));
}

std::string BusiestText(const Analysis& analysis, const TextOptions& options) {
  const Burst burst = BusiestStretch(analysis);
  if (burst.faults < kFewestBusyFaults) return "";
  return Sentence(
      options,
      absl::StrCat("Busiest: ", words::Plural(burst.faults, "minor fault"), " between ",
                   words::Duration(burst.begin_ns), " and ", words::Duration(burst.end_ns), " (",
                   words::HumanBytes(burst.faults * analysis.process.page_bytes), " of pages)."));
}

// Those that were counted and are at no time of the timeline. `plotted`: there is a plot.
std::string FaultsNotPlotted(const Analysis& analysis, bool plotted, const TextOptions& options) {
  uint64_t minor = 0, major = 0;
  for (const TimelinePoint& point : analysis.timeline) {
    minor += point.minor_faults;
    major += point.major_faults;
  }
  const Faults& faults = analysis.faults;
  const uint64_t minor_left = faults.minor - std::min(minor, faults.minor);
  const uint64_t major_left = faults.major - std::min(major, faults.major);
  if (minor_left + major_left == 0) return "";
  const bool one = minor_left + major_left == 1;
  return Sentence(
      options,
      absl::StrCat(minor_left > 0 ? absl::StrCat(words::Count(minor_left), " minor") : "",
                   minor_left > 0 && major_left > 0 ? " and " : "",
                   major_left > 0 ? absl::StrCat(words::Count(major_left), " major") : "",
                   one ? " fault is" : " faults are",
                   plotted ? " not in the plot:" : " in no plot:",
                   analysis.range.from_ns != 0
                       ? absl::StrCat(" no sample tells when ", one ? "it was." : "they were.")
                       : absl::StrCat(one ? " it was" : " they were",
                                      " before the first sample, as a program's start is, or after "
                                      "the last.")));
}

}  // namespace

std::string GrowthText(const ReportView& view, const TextOptions& options) {
  const Analysis& analysis = view.analysis();
  const Totals& totals = analysis.totals;
  if (analysis.timeline.empty() || totals.peak_live_bytes == 0) {
    return Heading(options, "HEAP OVER TIME", "nothing was ever live");
  }
  const Style& style = options.style;
  const TimeAxis axis = AxisOf(analysis, style);
  Chart heap;
  heap.values = ResampleMax(Samples(analysis, &TimelinePoint::max_live_bytes), axis);
  const size_t peak = axis.ColumnOf(totals.peak_time_ns);
  // The peak's column shows it even where time is coarser than the plot.
  heap.values[peak] = std::max(heap.values[peak], static_cast<double>(totals.peak_live_bytes));
  heap.max = static_cast<double>(totals.peak_live_bytes);
  heap.rows = kHeapRows;
  heap.top_label = words::HumanBytes(totals.peak_live_bytes);
  heap.middle_label = words::HumanBytes(totals.peak_live_bytes / 2);
  heap.bottom_label = "live  0 B";
  std::string out =
      Heading(options, "HEAP OVER TIME",
              absl::StrCat("live bytes", view.sampled() ? ", estimates of a sample" : ""));
  absl::StrAppend(
      &out,
      PeakLine(axis, peak,
               absl::StrCat("peak ", Numbers(view, style).Amount(totals.peak_live_bytes), " at ",
                            words::Duration(totals.peak_time_ns)),
               style),
      ChartText(heap, kMargin, style));
  uint64_t most_rss = 0;
  for (const TimelinePoint& point : analysis.timeline) {
    most_rss = std::max(most_rss, point.rss_bytes);
  }
  absl::StrAppend(&out, AxisText(axis, style));
  if (most_rss > 0) {
    Chart rss;
    rss.values = ResampleMax(Samples(analysis, &TimelinePoint::rss_bytes), axis);
    rss.max = static_cast<double>(most_rss);
    rss.rows = kRssRows;
    rss.top_label = words::HumanBytes(most_rss);
    rss.bottom_label = "RSS  0 B";
    rss.ink = Ink::kDim;
    absl::StrAppend(&out, ChartText(rss, kMargin, style));
  }
  return absl::StrCat(out, PeakSites(view, options));
}

std::string FaultsText(const ReportView& view, const TextOptions& options) {
  const Analysis& analysis = view.analysis();
  const Faults& faults = analysis.faults;
  if (analysis.process.imported()) return Heading(options, "PAGE FAULTS", "not in the log");
  if (faults.minor == 0 && faults.major == 0) {
    return Heading(options, "PAGE FAULTS",
                   faults.counted ? "none were seen" : "not known: none were counted");
  }
  const Style& style = options.style;
  std::string out =
      Heading(options, "PAGE FAULTS",
              absl::StrCat(words::Count(faults.minor), " minor, ", words::Count(faults.major),
                           " major, of the whole process"));
  const TimeAxis axis = AxisOf(analysis, style);
  bool plotted = false;
  const auto add_chart = [&](uint64_t TimelinePoint::*member, absl::string_view name, Ink ink,
                             size_t rows) {
    Chart chart;
    chart.values = ResampleSum(Samples(analysis, member), axis);
    chart.max = chart.values.empty()
                    ? 0 : *std::max_element(chart.values.begin(), chart.values.end());
    if (chart.max <= 0) return;
    plotted = true;
    chart.rows = rows;
    chart.ink = ink;
    chart.top_label = words::ShortCount(static_cast<uint64_t>(std::ceil(chart.max)));
    chart.bottom_label = absl::StrCat(name, "  0");
    absl::StrAppend(&out, ChartText(chart, kMargin, style));
  };
  if (!analysis.timeline.empty() && axis.to_ns > axis.from_ns) {
    add_chart(&TimelinePoint::minor_faults, "minor", Ink::kPlot2, kFaultRows);
    add_chart(&TimelinePoint::major_faults, "major", Ink::kBad, 2);
  }
  if (plotted) {
    const std::string column = words::Duration((axis.to_ns - axis.from_ns) / axis.columns);
    absl::StrAppend(&out, AxisText(axis, style),
                    Sentence(options, absl::StrCat("Each column is ", column,
                                                   " wide; counts are faults within one."),
                             Ink::kDim));
  }

  absl::StrAppend(&out, FaultsUntilPeak(view, options), BusiestText(analysis, options),
                  FaultsNotPlotted(analysis, plotted, options));
  for (const std::string& sentence : CorrelationSentences(analysis)) {
    absl::StrAppend(&out, Sentence(options, sentence));
  }
  return out;
}

}  // namespace memtrace::report::render
