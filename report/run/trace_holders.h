// Which processes still hold a raw trace whose own process is gone?
//
// A forked child has its parent's trace until it records something itself: then it begins one of its
// own. Until then it has the first page of the file mapped, for the kernel copied that, and nothing else: not the
// rings (MADV_DONTFORK), no descriptor. A child that shares its parent's memory has what that had, and
// writes there.
//
// Any thread.

#ifndef MEMTRACE_REPORT_RUN_TRACE_HOLDERS_H_
#define MEMTRACE_REPORT_RUN_TRACE_HOLDERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace memtrace::report {

struct TraceHolder {
  uint32_t pid = 0;
  std::string program;     // as the kernel has it
  bool may_write = false;  // it has more of the file than a forked child
};

// Without those that may not be looked at, as other users'.
std::vector<TraceHolder> HoldersOf(const std::string& raw_path);

// Of the processes that were started with this value of MEMTRACE_OUT, or forked since by one that was.
std::vector<TraceHolder> ProcessesWithOutput(absl::string_view out_pattern);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_RUN_TRACE_HOLDERS_H_
