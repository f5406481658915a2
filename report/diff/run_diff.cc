#include "report/diff/run_diff.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace memtrace::report {
namespace {

// The sites as they are matched: without the executable where each run has one only.
std::map<SiteKey, const RunSite*> Keyed(const RunSummary& run, bool by_executable) {
  std::map<SiteKey, const RunSite*> keyed;
  for (const auto& [key, site] : run.sites) {
    keyed.emplace(SiteKey(by_executable ? key.first : "", key.second), &site);
  }
  return keyed;
}

bool Counts(double change, double before, const Least& least) {
  const double size = std::fabs(change);
  return size > 0 && size >= least.amount && size >= least.share * before;
}

// By how many standard deviations two amounts differ that chance alone has so far apart once in 180 times: what two
// 95 % intervals make that do not meet.
constexpr double kApart = 2.772;

// Where the true bytes of the site are likely to be, allocated or live: whichever `measure` goes with.
Interval IntervalOf(const RunSummary& run, const RunSite* site, Measure measure, double z) {
  const bool live = measure == Measure::kLive || measure == Measure::kLiveBlocks;
  if (site == nullptr || (site->bytes_sample.samples == 0 && run.sampled)) {
    // Of as much as this a sample would have had some, all but once in so many times.
    const double tail = std::erfc(z / std::sqrt(2.0)) / 2;
    return {0, static_cast<uint64_t>(-std::log(tail) * static_cast<double>(run.sample_bytes))};
  }
  const uint64_t exact = site->amounts[live ? Measure::kLive
                                       : measure == Measure::kPeak ? Measure::kPeak
                                                                   : Measure::kAllocated];
  if (!run.sampled) return {exact, exact};
  if (live && site->live_sample.samples == 0) return IntervalOf(run, nullptr, measure, z);
  if (measure != Measure::kPeak) return (live ? site->live_sample : site->bytes_sample).IntervalOf(z);
  // Of what was live at the peak no sum is kept: as exact as a part of what was allocated would be.
  if (exact == 0) return IntervalOf(run, nullptr, measure, z);
  SampledSum part = site->bytes_sample;
  const double share = std::min(1.0, static_cast<double>(exact) / std::max(part.estimate, 1.0));
  part.seen *= share;
  part.estimate *= share;
  part.variance *= share;
  return part.IntervalOf(z);
}

// Of samples: whether the amounts differ by more than two samples of the same run may. Of the kinds of leaks that
// is not known.
bool MayBeChance(const RunDiff& diff, const DiffRow& row) {
  const RunSummary &before = *diff.old_run, &after = *diff.new_run;
  if (!(before.sampled || after.sampled) || IsLeakKind(diff.options.measure)) return false;
  const double z = before.sampled && after.sampled ? kApart / std::sqrt(2.0) : kApart;
  const Interval a = IntervalOf(before, row.in_old, diff.options.measure, z);
  const Interval b = IntervalOf(after, row.in_new, diff.options.measure, z);
  return static_cast<double>(a.low) / diff.old_divisor <= static_cast<double>(b.high) / diff.new_divisor &&
         static_cast<double>(b.low) / diff.new_divisor <= static_cast<double>(a.high) / diff.old_divisor;
}

}  // namespace

absl::string_view VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kNew: return "new";
    case Verdict::kGrown: return "grown";
    case Verdict::kShrunk: return "shrunk";
    case Verdict::kGone: return "gone";
  }
  return "";
}

absl::StatusOr<Least> ParseLeast(absl::string_view text) {
  Least least;
  absl::string_view number = text;
  double value = 0, unit = 1;
  const bool share = absl::ConsumeSuffix(&number, "%");
  if (!share) {
    for (const auto& [suffix, factor] : {std::pair<const char*, double>{"K", 1024},
                                         {"M", 1048576.0}, {"G", 1073741824.0}}) {
      if (absl::ConsumeSuffix(&number, suffix)) unit = factor;
    }
  }
  if (!absl::SimpleAtod(number, &value) || !std::isfinite(value) || value < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--min: \"", text, "\" is no amount; 4096, 64K, 1M or 10%"));
  }
  (share ? least.share : least.amount) = share ? value / 100 : value * unit;
  return least;
}

absl::StatusOr<RunDiff> CompareRuns(const RunSummary& old_run, const RunSummary& new_run,
                                    const DiffOptions& options) {
  for (const RunSummary* run : {&old_run, &new_run}) {
    if (IsLeakKind(options.measure) && !run->scanned) {
      return absl::FailedPreconditionError(
          absl::StrCat("--by ", MeasureName(options.measure), ": the memory of ", run->name,
                       " was not scanned at its end, so what of it was lost is not known"));
    }
    if (run->sampled && options.measure == Measure::kTemporary) {
      return absl::FailedPreconditionError(
          absl::StrCat("--by temporary: ", run->name, " is a sample, of which that is not known"));
    }
  }
  RunDiff diff;
  diff.old_run = &old_run;
  diff.new_run = &new_run;
  diff.options = options;
  diff.by_executable = old_run.executables.size() > 1 || new_run.executables.size() > 1;
  const auto old_divisor = Divisor(options.per, old_run.duration_ns, old_run.totals);
  const auto new_divisor = Divisor(options.per, new_run.duration_ns, new_run.totals);
  if (!old_divisor || !new_divisor) {
    return absl::FailedPreconditionError(
        absl::StrCat("--per ", PerName(options.per), ": ", (old_divisor ? new_run : old_run).name,
                     " has none"));
  }
  diff.old_divisor = *old_divisor;
  diff.new_divisor = *new_divisor;

  const auto before = Keyed(old_run, diff.by_executable);
  const auto after = Keyed(new_run, diff.by_executable);
  const auto value = [&](const RunSite* site, double divisor) {
    return site == nullptr ? 0 : static_cast<double>(site->amounts[options.measure]) / divisor;
  };
  const auto add = [&](const SiteKey& key, const RunSite* in_old, const RunSite* in_new) {
    DiffRow row;
    row.executable = key.first;
    row.fingerprint = key.second;
    row.site = in_new != nullptr ? in_new : in_old;
    row.in_old = in_old;
    row.in_new = in_new;
    row.old_value = value(in_old, diff.old_divisor);
    row.new_value = value(in_new, diff.new_divisor);
    if (!Counts(row.change(), row.old_value, options.least)) {
      diff.same += in_old != nullptr && in_new != nullptr;
      return;
    }
    if (MayBeChance(diff, row)) {
      ++diff.by_chance;
      return;
    }
    row.verdict = in_old == nullptr   ? Verdict::kNew
                  : in_new == nullptr ? Verdict::kGone
                  : row.change() > 0  ? Verdict::kGrown
                                      : Verdict::kShrunk;
    diff.rows.push_back(row);
  };
  for (const auto& [key, site] : after) {
    const auto found = before.find(key);
    add(key, found != before.end() ? found->second : nullptr, site);
  }
  for (const auto& [key, site] : before) {
    if (!after.contains(key)) add(key, site, nullptr);
  }
  std::sort(diff.rows.begin(), diff.rows.end(), [](const DiffRow& a, const DiffRow& b) {
    return std::tuple(a.verdict, -std::fabs(a.change()), a.executable, a.fingerprint) <
           std::tuple(b.verdict, -std::fabs(b.change()), b.executable, b.fingerprint);
  });
  return diff;
}

}  // namespace memtrace::report
