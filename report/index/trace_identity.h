// TraceIdentity: which trace a file is, and whether it is still what it was.
//
// What was worked out of a trace and stored holds for one identity. A trace that grew, was packed,
// replaced or damaged since has another one: the size, the time of modification, or the hash of
// what was sampled differs. The sample is the first megabyte of a trace, and of a longer
// one also its last 64 KiB and 256 pieces of 4 KiB over its length, so that it costs little however
// long the trace is. A change in between that leaves size and time as they were is not noticed.

#ifndef MEMTRACE_REPORT_INDEX_TRACE_IDENTITY_H_
#define MEMTRACE_REPORT_INDEX_TRACE_IDENTITY_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "report/state/packed_bytes.h"

namespace memtrace::report::index {

struct TraceIdentity {
  uint64_t trace_id = 0;
  uint64_t bytes = 0;
  int64_t modified_ns = 0;  // since the epoch
  uint64_t sample_hash = 0;

  friend bool operator==(const TraceIdentity&, const TraceIdentity&) = default;
};

// Errors: as TraceReader::Open().
absl::StatusOr<TraceIdentity> IdentifyTrace(const std::string& path);

void Put(const TraceIdentity& identity, PackedWriter* out);
TraceIdentity GetIdentity(PackedReader* in);

}  // namespace memtrace::report::index

#endif  // MEMTRACE_REPORT_INDEX_TRACE_IDENTITY_H_
