// LeftOut: when the blocks that a selection leaves out came and went, as far as the begin of the
// shutdown wants to know it: that is one of the whole program, whatever is looked at. And when each
// site freed how many bytes of those that only came before the range: new blocks may have taken
// their places.
//
// Counts and bytes are in the caller's units. Single-threaded.

#ifndef MEMTRACE_REPORT_GROWTH_LEFT_OUT_H_
#define MEMTRACE_REPORT_GROWTH_LEFT_OUT_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "report/growth/shutdown.h"

namespace memtrace::report {

class LeftOut {
 public:
  struct Point {
    uint64_t allocations = 0, frees = 0;
    absl::flat_hash_map<uint32_t, uint64_t> earlier_bytes;  // by site: that FreedEarlier() was told
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

  // Besides Freed(): the block would be of the selection, had it not come before the range.
  void FreedEarlier(uint32_t site, uint64_t bytes) { open_.earlier_bytes[site] += bytes; }

  // An interval of the timeline ends.
  void NextPoint() { points_.push_back(std::exchange(open_, {})); }
  // Every two become one.
  void MergePairs() {
    for (size_t i = 0; i < points_.size() / 2; ++i) {
      Point sum = std::move(points_[2 * i]);
      const Point& second = points_[2 * i + 1];
      sum.allocations += second.allocations;
      sum.frees += second.frees;
      for (const auto& [site, bytes] : second.earlier_bytes) sum.earlier_bytes[site] += bytes;
      points_[i] = std::move(sum);
    }
    points_.resize(points_.size() / 2);
  }

  std::span<const SiteEnds> sites() const { return sites_; }  // without frees, allocations: none
  std::span<const Point> points() const { return points_; }   // those of the timeline

 private:
  SiteEnds& At(size_t site) {
    if (site >= sites_.size()) sites_.resize(site + site / 2 + 16);
    return sites_[site];
  }

  Point open_;
  std::vector<Point> points_;
  std::vector<SiteEnds> sites_;  // by site
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_GROWTH_LEFT_OUT_H_
