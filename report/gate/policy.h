// GatePolicy: what `memtrace check` was told to accept. Pure functions that read it from the
// words of the command line; errors name the option and what it takes.

#ifndef MEMTRACE_REPORT_GATE_POLICY_H_
#define MEMTRACE_REPORT_GATE_POLICY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "report/leak/leak_kinds.h"

namespace memtrace::report::gate {

// A limit for each process, of one program or of all.
struct Limit {
  std::string program;  // file name of the executable; empty: all
  uint64_t most = 0;
};

// Live bytes at the last end of phase `to` (or the last mark of that name) minus those at the
// first end of phase `from`: between a phase and itself, what its repetitions add.
struct GrowthLimit {
  std::string program;  // empty: of each that has no limit of its own for these phases
  std::string from, to;
  uint64_t most = 0;
};

// How much a leak of the baseline may have grown.
struct Tolerance {
  uint64_t bytes = 0;
  uint64_t percent = 0;
  bool Allows(uint64_t was, uint64_t is) const;
};

struct GatePolicy {
  std::vector<std::string> programs;  // patterns of names; empty: all are judged
  LeakKindSet fail_on = LeakKindSet::Of(LeakKind::kDefinite);
  bool has_baseline = false;
  Tolerance tolerance;
  std::vector<Limit> max_leaked, max_peak, max_allocations;
  std::vector<GrowthLimit> max_growth;
  // A block that is freed twice, or by another kind of function, is a mistake in any program: none
  // is allowed where nothing else is said.
  std::vector<Limit> max_invalid_frees = {{}}, max_mismatched_frees = {{}};
  // A process whose trace shows nothing reliable: fails, or is only named.
  bool missing_evidence_fails = true;
  std::string today;  // YYYY-MM-DD

  bool needs_scan() const {
    return !fail_on.Without(LeakKind::kUnfreed).empty() ||
           (!max_leaked.empty() && !fail_on.Has(LeakKind::kUnfreed));
  }
  bool looks_at_unfreed() const { return fail_on.Has(LeakKind::kUnfreed); }
  bool Judges(absl::string_view program) const;
};

// "app,test_*": names of programs, * and ? as wildcards.
absl::StatusOr<std::vector<std::string>> ParsePrograms(absl::string_view text);
// "100M" or "PROGRAM=100M": a size, or with `counts` a number (report/base/byte_size.h).
absl::StatusOr<Limit> ParseLimit(absl::string_view option, absl::string_view text, bool counts);
// "A..B=BYTES".
absl::StatusOr<GrowthLimit> ParseGrowth(absl::string_view text);
// "10%", "4K".
absl::StatusOr<Tolerance> ParseTolerance(absl::string_view text);

}  // namespace memtrace::report::gate

#endif  // MEMTRACE_REPORT_GATE_POLICY_H_
