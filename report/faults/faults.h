// FaultCollector: page faults and resident memory, from the usage samples that
// the library takes now and then, and how they go with the heap.
//
// Keeps at most kMaxSamples: when they are full, every second one is dropped and
// from then on only every second one taken. The first and the last are kept.
//
// Single-threaded.

#ifndef MEMTRACE_REPORT_FAULTS_FAULTS_H_
#define MEMTRACE_REPORT_FAULTS_FAULTS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "report/findings/fault_details.h"
#include "report/findings/over_time.h"
#include "report/findings/range.h"

namespace memtrace::report {

class FaultCollector {
 public:
  static constexpr size_t kMaxSamples = 4096;

  // Samples come in about the order of time. Counters never go back: a sample of a thread that
  // was late is left out.
  void Add(UsageSample sample);

  std::span<const UsageSample> samples();

  // Faults of the range, correlations, thinned samples. A range that begins with the process has
  // the faults of its start, before the first sample, as the whole run has.
  // `at_end`: the counts that the process wrote at its end, if it did. A part of a run that ends
  // behind the last sample that was read has its share of what came until then.
  void Finish(const Range& range, const UsageSample* at_end, Faults* faults);

  // Writes the state into an archive, or reads it out of one (state/state_archive.h).
  template <typename Archive>
  void Fold(Archive& archive);
  // Zeroes the samples' figures of the heap, but keeps the samples. See HeapModel::ForgetFigures().
  void ForgetFigures();

 private:
  std::vector<UsageSample> samples_;
  UsageSample last_;  // taken, perhaps not kept
  bool any_ = false;
  uint64_t stride_ = 1;
  uint64_t count_ = 0;
  uint64_t peak_rss_bytes_ = 0;
};

// The figures of a whole run that has its end: `minor` and `major` are those of the process there,
// `own` what the library counted of its own. What came behind the last sample is its work at the
// exit, for the most part.
void CountToTheEnd(uint64_t minor, uint64_t major, uint64_t own, Faults* faults);

// The figures of a part of a run, or of one without its end: they are at least what was seen, `own`
// minor faults of that on the library's memory. Counts are of the samples' times, while each fault
// that was seen has its own.
void CountTheSeen(const FaultSums& seen, uint64_t own, Faults* faults);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_FAULTS_FAULTS_H_
