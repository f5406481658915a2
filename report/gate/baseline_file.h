// The baseline as a file: read, and updated so that several at once lose nothing of each other.
// Tests that run in parallel, each under a gate of its own, may share one.

#ifndef MEMTRACE_REPORT_GATE_BASELINE_FILE_H_
#define MEMTRACE_REPORT_GATE_BASELINE_FILE_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "report/gate/baseline.h"

namespace memtrace::report::gate {

// `may_be_absent`: a file that is not there is an empty baseline.
absl::StatusOr<Baseline> ReadBaseline(const std::string& path, bool may_be_absent);

// Puts in its place what `update` makes of the file as it is now, which is not what it was before a
// program ran; returns that. A lock is held meanwhile: flock() of an empty file .NAME.memtrace-lock
// beside it, which whoever holds it removes. One that a killed process left locks nobody out.
absl::StatusOr<Baseline> UpdateBaselineFile(
    const std::string& path, const std::function<std::string(const Baseline& now)>& update);

}  // namespace memtrace::report::gate

#endif  // MEMTRACE_REPORT_GATE_BASELINE_FILE_H_
