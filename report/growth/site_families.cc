#include "report/growth/site_families.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "report/findings/lifetime_histogram.h"
#include "report/findings/sampling.h"
#include "report/growth/site_series.h"

namespace memtrace::report {
namespace {

struct Frames {
  uint64_t key = 0;  // of the set of them
  bool repeat = false;
};

// The frames of one stack after another as sets: the sum of what each hashes to. A stack has most
// of its outer frames from the one before, and only what differs is looked at.
class FrameSet {
 public:
  explicit FrameSet(const StackTable& stacks) : stacks_(stacks) {}

  Frames Of(const Site& site) {
    fresh_.clear();
    size_t depth = stacks_.DepthOf(site.stack);
    for (StackId id = site.stack; id && !IsOnPath(id, depth);
         id = stacks_.node(id).parent, --depth) {
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

// The sum of series, each of which stays where it was in intervals that it has no point of. What
// the sum went down to within an interval is not known, where a block went from one site to the
// other: it is looked at where intervals begin and end.
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
        sum.allocations = SiteSeries::Saturated(uint64_t{sum.allocations} + point.allocations);
        sum.frees = SiteSeries::Saturated(uint64_t{sum.frees} + point.frees);
        sum.bytes_allocated += point.bytes_allocated;
        live_bytes = point.live_bytes;
        live_blocks = point.live_blocks;
        changed_[i] = true;
      }
      sum.live_bytes += live_bytes;
      sum.live_blocks = SiteSeries::Saturated(uint64_t{sum.live_blocks} + live_blocks);
    }
  }

  SeriesPoints Points() {
    SeriesPoints points;
    uint64_t before = 0;
    for (uint32_t i = 0; i < SiteSeries::kMostIntervals; ++i) {
      SeriesPoint& sum = sums_[i];
      sum.interval = i;
      sum.low_bytes = std::min(before, sum.live_bytes);
      sum.high_bytes = std::max(before, sum.live_bytes);
      before = sum.live_bytes;
      if (changed_[i]) points.push_back(sum);
    }
    return points;
  }

 private:
  std::array<SeriesPoint, SiteSeries::kMostIntervals> sums_{};
  std::array<bool, SiteSeries::kMostIntervals> changed_{};
};

}  // namespace

SiteFamilies SiteFamilies::ByRecursion(std::span<const Site> sites, const StackTable& stacks) {
  FrameSet frames(stacks);
  std::vector<uint64_t> keys;
  keys.reserve(sites.size());
  absl::flat_hash_set<uint64_t> recursive;  // keys of which a stack has a frame twice
  for (const Site& site : sites) {
    const Frames found = frames.Of(site);
    keys.push_back(found.key);
    if (found.repeat) recursive.insert(found.key);
  }
  for (uint64_t& key : keys) {
    if (!recursive.contains(key)) key = kNoKey;
  }
  return OfKeys(keys);
}

SiteFamilies SiteFamilies::ByReallocs(size_t sites,
                                      std::span<const std::pair<uint32_t, uint32_t>> moves) {
  // Each site leads to another of its family, the first to itself.
  std::vector<uint32_t> leads_to(sites);
  std::iota(leads_to.begin(), leads_to.end(), 0u);
  const auto first_of = [&](uint32_t site) {
    while (leads_to[site] != site) site = leads_to[site] = leads_to[leads_to[site]];
    return site;
  };
  for (const auto& [from, to] : moves) {
    const uint32_t a = first_of(from), b = first_of(to);
    leads_to[std::max(a, b)] = std::min(a, b);
  }
  std::vector<uint64_t> keys(sites, kNoKey);
  for (const auto& [from, to] : moves) keys[from] = keys[to] = first_of(from) + 1;
  return OfKeys(keys);
}

SiteFamilies SiteFamilies::OfKeys(std::span<const uint64_t> keys) {
  SiteFamilies found;
  absl::flat_hash_map<uint64_t, uint32_t> count, family;
  for (const uint64_t key : keys) {
    if (key != kNoKey) ++count[key];
  }
  for (uint32_t i = 0; i < keys.size(); ++i) {
    const auto at = count.find(keys[i]);
    if (at == count.end() || at->second < 2) continue;
    if (found.family_of_.empty()) found.family_of_.assign(keys.size(), kNone);
    const auto [to, is_new] =
        family.try_emplace(keys[i], static_cast<uint32_t>(found.families_.size()));
    if (is_new) found.families_.emplace_back().reserve(at->second);
    found.families_[to->second].push_back(i);
    found.family_of_[i] = to->second;
  }
  return found;
}

Growth SiteFamilies::ShareOf(Growth growth, const Site& together, const Site& member) {
  const bool by_live = together.live_bytes > 0 && !growth.held_until_exit;
  const uint64_t part = by_live ? member.live_bytes : member.bytes_allocated;
  const uint64_t all = by_live ? together.live_bytes : together.bytes_allocated;
  const double share = static_cast<double>(part) / static_cast<double>(std::max<uint64_t>(all, 1));
  growth.bytes_per_s *= share;
  growth.bytes_per_s_low *= share;
  growth.bytes_per_s_high *= share;
  growth.blocks_per_s *= share;
  // This is what each of the member's own allocations leaves.
  growth.bytes_per_allocation = member.allocations == 0
                                    ? 0
                                    : growth.bytes_per_allocation * share *
                                          static_cast<double>(together.allocations) /
                                          static_cast<double>(member.allocations);
  if (share == 0) growth = {.verdict = Growth::Verdict::kBounded};
  return growth;
}

Site SiteFamilies::Together(size_t family, std::span<const Site> sites) const {
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
  for (const SeriesPoint& point : all.series)
    all.peak_bytes = std::max(all.peak_bytes, point.high_bytes);
  return all;
}

}  // namespace memtrace::report
