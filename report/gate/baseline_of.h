// What a verdict becomes as a baseline, and when it must not.

#ifndef MEMTRACE_REPORT_GATE_BASELINE_OF_H_
#define MEMTRACE_REPORT_GATE_BASELINE_OF_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "report/gate/baseline.h"
#include "report/gate/judge.h"
#include "report/render/view.h"

namespace memtrace::report::gate {

// Refused where the leaks cannot be told apart as those of the next run will be.
absl::Status MayBecomeBaseline(const GateResult& result, const render::ReportView& names);

// The entries with which no leak would be new or grown: one for each leak of the kinds that are
// gated.
std::vector<BaselineEntry> BaselineOf(const GateResult& result, const render::ReportView& names);

// The frame of a leak that belongs to it, without its line: "Load  cache.c".
std::string CallerWithoutLine(const render::ReportView& names, StackId stack);

}  // namespace memtrace::report::gate

#endif  // MEMTRACE_REPORT_GATE_BASELINE_OF_H_
