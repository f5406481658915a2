#include "report/growth/recursion.h"

#include <algorithm>
#include <array>

#include "absl/container/flat_hash_map.h"
#include "absl/hash/hash.h"
#include "report/growth/lifetime_histogram.h"
#include "report/growth/site_series.h"
#include "report/sampling.h"

namespace memtrace::report {
namespace {

struct Frames {
  uint64_t key = 0;  // of the set of them
  bool repeat = false;
};

// The frames of one stack after another as sets: the sum of what each hashes to. A stack has most of its outer
// frames from the one before, and only what differs is looked at.
class FrameSet {
 public:
  explicit FrameSet(const StackTable& stacks) : stacks_(stacks) {}

  Frames Of(const Site& site) {
    fresh_.clear();
    size_t depth = stacks_.DepthOf(site.stack);
    for (StackId id = site.stack; id && !IsOnPath(id, depth); id = stacks_.node(id).parent, --depth) {
      fresh_.push_back(id);
    }
    while (path_.size() > depth) Leave();
    while (!fresh_.empty()) {
      Enter(fresh_.back());
      fresh_.pop_back();
    }
    return {sum_ + absl::HashOf(site.function), repeats_ > 0};
  }

 private:
  struct Step {
    StackId id;
    uint64_t hash;
  };

  bool IsOnPath(StackId id, size_t depth) const {
    return depth <= path_.size() && depth > 0 && path_[depth - 1].id == id;
  }
  void Enter(StackId id) {
    const StackNode& node = stacks_.node(id);
    const uint64_t hash = absl::HashOf(node.pc, node.instance);
    path_.push_back({id, hash});
    if (times_[hash]++ == 0) {
      sum_ += hash;
    } else {
      ++repeats_;
    }
  }
  void Leave() {
    const auto at = times_.find(path_.back().hash);
    path_.pop_back();
    if (--at->second > 0) {
      --repeats_;
    } else {
      sum_ -= at->first;
      times_.erase(at);
    }
  }

  const StackTable& stacks_;
  std::vector<Step> path_;  // outermost first
  std::vector<StackId> fresh_;
  absl::flat_hash_map<uint64_t, uint32_t> times_;  // on the path, by hash
  uint64_t sum_ = 0;
  size_t repeats_ = 0;
};

// The sum of series, each of which stays where it was in intervals that it has no point of.
class SeriesSum {
 public:
  void Add(const SeriesPoints& points) {
    uint64_t live_bytes = 0;
    uint32_t live_blocks = 0;
    size_t next = 0;
    for (uint32_t i = 0; i < SiteSeries::kMostIntervals; ++i) {
      SeriesPoint& sum = sums_[i];
      if (next < points.size() && points[next].interval == i) {
        const SeriesPoint& point = points[next++];
        AddUpTo(UINT32_MAX, point.allocations, &sum.allocations);
        AddUpTo(UINT32_MAX, point.frees, &sum.frees);
        sum.bytes_allocated += point.bytes_allocated;
        sum.low_bytes += point.low_bytes;
        sum.high_bytes += point.high_bytes;
        live_bytes = point.live_bytes;
        live_blocks = point.live_blocks;
        changed_[i] = true;
      } else {
        sum.low_bytes += live_bytes;
        sum.high_bytes += live_bytes;
      }
      sum.live_bytes += live_bytes;
      AddUpTo(UINT32_MAX, live_blocks, &sum.live_blocks);
    }
  }

  SeriesPoints Points() {
    SeriesPoints points;
    for (uint32_t i = 0; i < SiteSeries::kMostIntervals; ++i) {
      if (!changed_[i]) continue;
      sums_[i].interval = i;
      points.push_back(sums_[i]);
    }
    return points;
  }

 private:
  static void AddUpTo(uint64_t most, uint32_t n, uint32_t* sum) {
    *sum = static_cast<uint32_t>(std::min(uint64_t{*sum} + n, most));
  }

  std::array<SeriesPoint, SiteSeries::kMostIntervals> sums_{};
  std::array<bool, SiteSeries::kMostIntervals> changed_{};
};

}  // namespace

RecursionFamilies::RecursionFamilies(std::span<const Site> sites, const StackTable& stacks)
    : family_of_(sites.size(), kNone) {
  FrameSet frames(stacks);
  std::vector<uint64_t> keys;
  keys.reserve(sites.size());
  absl::flat_hash_map<uint64_t, uint32_t> count;  // of sites with this key, once one has a frame twice
  for (const Site& site : sites) {
    const Frames found = frames.Of(site);
    keys.push_back(found.key);
    if (found.repeat) count.try_emplace(found.key, 0);
  }
  if (count.empty()) return;
  for (const uint64_t key : keys) {
    if (const auto at = count.find(key); at != count.end()) ++at->second;
  }
  absl::flat_hash_map<uint64_t, uint32_t> family;
  for (uint32_t i = 0; i < sites.size(); ++i) {
    const auto at = count.find(keys[i]);
    if (at == count.end() || at->second < 2) continue;
    const auto [to, is_new] = family.try_emplace(keys[i], static_cast<uint32_t>(families_.size()));
    if (is_new) families_.emplace_back().reserve(at->second);
    families_[to->second].push_back(i);
    family_of_[i] = to->second;
  }
}

Growth RecursionFamilies::ShareOf(Growth growth, const Site& together, const Site& member) {
  const bool by_live = together.live_bytes > 0 && !growth.held_until_exit;
  const uint64_t part = by_live ? member.live_bytes : member.bytes_allocated;
  const uint64_t all = by_live ? together.live_bytes : together.bytes_allocated;
  const double share = static_cast<double>(part) / static_cast<double>(std::max<uint64_t>(all, 1));
  growth.bytes_per_s *= share;
  growth.bytes_per_s_low *= share;
  growth.bytes_per_s_high *= share;
  growth.blocks_per_s *= share;
  // Of the member's own allocations, as each of them leaves it.
  growth.bytes_per_allocation = member.allocations == 0
                                    ? 0
                                    : growth.bytes_per_allocation * share *
                                          static_cast<double>(together.allocations) /
                                          static_cast<double>(member.allocations);
  if (share == 0) growth = {.verdict = Growth::Verdict::kBounded};
  return growth;
}

Site RecursionFamilies::Together(size_t family, std::span<const Site> sites) const {
  Site all;
  all.first_time_ns = UINT64_MAX;
  LifetimeHistogram lifetimes;
  SeriesSum series;
  for (const uint32_t at : members(family)) {
    const Site& site = sites[at];
    all.stack = site.stack;
    all.function = site.function;
    all.allocations += site.allocations;
    all.frees += site.frees;
    all.bytes_allocated += site.bytes_allocated;
    all.live_bytes += site.live_bytes;
    all.live_blocks += site.live_blocks;
    all.freed_lifetime_ns += site.freed_lifetime_ns;
    all.first_time_ns = std::min(all.first_time_ns, site.first_time_ns);
    all.last_time_ns = std::max(all.last_time_ns, site.last_time_ns);
    lifetimes.Add(site.lifetimes);
    series.Add(site.series);
    AddSamples(site.bytes_sample, &all.bytes_sample);
  }
  all.lifetimes = SiteLifetimes::Of(lifetimes.freed);
  all.series = series.Points();
  for (const SeriesPoint& point : all.series) all.peak_bytes = std::max(all.peak_bytes, point.high_bytes);
  return all;
}

}  // namespace memtrace::report
