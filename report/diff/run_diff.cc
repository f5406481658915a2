#include "report/diff/run_diff.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "report/base/byte_size.h"

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

// By how many standard deviations two amounts differ that chance alone has so far apart once in 180
// times, of few samples less often: what two 95 % intervals make that do not meet. Of blocks of
// several N, one more or less of which is more than all else, once in 50, of hundreds of 8 N in 8.
constexpr double kApart = 2.772;

// The sample distance of the executable's traces in that run; 0: none is a sample.
uint64_t SampleBytes(const RunSummary& run, const std::string& executable) {
  if (run.sample_bytes.empty()) return 0;
  if (executable.empty()) return run.sample_bytes.begin()->second;  // there is one only
  const auto found = run.sample_bytes.find(executable);
  return found == run.sample_bytes.end() ? 0 : found->second;
}

// Where the true bytes of the site are likely to be: what full traces have, and what samples of
// every `sample_bytes` estimate. `site`: nullptr where it is not there.
Interval IntervalOf(const RunSite* site, uint64_t sample_bytes, Measure bytes, double z) {
  const uint64_t estimated = site == nullptr ? 0 : site->estimated[bytes];
  const uint64_t exact = site == nullptr ? 0 : site->amounts[bytes] - estimated;
  if (sample_bytes == 0) return {exact, exact};
  if (estimated == 0) {
    // Nothing of it was sampled. If there had been as much as this, a sample would have had some of
    // it, with the probability that goes with z.
    const double tail = std::erfc(z / std::sqrt(2.0)) / 2;
    return {exact,
            exact + static_cast<uint64_t>(-std::log(tail) * static_cast<double>(sample_bytes))};
  }
  SampledSum sum = bytes == Measure::kLive ? site->live_sample : site->bytes_sample;
  sum.exact = 0;  // is in `exact`
  if (bytes == Measure::kPeak) {
    // No sum is kept of what was live at the peak: it is taken to be as exact as a part
    // of what was allocated.
    const double share =
        std::min(1.0, static_cast<double>(estimated) / std::max(sum.estimate, 1.0));
    sum.seen *= share;
    sum.estimate *= share;
    sum.variance *= share;
  }
  const Interval of_samples = sum.IntervalOf(z);
  return {exact + of_samples.low, exact + of_samples.high};
}

// The bytes that a measure goes with.
Measure BytesOf(Measure measure) {
  return measure == Measure::kLiveBlocks    ? Measure::kLive
         : measure == Measure::kAllocations ? Measure::kAllocated
                                            : measure;
}

// The amount of `measure` for each byte; 0: not known.
double PerByte(const RunSite* site, Measure measure) {
  const uint64_t bytes = site == nullptr ? 0 : site->amounts[BytesOf(measure)];
  return bytes == 0 ? 0 : static_cast<double>(site->amounts[measure]) / static_cast<double>(bytes);
}

// Whether amounts that come from samples differ by no more than those of two samples of the
// same run may. For the kinds of leaks that is not known. No sums are kept of counts: their
// intervals are those of their bytes in proportion, which are too narrow where the sizes of a
// site's blocks differ.
bool MayBeChance(const RunDiff& diff, const DiffRow& row) {
  const Measure measure = diff.options.measure;
  const uint64_t every_before = SampleBytes(*diff.old_run, row.executable);
  const uint64_t every_after = SampleBytes(*diff.new_run, row.executable);
  if (every_before + every_after == 0 || IsLeakKind(measure)) return false;
  const double z = every_before != 0 && every_after != 0 ? kApart / std::sqrt(2.0) : kApart;
  const Interval a = IntervalOf(row.in_old, every_before, BytesOf(measure), z);
  const Interval b = IntervalOf(row.in_new, every_after, BytesOf(measure), z);
  double unit_a = PerByte(row.in_old, measure), unit_b = PerByte(row.in_new, measure);
  if (unit_a == 0) unit_a = unit_b;
  if (unit_b == 0) unit_b = unit_a;
  if (unit_a == 0) return false;  // blocks without bytes: a sample has them all
  unit_a /= diff.old_divisor;
  unit_b /= diff.new_divisor;
  return static_cast<double>(a.low) * unit_a <= static_cast<double>(b.high) * unit_b &&
         static_cast<double>(b.low) * unit_b <= static_cast<double>(a.high) * unit_a;
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
  const absl::Status wrong = absl::InvalidArgumentError(
      absl::StrCat("--min: \"", text, "\" is no amount; 4096, 64K, 1.5M or 10%"));
  const absl::Status too_large =
      absl::InvalidArgumentError(absl::StrCat("--min: \"", text, "\" is too large"));
  Least least;
  absl::string_view number = text;
  const bool share = absl::ConsumeSuffix(&number, "%");
  // Without a unit it may be a fraction: of an amount for each second or allocation.
  if (number.find_first_not_of("0123456789.") == number.npos) {
    double value = 0;
    if (!absl::SimpleAtod(number, &value)) return wrong;
    if (!std::isfinite(value)) return too_large;
    (share ? least.share : least.amount) = share ? value / 100 : value;
    return least;
  }
  const auto bytes = ParseByteSize(number);
  if (!share && absl::IsOutOfRange(bytes.status())) return too_large;
  if (share || !bytes.ok()) return wrong;
  least.amount = static_cast<double>(*bytes);
  return least;
}

absl::StatusOr<RunDiff> CompareRuns(const RunSummary& old_run, const RunSummary& new_run,
                                    const DiffOptions& options) {
  for (const RunSummary* run : {&old_run, &new_run}) {
    if (IsLeakKind(options.measure) && !run->scanned) {
      return absl::FailedPreconditionError(absl::StrCat(
          "--by ", MeasureName(options.measure), ": ",
          "the memory of ", run->name, " was not scanned at its end",
          run->range_ns.has_value() ? ", or not within the range that was asked for" : "",
          ", so what of it was lost is not known"));
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
  const auto old_divisor = Divisor(options.per, old_run.counted_ns(), old_run.totals);
  const auto new_divisor = Divisor(options.per, new_run.counted_ns(), new_run.totals);
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
  std::vector<SiteInTable> table;
  for (const DiffRow& row : diff.rows) table.push_back({row.executable, row.site});
  std::vector<ToldApart> apart = TellApart(table);
  for (size_t i = 0; i < diff.rows.size(); ++i) diff.rows[i].apart = std::move(apart[i]);
  return diff;
}

}  // namespace memtrace::report
