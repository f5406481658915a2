// SiteSeries: what each site held over time, in at most kMostIntervals equal intervals of the run
// whatever its length: the model's owner says when one ends, and when all become pairs.
//
// The cost of an event is a compare or two: the lowest and the highest live bytes of the open
// interval stand beside the site's other counters, and only the first event of a site in an
// interval comes here. Intervals in which a site did nothing take no room: it held what it held
// before.
//
// Single-threaded.

#ifndef MEMTRACE_REPORT_GROWTH_SITE_SERIES_H_
#define MEMTRACE_REPORT_GROWTH_SITE_SERIES_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "report/findings/series_point.h"

namespace memtrace::report {

class SiteSeries {
 public:
  static constexpr uint32_t kMostIntervals = 128;

  // The figures of a site now: totals, and the least and the most bytes since the
  // site's last Open().
  struct Now {
    uint64_t allocations, frees, live_bytes, live_blocks;  // in all
    uint64_t low_bytes, high_bytes;
    uint64_t bytes_allocated;  // in all
  };

  // A site that had not changed in this interval is about to: keeps its last one.
  void Open(size_t site, const Now& now) {
    if (site >= sites_.size()) sites_.resize(site + site / 2 + 16);
    OpenSite& open = sites_[site];
    if (open.interval == interval_) return;
    Keep(&open, now);
    open.interval = interval_;
    open.allocations = now.allocations;
    open.frees = now.frees;
    open.bytes_allocated = now.bytes_allocated;
  }

  void NextInterval() { ++interval_; }
  // Makes one interval of every two.
  void MergePairs() {
    interval_ /= 2;
    for (OpenSite& site : sites_) {
      if (site.interval == kNone) continue;
      site.interval /= 2;
      SeriesPoints points;
      points.swap(site.points);
      for (SeriesPoint& point : points) {
        point.interval /= 2;
        Add(point, &site.points);
      }
    }
  }

  // All points of a site, which is not used again.
  SeriesPoints Take(size_t site, const Now& now) {
    if (site >= sites_.size()) return {};
    Keep(&sites_[site], now);
    return std::move(sites_[site].points);
  }

  // Writes the state into an archive, or reads it out of one (state/state_archive.h).
  template <typename Archive>
  void Fold(Archive& archive);

  // `n` as the counts of a point have it: UINT32_MAX at most.
  static uint32_t Saturated(uint64_t n) {
    return static_cast<uint32_t>(std::min<uint64_t>(n, UINT32_MAX));
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  struct OpenSite {
    uint32_t interval = kNone;            // in which it changed last
    uint64_t allocations = 0, frees = 0, bytes_allocated = 0;  // before that
    SeriesPoints points;
  };

  static void Keep(OpenSite* site, const Now& now) {
    if (site->interval == kNone) return;
    Add({site->interval, Saturated(now.allocations - site->allocations),
         Saturated(now.frees - site->frees), Saturated(now.live_blocks), now.low_bytes,
         now.high_bytes, now.live_bytes, now.bytes_allocated - site->bytes_allocated},
        &site->points);
  }
  static void Add(const SeriesPoint& point, SeriesPoints* points) {
    if (points->empty() || points->back().interval != point.interval) {
      points->push_back(point);
      return;
    }
    SeriesPoint& last = points->back();
    last.allocations = Saturated(uint64_t{last.allocations} + point.allocations);
    last.frees = Saturated(uint64_t{last.frees} + point.frees);
    last.low_bytes = std::min(last.low_bytes, point.low_bytes);
    last.high_bytes = std::max(last.high_bytes, point.high_bytes);
    last.live_bytes = point.live_bytes;
    last.bytes_allocated += point.bytes_allocated;
    last.live_blocks = point.live_blocks;
  }

  uint32_t interval_ = 0;
  std::vector<OpenSite> sites_;  // by site
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_GROWTH_SITE_SERIES_H_
