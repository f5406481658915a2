// From an ftrace log of kmem events to a trace file that every command of memtrace reads.
//
// Streams: memory grows with threads and call sites. One thread.

#ifndef MEMTRACE_REPORT_IMPORT_FTRACE_IMPORT_H_
#define MEMTRACE_REPORT_IMPORT_FTRACE_IMPORT_H_

#include <cstdint>
#include <istream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace memtrace::report::import {

struct FtraceImportOptions {
  std::string log;  // "-": standard input
  std::vector<std::string> system_maps;
  std::string output;
};

struct FtraceImportResult {
  uint64_t lines = 0;
  uint64_t allocations = 0, frees = 0;  // of blocks
  uint64_t failed = 0;         // allocations that got no memory
  uint64_t no_blocks = 0;      // calls for 0 bytes, and frees of what they got or of NULL
  uint64_t other_events = 0;   // of other kinds
  uint64_t lost_events = 0;    // that the log says it lacks
  bool lost_more = false;      // it does not say everywhere how many
  uint64_t bad_lines = 0;
  std::string first_bad;       // "line 17: why"
  uint64_t threads = 0, call_sites = 0;
  uint64_t unnamed_call_sites = 0;  // that are in no symbol
};

// InvalidArgument where the log has no event of kmem's at all.
absl::StatusOr<FtraceImportResult> ImportFtrace(const FtraceImportOptions& options);

}  // namespace memtrace::report::import

#endif  // MEMTRACE_REPORT_IMPORT_FTRACE_IMPORT_H_
