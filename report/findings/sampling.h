// Sampling: what a sampled allocation stands for, and how far an estimate may be off.
//
// The library records an allocation of s bytes with the probability
// p(s) = 1 - exp(-s / N), independently of all others. Counting each of them 1 / p
// times gives the Horvitz-Thompson estimate of any total, which is unbiased, with the
// variance estimate sum((1 - p) / p^2 s^2), which is too (Horvitz and Thompson: A
// generalization of sampling without replacement from a finite universe, JASA 47,
// 1952). What is small beside N may have no sample at all, however much of a sum the others are:
// each interval allows for it. docs/sampling.md has the whole story.
//
// Pure functions, any thread.

#ifndef MEMTRACE_REPORT_FINDINGS_SAMPLING_H_
#define MEMTRACE_REPORT_FINDINGS_SAMPLING_H_

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "report/base/on_demand.h"

namespace memtrace::report {

// N of the library; 0: every allocation is recorded, and all weights are 1.
inline double SampleProbability(uint64_t bytes, uint64_t sample_bytes) {
  if (sample_bytes == 0 || bytes == 0) return 1;
  return -std::expm1(-static_cast<double>(bytes) / static_cast<double>(sample_bytes));
}

// An estimate is a sum of very many weights, most of them not whole, that grows and
// shrinks and must be 0 again at the end. So it is kept in integers, of 1 / 4096.
class SampleWeight {
 public:
  static constexpr unsigned kFractionBits = 12;

  // In units; for a trace of everything a unit is 1.
  uint64_t blocks = 1;
  uint64_t bytes = 0;

  SampleWeight(uint64_t size, uint64_t sample_bytes) : bytes(size) {
    if (sample_bytes == 0) [[likely]] return;
    // The limit is for a hostile trace, whose sums may wrap but not trap.
    const double weight = std::min(0x1p40, 1 / SampleProbability(size, sample_bytes));
    blocks = static_cast<uint64_t>(std::llround(weight * 0x1p12));
    bytes = static_cast<uint64_t>(
        std::llround(std::min(0x1p62, weight * static_cast<double>(size) * 0x1p12)));
  }
  static uint64_t Round(uint64_t units, uint64_t sample_bytes) {
    if (sample_bytes == 0) return units;
    return (units + (uint64_t{1} << (kFractionBits - 1))) >> kFractionBits;
  }
};

// A 95 % confidence interval. For a trace of everything both ends are the value.
struct Interval {
  uint64_t low = 0, high = 0;
};

// An estimate of bytes together with what its interval needs.
struct SampledSum {
  uint64_t samples = 0;
  double seen = 0;      // bytes of the samples themselves: there are no fewer
  double estimate = 0;
  double variance = 0;
  double sample_bytes = 0;  // N, of several traces the largest; 0: all there is was recorded
  // Bytes beside these that are known: of other processes, of which there is everything.
  double exact = 0;

  void Add(uint64_t bytes, uint64_t every) {
    const double size = static_cast<double>(bytes), p = SampleProbability(bytes, every);
    ++samples;
    seen += size;
    estimate += size / p;
    variance += (1 - p) / (p * p) * size * size;
    sample_bytes = std::max(sample_bytes, static_cast<double>(every));
  }
  void Add(const SampledSum& other) {
    samples += other.samples;
    seen += other.seen;
    estimate += other.estimate;
    variance += other.variance;
    sample_bytes = std::max(sample_bytes, other.sample_bytes);
    exact += other.exact;
  }

  // The 95 % interval, by the gamma distribution, for sums of weighted Poisson counts (Fay and
  // Feuer: Confidence intervals for directly standardized rates, Statistics in Medicine 16, 1997).
  // With many samples it is estimate +- 1.96 sqrt(variance), with none [0, 3.7 N]. Blocks of
  // `bytes` together, however many, have no sample with the probability exp(-bytes / N): so much
  // is allowed for above what was seen whatever the sizes of the samples are, for those of one
  // site as well: what grows from 1 KiB to 64 MiB is one, of which the large blocks are recorded.
  Interval Interval95() const { return IntervalOf(kNormal95); }
  // The same where the normal distribution has `z`.
  static constexpr double kNormal95 = 1.959964;
  Interval IntervalOf(double z) const;
};

inline void AddSamples(const OnDemand<SampledSum>& from, OnDemand<SampledSum>* to) {
  if (from.made()) to->Make().Add(from);
}

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_FINDINGS_SAMPLING_H_
