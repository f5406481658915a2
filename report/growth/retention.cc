#include "report/growth/retention.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

#include "report/growth/steady_flow.h"

namespace memtrace::report {
namespace {

// The begin of a program fills what is filled once.
constexpr size_t kWarmUpParts = Births::kParts / 10;
// The parts that must be left between warm-up and tail: fewer tell nothing.
constexpr size_t kFewestParts = 9;
// Fewer blocks than that are no rate.
constexpr double kFewestBlocks = 6;
constexpr size_t kFewestPartsWithBirths = 4;
// The null hypothesis: the site slowed down to this share of its earlier rate, as caches do
// that come near their capacity.
constexpr double kSlowed = 0.1;
constexpr double kLeastExpected = 0.15;  // of a rate that was 0: a single block is no evidence
constexpr double kSignificance = 0.05;

// The probability of `n` or more where `mean` are expected.
double PoissonTail(int n, double mean) {
  double term = std::exp(-mean), below = 0;
  for (int k = 0; k < n; ++k) {
    below += term;
    term *= mean / (k + 1);
  }
  return std::max(1 - below, 0.0);
}

// Blocks that stay raise what is live. Where it does not rise though there is no noise to hide
// it, they take the places of others: a cache that is full. One that is full stays so: a level that
// fell is that of a program with less to do, whose other blocks went while these stayed.
bool LiveRises(const SiteHistory& history, const SteadyFlow& flow, double bytes_of_later_half,
               double noise_bytes) {
  constexpr double kStillFull = 0.8;
  const size_t n = history.levels.size() - std::min(history.first_level, history.levels.size());
  if (n < 8) return true;  // the series is too coarse to contradict
  const auto low_at = [&](size_t center) {
    std::vector<double> lows;
    for (size_t i = center - 1; i <= center + 1; ++i) {
      lows.push_back(history.levels[history.first_level + i].low);
    }
    return Median(lows);
  };
  const double middle = low_at(n / 2), end = low_at(n - 2);
  // Blocks that live long are noise that is small from one interval to the next, and
  // large in the long run.
  const auto interval_ns = static_cast<double>(history.interval_ns);
  const auto middle_ns = static_cast<double>(n / 2) * interval_ns,
             end_ns = static_cast<double>(n - 2) * interval_ns;
  const double of_interval = 2 * flow.Level(interval_ns);
  const double of_half =
      flow.Level(middle_ns) + flow.Level(end_ns) - 2 * flow.Covariance(middle_ns, end_ns);
  if (of_half > of_interval) noise_bytes *= std::sqrt(of_half / of_interval);
  return end < kStillFull * middle || end - middle >= 0.3 * bytes_of_later_half - 2 * noise_bytes;
}

// How far the lowest level is from one interval to the next.
double Noise(const SiteHistory& history) {
  std::vector<double> steps;
  for (size_t i = history.first_level + 1; i < history.levels.size(); ++i) {
    steps.push_back(history.levels[i].low - history.levels[i - 1].low);
  }
  const double usual = Median(steps);
  for (double& step : steps) step = std::fabs(step - usual);
  return 1.4826 * Median(steps);
}

}  // namespace

// Blocks that stay were allocated.
bool MayRetain(const Site& site) { return static_cast<double>(site.allocations) >= kFewestBlocks; }

GrowthEvidence RetentionEvidence(const SiteHistory& history) {
  const Site& site = *history.site;
  const LifetimeHistogram lifetimes = LifetimeHistogram::Of(site.lifetimes);
  const double part_ns = static_cast<double>(history.end_ns - history.first_ns) / Births::kParts;
  // The newest blocks are not leaks yet: as old as those that were freed, at least.
  double tail_ns = part_ns;
  if (!history.held) tail_ns = std::max(tail_ns, lifetimes.Quantile(0.99));
  const auto tail_parts = static_cast<size_t>(std::min(std::ceil(tail_ns / part_ns), 1e6));
  if (tail_parts + kWarmUpParts + kFewestParts > Births::kParts) return {};
  const size_t parts = Births::kParts - tail_parts - kWarmUpParts;
  // At nearly every site too few blocks stay, however many of them the lifetimes explain.
  const auto first = history.births.blocks.begin() + kWarmUpParts;
  if (std::accumulate(first, first + static_cast<std::ptrdiff_t>(parts), 0.0) < kFewestBlocks)
    return {};
  const SteadyFlow flow(lifetimes, static_cast<double>(history.end_ns - history.first_ns));

  std::vector<double> blocks(parts), bytes(parts);
  double all = 0, largest = 0, later_bytes = 0;
  size_t with_births = 0;
  for (size_t i = 0; i < parts; ++i) {
    const size_t at = kWarmUpParts + i;
    if (history.births.blocks[at] < 0.5) continue;
    const double age_ns = (static_cast<double>(Births::kParts - at) - 0.5) * part_ns;
    // Twice what the lifetimes of the others explain: their classes are coarse.
    const double explained = history.held
                                 ? 0
                                 : 2 * flow.OutlivingPerNs(age_ns) * part_ns;
    const double left = history.births.blocks[at] - explained;
    if (left < 0.5) continue;
    blocks[i] = left;
    bytes[i] = history.births.bytes[at] * left / history.births.blocks[at];
    all += left;
    largest = std::max(largest, left);
    if (i >= parts / 2) later_bytes += bytes[i];
    ++with_births;
  }
  if (all < kFewestBlocks || with_births < kFewestPartsWithBirths || largest > 0.6 * all) return {};

  // Blocks come in batches, which are one event each: so many events as there are parts with any.
  const double events = static_cast<double>(with_births) / all;
  double of_third[3] = {};
  for (size_t i = 0; i < parts; ++i) of_third[i * 3 / parts] += blocks[i] * events;
  const double expected = std::max(kSlowed * (of_third[0] + of_third[1]) / 2, kLeastExpected);
  if (HasStopped(blocks)) return {};  // a cache that was filled evenly, and is full
  const double chance = PoissonTail(static_cast<int>(of_third[2] + 0.5), expected);
  if (chance >= kSignificance) return {};
  if (!LiveRises(history, flow, later_bytes, Noise(history))) return {};

  GrowthEvidence evidence;
  evidence.growing = true;
  evidence.confidence = 1 - chance;
  double sum = 0, squares = 0;
  for (const double each : bytes) {
    sum += each;
    squares += each * each;
  }
  const auto n = static_cast<double>(parts);
  const double mean = sum / n;
  const double error = 1.96 * std::sqrt(std::max(squares / n - mean * mean, 0.0) / (n - 1));
  const double per_second = 1e9 / part_ns;
  evidence.bytes_per_s = mean * per_second;
  evidence.low = std::max(mean - error, 0.0) * per_second;
  evidence.high = (mean + error) * per_second;
  return evidence;
}

}  // namespace memtrace::report
