#include "report/render/selection_lines.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "report/words/escape.h"
#include "report/words/units.h"

namespace memtrace::report::render {
namespace {

// "1.00 KiB to 64.0 KiB", "up to 10 us", "1.00 s and more".
template <typename Say>
std::string RangeText(const ValueRange& range, Say say) {
  if (range.low == range.high) return say(range.low);
  if (range.high == UINT64_MAX) return absl::StrCat(say(range.low), " and more");
  if (range.low == 0) return absl::StrCat("up to ", say(range.high));
  return absl::StrCat(say(range.low), " to ", say(range.high));
}

// Of the blocks of any time.
void AddBlockLines(const Analysis& analysis, std::vector<std::string>* lines) {
  const BlockSelection& selection = analysis.selection;
  if (!analysis.only_thread.empty()) {
    lines->push_back(
        absl::StrCat("blocks that threads called ", analysis.only_thread, " allocated"));
  }
  if (!selection.sizes.all()) {
    lines->push_back(absl::StrCat("blocks of ", RangeText(selection.sizes, words::HumanBytes)));
  }
  if (!selection.lifetimes.all()) {
    lines->push_back(
        absl::StrCat("blocks that lived ", RangeText(selection.lifetimes, words::Duration)));
  }
  if (!selection.ages.all()) {
    lines->push_back(absl::StrCat("blocks live at the end, then ",
                                  RangeText(selection.ages, words::Duration), " old"));
  }
}

void AddRangeLine(const Analysis& analysis, std::vector<std::string>* lines) {
  // Of a program at work the trace ends where it was opened: nobody asked for that.
  const uint64_t live_until = analysis.coverage.live_until_ns;
  const bool asked = analysis.range.from_ns != 0 || analysis.range.to_ns != live_until;
  if (analysis.range.whole() || (live_until != 0 && !asked)) return;
  const uint64_t end = analysis.process.duration_ns;
  lines->push_back(absl::StrCat("blocks allocated from ",
                                words::Duration(std::min(analysis.range.from_ns, end)), " to ",
                                words::Duration(std::min(analysis.range.to_ns, end))));
}

}  // namespace

std::vector<std::string> BlockLines(const Analysis& analysis) {
  std::vector<std::string> lines;
  AddRangeLine(analysis, &lines);
  AddBlockLines(analysis, &lines);
  return lines;
}

std::vector<std::string> SelectionLines(const ReportView& view, bool of_sites_alone) {
  std::vector<std::string> lines;
  if (view.filtered()) {
    const bool of_all = !view.analysis().selection.sites && !of_sites_alone;
    lines.push_back(
        absl::StrCat("sites ", view.filter().Text(), ": ", words::Count(view.sites().size()),
                     of_all ? "; the figures here are of all" : ""));
  }
  AddBlockLines(view.analysis(), &lines);
  return lines;
}

std::vector<std::string> SelectionLinesWithRange(const ReportView& view, bool of_sites_alone) {
  std::vector<std::string> lines;
  AddRangeLine(view.analysis(), &lines);
  for (std::string& line : SelectionLines(view, of_sites_alone)) lines.push_back(std::move(line));
  return lines;
}

std::string SelectionText(const ReportView& view, bool of_sites_alone) {
  const std::vector<std::string> lines = SelectionLinesWithRange(view, of_sites_alone);
  return lines.empty()
             ? ""
             : absl::StrCat("only ", words::EscapeControls(absl::StrJoin(lines, "; only ")));
}

}  // namespace memtrace::report::render
