#include "report/diff/told_apart.h"

#include <cstdint>
#include <map>
#include <span>
#include <tuple>

#include "report/base/common_prefix.h"
#include "report/base/path.h"

namespace memtrace::report {

std::vector<ToldApart> TellApart(const std::vector<SiteInTable>& table) {
  // Of a file a table mostly has the name alone.
  using Reading = std::tuple<absl::string_view, absl::string_view, absl::string_view, uint32_t>;
  std::map<Reading, std::vector<size_t>> by_reading;
  for (size_t i = 0; i < table.size(); ++i) {
    const RunSite& site = *table[i].site;
    by_reading[{table[i].executable, site.caller, FileNameOf(site.file), site.line}].push_back(i);
  }
  std::vector<ToldApart> told(table.size());
  for (const auto& [reading, alike] : by_reading) {
    if (alike.size() == 1) continue;
    std::vector<std::span<const std::string>> lists;
    for (const size_t i : alike) lists.push_back(table[i].site->callers());
    const std::vector<size_t> common = LongestCommonPrefixes(lists);
    for (size_t i = 0; i < alike.size(); ++i) {
      ToldApart& one = told[alike[i]];
      one.reads_as_another = true;
      if (common[i] >= lists[i].size()) continue;
      one.callers = common[i] + 1;
      one.called_by = lists[i][common[i]];
    }
  }
  return told;
}

}  // namespace memtrace::report
