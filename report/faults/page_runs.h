// PageRuns: which pages of a snapshot are resident, as runs in the order of addresses.

#ifndef MEMTRACE_REPORT_FAULTS_PAGE_RUNS_H_
#define MEMTRACE_REPORT_FAULTS_PAGE_RUNS_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "format/faults.h"

namespace memtrace::report {

struct PageRun {
  uint64_t begin = 0, end = 0;
  format::PageState state = format::PageState::kAbsent;
};

inline uint64_t OverlapOf(uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
  const uint64_t begin = std::max(a, c), end = std::min(b, d);
  return end > begin ? end - begin : 0;
}

// A walk upwards through sorted runs: each range asked for begins where the one before did, or
// behind it.
class RunWalk {
 public:
  explicit RunWalk(const std::vector<PageRun>& runs) : runs_(runs) {}

  // Calls visit(run) for each that has a part of [begin, end).
  template <typename Visit>
  void In(uint64_t begin, uint64_t end, Visit visit) {
    while (next_ < runs_.size() && runs_[next_].end <= begin) ++next_;
    for (size_t i = next_; i < runs_.size() && runs_[i].begin < end; ++i) visit(runs_[i]);
  }

  // Bytes of [begin, end) that are resident.
  uint64_t Resident(uint64_t begin, uint64_t end) {
    uint64_t bytes = 0;
    In(begin, end, [&](const PageRun& run) {
      if (run.state != format::PageState::kSwapped)
        bytes += OverlapOf(run.begin, run.end, begin, end);
    });
    return bytes;
  }

 private:
  const std::vector<PageRun>& runs_;
  size_t next_ = 0;
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_FAULTS_PAGE_RUNS_H_
