// SteadyFlow: what lives explain. Blocks that come at an even pace, and live as the freed ones did,
// make a level that rises until the first of them go, and then moves by chance alone; some of them
// are old at the end. docs/growth.md, "A steady flow".
//
// Pure functions, any thread.

#ifndef MEMTRACE_REPORT_GROWTH_STEADY_FLOW_H_
#define MEMTRACE_REPORT_GROWTH_STEADY_FLOW_H_

#include <cstddef>
#include <vector>

#include "report/findings/lifetime_histogram.h"
#include "report/growth/site_history.h"

namespace memtrace::report {

// The queue M/G/infinity, empty at first (Takacs, Introduction to the Theory of Queues, 1962), of
// the blocks that a site freed.
class SteadyFlow {
 public:
  // They came within `seen_ns` and lived so long. Who lived long had to come early, to be among
  // them: each counts for those that came too late for that (Horvitz and Thompson, JASA 47, 1952).
  SteadyFlow(const LifetimeHistogram& lives, double seen_ns);

  // How many of the blocks that come in a nanosecond outlive that age.
  double OutlivingPerNs(double age_ns) const { return At(outlive_, age_ns); }
  // The blocks to expect, so long after the first came.
  double Level(double ns) const { return At(level_, ns); }
  // The covariance of the levels at two times: the number of blocks to expect
  // that are there at both.
  double Covariance(double a_ns, double b_ns) const;

 private:
  static constexpr size_t kParts = 256;  // of the time
  double At(const std::vector<double>& values, double ns) const;

  double part_ns_;
  std::vector<double> outlive_, level_;  // at the begin of each part, and the end of the last
};

// Does the floor of a site rise from its middle third to its last by no more than a steady flow
// does, once in a hundred times? Each of its values, bytes, is the lowest of `step_ns`; the last of
// them ends with the history. False: it rises by more, or too little is known of the lives.
bool SteadyFlowExplains(const SiteHistory& history, const std::vector<double>& floor,
                        double step_ns);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_GROWTH_STEADY_FLOW_H_
