// LeftOut: when the blocks that a selection leaves out came and went, as far as the begin of the
// shutdown wants to know it: that is one of the whole program, whatever is looked at.
//
// Counts are in the caller's unit. Single-threaded.

#ifndef MEMTRACE_REPORT_GROWTH_LEFT_OUT_H_
#define MEMTRACE_REPORT_GROWTH_LEFT_OUT_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "report/growth/shutdown.h"

namespace memtrace::report {

class LeftOut {
 public:
  struct Counts {
    uint64_t allocations = 0, frees = 0;
  };

  void Allocated(size_t site, uint64_t time_ns, uint64_t count) {
    SiteEnds& ends = At(site);
    ends.last_allocation_ns = time_ns;
    ends.allocations += count;
    open_.allocations += count;
  }
  void Freed(size_t site, uint64_t time_ns, uint64_t count) {
    SiteEnds& ends = At(site);
    if (ends.frees == 0) ends.first_free_ns = time_ns;
    ends.frees += count;
    open_.frees += count;
  }

  // An interval of the timeline ends.
  void NextPoint() {
    points_.push_back(open_);
    open_ = {};
  }
  // Every two become one.
  void MergePairs() {
    for (size_t i = 0; i < points_.size() / 2; ++i) {
      const Counts &a = points_[2 * i], &b = points_[2 * i + 1];
      points_[i] = {a.allocations + b.allocations, a.frees + b.frees};
    }
    points_.resize(points_.size() / 2);
  }

  std::span<const SiteEnds> sites() const { return sites_; }     // without frees, allocations: none
  std::span<const Counts> points() const { return points_; }     // those of the timeline

 private:
  SiteEnds& At(size_t site) {
    if (site >= sites_.size()) sites_.resize(site + site / 2 + 16);
    return sites_[site];
  }

  Counts open_;
  std::vector<Counts> points_;
  std::vector<SiteEnds> sites_;  // by site
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_GROWTH_LEFT_OUT_H_
