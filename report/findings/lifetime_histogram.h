// LifetimeHistogram: how long blocks lived, in classes of half an octave.
//
// A class is a third to a half as wide as its first lifetime, and a quantile read from it off by
// less than that: enough to tell a millisecond from an hour, which is what lifetimes are asked
// for. The classes are 384 bytes a site, whatever the number of blocks; kept of a site is what it
// uses of them (SiteLifetimes).
//
// Hot: Add() is on the path of each free.

#ifndef MEMTRACE_REPORT_FINDINGS_LIFETIME_HISTOGRAM_H_
#define MEMTRACE_REPORT_FINDINGS_LIFETIME_HISTOGRAM_H_

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "report/findings/class_counts.h"

namespace memtrace::report {

struct LifetimeHistogram {
  static constexpr size_t kClasses = 96;  // the last one is of 39 hours and more

  std::array<uint32_t, kClasses> freed{};  // blocks, by ClassOf(nanoseconds from malloc to free)

  static size_t ClassOf(uint64_t ns) {
    return ClassOfWhole(static_cast<double>(static_cast<int64_t>(ns)));
  }
  // The same of a whole number below 2^63. As a double it has its exponent in front, and behind that
  // the bit that halves the octave. What rounding takes to the next class is of the last one anyway.
  static size_t ClassOfWhole(double ns) {
    constexpr uint64_t kOfOne = std::bit_cast<uint64_t>(1.0) >> 51;
    const uint64_t at = std::max(std::bit_cast<uint64_t>(ns) >> 51, kOfOne) - kOfOne;
    return std::min(at, uint64_t{kClasses - 1});
  }
  // The first lifetime of the class; that of kClasses ends the last.
  static uint64_t BeginOf(size_t at) {
    if (at == 0) return 0;
    const uint64_t octave = uint64_t{1} << at / 2;
    return octave + (at % 2 == 1 ? octave / 2 : 0);
  }

  void Add(uint64_t ns) { ++freed[ClassOf(ns)]; }
  void AddWhole(double ns) { ++freed[ClassOfWhole(ns)]; }
  void Add(const LifetimeHistogram& other) {
    for (size_t i = 0; i < kClasses; ++i) freed[i] += other.freed[i];
  }
  void Add(const ClassCounts<kClasses>& other) { other.AddTo(&freed); }
  static LifetimeHistogram Of(const ClassCounts<kClasses>& counts) {
    LifetimeHistogram all;
    all.Add(counts);
    return all;
  }

  uint64_t blocks() const {
    uint64_t sum = 0;
    for (const uint32_t n : freed) sum += n;
    return sum;
  }
  // The lifetime that the share `q` of the blocks did not outlive: of so many of one class each is
  // taken to be in the middle of its part. Where all are of one class that is their mean, if
  // `sum_ns` is known and not 0. 0: no block was freed.
  double Quantile(double q, double sum_ns = 0) const;
  // The share of the freed blocks that lived longer than this.
  double ShareAbove(double ns) const;
};

using SiteLifetimes = ClassCounts<LifetimeHistogram::kClasses>;

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_FINDINGS_LIFETIME_HISTOGRAM_H_
