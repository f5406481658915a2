// The text of `memtrace diff`: both runs in figures, then the sites by what became of them.

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "report/diff/diff_formats.h"
#include "report/render/lines.h"
#include "report/render/table.h"
#include "report/words/escape.h"
#include "report/words/units.h"

namespace memtrace::report {
namespace {

using namespace render;  // NOLINT: this file is a part of it

constexpr size_t kNotesShown = 5;

uint64_t Whole(double value) {
  return value <= 0 ? 0 : value >= 1e19 ? UINT64_MAX : static_cast<uint64_t>(std::llround(value));
}

absl::string_view Unit(Per per) {
  switch (per) {
    case Per::kRun: return "";
    case Per::kSecond: return "/s";
    case Per::kAllocation: return "/alloc";
  }
  return "";
}

absl::string_view Title(Measure measure) {
  switch (measure) {
    case Measure::kLive: return "bytes unfreed at the end";
    case Measure::kLiveBlocks: return "blocks unfreed at the end";
    case Measure::kPeak: return "bytes at the peak of the heap";
    case Measure::kAllocated: return "bytes allocated";
    case Measure::kAllocations: return "allocations";
    case Measure::kTemporary: return "temporary allocations";
    case Measure::kDefinite: return "bytes definitely lost";
    case Measure::kIndirect: return "bytes indirectly lost";
    case Measure::kPossible: return "bytes possibly lost";
    case Measure::kReachable: return "bytes still reachable";
  }
  return "";
}

// "Unfreed", as in the report's summary.
absl::string_view Label(Measure measure) {
  switch (measure) {
    case Measure::kLive: return "unfreed";
    case Measure::kLiveBlocks: return "in blocks";
    case Measure::kPeak: return "peak";
    case Measure::kAllocated: return "allocated";
    case Measure::kAllocations: return "allocations";
    case Measure::kTemporary: return "temporary";
    case Measure::kDefinite: return "definitely lost";
    case Measure::kIndirect: return "indirectly lost";
    case Measure::kPossible: return "possibly lost";
    case Measure::kReachable: return "still reachable";
  }
  return "";
}

std::string Share(double old_value, double change) {
  if (old_value <= 0) return change > 0 ? "new" : "-";
  const double percent = 100 * change / old_value;
  if (std::fabs(percent) >= 99999.5) return percent > 0 ? ">+99999 %" : "-";
  if (change != 0 && std::fabs(percent) < 0.05) return percent > 0 ? "<+0.1 %" : ">-0.1 %";
  return absl::StrFormat("%+.1f %%", percent);
}

// Of "function  file:line".
Frame FrameOf(absl::string_view text) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(text, absl::MaxSplits("  ", 1));
  Frame frame;
  frame.function = std::string(parts.first);
  frame.file = std::string(parts.second);  // with the line
  return frame;
}

class DiffText {
 public:
  DiffText(const RunDiff& diff, const TextOptions& text)
      : diff_(diff), old_(*diff.old_run), new_(*diff.new_run), text_(text), style_(text.style),
        wide_(style_.wide()), estimated_(old_.sampled || new_.sampled) {}

  std::string Runs() const {
    Lines lines(text_);
    for (const auto& [label, run] : {std::pair<const char*, const RunSummary*>{"Old", &old_},
                                     {"New", &new_}}) {
      std::string line = absl::StrCat(
          style_.Name(absl::StrReplaceAll(run->command, {{"\u2026", style_.ellipsis()}})), ", ");
      if (run->start_realtime_ns != 0)
        absl::StrAppend(&line, words::DateTime(run->start_realtime_ns), ", ");
      absl::StrAppend(&line, run->end, run->start_realtime_ns != 0 ? " after " : " of ",
                      words::Duration(run->duration_ns));
      if (run->processes > 1) {
        absl::StrAppend(&line, ", ", words::Count(run->processes), " processes");
      }
      lines.Add(label, line);
      for (const std::string& only : run->only) {
        lines.Add("", absl::StrCat("only ", style_.Name(only)), Ink::kWarning);
      }
      for (size_t i = 0; i < run->notes.size(); ++i) {
        if (i == kNotesShown && !text_.full) {
          lines.Add(
              "",
              absl::StrCat("and ", words::Plural(run->notes.size() - i, "more note"), ": --full"),
              Ink::kWarning);
          break;
        }
        lines.Add("", style_.Name(run->notes[i]), Ink::kWarning);
      }
    }
    if (!new_.frames.all()) {
      lines.Add("Only",
                absl::StrCat("sites ", style_.Name(new_.frames.Text()),
                             ", where sites are listed; the figures above these are of all",
                             new_.only.empty() ? "" : " sites"),
                Ink::kWarning);
    }
    if (estimated_) {
      const absl::string_view what =
          !new_.sampled   ? "the old run is of a sample: its amounts are estimates"
          : !old_.sampled ? "the new run is of a sample: its amounts are estimates"
                          : "of a sample: all amounts are estimates";
      lines.Add("", absl::StrCat(what, ", and changes that chance explains are left out"),
                Ink::kWarning);
    }
    return absl::StrCat(style_.Paint(Ink::kHeading, "memtrace diff"), "  ",
                        style_.Name(old_.name), "  ", style_.Name(new_.name), "\n\n", lines.Take());
  }

  std::string Totals() const {
    TextTable table({{"", /*left=*/true}, {"old"}, {"new"}, {"change"}, {""}}, "");
    for (size_t i = 0; i < kMeasures; ++i) {
      const Measure measure = static_cast<Measure>(i);
      if (IsLeakKind(measure) && !(old_.scanned && new_.scanned)) continue;
      if (measure == Measure::kTemporary && estimated_) continue;
      // The largest heap there was does not add up over time.
      const bool rate = measure != Measure::kPeak;
      const double before =
          static_cast<double>(old_.totals[measure]) / (rate ? diff_.old_divisor : 1);
      const double after =
          static_cast<double>(new_.totals[measure]) / (rate ? diff_.new_divisor : 1);
      const Per per = rate ? diff_.options.per : Per::kRun;
      table.AddRow({std::string(Label(measure)), AmountText(measure, per, before, old_.sampled),
                    AmountText(measure, per, after, new_.sampled),
                    ChangeText(measure, per, after - before, estimated_),
                    before == after ? "" : Share(before, after - before)},
                   nullptr);
    }
    table.AddRow(
        {"duration", words::Duration(old_.duration_ns), words::Duration(new_.duration_ns), "", ""},
        nullptr);
    const bool less = old_.without_exit_work || new_.without_exit_work;
    return absl::StrCat(
        "\n", table.Render(style_, 2),
        less ? Sentence(text_, "Durations are without memtrace's own work at the exit.", Ink::kDim)
             : "");
  }

  std::string Sites() const {
    std::string out;
    for (const Verdict verdict :
         {Verdict::kNew, Verdict::kGrown, Verdict::kShrunk, Verdict::kGone}) {
      absl::StrAppend(&out, Of(verdict));
    }
    if (out.empty()) {
      // Of a sample: nothing is known to be better or worse.
      const bool may_have = diff_.by_chance > 0;
      out = Heading(text_, "SITES", style_.Paint(may_have ? Ink::kPlain : Ink::kGood, absl::StrCat(
                                        new_.frames.all() ? "no site" : "no site that matches",
                                        " changed", may_have ? " beyond chance" : "", " in ",
                                        Title(diff_.options.measure))));
    }
    if (diff_.same > 0) {
      absl::StrAppend(
          &out,
          style_.Paint(Ink::kDim, absl::StrCat("\n  ", words::Plural(diff_.same, "more site"),
                                               " of both runs did not change")),
          diff_.options.least.amount > 1 || diff_.options.least.share > 0
              ? style_.Paint(Ink::kDim, " as much")
              : "",
          "\n");
    }
    if (diff_.by_chance > 0) {
      absl::StrAppend(
          &out,
          style_.Paint(Ink::kDim, absl::StrCat("\n  ", words::Plural(diff_.by_chance, "more site"),
                                               diff_.by_chance == 1 ? " differs" : " differ",
                                               " by no more than another sample might")),
          "\n");
    }
    return out;
  }

 private:
  std::string Amount(const RunSummary& run, double value) const {
    return AmountText(diff_.options.measure, diff_.options.per, value, run.sampled);
  }

  std::string Of(Verdict verdict) const {
    std::vector<const DiffRow*> rows;
    double sum = 0;
    for (const DiffRow& row : diff_.rows) {
      if (row.verdict != verdict) continue;
      rows.push_back(&row);
      sum += row.change();
    }
    if (rows.empty()) return "";
    const bool worse = verdict == Verdict::kNew || verdict == Verdict::kGrown;
    std::string out = Heading(
        text_, absl::AsciiStrToUpper(VerdictName(verdict)),
        absl::StrCat(
            style_.Paint(worse ? Ink::kBad : Ink::kGood,
                         ChangeText(diff_.options.measure, diff_.options.per, sum, estimated_)),
            " in ", Title(diff_.options.measure),
            diff_.options.per == Per::kRun ? "" : absl::StrCat(" per ", PerName(diff_.options.per)),
            ", ", words::Plural(rows.size(), "site")));
    std::vector<TextTable::Column> columns = {{"change"}, {"old"}, {"new"}};
    if (wide_) columns.insert(columns.end(), {{""}, {"blocks"}, {"fingerprint", /*left=*/true}});
    TextTable table(std::move(columns), "caller");
    const size_t shown = text_.Shown(rows.size());
    std::vector<std::string> stacks;
    for (size_t i = 0; i < shown; ++i) {
      const DiffRow& row = *rows[i];
      std::vector<std::string> cells = {
          ChangeText(diff_.options.measure, diff_.options.per, row.change(), estimated_),
          Amount(old_, row.old_value), Amount(new_, row.new_value)};
      if (wide_) {
        const auto blocks = [](const RunSite* site) {
          return site == nullptr ? uint64_t{0} : site->amounts[Measure::kLiveBlocks];
        };
        const uint64_t before = blocks(row.in_old), after = blocks(row.in_new);
        cells.push_back(row.in_old != nullptr && row.in_new != nullptr
                            ? Share(row.old_value, row.change()) : "");
        cells.push_back(before == after
                            ? words::Count(after)
                            : absl::StrCat(words::Count(before), style_.utf8 ? " \u2192 " : " > ",
                                           words::Count(after)));
        cells.push_back(row.fingerprint);
      }
      const size_t columns = cells.size();
      table.AddRow(std::move(cells), [this, &row](size_t width) {
        return CallerText(*row.site, row.executable, width, text_);
      });
      AddCalledBy(row.apart, row.fingerprint, columns, text_, &table);
    }
    absl::StrAppend(&out, table.Render(style_, 2), MoreLine(text_, rows.size(), shown, "site"));
    if (text_.full || verdict == Verdict::kNew) absl::StrAppend(&out, Stacks(rows, shown));
    return out;
  }

  // The stacks of the rows: nobody knows yet how the program comes to a new site.
  std::string Stacks(const std::vector<const DiffRow*>& rows, size_t shown) const {
    constexpr size_t kFrames = 8;
    const size_t most = text_.full ? shown : std::min<size_t>(shown, 3);
    std::string out;
    for (size_t i = 0; i < most; ++i) {
      const RunSite& site = *rows[i]->site;
      absl::StrAppend(&out, "\n  ", rows[i]->fingerprint, "  ", site.allocator, "\n");
      const size_t frames = text_.full ? site.stack.size() : std::min(kFrames, site.stack.size());
      for (size_t f = 0; f < frames; ++f) {
        absl::StrAppend(
            &out, "    ",
            FrameText("", FrameOf(site.stack[f]), style_.width - 4, text_, Ink::kPlain), "\n");
      }
      if (frames < site.stack.size()) {
        absl::StrAppend(
            &out, "    ",
            style_.Paint(Ink::kDim,
                         absl::StrCat("(", words::Plural(site.stack.size() - frames, "more frame"),
                                      ": --full)")),
            "\n");
      }
    }
    return out;
  }

  const RunDiff& diff_;
  const RunSummary& old_;
  const RunSummary& new_;
  const TextOptions& text_;
  const Style& style_;
  const bool wide_;
  const bool estimated_;
};

}  // namespace

std::string AmountText(Measure measure, Per per, double value, bool estimated) {
  std::string number;
  if (per == Per::kRun) {
    number = IsBytes(measure) ? words::HumanBytes(Whole(value))
             : estimated      ? words::ShortCount(Whole(value))
                              : words::Count(Whole(value));
  } else if (value < 1000) {  // a rate of little
    number = absl::StrFormat("%.3g", value);
    if (IsBytes(measure)) number += " B";
  } else {
    number = IsBytes(measure) ? words::HumanBytes(Whole(value)) : words::ShortCount(Whole(value));
  }
  return absl::StrCat(estimated && value > 0 ? "~" : "", number, Unit(per));
}

std::string ChangeText(Measure measure, Per per, double change, bool estimated) {
  if (change == 0) return "0";
  return absl::StrCat(change > 0 ? "+" : "-",
                      AmountText(measure, per, std::fabs(change), estimated));
}

std::string CallerText(const RunSite& site, const std::string& executable, size_t width,
                       const TextOptions& text) {
  std::string prefix = executable.empty() ? "" : absl::StrCat(text.style.Name(executable), ": ");
  if (prefix.size() + 16 > width) prefix.clear();
  if (site.caller.empty()) {
    return absl::StrCat(prefix, text.style.Paint(Ink::kDim, words::KeepBeginning(
                                                                "[no stack]", width - prefix.size(),
                                                                text.style.ellipsis())));
  }
  Frame frame;
  frame.function = site.caller;
  frame.file = site.file;
  frame.line = site.line;
  return absl::StrCat(prefix,
                      FrameText("", frame, width - words::DisplayWidth(prefix), text, Ink::kPlain));
}

void AddCalledBy(const ToldApart& apart, const std::string& fingerprint, size_t cells,
                 const TextOptions& text, TextTable* table) {
  if (!apart.reads_as_another || (apart.called_by.empty() && text.style.wide())) return;
  table->AddRow(std::vector<std::string>(cells), [&apart, &fingerprint, &text](size_t width) {
    if (apart.called_by.empty()) {
      return text.style.Paint(
          Ink::kDim, words::KeepBeginning(absl::StrCat("  fingerprint ", fingerprint), width,
                                          text.style.ellipsis()));
    }
    const bool is_next = apart.callers == 1;
    const absl::string_view by = width < 16   ? ""
                                 : width < 40 ? "  for "
                                 : is_next    ? "  called by "
                                              : "  on behalf of ";
    return absl::StrCat(
        text.style.Paint(Ink::kDim, by),
        FrameText("", FrameOf(apart.called_by), width - by.size(), text, Ink::kPlain));
  });
}

std::string RenderDiffText(const RunDiff& diff, const TextOptions& text) {
  const DiffText parts(diff, text);
  return absl::StrCat(parts.Runs(), parts.Totals(), parts.Sites());
}

}  // namespace memtrace::report
