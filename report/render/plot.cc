#include "report/render/plot.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "report/words/escape.h"

namespace memtrace::report::render {
namespace {

constexpr absl::string_view kEighths[] = {" ",      "\u2581", "\u2582", "\u2583", "\u2584",
                                          "\u2585", "\u2586", "\u2587", "\u2588"};
constexpr absl::string_view kLeftEighths[] = {"",       "\u258f", "\u258e", "\u258d", "\u258c",
                                              "\u258b", "\u258a", "\u2589", "\u2588"};
constexpr absl::string_view kAscii[] = {" ", ".", ".", ".", ":", ":", ":", ":", "#"};

// Height of a bar in eighths of a row.
size_t Eighths(double value, double max, size_t rows) {
  if (!(value > 0) || !(max > 0)) return 0;
  const double eighths = std::round(std::min(value / max, 1.0) * static_cast<double>(rows) * 8);
  return std::max<size_t>(1, static_cast<size_t>(eighths));
}

// A step of 1, 2 or 5 times a power of ten; from a minute on, of a clock.
uint64_t RoundStep(double at_least_ns) {
  static constexpr uint64_t kSecond = 1000000000;
  static constexpr uint64_t kClock[] = {60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 21600,
                                        43200, 86400};
  if (at_least_ns > 50.0 * kSecond) {
    for (const uint64_t seconds : kClock) {
      if (static_cast<double>(seconds * kSecond) >= at_least_ns) return seconds * kSecond;
    }
    return static_cast<uint64_t>(std::ceil(at_least_ns / (86400.0 * kSecond))) * 86400 * kSecond;
  }
  uint64_t power = 1;
  while (true) {
    for (const uint64_t factor : {1, 2, 5}) {
      if (static_cast<double>(power * factor) >= at_least_ns) return power * factor;
    }
    power *= 10;
  }
}

struct TimeUnit {
  uint64_t ns;
  absl::string_view name;
};

// That of the step, or seconds where the axis ends after many of them: one for all ticks, so
// that the labels read as one row.
TimeUnit UnitOf(uint64_t step, uint64_t axis_end_ns) {
  if (step >= 3600000000000u) return {3600000000000u, "h"};
  if (step >= 60000000000u) return {60000000000u, "min"};
  if (step >= 100000000 || axis_end_ns >= 10000000000u) return {1000000000, "s"};
  if (step >= 100000) return {1000000, "ms"};
  if (step >= 100) return {1000, "us"};
  return {1, "ns"};
}

// All digits, for one tick may differ from the next in the last. A tick of minutes or of hours
// has whole ones.
std::string TickLabel(uint64_t time_ns, const TimeUnit& unit) {
  if (time_ns == 0) return "0";
  std::string digits = absl::StrCat(time_ns / unit.ns);
  if (const uint64_t rest = time_ns % unit.ns; rest != 0) {
    // The one before the digits keeps their leading zeros.
    absl::StrAppend(&digits, ".", absl::StrCat(unit.ns + rest).substr(1));
    digits.resize(digits.find_last_not_of('0') + 1);
  }
  return absl::StrCat(digits, " ", unit.name);
}

}  // namespace

size_t TimeAxis::ColumnOf(uint64_t time_ns) const {
  if (columns == 0 || to_ns <= from_ns || time_ns <= from_ns) return 0;
  const double share =
      static_cast<double>(time_ns - from_ns) / static_cast<double>(to_ns - from_ns);
  return std::min(columns - 1, static_cast<size_t>(share * static_cast<double>(columns)));
}

std::vector<double> ResampleMax(absl::Span<const Sample> samples, const TimeAxis& axis) {
  std::vector<double> values(axis.columns, 0);
  if (axis.columns == 0) return values;
  uint64_t begin = axis.from_ns;
  for (const Sample& sample : samples) {
    // An interval that ends at a column's edge does not reach into the next.
    const size_t first = axis.ColumnOf(begin);
    const size_t last =
        std::max(first, axis.ColumnOf(sample.time_ns > begin ? sample.time_ns - 1 : begin));
    for (size_t i = first; i <= last; ++i) values[i] = std::max(values[i], sample.value);
    begin = std::max(begin, sample.time_ns);
  }
  return values;
}

std::vector<double> ResampleSum(absl::Span<const Sample> samples, const TimeAxis& axis) {
  std::vector<double> values(axis.columns, 0);
  if (axis.columns == 0) return values;
  const double width = std::max<double>(
      static_cast<double>(axis.to_ns - std::min(axis.from_ns, axis.to_ns)) /
          static_cast<double>(axis.columns), 1);
  uint64_t begin = axis.from_ns;
  for (const Sample& sample : samples) {
    const uint64_t end = std::max(begin, std::min(sample.time_ns, axis.to_ns));
    const size_t first = axis.ColumnOf(begin);
    const size_t last = end > begin ? std::max(first, axis.ColumnOf(end - 1)) : first;
    if (first == last) {
      values[first] += sample.value;
    } else {
      const double length = static_cast<double>(end - begin);
      double rest = sample.value;
      for (size_t i = first; i < last; ++i) {
        const double column_end =
            static_cast<double>(axis.from_ns) + width * static_cast<double>(i + 1);
        const double column_begin =
            std::max(static_cast<double>(begin), column_end - width);
        const double part = sample.value * std::max(0.0, column_end - column_begin) / length;
        values[i] += part;
        rest -= part;
      }
      values[last] += std::max(rest, 0.0);
    }
    begin = end;
  }
  return values;
}

std::vector<std::string> Bars(absl::Span<const double> values, double max, size_t rows,
                              const Style& style) {
  std::vector<std::string> lines(rows);
  for (const double value : values) {
    const size_t height = Eighths(value, max, rows);
    for (size_t row = 0; row < rows; ++row) {
      const size_t below = (rows - 1 - row) * 8;
      const size_t here = height > below ? std::min<size_t>(height - below, 8) : 0;
      absl::StrAppend(&lines[row], style.utf8 ? kEighths[here] : kAscii[here]);
    }
  }
  return lines;
}

std::string HorizontalBar(double value, double max, size_t width, const Style& style) {
  const size_t eighths = width == 0 ? 0 : Eighths(value, max, width);
  std::string out;
  for (size_t i = 0; i < eighths / 8; ++i) {
    absl::StrAppend(&out, style.utf8 ? kLeftEighths[8] : absl::string_view("#"));
  }
  if (style.utf8) {
    absl::StrAppend(&out, kLeftEighths[eighths % 8]);
  } else if (eighths % 8 != 0) {
    absl::StrAppend(&out, eighths % 8 >= 4 ? ":" : ".");
  }
  return out;
}

std::vector<std::string> TimeAxisLines(const TimeAxis& axis, const Style& style) {
  std::vector<bool> tick(axis.columns, false);
  std::string labels(axis.columns, ' ');
  if (axis.columns > 0 && axis.to_ns > axis.from_ns) {
    const double span = static_cast<double>(axis.to_ns - axis.from_ns);
    const uint64_t step = RoundStep(span * 12 / static_cast<double>(axis.columns));
    const TimeUnit unit = UnitOf(step, axis.to_ns);
    size_t free_from = 0;
    for (uint64_t t = (axis.from_ns + step - 1) / step * step; t < axis.to_ns; t += step) {
      const size_t column = axis.ColumnOf(t);
      tick[column] = true;
      const std::string label = TickLabel(t, unit);
      if (column < free_from || column + label.size() > axis.columns) continue;
      labels.replace(column, label.size(), label);
      free_from = column + label.size() + 2;
    }
  }
  std::string line;
  for (const bool is_tick : tick) {
    absl::StrAppend(&line, is_tick ? (style.utf8 ? "\u252c" : "+") : style.dash());
  }
  return {line, labels};
}

std::string ChartText(const Chart& chart, size_t margin, const Style& style) {
  const std::vector<std::string> lines = Bars(chart.values, chart.max, chart.rows, style);
  std::string out;
  for (size_t row = 0; row < lines.size(); ++row) {
    std::string label;
    if (row == 0) {
      label = chart.top_label;
    } else if (row + 1 == lines.size()) {
      label = chart.bottom_label;
    } else if (row == lines.size() / 2) {
      label = chart.middle_label;
    }
    const std::string space(
        margin > words::DisplayWidth(label) ? margin - words::DisplayWidth(label) : 0, ' ');
    std::string bars = lines[row];
    absl::StripTrailingAsciiWhitespace(&bars);
    absl::StrAppend(&out, space, label, label.empty() ? (style.utf8 ? " \u2502" : " |")
                                                      : (style.utf8 ? " \u2524" : " +"),
                    style.Paint(chart.ink, bars), "\n");
  }
  return out;
}

}  // namespace memtrace::report::render
