// Dump: every event of a trace in order, one per line, for grep and awk.
//
//   TIME  THREAD  EVENT  ADDRESS  key=value ...
//
//   TIME     seconds since the start, nine decimals: the likely moment
//   THREAD   serial number of the thread
//   EVENT    malloc calloc realloc ... free realloc-begin mmap munmap ... usage
//   ADDRESS  hexadecimal, or - for an event that has none
//
// A stack is printed as stack=N; before an N is used for the first time, lines of
// the EVENT "frame" define it: N, its caller's number, pc and module. Lines that
// begin with # are about the trace. docs/trace-format.md lists the keys.

#ifndef MEMTRACE_REPORT_COMMAND_DUMP_H_
#define MEMTRACE_REPORT_COMMAND_DUMP_H_

#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "report/analysis/instant.h"

namespace memtrace::report {

struct DumpOptions {
  std::string file;
  Instant from, to{.ns = UINT64_MAX};  // of the events to print; those before are read as well
  bool quiet = false;   // no # lines
};

absl::Status RunDump(const DumpOptions& options, std::ostream& out);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_COMMAND_DUMP_H_
