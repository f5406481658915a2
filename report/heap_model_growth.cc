// The end of a HeapModel: how each site grew.

#include <algorithm>
#include <vector>

#include "report/growth/growth_finder.h"
#include "report/growth/recursion.h"
#include "report/growth/shutdown.h"
#include "report/heap_model.h"

namespace memtrace::report {

// Series, and what they say.
void HeapModel::FinishGrowth(Analysis* analysis) {
  const uint64_t end = std::min(analysis->process.duration_ns, options_.range.to_ns);
  const uint64_t from = options_.range.from_ns, to = std::max(end, from);
  std::vector<SiteEnds> ends;
  for (size_t i = 1; i < sites_.size(); ++i) {
    const Site& site = analysis->sites[i - 1];
    ends.push_back({site.last_time_ns, site.allocations, sites_[i].first_free_ns, site.frees});
  }
  analysis->shutdown_ns = std::min(ShutdownBegin(analysis->timeline, from, to),
                                   ShutdownBegin(std::move(ends), from, to));
  GrowthFinder finder(from, to, analysis->series_interval_ns, analysis->shutdown_ns);
  for (size_t i = 1; i < sites_.size(); ++i) {
    Site& site = analysis->sites[i - 1];
    site.lifetimes = SiteLifetimes::Of(lifetimes_[i].freed);
    site.series = series_.Take(i, SeriesNow(sites_[i]));
    if (site.live_blocks > 0) finder.AddSite(i, site.first_time_ns);
  }
  // Families stand behind the sites.
  const RecursionFamilies families(analysis->sites, *stacks_);
  std::vector<Site> together;
  for (size_t f = 0; f < families.size(); ++f) {
    together.push_back(families.Together(f, analysis->sites));
    if (together[f].live_blocks > 0) finder.AddSite(sites_.size() + f, together[f].first_time_ns);
  }
  const auto add = [&](const HeldBlock& block) {
    if (block.has(HeldBlock::kUncounted)) return;
    const uint64_t bytes = Round(WeightOf(block.size()).bytes);
    finder.AddLive(block.site, block.time_ns, bytes);
    const uint32_t family = families.Of(block.site - 1);
    if (family != RecursionFamilies::kNone) finder.AddLive(sites_.size() + family, block.time_ns, bytes);
  };
  table_.ForEach(add);
  if (custom_ != nullptr) {
    for (const auto& [key, block] : custom_->blocks()) add(block.held);
  }
  // Of a range only blocks from within are counted: those that took the places of earlier ones do not
  // make the site larger.
  const auto gone_bytes = [&](size_t i) {
    const auto gone = earlier_freed_bytes_.find(static_cast<uint32_t>(i));
    return gone == earlier_freed_bytes_.end() ? 0 : Round(gone->second);
  };
  for (size_t i = 1; i < sites_.size(); ++i) {
    Site& site = analysis->sites[i - 1];
    site.growth = finder.Judge(i, site, sites_[i].turns, sites_[i].first_free_ns);
    if (2 * gone_bytes(i) > site.live_bytes && site.growth.verdict == Growth::Verdict::kGrowing) {
      site.growth = {.verdict = Growth::Verdict::kBounded};
    }
  }
  for (size_t f = 0; f < families.size(); ++f) {
    uint64_t turns = 0, first_free_ns = UINT64_MAX, gone = 0;
    for (const uint32_t at : families.members(f)) {
      const SiteState& member = sites_[at + 1];
      turns += member.turns;
      if (member.frees > 0) first_free_ns = std::min(first_free_ns, member.first_free_ns);
      gone += gone_bytes(at + 1);
    }
    const Growth growth =
        finder.Judge(sites_.size() + f, together[f],
                     static_cast<uint32_t>(std::min<uint64_t>(turns, UINT32_MAX)), first_free_ns);
    if (growth.verdict != Growth::Verdict::kGrowing || 2 * gone > together[f].live_bytes) continue;
    for (const uint32_t at : families.members(f)) {
      Site& site = analysis->sites[at];
      site.growth = families.ShareOf(growth, together[f], site);
    }
  }
}

}  // namespace memtrace::report
