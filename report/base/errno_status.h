// ErrnoStatus: an error of the system about a file, in words. Any thread.

#ifndef MEMTRACE_REPORT_BASE_ERRNO_STATUS_H_
#define MEMTRACE_REPORT_BASE_ERRNO_STATUS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace memtrace::report {

// "cannot open x.mtr: No such file or directory"
absl::Status ErrnoStatus(absl::string_view what, absl::string_view path, int error);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_BASE_ERRNO_STATUS_H_
