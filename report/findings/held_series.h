// HeldSeries: what one thread held at the end of each interval, as far as that is not 0: of very
// many threads most live for a moment only.
//
// A plain value.

#ifndef MEMTRACE_REPORT_FINDINGS_HELD_SERIES_H_
#define MEMTRACE_REPORT_FINDINGS_HELD_SERIES_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace memtrace::report {

struct HeldSeries {
  uint32_t first = 0;            // interval of values[0]
  std::vector<uint64_t> values;  // the last is not 0

  uint64_t At(size_t interval) const {
    return interval >= first && interval - first < values.size() ? values[interval - first] : 0;
  }
  // Sets the value of an interval, which must be later than all before.
  void Set(uint32_t interval, uint64_t bytes) {
    if (bytes == 0) return;
    if (values.empty()) first = interval;
    values.resize(interval - first);
    values.push_back(bytes);
  }
  // Makes one interval of every two, with the value at the end of the second.
  void MergePairs() {
    HeldSeries merged;
    for (uint32_t i = first / 2; 2 * i + 1 < first + values.size(); ++i)
      merged.Set(i, At(2 * i + 1));
    *this = std::move(merged);
  }
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_FINDINGS_HELD_SERIES_H_
