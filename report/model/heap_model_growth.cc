// The end of a HeapModel: how each site grew.

#include <algorithm>
#include <utility>
#include <vector>

#include "report/findings/analysis.h"
#include "report/growth/growth_finder.h"
#include "report/growth/shutdown.h"
#include "report/growth/site_families.h"
#include "report/growth/site_history.h"
#include "report/model/heap_model.h"

namespace memtrace::report {

// The steps of FinishGrowth(), in their order: what each site and each family held is
// added, then all are judged.
class HeapModel::GrowthJudge {
 public:
  // When the program began to give everything back; UINT64_MAX: it did not.
  static uint64_t FindShutdown(const HeapModel& model, const Analysis& analysis);

  // `analysis` has its shutdown_ns.
  GrowthJudge(HeapModel* model, Analysis* analysis);

  void AddSites();     // which get their lifetimes, sizes and series
  void AddFamilies();  // of these sites
  void AddBlocks();    // that are live, or were when the shutdown began
  void JudgeSites();
  void JudgeFamilies();  // after the sites, some of which grow only together
  void ForgetMoments();  // of a run too short to say anything

 private:
  static constexpr size_t kRecursion = 0;  // of kinds_

  void JudgeFamily(size_t kind, size_t family);
  // Of a range only blocks from within are counted: those that took the places of earlier ones do
  // not make the site larger. Nothing takes the places of what the shutdown frees.
  uint64_t GoneBytes(size_t site) const;  // of earlier ones
  bool TookPlaces(const Site& site, uint64_t gone_bytes) const;
  // Calls `to` with each free of what was live when the shutdown began: those before it are of none
  // of that.
  template <typename Do>
  void ForEachLateFree(const Do& to) const {
    for (const LateFrees::Free& each : model_.late_frees_.frees()) {
      if (each.freed_ns >= analysis_.shutdown_ns) to(each);
    }
  }
  // Calls `to` with the numbers by which the finder knows a site and its families.
  template <typename Do>
  void ForEachOf(uint32_t site, const Do& to) const;

  HeapModel& model_;
  Analysis& analysis_;
  absl::flat_hash_set<uint32_t> late_sites_;  // of what was live when the shutdown began
  absl::flat_hash_map<uint32_t, uint64_t> gone_bytes_;  // before the shutdown, in units; by site
  GrowthFinder finder_;
  std::vector<SiteFamilies> kinds_;
  // For the finder families stand behind the sites, those of one kind behind those of the other.
  std::vector<Site> together_;
  std::vector<size_t> begin_;  // of each kind
};

uint64_t HeapModel::GrowthJudge::FindShutdown(const HeapModel& model, const Analysis& analysis) {
  const uint64_t from = analysis.range.from_ns, to = analysis.judged_until_ns();
  std::vector<SiteEnds> ends;
  for (size_t i = 1; i < model.sites_.size(); ++i) {
    const Site& site = analysis.sites[i - 1];
    ends.push_back(
        {site.last_time_ns, site.allocations, model.sites_[i].first_free_ns, site.frees});
  }
  // That of the program: with what a selection leaves out.
  const LeftOut& left_out = model.left_out_;
  std::vector<TimelinePoint> timeline = analysis.timeline;
  for (size_t i = 0; i < std::min(timeline.size(), left_out.points().size()); ++i) {
    timeline[i].allocations += model.Round(left_out.points()[i].allocations);
    timeline[i].frees += model.Round(left_out.points()[i].frees);
  }
  for (SiteEnds each : left_out.sites()) {
    each.allocations = model.Round(each.allocations);
    each.frees = model.Round(each.frees);
    if (each.allocations + each.frees > 0) ends.push_back(each);
  }
  return std::min({ShutdownBegin(timeline, from, to), ShutdownBegin(std::move(ends), from, to),
                   ExitCalled(analysis.leak_scans, from, to)});
}

HeapModel::GrowthJudge::GrowthJudge(HeapModel* model, Analysis* analysis)
    : model_(*model), analysis_(*analysis),
      finder_(analysis->range.from_ns, analysis->judged_until_ns(), analysis->series_interval_ns,
              analysis->shutdown_ns) {
  ForEachLateFree([&](const LateFrees::Free& each) { late_sites_.insert(each.site); });
  // Of the interval in which the shutdown begins it is not known which frees came before that.
  const auto points = model->left_out_.points();
  for (size_t i = 0; i < std::min(analysis->timeline.size(), points.size()); ++i) {
    if (analysis->timeline[i].time_ns > analysis->shutdown_ns) break;
    for (const auto& [site, bytes] : points[i].earlier_bytes) gone_bytes_[site] += bytes;
  }
}

void HeapModel::GrowthJudge::AddSites() {
  for (size_t i = 1; i < model_.sites_.size(); ++i) {
    Site& site = analysis_.sites[i - 1];
    site.lifetimes = SiteLifetimes::Of(model_.lifetimes_[i].freed);
    site.sizes = SiteSizes::Of(model_.site_sizes_[i]);
    site.series = model_.series_.Take(i, model_.SeriesNow(model_.sites_[i]));
    if (site.live_blocks > 0 || late_sites_.contains(static_cast<uint32_t>(i)))
      finder_.AddSite(i, site);
  }
}

void HeapModel::GrowthJudge::AddFamilies() {
  std::vector<std::pair<uint32_t, uint32_t>> moves;
  for (const auto& [from_to, times] : model_.usage_.handed_over()) {
    moves.emplace_back(from_to.first - 1, from_to.second - 1);
  }
  kinds_.push_back(SiteFamilies::ByRecursion(analysis_.sites, *model_.stacks_));  // kRecursion
  kinds_.push_back(SiteFamilies::ByReallocs(analysis_.sites.size(), moves));
  for (const SiteFamilies& families : kinds_) {
    begin_.push_back(model_.sites_.size() + together_.size());
    for (size_t f = 0; f < families.size(); ++f) {
      const size_t number = model_.sites_.size() + together_.size();
      together_.push_back(families.Together(f, analysis_.sites));
      const auto& members = families.members(f);
      if (together_.back().live_blocks > 0 ||
          std::any_of(members.begin(), members.end(),
                      [&](uint32_t at) { return late_sites_.contains(at + 1); })) {
        finder_.AddSite(number, together_.back());
      }
    }
  }
}

template <typename Do>
void HeapModel::GrowthJudge::ForEachOf(uint32_t site, const Do& to) const {
  to(site);
  for (size_t k = 0; k < kinds_.size(); ++k) {
    const uint32_t family = kinds_[k].Of(site - 1);
    if (family != SiteFamilies::kNone) to(begin_[k] + family);
  }
}

void HeapModel::GrowthJudge::AddBlocks() {
  const auto add = [&](const HeldBlock& block) {
    if (block.has(HeldBlock::kUncounted)) return;
    const uint64_t bytes = model_.Round(model_.WeightOf(block.size()).bytes);
    ForEachOf(block.site, [&](size_t number) { finder_.AddLive(number, block.time_ns, bytes); });
  };
  ForEachLateFree([&](const LateFrees::Free& each) {
    const uint64_t bytes = model_.Round(model_.WeightOf(each.size).bytes);
    ForEachOf(each.site, [&](size_t number) {
      finder_.AddLateFree(number, each.born_ns, each.freed_ns, model_.late_frees_.weight(), bytes);
    });
  });
  model_.table_.ForEach(add);
  if (model_.custom_ != nullptr) {
    for (const auto& [key, block] : model_.custom_->blocks()) add(block.held);
  }
}

uint64_t HeapModel::GrowthJudge::GoneBytes(size_t site) const {
  const auto gone = gone_bytes_.find(static_cast<uint32_t>(site));
  return gone == gone_bytes_.end() ? 0 : model_.Round(gone->second);
}

bool HeapModel::GrowthJudge::TookPlaces(const Site& site, uint64_t gone_bytes) const {
  if (gone_bytes == 0) return false;
  // By the end the shutdown has freed the new ones, too.
  auto held = static_cast<double>(site.live_bytes);
  if (analysis_.shutdown_ns != UINT64_MAX) {
    const std::vector<Level> levels = LevelsOf(site, analysis_.series_interval_ns,
                                               analysis_.range.from_ns, analysis_.shutdown_ns);
    held = levels.empty() ? 0 : levels.back().live;
  }
  return 2 * static_cast<double>(gone_bytes) > held;
}

void HeapModel::GrowthJudge::JudgeSites() {
  for (size_t i = 1; i < model_.sites_.size(); ++i) {
    Site& site = analysis_.sites[i - 1];
    site.growth = finder_.Judge(i, site, model_.sites_[i].turns, model_.sites_[i].first_free_ns);
    if (site.growth.verdict == Growth::Verdict::kGrowing && TookPlaces(site, GoneBytes(i))) {
      site.growth = {.verdict = Growth::Verdict::kBounded};
    }
  }
}

void HeapModel::GrowthJudge::JudgeFamilies() {
  for (size_t k = 0; k < kinds_.size(); ++k) {
    for (size_t f = 0; f < kinds_[k].size(); ++f) JudgeFamily(k, f);
  }
}

void HeapModel::GrowthJudge::JudgeFamily(size_t kind, size_t family) {
  const std::vector<uint32_t>& members = kinds_[kind].members(family);
  const Site& all = together_[begin_[kind] + family - model_.sites_.size()];
  uint64_t turns = 0, first_free_ns = UINT64_MAX, gone = 0;
  bool one_grows = false;
  for (const uint32_t at : members) {
    const HeapSite& member = model_.sites_[at + 1];
    turns += member.turns;
    if (member.frees > 0) first_free_ns = std::min(first_free_ns, member.first_free_ns);
    gone += GoneBytes(at + 1);
    one_grows |= analysis_.sites[at].growth.verdict == Growth::Verdict::kGrowing;
  }
  // A recursion is one piece of code; of sites that a block went through one that
  // grows is known by itself.
  if (one_grows && kind != kRecursion) return;
  const Growth growth =
      finder_.Judge(begin_[kind] + family, all,
                    static_cast<uint32_t>(std::min<uint64_t>(turns, UINT32_MAX)), first_free_ns);
  if (growth.verdict != Growth::Verdict::kGrowing || TookPlaces(all, gone)) return;
  for (const uint32_t at : members) {
    Site& site = analysis_.sites[at];
    site.growth = SiteFamilies::ShareOf(growth, all, site);
  }
}

// What a program does in a moment is how it begins: a short one sets itself up until it ends, and
// one that was killed, or became another, may have rested for hours behind its last event.
void HeapModel::GrowthJudge::ForgetMoments() {
  if (!analysis_.too_short_for_growth()) return;
  for (Site& site : analysis_.sites) {
    if (site.growth.verdict == Growth::Verdict::kGrowing) site.growth = {};
  }
}

// Series, and what they say.
void HeapModel::FinishGrowth(Analysis* analysis) {
  analysis->shutdown_ns = GrowthJudge::FindShutdown(*this, *analysis);
  GrowthJudge judge(this, analysis);
  judge.AddSites();
  judge.AddFamilies();
  judge.AddBlocks();
  judge.JudgeSites();
  judge.JudgeFamilies();
  judge.ForgetMoments();
}

}  // namespace memtrace::report
