#include "report/growth/excursions.h"

#include <algorithm>
#include <cmath>

namespace memtrace::report {
namespace {

constexpr size_t kFewestLevels = 8;
constexpr size_t kFewestTeeth = 3;
constexpr double kLeastHeight = 8;       // in blocks; of a sample, in those that it has
constexpr double kLargeBytes = 1 << 20;  // or one block that chance does not explain either

double Quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(q * static_cast<double>(values.size() - 1) + 0.5)];
}

// A number of blocks that nothing but chance moves around `usual` (arrivals that know nothing of
// each other: a deviation of the square root) does not come to differ by so much.
bool IsLarge(double blocks, double usual) { return blocks >= kLeastHeight + 8 * std::sqrt(usual); }

// The size of the block that a byte is in, on the average: by such steps the bytes move. A few
// large blocks among many small ones move them by much more than the mean size.
double StepBytes(const Site& site) {
  double blocks = 0, bytes = 0, squares = 0;
  for (size_t k = 0; k < kSiteSizeClasses; ++k) {
    const double size = std::ldexp(0.75, static_cast<int>(k)), count = site.sizes[k];
    blocks += count;
    bytes += count * size;
    squares += count * size * size;
  }
  return bytes == 0 ? MeanSize(site) : MeanSize(site) * squares * blocks / (bytes * bytes);
}

// One block of a sample may be a small one that stands for many.
double LargeBytes(const SiteHistory& history, double size) {
  return history.blocks_of_one() > 1.5 ? std::max(kLargeBytes, 2 * size) : kLargeBytes;
}

bool IsSawtooth(const SiteHistory& history, double size) {
  std::vector<double> lows, highs, lives;
  for (size_t i = history.first_level; i < history.levels.size(); ++i) {
    lows.push_back(history.levels[i].low);
    highs.push_back(history.levels[i].high);
    lives.push_back(history.levels[i].live);
  }
  if (lows.size() < kFewestLevels) return false;
  const double bottom = Quantile(lows, 0.1), top = Quantile(highs, 0.9), height = top - bottom;
  const bool large = height >= LargeBytes(history, size);
  if (height < 0.5 * top || (height / size < kLeastHeight && !large)) return false;
  size_t teeth = 0, whole_teeth = 0;
  bool up = false;
  for (size_t i = 0; i < lows.size(); ++i) {
    const bool rises = highs[i] >= bottom + height * 2 / 3, falls = lows[i] <= bottom + height / 3;
    whole_teeth += rises && falls;
    // Which came first in an interval that has both is told by how it ended.
    const bool ends_up = rises && lives[i] > bottom + height / 2;
    if (!ends_up) up |= rises;
    if (up && falls) {
      ++teeth;
      up = false;
    }
    up |= ends_up;
  }
  if (teeth < kFewestTeeth) return false;
  // Teeth so fast that an interval holds several: they rise and fall in long runs, as chance does
  // not.
  if (2 * whole_teeth > lows.size()) {
    return static_cast<double>(history.site->allocations) / history.blocks_of_one() >=
           4 * static_cast<double>(std::max<uint32_t>(history.turns, 1));
  }
  return large || IsLarge(height / size, Median(lives) / size);
}

bool IsBurst(const SiteHistory& history, double size) {
  if (history.levels.size() < kFewestLevels) return false;
  const auto peak = static_cast<double>(history.site->peak_bytes);
  // The levels of the whole run count: before its first block a site holds nothing.
  std::vector<double> highs;
  size_t high_intervals = 0, times = 0;
  bool above = false;
  for (const Level& level : history.levels) {
    highs.push_back(level.high);
    high_intervals += level.high > peak / 2;
    times += level.high > peak / 2 && !above;
    above = level.high > peak / 2;
  }
  const double usual = Median(highs);
  if (usual > 0.35 * peak || history.levels.back().live > 0.25 * peak) return false;
  if (4 * high_intervals > history.levels.size() || times >= kFewestTeeth) return false;
  return IsLarge((peak - usual) / size, usual / size) || peak - usual >= LargeBytes(history, size);
}

}  // namespace

bool MayGoAndCome(const Site& site) {
  uint64_t most = site.peak_bytes;
  for (const SeriesPoint& point : site.series) most = std::max(most, point.high_bytes);
  const auto bytes = static_cast<double>(most);
  return bytes >= kLargeBytes || bytes / std::max(MeanSize(site), 1.0) >= kLeastHeight;
}

Growth::Verdict ExcursionVerdict(const SiteHistory& history) {
  const double size = std::max(StepBytes(*history.site) * history.blocks_of_one(), 1.0);
  if (IsSawtooth(history, size)) return Growth::Verdict::kSawtooth;
  if (IsBurst(history, size)) return Growth::Verdict::kBurst;
  return Growth::Verdict::kBounded;
}

}  // namespace memtrace::report
