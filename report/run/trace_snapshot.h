// TraceSnapshot: what a running process has recorded so far, to be read while it goes on.
//
// Nothing is packed again, and of what is packed nothing copied. A trace that nobody packs is read in
// place, for what is written in it stays. Of one that `memtrace run` packs the file of what is packed
// is read in place, and behind it a copy of what the raw one has left: its writer takes events out of
// there when they are packed. The copy has no name (base/unlinked_file.h). The raw file is copied
// first: blocks that are packed meanwhile are then in both, and none is in neither.

#ifndef MEMTRACE_REPORT_RUN_TRACE_SNAPSHOT_H_
#define MEMTRACE_REPORT_RUN_TRACE_SNAPSHOT_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "report/trace/byte_source.h"

namespace memtrace::report {

struct TraceSnapshot {
  std::shared_ptr<const ByteSource> source;
  uint64_t opened_ns = 0;  // by CLOCK_MONOTONIC: all that was recorded before is in it
};

// `trace`: the raw one, that the process writes.
absl::StatusOr<TraceSnapshot> TakeSnapshot(const std::string& trace);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_RUN_TRACE_SNAPSHOT_H_
