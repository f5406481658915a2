// Plots in characters: a timeline resampled to columns, bars of eighths of a
// block (or of # : . in ASCII), a time axis with round ticks.
//
// Invariants, which the tests hold: the highest column of ResampleMax is the
// highest point; the columns of ResampleSum add up to the sum of the points; a
// value that is not 0 draws at least the smallest mark.

#ifndef MEMTRACE_REPORT_RENDER_PLOT_H_
#define MEMTRACE_REPORT_RENDER_PLOT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "report/findings/analysis.h"
#include "report/render/style.h"

namespace memtrace::report::render {

// The axis: `columns` equal parts of [from_ns, to_ns].
struct TimeAxis {
  uint64_t from_ns = 0;
  uint64_t to_ns = 0;
  size_t columns = 0;

  size_t ColumnOf(uint64_t time_ns) const;
};

// One value of a timeline, as time of its interval's end.
struct Sample {
  uint64_t time_ns = 0;
  double value = 0;
};

// The largest value within each column; a sample holds since the one before it.
std::vector<double> ResampleMax(absl::Span<const Sample> samples, const TimeAxis& axis);
// The samples' values spread over the columns that their intervals cover.
std::vector<double> ResampleSum(absl::Span<const Sample> samples, const TimeAxis& axis);

// Lines of a bar chart, top first, each with values.size() columns.
std::vector<std::string> Bars(absl::Span<const double> values, double max, size_t rows,
                              const Style& style);
std::string HorizontalBar(double value, double max, size_t width, const Style& style);

// The axis line and the labels below it: two lines of axis.columns columns.
std::vector<std::string> TimeAxisLines(const TimeAxis& axis, const Style& style);

// A chart with value labels on the left, `rows` high, as lines that end in "\n".
// `margin` is the width of the labels' column.
struct Chart {
  std::vector<double> values;
  double max = 0;
  size_t rows = 0;
  std::string top_label, middle_label, bottom_label;
  Ink ink = Ink::kPlot;
};
std::string ChartText(const Chart& chart, size_t margin, const Style& style);

}  // namespace memtrace::report::render

#endif  // MEMTRACE_REPORT_RENDER_PLOT_H_
