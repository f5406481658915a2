// GrowthFinder: judges the growth of all sites after the last event.
//
//   AddSite      each site that has live blocks, or had some when the shutdown began; those of few allocations
//                are not kept
//   AddLive      each block that is live
//   AddLateFree  each that was live when the shutdown began, and is not any more
//   Judge        each site
//
// Memory: half a kilobyte for each of these sites, a whole one for those of the latter
// kind. Single-threaded.

#ifndef MEMTRACE_REPORT_GROWTH_GROWTH_FINDER_H_
#define MEMTRACE_REPORT_GROWTH_GROWTH_FINDER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "report/findings/growth.h"
#include "report/findings/site.h"
#include "report/growth/site_history.h"

namespace memtrace::report {

class GrowthFinder {
 public:
  // `shutdown_ns`: its begin; UINT64_MAX: there is none.
  GrowthFinder(uint64_t from_ns, uint64_t end_ns, uint64_t interval_ns, uint64_t shutdown_ns);

  void AddSite(size_t site, const Site& summary);
  void AddLive(size_t site, uint64_t time_ns, uint64_t bytes) { AddBirth(site, time_ns, 1, bytes); }
  // It stands for so many, of `bytes` each. One from before the shutdown is none.
  void AddLateFree(size_t site, uint64_t born_ns, uint64_t freed_ns, uint64_t count,
                   uint64_t bytes);
  // `turns`: allocations with a free just before.
  Growth Judge(size_t site, const Site& summary, uint32_t turns, uint64_t first_free_ns) const;

 private:
  struct Kept {
    uint64_t first_ns = 0;
    Births births;
    std::unique_ptr<LifetimeHistogram> late;  // of the late frees; null: there is none
  };
  Kept* Find(size_t site);
  const Kept* Find(size_t site) const { return const_cast<GrowthFinder*>(this)->Find(site); }
  void AddBirth(size_t site, uint64_t time_ns, uint64_t count, uint64_t bytes);
  bool IsHeld(const SiteHistory& history, uint64_t first_free_ns) const;
  bool IsTooNew(const SiteHistory& history) const;

  uint64_t from_ns_, end_ns_, interval_ns_;
  uint64_t shutdown_ns_;
  std::vector<uint32_t> index_;  // by site, of kept_ plus 1; 0 none
  std::vector<Kept> kept_;
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_GROWTH_GROWTH_FINDER_H_
