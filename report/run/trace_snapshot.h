// TraceSnapshot: what a running process has recorded so far, to be read while it goes on.
//
// Nothing is packed again, and nothing copied. A trace that nobody packs is read in place, for what
// is written in it stays. Of one that `memtrace run` packs the file of what is packed is read in
// place, and behind it what the raw one has left. Its follower takes nothing out of there meanwhile
// (reader_lock.h).
//
// Where it may do so, as one of an earlier version and where there are no locks, the raw file is
// copied, to a file without a name (report/base/unlinked_file.h), before the packed one is looked
// at: blocks that are packed meanwhile are then in both, and none is in neither. So it is, once,
// where `memtrace run` packs nothing yet, for it may begin at any time.

#ifndef MEMTRACE_REPORT_RUN_TRACE_SNAPSHOT_H_
#define MEMTRACE_REPORT_RUN_TRACE_SNAPSHOT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "report/trace/byte_source.h"

namespace memtrace::report {

struct TraceSnapshot {
  std::shared_ptr<const ByteSource> source;
  uint64_t opened_ns = 0;  // by CLOCK_MONOTONIC: all that was recorded before is in it
  // Empty, or to be called when `source` is not needed any more: its follower waits for that.
  std::function<void()> reading_is_over;
};

// `trace`: the raw one, that the process writes. `may_lock`: false for tests of the copy.
absl::StatusOr<TraceSnapshot> TakeSnapshot(const std::string& trace, bool may_lock = true);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_RUN_TRACE_SNAPSHOT_H_
