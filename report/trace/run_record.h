// RunRecord: the file RUN in the spool directory of `memtrace run`, which is .NAME.spool.XXXXXX
// beside the output and has the raw traces in it. It says what becomes of them.
//
// Pure functions of the file system, any thread.

#ifndef MEMTRACE_REPORT_TRACE_RUN_RECORD_H_
#define MEMTRACE_REPORT_TRACE_RUN_RECORD_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace memtrace::report {

inline constexpr char kRunRecordName[] = "RUN";

struct RunRecord {
  std::string output;     // where the trace of the root process goes
  uint32_t root_pid = 0;  // 0: it was not started yet, or its trace has that name already
};

absl::StatusOr<RunRecord> ReadRunRecord(const std::string& spool);

// Of a trace that is not there: how to come by it where a run has it in its spool directory, behind
// "; ". Else empty.
std::string WhoWrites(const std::string& trace);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_TRACE_RUN_RECORD_H_
