#include "report/gate/alert_text.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "report/names/frames_filter.h"

namespace memtrace::report::gate {

AlertTexts::AlertTexts(const GateReport& report) : report_(report) {
  for (const GateLeak& leak : report.result->leaks) {
    if (!IsGated(leak.verdict)) continue;
    Names names = NamesOf(leak);
    if (!names.empty()) by_caller_[names.front()].insert(std::move(names));
  }
}

std::string AlertTexts::Of(const GateLeak& leak) const {
  const std::string verdict = VerdictSentence(report_, leak);
  return absl::StrCat(leak.program, ": ", LeakSentence(report_, leak, CallerThatTells(leak)),
                      verdict.empty() ? "" : absl::StrCat(" (", verdict, ")"));
}

AlertTexts::Names AlertTexts::NamesOf(const GateLeak& leak) const {
  const std::vector<const Frame*> frames = report_.names->Frames(leak.stack);
  Names found;
  if (frames.empty()) return found;
  const names::Cut cut = names::CutStack(frames);
  for (size_t i = cut.caller; i < cut.end; ++i) found.push_back(render::FrameName(*frames[i]));
  return found;
}

std::string AlertTexts::CallerThatTells(const GateLeak& leak) const {
  const Names names = NamesOf(leak);
  if (names.empty()) return "";
  const std::set<Names>& all = by_caller_.at(names.front());
  const auto here = all.find(names);
  // Of all others those beside it in the order have most in common with it.
  size_t common = 0;
  const auto compare = [&](const Names& other) {
    const auto differ = std::ranges::mismatch(names, other);
    common = std::max(common, static_cast<size_t>(differ.in1 - names.begin()));
  };
  if (here != all.begin()) compare(*std::prev(here));
  if (std::next(here) != all.end()) compare(*std::next(here));
  return common > 0 && common < names.size() ? names[common] : "";
}

}  // namespace memtrace::report::gate
