// What lists have in common from their begin on: what tells one of many call stacks from the others
// is the first entry behind that.

#ifndef MEMTRACE_REPORT_BASE_COMMON_PREFIX_H_
#define MEMTRACE_REPORT_BASE_COMMON_PREFIX_H_

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <span>
#include <string>
#include <vector>

namespace memtrace::report {

// Of each list, in their order, how many of its first entries are those of another one too.
inline std::vector<size_t> LongestCommonPrefixes(
    const std::vector<std::span<const std::string>>& lists) {
  std::vector<size_t> order(lists.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::ranges::lexicographical_compare(lists[a], lists[b]);
  });
  // In this order the list that has most in common with one is beside it.
  std::vector<size_t> longest(lists.size());
  for (size_t i = 1; i < order.size(); ++i) {
    const std::span<const std::string> one = lists[order[i - 1]], next = lists[order[i]];
    const auto differ = std::ranges::mismatch(one, next).in1;
    const auto common = static_cast<size_t>(differ - one.begin());
    longest[order[i - 1]] = std::max(longest[order[i - 1]], common);
    longest[order[i]] = common;
  }
  return longest;
}

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_BASE_COMMON_PREFIX_H_
