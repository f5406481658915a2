// Which processes still hold a raw trace whose own process is gone?
//
// A forked child has its parent's trace until it records something itself: then it begins one of
// its own. Until then it has the first page of the file mapped, for the kernel copied that, and
// nothing else: not the rings (MADV_DONTFORK), no descriptor. A child that shares its parent's
// memory has what that had, and writes there.
//
// Any thread.

#ifndef MEMTRACE_REPORT_RUN_TRACE_HOLDERS_H_
#define MEMTRACE_REPORT_RUN_TRACE_HOLDERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "report/run/spool_directory.h"

namespace memtrace::report {

struct TraceHolder {
  uint32_t pid = 0;
  std::string program;     // ProgramRunBy(pid)
  bool may_write = false;  // it has more of the file than a forked child
};

// The file name of what the process runs now, as traces have it; or, where that may not be read,
// its own name. Empty: there is no such process.
std::string ProgramRunBy(uint32_t pid);

// The processes that have the file open or mapped, without those that may not be
// looked at, as other users'.
std::vector<TraceHolder> HoldersOf(const std::string& raw_path);

// The processes that may still begin a trace in the directory: they were started with its
// MEMTRACE_OUT, or forked by one that had a trace in it.
std::vector<TraceHolder> ProcessesOf(const SpoolDirectory& spool);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_RUN_TRACE_HOLDERS_H_
