// ClassCounts: a histogram of which most classes are empty, as those of single sites are: what lies
// between the first class that is not and the last. A trace has hundreds of thousands of sites,
// and most of them sizes of one class.

#ifndef MEMTRACE_REPORT_FINDINGS_CLASS_COUNTS_H_
#define MEMTRACE_REPORT_FINDINGS_CLASS_COUNTS_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/container/inlined_vector.h"

namespace memtrace::report {

template <size_t kClasses>
struct ClassCounts {
  // Room for as many as take no more than a pointer to others would.
  using Counts = absl::InlinedVector<uint32_t, 4>;

  uint32_t first = 0;  // the class of counts[0]
  Counts counts;       // `first` and these are kClasses at most

  static ClassCounts Of(const std::array<uint32_t, kClasses>& all) {
    const auto is_used = [](uint32_t n) { return n != 0; };
    const auto begin = std::find_if(all.begin(), all.end(), is_used);
    const auto end = std::find_if(all.rbegin(), std::make_reverse_iterator(begin), is_used).base();
    return {static_cast<uint32_t>(begin - all.begin()), Counts(begin, end)};
  }

  void Clear() {
    first = 0;
    counts.clear();
  }
  uint32_t operator[](size_t i) const {
    return i >= first && i - first < counts.size() ? counts[i - first] : 0;
  }
  uint64_t total() const {
    uint64_t sum = 0;
    for (const uint32_t n : counts) sum += n;
    return sum;
  }
  void AddTo(std::array<uint32_t, kClasses>* all) const {
    const size_t end = std::min(first + counts.size(), kClasses);
    for (size_t i = first; i < end; ++i) (*all)[i] += counts[i - first];
  }
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_FINDINGS_CLASS_COUNTS_H_
