// RunDiff: which sites of a new run hold, or allocate, more than those of an old one.
//
// Sites are the same when their fingerprints are. Pure functions.

#ifndef MEMTRACE_REPORT_DIFF_RUN_DIFF_H_
#define MEMTRACE_REPORT_DIFF_RUN_DIFF_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "report/diff/run_summary.h"
#include "report/diff/told_apart.h"

namespace memtrace::report {

// New and gone are of sites that allocate in one run only; grown and shrunk of both.
enum class Verdict { kNew, kGrown, kShrunk, kGone };
absl::string_view VerdictName(Verdict verdict);

struct DiffRow {
  Verdict verdict = Verdict::kNew;
  std::string executable, fingerprint;
  const RunSite* site = nullptr;      // the new one, or the old of what is gone
  const RunSite* in_old = nullptr;    // nullptr: not there
  const RunSite* in_new = nullptr;
  double old_value = 0, new_value = 0;  // of DiffOptions::measure, in its unit
  double change() const { return new_value - old_value; }
  ToldApart apart;  // from the other rows
};

// The least change that counts: so much, or such a share of what was.
struct Least {
  double amount = 0;
  double share = 0;
};
// A size (report/base/byte_size.h), "0.5" of a rate, or "10%".
absl::StatusOr<Least> ParseLeast(absl::string_view text);

struct DiffOptions {
  Measure measure = Measure::kLive;
  Per per = Per::kRun;
  Least least;
};

struct RunDiff {
  const RunSummary* old_run = nullptr;
  const RunSummary* new_run = nullptr;
  DiffOptions options;
  double old_divisor = 1, new_divisor = 1;
  bool by_executable = false;
  std::vector<DiffRow> rows;  // by verdict, then the largest change first
  uint64_t same = 0;          // sites of both without a change that counts
  uint64_t by_chance = 0;     // sites whose change is no more than another sample may make
  bool grew() const { return !rows.empty() && rows.front().verdict <= Verdict::kGrown; }
};

// Both outlive the result. An error where what is asked cannot be said of one of them.
absl::StatusOr<RunDiff> CompareRuns(const RunSummary& old_run, const RunSummary& new_run,
                                    const DiffOptions& options);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_DIFF_RUN_DIFF_H_
