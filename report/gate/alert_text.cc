#include "report/gate/alert_text.h"

#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "report/base/common_prefix.h"
#include "report/names/frames_filter.h"

namespace memtrace::report::gate {

AlertTexts::AlertTexts(const GateReport& report) : report_(report) {
  for (const GateLeak& leak : report.result->leaks) {
    if (!IsGated(leak.verdict)) continue;
    Names names = NamesOf(leak);
    if (!names.empty()) by_caller_[names.front()].try_emplace(std::move(names));
  }
  for (auto& [caller, all] : by_caller_) {
    std::vector<std::span<const std::string>> lists;
    for (const auto& [names, common] : all) lists.emplace_back(names);
    const std::vector<size_t> longest = LongestCommonPrefixes(lists);
    size_t i = 0;
    for (auto& [names, common] : all) common = longest[i++];
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
  const size_t common = by_caller_.at(names.front()).at(names);
  return common > 0 && common < names.size() ? names[common] : "";
}

}  // namespace memtrace::report::gate
