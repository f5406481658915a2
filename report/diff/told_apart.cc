#include "report/diff/told_apart.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <tuple>

#include "report/base/path.h"

namespace memtrace::report {
namespace {

size_t CallersInCommon(const RunSite& a, const RunSite& b) {
  const std::span<const std::string> one = a.callers(), other = b.callers();
  return static_cast<size_t>(std::ranges::mismatch(one, other).in1 - one.begin());
}

}  // namespace

std::vector<ToldApart> TellApart(const std::vector<SiteInTable>& table) {
  // Of a file a table mostly has the name alone.
  using Reading = std::tuple<absl::string_view, absl::string_view, absl::string_view, uint32_t>;
  std::map<Reading, std::vector<size_t>> by_reading;
  for (size_t i = 0; i < table.size(); ++i) {
    const RunSite& site = *table[i].site;
    by_reading[{table[i].executable, site.caller, FileNameOf(site.file), site.line}].push_back(i);
  }
  std::vector<ToldApart> told(table.size());
  for (auto& [reading, alike] : by_reading) {
    if (alike.size() == 1) continue;
    // In this order the one that has most callers in common with a site is beside it.
    std::sort(alike.begin(), alike.end(), [&](size_t a, size_t b) {
      return std::ranges::lexicographical_compare(table[a].site->callers(),
                                                  table[b].site->callers());
    });
    std::vector<size_t> common(alike.size() + 1);  // with the one before
    for (size_t i = 1; i < alike.size(); ++i) {
      common[i] = CallersInCommon(*table[alike[i - 1]].site, *table[alike[i]].site);
    }
    for (size_t i = 0; i < alike.size(); ++i) {
      ToldApart& one = told[alike[i]];
      one.reads_as_another = true;
      const size_t same = std::max(common[i], common[i + 1]);
      const std::span<const std::string> callers = table[alike[i]].site->callers();
      if (same >= callers.size()) continue;
      one.callers = same + 1;
      one.called_by = callers[same];
    }
  }
  return told;
}

}  // namespace memtrace::report
