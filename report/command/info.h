// Info: what was traced, what the trace does not have, and what tracing cost.
// Text, one fact a line: a key, then its value.

#ifndef MEMTRACE_REPORT_COMMAND_INFO_H_
#define MEMTRACE_REPORT_COMMAND_INFO_H_

#include <functional>
#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "report/command/info_stacks.h"

namespace memtrace::report {

struct InfoOptions {
  std::string file;
  NameNodes names = ModuleAndOffset;  // of the frames it shows
  std::function<void(Analysis*)> examine;  // adds what the files of the modules tell
};

absl::Status RunInfo(const InfoOptions& options, std::ostream& out);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_COMMAND_INFO_H_
