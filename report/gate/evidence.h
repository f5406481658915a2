// What `memtrace check` judges by: the traces that it was given, or that its own run left, and what
// should have been there and is not.

#ifndef MEMTRACE_REPORT_GATE_EVIDENCE_H_
#define MEMTRACE_REPORT_GATE_EVIDENCE_H_

#include <string>
#include <vector>

#include "report/run/run_session.h"
#include "report/tree/trace_set.h"

namespace memtrace::report::gate {

// The traces to look at, and of what there are none.
struct Evidence {
  TraceSet set;
  std::vector<RunOutcome::Missing> missing;
};

Evidence EvidenceOf(const std::vector<std::string>& paths);

// What a run left in a directory, which may have traces of earlier runs, and of others at the same
// time. `kept`: the user knows the directory, which an error then names.
Evidence EvidenceOfRun(const std::string& directory, bool kept, const RunOutcome& outcome);

}  // namespace memtrace::report::gate

#endif  // MEMTRACE_REPORT_GATE_EVIDENCE_H_
