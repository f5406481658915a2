// Thrash: the same pages come in from disk again and again, while the heap does not grow.
//
// A *refault* is a major fault on a page that had faulted before: it was taken away meanwhile
// (swapped out, or a page of a file given up) and was wanted after all. A minor fault on such a
// page is none: that is memory that the program itself gave back.
//
// The run is looked at in steps of kStepNs. A step thrashes with kFewestRefaults or more, if the
// live heap is not more than kMostGrowth larger at its end than at its begin. Steps that follow
// each other are one stretch.
//
// Pages are remembered up to kMostPages; later ones are not looked at, and `limited` says so.

#ifndef MEMTRACE_REPORT_FAULTS_THRASH_H_
#define MEMTRACE_REPORT_FAULTS_THRASH_H_

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "report/findings/fault_details.h"
#include "report/findings/over_time.h"

namespace memtrace::report {

class ThrashDetector {
 public:
  static constexpr uint64_t kStepNs = 100'000'000;
  // 200 a second: 2 % of a disk's time at 100 us each.
  static constexpr uint64_t kFewestRefaults = 20;
  static constexpr double kMostGrowth = 0.05;
  static constexpr size_t kMostPages = 32 << 20;

  void Add(uint64_t time_ns, uint64_t page, bool major);

  // Writes the state into an archive, or reads it out of one (state/state_archive.h).
  template <typename Archive>
  void Fold(Archive& archive);

  uint64_t refaults() const { return refaults_; }
  bool limited() const { return limited_; }
  // `samples` in the order of time: what the live heap was.
  std::vector<ThrashStretch> Stretches(std::span<const UsageSample> samples) const;

 private:
  static constexpr size_t kMostSteps = 1 << 20;

  absl::flat_hash_set<uint64_t> pages_;
  std::map<uint64_t, uint64_t> steps_;  // number of the step -> refaults
  uint64_t refaults_ = 0;
  bool limited_ = false;
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_FAULTS_THRASH_H_
