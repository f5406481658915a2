// The text of `memtrace trend`: the nights, the total, then sites by what they do.

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "report/diff/diff_formats.h"
#include "report/render/lines.h"
#include "report/render/table.h"
#include "report/trend/trend_formats.h"
#include "report/words/units.h"

namespace memtrace::report {
namespace {

using namespace render;  // NOLINT: this file is a part of it

class TrendText {
 public:
  TrendText(const Trend& trend, const TextOptions& text)
      : trend_(trend), text_(text), style_(text.style), wide_(style_.wide()),
        columns_(wide_ ? 30 : 14) {
    for (const Night* night : trend.nights) estimated_ |= night->run.sampled;
  }

  std::string Nights(const std::string& name) const {
    Lines lines(text_);
    const Night& first = *trend_.nights.front();
    const Night& last = *trend_.nights.back();
    lines.Add("Nights", absl::StrCat(words::Count(trend_.nights.size()), ", from ", StartOf(first),
                                     LabelOf(first), " to ", StartOf(last), LabelOf(last)));
    lines.Add("By", absl::StrCat(MeasureName(trend_.options.measure),
                                 trend_.options.per == Per::kRun
                                     ? "" : absl::StrCat(" per ", PerName(trend_.options.per))));
    if (!trend_.options.match.empty()) {
      lines.Add("Only", absl::StrCat("sites that match /", style_.Name(trend_.options.match),
                                     "/, where sites are listed; the total is of all"),
                Ink::kWarning);
    }
    lines.Add("Total",
              absl::StrCat(Amount(trend_.totals.front()), " to ", Amount(trend_.totals.back()),
                           "  ", Sparkline(trend_.totals, columns_, style_.utf8)));
    if (const size_t nights = trend_.totals.size(); nights > columns_) {
      const size_t fewest = nights / columns_;
      lines.Add("", absl::StrCat("each mark is of ", fewest,
                                 nights % columns_ == 0 ? "" : absl::StrCat(" or ", fewest + 1),
                                 " nights, and as high as the highest of them"));
    }
    if (trend_.nights_left_out > 0) {
      lines.Add("",
                absl::StrCat(words::Plural(trend_.nights_left_out, "night"),
                             " left out: not known of them"),
                Ink::kWarning);
    }
    if (trend_.bad_lines > 0) {
      lines.Add("",
                absl::StrCat(words::Plural(trend_.bad_lines, "line"),
                             " of the history passed over: cut, or not of a night"),
                Ink::kWarning);
    }
    if (estimated_) lines.Add("", "some are samples: their amounts are estimates", Ink::kWarning);
    if (!trend_.enough) {
      lines.Add("",
                absl::StrCat("too few nights to tell growth from chance: ", trend_.options.fewest,
                             " are needed"),
                Ink::kWarning);
    }
    return absl::StrCat(style_.Paint(Ink::kHeading, "memtrace trend"), "  ", style_.Name(name),
                        "\n\n", lines.Take());
  }

  std::string Sites() const {
    std::string out;
    for (const TrendVerdict verdict : kTrendVerdicts) absl::StrAppend(&out, Of(verdict));
    if (trend_.enough && !trend_.grows()) {
      out.insert(0, Heading(text_, "GROWING",
                            style_.Paint(Ink::kGood, "no site grows from night to night")));
    }
    return out;
  }

 private:
  static std::string StartOf(const Night& night) {
    const int64_t start = night.run.start_realtime_ns;
    return start == 0 ? "an imported log" : words::DateTime(start);
  }
  std::string LabelOf(const Night& night) const {
    return night.label.empty() ? "" : absl::StrCat(" (", style_.Name(night.label), ")");
  }
  std::string Amount(double value) const {
    return AmountText(trend_.options.measure, trend_.options.per, value, estimated_);
  }
  std::string Change(double value) const {
    const double size = std::fabs(value);
    if (trend_.options.per != Per::kRun || size >= 1 || size == 0) {
      return ChangeText(trend_.options.measure, trend_.options.per, value, estimated_);
    }
    // Less than one a night: whole, it would be 0.
    return absl::StrCat(value > 0 ? "+" : "-", estimated_ ? "~" : "", absl::StrFormat("%.2g", size),
                        IsBytes(trend_.options.measure) ? " B" : "");
  }
  static std::string Chance(double p) {
    return p < 0.0001 ? "<0.0001" : absl::StrFormat("%.4f", p);
  }

  std::string Of(TrendVerdict verdict) const {
    std::vector<const TrendRow*> rows;
    for (const TrendRow& row : trend_.rows) {
      if (row.verdict == verdict) rows.push_back(&row);
    }
    if (rows.empty()) return "";
    if (verdict == TrendVerdict::kSteady && !text_.full) {
      return absl::StrCat(
          "\n",
          style_.Paint(Ink::kDim,
                       absl::StrCat("  ", words::Plural(rows.size(), "steady site"), ": --full")),
          "\n");
    }
    const bool bad = verdict == TrendVerdict::kGrowing;
    std::string out = Heading(
        text_,
        verdict == TrendVerdict::kUnknown ? "SITES" : absl::AsciiStrToUpper(TrendName(verdict)),
        style_.Paint(bad ? Ink::kBad : Ink::kPlain, words::Plural(rows.size(), "site")));
    std::vector<TextTable::Column> columns = {{"a night"}, {"now"}, {"nights", /*left=*/true}};
    if (wide_) columns.insert(columns.begin() + 1, {{"first"}, {"chance"}});
    if (wide_) columns.push_back({"fingerprint", /*left=*/true});
    TextTable table(std::move(columns), "caller");
    const size_t shown = text_.Shown(rows.size());
    for (size_t i = 0; i < shown; ++i) {
      const TrendRow& row = *rows[i];
      std::vector<std::string> cells = {Change(row.trend.slope), Amount(row.series.back()),
                                        Sparkline(row.series, columns_, style_.utf8)};
      if (wide_) {
        cells.insert(cells.begin() + 1,
                     {Amount(row.series.front()),
                      trend_.enough ? Chance(std::min(row.trend.p_rise, row.trend.p_fall)) : "-"});
        cells.push_back(row.fingerprint);
      }
      const size_t columns = cells.size();
      table.AddRow(std::move(cells), [this, &row](size_t width) {
        return CallerText(*row.site, row.executable, width, text_);
      });
      AddCalledBy(row.apart, row.fingerprint, columns, text_, &table);
    }
    return absl::StrCat(out, table.Render(style_, 2), MoreLine(text_, rows.size(), shown, "site"));
  }

  const Trend& trend_;
  const TextOptions& text_;
  const Style& style_;
  const bool wide_;
  const size_t columns_;  // of a sparkline
  bool estimated_ = false;
};

}  // namespace

std::string Sparkline(const std::vector<double>& series, size_t most, bool utf8) {
  static constexpr absl::string_view kBlocks[] = {"\u2581", "\u2582", "\u2583", "\u2584",
                                                  "\u2585", "\u2586", "\u2587", "\u2588"};
  static constexpr absl::string_view kAscii = ".:-=+*%#";
  const size_t marks = std::min(series.size(), most);
  double highest = 0;
  for (const double value : series) highest = std::max(highest, value);
  std::string out;
  for (size_t mark = 0; mark < marks; ++mark) {
    // Where there are more values than marks, a mark is of several, and none is left out.
    const double value = *std::max_element(
        series.begin() + static_cast<ptrdiff_t>(mark * series.size() / marks),
        series.begin() + static_cast<ptrdiff_t>((mark + 1) * series.size() / marks));
    if (value <= 0) {
      out += utf8 ? "\u00b7" : "_";
      continue;
    }
    const auto level = static_cast<size_t>(std::min(7.0, std::floor(8 * value / highest)));
    if (utf8) {
      absl::StrAppend(&out, kBlocks[level]);
    } else {
      out.push_back(kAscii[level]);
    }
  }
  return out;
}

std::string RenderTrendText(const Trend& trend, const std::string& name, const TextOptions& text) {
  const TrendText parts(trend, text);
  return absl::StrCat(parts.Nights(name), parts.Sites());
}

}  // namespace memtrace::report
