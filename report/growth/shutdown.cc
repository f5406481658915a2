#include "report/growth/shutdown.h"

#include <algorithm>

namespace memtrace::report {

namespace {

constexpr uint64_t kFreesForAnAllocation = 10;

// Of the run, however little of it is looked at.
uint64_t Earliest(uint64_t from_ns, uint64_t end_ns) {
  return std::max(std::min(from_ns, end_ns), end_ns - end_ns / 10);
}

}  // namespace

// The instants that come into question are those of a site's last allocation. Behind one
// there are at most all allocations of the sites whose last is later, and at least all frees
// of those whose first is.
uint64_t ShutdownBegin(std::vector<SiteEnds> sites, uint64_t from_ns, uint64_t end_ns) {
  const uint64_t earliest = Earliest(from_ns, end_ns);
  std::vector<SiteEnds> by_free;
  for (const SiteEnds& site : sites) {
    if (site.frees != 0 && site.first_free_ns >= earliest) by_free.push_back(site);
  }
  std::erase_if(sites, [&](const SiteEnds& site) { return site.last_allocation_ns < earliest; });
  std::sort(sites.begin(), sites.end(), [](const SiteEnds& a, const SiteEnds& b) {
    return a.last_allocation_ns > b.last_allocation_ns;
  });
  std::sort(by_free.begin(), by_free.end(), [](const SiteEnds& a, const SiteEnds& b) {
    return a.first_free_ns > b.first_free_ns;
  });
  uint64_t begin = UINT64_MAX, frees = 0, allocations = 0;
  size_t next = 0;
  for (const SiteEnds& site : sites) {
    for (; next < by_free.size() && by_free[next].first_free_ns >= site.last_allocation_ns;
         ++next) {
      frees += by_free[next].frees;
    }
    if (frees >= kFreesForAnAllocation * (allocations + 1)) begin = site.last_allocation_ns;
    allocations += site.allocations;
  }
  return begin;
}

uint64_t ExitCalled(std::span<const LeakScan> scans, uint64_t from_ns, uint64_t end_ns) {
  for (const LeakScan& scan : scans) {
    if (scan.reason != format::ScanReason::kExitEarly || scan.time_ns > end_ns) continue;
    const uint64_t run = end_ns - std::min(end_ns, scan.cost.elapsed_ns);
    return scan.time_ns >= Earliest(from_ns, run) ? scan.time_ns : UINT64_MAX;
  }
  return UINT64_MAX;
}

uint64_t ShutdownBegin(std::span<const TimelinePoint> timeline, uint64_t from_ns, uint64_t end_ns) {
  const uint64_t earliest = Earliest(from_ns, end_ns);
  double sum = 0, best = 0;
  uint64_t begin = UINT64_MAX;
  for (size_t i = timeline.size(); i-- > 0;) {
    const uint64_t begins = i == 0 ? from_ns : timeline[i - 1].time_ns;
    if (begins < earliest) break;
    sum += static_cast<double>(timeline[i].frees) -
           static_cast<double>(kFreesForAnAllocation * timeline[i].allocations);
    if (sum > best) {
      best = sum;
      begin = begins;
    }
  }
  return begin;
}

}  // namespace memtrace::report
