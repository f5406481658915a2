// TraceSet: the traces that the user means by files and directories.

#ifndef MEMTRACE_REPORT_TREE_TRACE_SET_H_
#define MEMTRACE_REPORT_TREE_TRACE_SET_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace memtrace::report {

struct TraceSet {
  struct File {
    std::string path;
    uint64_t bytes = 0;
  };
  std::vector<File> files;          // in the order of the arguments, then by name
  std::vector<std::string> spools;  // of `memtrace run`s that left something, in the directories
  uint64_t total_bytes = 0;
};

bool IsDirectory(const std::string& path);

// The traces at `paths`. Of a directory it takes the regular files that end in .mtr or begin as a
// trace does, but none in directories below it. A file that is named is taken whatever it is. An
// error: a path that is not there, or a directory that cannot be read or has no trace.
absl::StatusOr<TraceSet> FindTraces(const std::vector<std::string>& paths);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_TREE_TRACE_SET_H_
