// The end of a HeapModel: how each site grew.

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "report/growth/growth_finder.h"
#include "report/growth/shutdown.h"
#include "report/growth/site_families.h"
#include "report/heap_model.h"

namespace memtrace::report {

// Series, and what they say.
void HeapModel::FinishGrowth(Analysis* analysis) {
  const uint64_t from = analysis->range.from_ns, to = analysis->judged_until_ns();
  std::vector<SiteEnds> ends;
  for (size_t i = 1; i < sites_.size(); ++i) {
    const Site& site = analysis->sites[i - 1];
    ends.push_back({site.last_time_ns, site.allocations, sites_[i].first_free_ns, site.frees});
  }
  // That of the program: with what a selection leaves out.
  std::vector<TimelinePoint> timeline = analysis->timeline;
  for (size_t i = 0; i < std::min(timeline.size(), left_out_.points().size()); ++i) {
    timeline[i].allocations += Round(left_out_.points()[i].allocations);
    timeline[i].frees += Round(left_out_.points()[i].frees);
  }
  for (SiteEnds each : left_out_.sites()) {
    each.allocations = Round(each.allocations);
    each.frees = Round(each.frees);
    if (each.allocations + each.frees > 0) ends.push_back(each);
  }
  analysis->shutdown_ns = std::min({ShutdownBegin(timeline, from, to),
                                    ShutdownBegin(std::move(ends), from, to),
                                    ExitCalled(analysis->leak_scans, from, to)});
  // What was live when the shutdown began: frees before it are none of that.
  std::vector<LateFrees::Free> late = late_frees_.frees();
  std::erase_if(late, [&](const LateFrees::Free& each) { return each.freed_ns < analysis->shutdown_ns; });
  absl::flat_hash_set<uint32_t> late_sites;
  for (const LateFrees::Free& each : late) late_sites.insert(each.site);
  GrowthFinder finder(from, to, analysis->series_interval_ns, analysis->shutdown_ns);
  for (size_t i = 1; i < sites_.size(); ++i) {
    Site& site = analysis->sites[i - 1];
    site.lifetimes = SiteLifetimes::Of(lifetimes_[i].freed);
    site.sizes = SiteSizes::Of(site_sizes_[i]);
    site.series = series_.Take(i, SeriesNow(sites_[i]));
    if (site.live_blocks > 0 || late_sites.contains(static_cast<uint32_t>(i))) finder.AddSite(i, site);
  }
  std::vector<std::pair<uint32_t, uint32_t>> moves;
  for (const auto& [from_to, times] : usage_.handed_over()) {
    moves.emplace_back(from_to.first - 1, from_to.second - 1);
  }
  constexpr size_t kRecursion = 0;
  const SiteFamilies kinds[] = {SiteFamilies::ByRecursion(analysis->sites, *stacks_),
                                SiteFamilies::ByReallocs(analysis->sites.size(), moves)};
  // For the finder they stand behind the sites, those of one kind behind those of the other.
  std::vector<Site> together;
  const size_t begin[] = {sites_.size(), sites_.size() + kinds[0].size()};
  for (const SiteFamilies& families : kinds) {
    for (size_t f = 0; f < families.size(); ++f) {
      const size_t number = sites_.size() + together.size();
      together.push_back(families.Together(f, analysis->sites));
      const auto& members = families.members(f);
      if (together.back().live_blocks > 0 || std::any_of(members.begin(), members.end(), [&](uint32_t at) {
            return late_sites.contains(at + 1);
          })) {
        finder.AddSite(number, together.back());
      }
    }
  }
  // Of a site, and of its families.
  const auto for_each = [&](uint32_t site, const auto& to) {
    to(site);
    for (size_t k = 0; k < std::size(kinds); ++k) {
      const uint32_t family = kinds[k].Of(site - 1);
      if (family != SiteFamilies::kNone) to(begin[k] + family);
    }
  };
  const auto add = [&](const HeldBlock& block) {
    if (block.has(HeldBlock::kUncounted)) return;
    const uint64_t bytes = Round(WeightOf(block.size()).bytes);
    for_each(block.site, [&](size_t number) { finder.AddLive(number, block.time_ns, bytes); });
  };
  for (const LateFrees::Free& each : late) {
    const uint64_t bytes = Round(WeightOf(each.size).bytes);
    for_each(each.site, [&](size_t number) {
      finder.AddLateFree(number, each.born_ns, each.freed_ns, late_frees_.weight(), bytes);
    });
  }
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
  for (size_t k = 0; k < std::size(kinds); ++k) {
    for (size_t f = 0; f < kinds[k].size(); ++f) {
      const std::vector<uint32_t>& members = kinds[k].members(f);
      const Site& all = together[begin[k] + f - sites_.size()];
      uint64_t turns = 0, first_free_ns = UINT64_MAX, gone = 0;
      bool one_grows = false;
      for (const uint32_t at : members) {
        const SiteState& member = sites_[at + 1];
        turns += member.turns;
        if (member.frees > 0) first_free_ns = std::min(first_free_ns, member.first_free_ns);
        gone += gone_bytes(at + 1);
        one_grows |= analysis->sites[at].growth.verdict == Growth::Verdict::kGrowing;
      }
      // A recursion is one piece of code; of sites that a block went through one that grows is known by itself.
      if (one_grows && k != kRecursion) continue;
      const Growth growth =
          finder.Judge(begin[k] + f, all, static_cast<uint32_t>(std::min<uint64_t>(turns, UINT32_MAX)),
                       first_free_ns);
      if (growth.verdict != Growth::Verdict::kGrowing || 2 * gone > all.live_bytes) continue;
      for (const uint32_t at : members) {
        Site& site = analysis->sites[at];
        site.growth = SiteFamilies::ShareOf(growth, all, site);
      }
    }
  }
  // What a program does in a moment is how it begins: a short one sets itself up until it ends, and one that
  // was killed, or became another, may have rested for hours behind its last event.
  if (to - from < kLeastGrowthRunNs) {
    for (Site& site : analysis->sites) {
      if (site.growth.verdict == Growth::Verdict::kGrowing) site.growth = {};
    }
  }
}

}  // namespace memtrace::report
