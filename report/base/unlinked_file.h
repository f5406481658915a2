// UnlinkedFile: a file below $TMPDIR or /tmp that has no name. However the process ends, nothing is
// left of it.

#ifndef MEMTRACE_REPORT_BASE_UNLINKED_FILE_H_
#define MEMTRACE_REPORT_BASE_UNLINKED_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "report/base/unique_fd.h"

namespace memtrace::report {

struct UnlinkedFile {
  UniqueFd fd;        // for reading and writing
  std::string place;  // the directory, for messages
};

absl::StatusOr<UnlinkedFile> CreateUnlinkedFile();

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_BASE_UNLINKED_FILE_H_
