// UnlinkedFile: a file below $TMPDIR or /tmp that has no name. However the process ends, nothing is
// left of it.

#ifndef MEMTRACE_REPORT_BASE_UNLINKED_FILE_H_
#define MEMTRACE_REPORT_BASE_UNLINKED_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "report/base/unique_fd.h"

namespace memtrace::report {

struct UnlinkedFile {
  UniqueFd fd;        // for reading and writing
  std::string place;  // the directory, for messages
};

// `purpose`: "a copy of the trace", for the message, which says what to do.
absl::StatusOr<UnlinkedFile> CreateUnlinkedFile(absl::string_view purpose);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_BASE_UNLINKED_FILE_H_
