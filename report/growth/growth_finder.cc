#include "report/growth/growth_finder.h"

#include <algorithm>

#include "report/growth/excursions.h"
#include "report/growth/retention.h"
#include "report/growth/rising_floor.h"

namespace memtrace::report {

GrowthFinder::GrowthFinder(uint64_t from_ns, uint64_t end_ns, uint64_t interval_ns,
                           uint64_t shutdown_ns)
    : from_ns_(from_ns),
      end_ns_(end_ns),
      interval_ns_(interval_ns),
      shutdown_ns_(shutdown_ns) {
  if (shutdown_ns_ != UINT64_MAX) end_ns_ = shutdown_ns_;
}

void GrowthFinder::AddSite(size_t site, const Site& summary) {
  if (!MayRetain(summary)) return;  // most sites of a trace with very many
  if (site >= index_.size()) index_.resize(site + 1);
  kept_.push_back({summary.first_time_ns, {}, {}});
  index_[site] = static_cast<uint32_t>(kept_.size());
}

GrowthFinder::Kept* GrowthFinder::Find(size_t site) {
  return site < index_.size() && index_[site] != 0 ? &kept_[index_[site] - 1] : nullptr;
}

void GrowthFinder::AddBirth(size_t site, uint64_t time_ns, uint64_t count, uint64_t bytes) {
  Kept* const kept = Find(site);
  if (kept == nullptr || time_ns >= end_ns_) return;
  if (time_ns < kept->first_ns || kept->first_ns >= end_ns_) return;
  const double share =
      static_cast<double>(time_ns - kept->first_ns) / static_cast<double>(end_ns_ - kept->first_ns);
  const auto part = std::min(static_cast<size_t>(share * Births::kParts), Births::kParts - 1);
  kept->births.blocks[part] += static_cast<double>(count);
  kept->births.bytes[part] += static_cast<double>(count * bytes);
}

void GrowthFinder::AddLateFree(size_t site, uint64_t born_ns, uint64_t freed_ns, uint64_t count,
                               uint64_t bytes) {
  Kept* const kept = Find(site);
  if (kept == nullptr || freed_ns < shutdown_ns_) return;
  AddBirth(site, born_ns, count, bytes);
  if (kept->late == nullptr) kept->late = std::make_unique<LifetimeHistogram>();
  kept->late->freed[LifetimeHistogram::ClassOf(freed_ns - std::min(born_ns, freed_ns))] +=
      static_cast<uint32_t>(count);
}

// All that it freed it freed in the shutdown, which was nearly all it had, and not shortly after
// it got it.
bool GrowthFinder::IsHeld(const SiteHistory& history, uint64_t first_free_ns) const {
  const Site& site = *history.site;
  if (shutdown_ns_ == UINT64_MAX || site.frees == 0 || first_free_ns < shutdown_ns_) return false;
  const double lifetime = site.freed_lifetime_ns / static_cast<double>(site.frees);
  return 10 * site.live_bytes <= site.peak_bytes &&
         lifetime >= static_cast<double>(end_ns_ - from_ns_) / 20;
}

// What came shortly before the end may have been set up once: its rate, over a moment, would be
// that of nothing that goes on. Of held sites only levels are known, which must be so many that
// evenness is theirs and not that of what is spread within an interval.
bool GrowthFinder::IsTooNew(const SiteHistory& history) const {
  constexpr uint64_t kLeastNs = kLeastGrowthRunNs / 2;
  constexpr uint64_t kLeastShareOfRun = 32, kEnoughNs = 10'000'000'000;
  constexpr uint64_t kFewestIntervals = 9;
  const uint64_t time_ns = end_ns_ - std::min(history.first_ns, end_ns_);
  const uint64_t share_ns = std::min((end_ns_ - from_ns_) / kLeastShareOfRun, kEnoughNs);
  return time_ns < std::max(kLeastNs, share_ns) ||
         (history.held && time_ns < kFewestIntervals * interval_ns_);
}

Growth GrowthFinder::Judge(size_t site, const Site& summary, uint32_t turns,
                           uint64_t first_free_ns) const {
  Growth growth;
  growth.verdict = Growth::Verdict::kBounded;
  if (summary.allocations == 0 || summary.first_time_ns >= end_ns_) return growth;
  const Kept* const kept = Find(site);
  // Blocks that were freed in the shutdown had not come to their end: their lifetimes do not count.
  Site lived;
  if (kept != nullptr && kept->late != nullptr) {
    lived = summary;
    LifetimeHistogram lives = LifetimeHistogram::Of(summary.lifetimes);
    for (size_t i = 0; i < LifetimeHistogram::kClasses; ++i) {
      lives.freed[i] -= std::min(lives.freed[i], kept->late->freed[i]);
    }
    lived.lifetimes = SiteLifetimes::Of(lives.freed);
  }
  SiteHistory history;
  history.from_ns = from_ns_;
  history.end_ns = end_ns_;
  history.first_ns = summary.first_time_ns;
  history.interval_ns = interval_ns_;
  history.site = kept != nullptr && kept->late != nullptr ? &lived : &summary;
  history.turns = turns;
  growth.held_until_exit = history.held = IsHeld(history, first_free_ns);
  if (!MayRetain(summary) && !MayRise(summary) && (history.held || !MayGoAndCome(summary))) {
    if (history.held) growth.verdict = Growth::Verdict::kHeld;
    return growth;
  }
  history.levels = LevelsOf(summary, interval_ns_, from_ns_, end_ns_);
  history.first_level =
      interval_ns_ == 0
          ? 0
          : static_cast<size_t>((history.first_ns - std::min(from_ns_, history.first_ns)) /
                                interval_ns_);
  if (history.held) {
    history.births = BirthsFromLevels(history);
  } else if (kept != nullptr) {
    history.births = kept->births;
  }

  GrowthEvidence evidence;
  if (!IsTooNew(history)) {
    evidence = RetentionEvidence(history);
    if (!evidence.growing) evidence = FloorEvidence(history);
    if (!evidence.growing) evidence = StepEvidence(history);
  }
  if (evidence.growing) {
    growth.verdict = Growth::Verdict::kGrowing;
    growth.held_until_exit |=
        shutdown_ns_ != UINT64_MAX && !history.levels.empty() &&
        10 * static_cast<double>(summary.live_bytes) <= history.levels.back().live;
    growth.bytes_per_s = evidence.bytes_per_s;
    growth.bytes_per_s_low = evidence.low;
    growth.bytes_per_s_high = evidence.high;
    // The rate is that of a part of the run; no allocation leaves more than it took.
    growth.bytes_per_allocation = std::min(
        evidence.bytes_per_s * history.seconds() / static_cast<double>(summary.allocations),
        history.mean_size());
    growth.blocks_per_s = evidence.bytes_per_s / std::max(history.mean_size(), 1.0);
    growth.confidence = evidence.confidence;
  } else if (history.held) {
    growth.verdict = Growth::Verdict::kHeld;
  } else {
    growth.verdict = ExcursionVerdict(history);
  }
  return growth;
}

}  // namespace memtrace::report
