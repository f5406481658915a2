// What the words of `memtrace check` ask for, as values: policy, suppressions, baseline, outputs.
// The files that they name are read, and those that are to be written are tried, so that a mistake
// is told before anything runs.

#ifndef MEMTRACE_REPORT_GATE_CHECK_OPTIONS_H_
#define MEMTRACE_REPORT_GATE_CHECK_OPTIONS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "report/gate/baseline.h"
#include "report/gate/check_session.h"
#include "report/gate/formats.h"
#include "report/gate/policy.h"
#include "report/suppress/suppressions.h"

namespace memtrace::report::gate {

struct OutputSpec {
  GateFormat format = GateFormat::kText;
  std::string path;  // empty: standard output
};

// All that the words say, before anything is run or read: a mistake must not cost a night.
struct CheckOptions {
  GatePolicy policy;
  suppress::Suppressions suppressions;
  Baseline baseline;
  std::vector<OutputSpec> outputs;
};

// Where it fails, `outputs` are those in which there may be a verdict of an earlier run.
absl::Status ParseCheckFlags(const CheckFlags& flags, CheckOptions* parsed);

}  // namespace memtrace::report::gate

#endif  // MEMTRACE_REPORT_GATE_CHECK_OPTIONS_H_
