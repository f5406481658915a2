// Growth: what a site's memory did over the run. docs/growth.md has the rules and their reasons.

#ifndef MEMTRACE_REPORT_FINDINGS_GROWTH_H_
#define MEMTRACE_REPORT_FINDINGS_GROWTH_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace memtrace::report {

// A shorter run shows how a program sets itself up, and no growth.
inline constexpr uint64_t kLeastGrowthRunNs = 100'000'000;

struct Growth {
  enum class Verdict {
    kUnknown,   // not judged: of several processes together
    kBounded,   // came to a level, or never had one to speak of
    kGrowing,   // went on rising until the end of what was seen, or until the shutdown
    kBurst,     // stood far above its usual level for a short while
    kSawtooth,  // rises and falls back, again and again
    kHeld,      // did not grow, and was freed by the shutdown alone
  };
  Verdict verdict = Verdict::kUnknown;
  // Nothing was freed before the shutdown, and then nearly all. A growing site may be so too: a
  // leak that no leak checker finds.
  bool held_until_exit = false;

  // The speed of growth where the verdict is kGrowing. The bounds are those of a 95 % interval.
  double bytes_per_s = 0, bytes_per_s_low = 0, bytes_per_s_high = 0;
  double bytes_per_allocation = 0;
  double blocks_per_s = 0;
  double confidence = 0;  // 1 minus the probability of such a series without growth
};

// "growing", "held", ...: as JSON has it. Empty: not judged.
absl::string_view VerdictName(Growth::Verdict verdict);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_FINDINGS_GROWTH_H_
