// SiteHistory: what the judgement of a site's growth is made from, up to the shutdown of the
// program or the end of what was seen.
//
// Two curves, from two sources:
//
//   levels   what was live, interval by interval: the lowest, the highest and the last. It sees
//            all that happened, and the noise of it.
//   births   when those blocks were allocated that were never freed. It sees the few blocks that
//            stay among millions that go, because it knows what became of each; it costs one look
//            at each live block at the end.
//
// Pure functions, any thread.

#ifndef MEMTRACE_REPORT_GROWTH_SITE_HISTORY_H_
#define MEMTRACE_REPORT_GROWTH_SITE_HISTORY_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "report/findings/site.h"

namespace memtrace::report {

// When the blocks were allocated that stayed until the end: by equal parts of the time from the
// site's first allocation to there. Blocks that were freed in the shutdown stayed as well.
struct Births {
  static constexpr size_t kParts = 32;
  std::array<double, kParts> blocks{}, bytes{};
};

struct Level {
  double low = 0, high = 0, live = 0;
};

// The mean size of the site's allocations; 0 if there are none.
inline double MeanSize(const Site& site) {
  return site.allocations == 0 ? 0
                               : static_cast<double>(site.bytes_allocated) /
                                     static_cast<double>(site.allocations);
}

struct SiteHistory {
  uint64_t from_ns = 0, end_ns = 0;  // the shutdown counts as the end
  uint64_t first_ns = 0;             // of the site
  uint64_t interval_ns = 0;
  const Site* site = nullptr;
  uint32_t turns = 0;         // allocations with a free just before
  bool held = false;          // Growth::held_until_exit
  std::vector<Level> levels;  // of all whole intervals from from_ns to end_ns
  size_t first_level = 0;     // of the site
  Births births;

  double seconds() const { return static_cast<double>(end_ns - first_ns) / 1e9; }
  double mean_size() const { return MeanSize(*site); }
  // How many blocks each block of the trace stands for: 1, or more if the trace is of a sample.
  // Chance works on the blocks that the trace has.
  double blocks_of_one() const {
    const uint64_t samples = site->bytes_sample->samples;
    return samples == 0 ? 1
                        : std::max(1.0, static_cast<double>(site->allocations) /
                                            static_cast<double>(samples));
  }
};

// The levels of all whole intervals in [from_ns, end_ns).
std::vector<Level> LevelsOf(const Site& site, uint64_t interval_ns, uint64_t from_ns,
                            uint64_t end_ns);
// The births of a site that freed nothing before the end: all that it allocated stayed.
Births BirthsFromLevels(const SiteHistory& history);

// The evidence that a site grows. Where `growing` is false the other members mean nothing.
struct GrowthEvidence {
  bool growing = false;
  double bytes_per_s = 0, low = 0, high = 0;
  double confidence = 0;
};

// Did what happened in parts of equal length, of which each has an amount, end some time ago? Then
// there is nothing in more of the last parts than chance explains by those before, once in a
// hundred times.
bool HasStopped(const std::vector<double>& amounts);

double Median(std::vector<double> values);  // 0 of none
double NormalTail(double z);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_GROWTH_SITE_HISTORY_H_
