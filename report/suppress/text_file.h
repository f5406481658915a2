// A small text file, whole: suppressions, a baseline.

#ifndef MEMTRACE_REPORT_SUPPRESS_TEXT_FILE_H_
#define MEMTRACE_REPORT_SUPPRESS_TEXT_FILE_H_

#include <string>

#include "absl/status/statusor.h"

namespace memtrace::report::suppress {

// At most 64 MiB. NotFound: there is no such file.
absl::StatusOr<std::string> ReadTextFile(const std::string& path);

}  // namespace memtrace::report::suppress

#endif  // MEMTRACE_REPORT_SUPPRESS_TEXT_FILE_H_
