// ReportFile: where the driver's reports go: a file, whose name may have the pid in it and which
// several processes may share, or a descriptor.
//
// The file of an earlier run is never taken for one of this run, whether or not this run comes to
// a report: Begin() removes it before the program runs.

#ifndef MEMTRACE_REPORT_VALGRIND_REPORT_FILE_H_
#define MEMTRACE_REPORT_VALGRIND_REPORT_FILE_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace memtrace::report::valgrind {

class ReportFile {
 public:
  // `name` as of --log-file. Empty: the reports go to `fd`, or else to standard error.
  ReportFile(std::string name, std::optional<int> fd);

  // An error: the name cannot be expanded, or the file that is there may not be written, and stays
  // as it is. A name with a pid in it is of a file that nobody knows yet; what has it from long ago
  // stays until a process of this run has the same pid.
  absl::Status Begin();

  // The reports of this run are kept, one behind the other.
  absl::Status Write(uint32_t pid, absl::string_view text);

 private:
  const std::string name_;
  const std::optional<int> fd_;
  std::set<std::string> written_;
};

}  // namespace memtrace::report::valgrind

#endif  // MEMTRACE_REPORT_VALGRIND_REPORT_FILE_H_
