#include "report/render/selection_lines.h"

#include <algorithm>
#include <cstdint>

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

}  // namespace

std::vector<std::string> SelectionLines(const ReportView& view, bool of_sites_alone) {
  const BlockSelection& selection = view.analysis().selection;
  std::vector<std::string> lines;
  if (view.filtered()) {
    lines.push_back(
        absl::StrCat("sites ", view.filter().Text(), ": ", words::Count(view.sites().size()),
                     selection.sites || of_sites_alone ? "" : "; the figures here are of all"));
  }
  if (!view.analysis().only_thread.empty()) {
    lines.push_back(absl::StrCat("blocks that threads called ", view.analysis().only_thread,
                                 " allocated"));
  }
  if (!selection.sizes.all()) {
    lines.push_back(absl::StrCat("blocks of ", RangeText(selection.sizes, words::HumanBytes)));
  }
  if (!selection.lifetimes.all()) {
    lines.push_back(
        absl::StrCat("blocks that lived ", RangeText(selection.lifetimes, words::Duration)));
  }
  if (!selection.ages.all()) {
    lines.push_back(absl::StrCat("blocks live at the end, then ",
                                 RangeText(selection.ages, words::Duration), " old"));
  }
  return lines;
}

std::vector<std::string> SelectionLinesWithRange(const ReportView& view, bool of_sites_alone) {
  std::vector<std::string> lines = SelectionLines(view, of_sites_alone);
  const Analysis& analysis = view.analysis();
  if (!analysis.range.whole()) {
    const uint64_t end = analysis.process.duration_ns;
    lines.insert(lines.begin(),
                 absl::StrCat("blocks allocated from ",
                              words::Duration(std::min(analysis.range.from_ns, end)), " to ",
                              words::Duration(std::min(analysis.range.to_ns, end))));
  }
  return lines;
}

std::string SelectionText(const ReportView& view, bool of_sites_alone) {
  const std::vector<std::string> lines = SelectionLinesWithRange(view, of_sites_alone);
  return lines.empty()
             ? ""
             : absl::StrCat("only ", words::EscapeControls(absl::StrJoin(lines, "; only ")));
}

}  // namespace memtrace::report::render
