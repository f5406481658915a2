// Names of the traces that `memtrace run` leaves behind.

#ifndef MEMTRACE_REPORT_RUN_OUTPUT_NAME_H_
#define MEMTRACE_REPORT_RUN_OUTPUT_NAME_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace memtrace::report {

inline constexpr absl::string_view kDefaultOutput = "memtrace.%e.%p.mtr";

struct OutputFields {
  std::string program;    // %e, without its directory
  // %p; 0: not known yet, and then left out together with a dot before it, where it
  // is not the whole name.
  uint32_t pid = 0;
  uint64_t start_ns = 0;  // %t, CLOCK_REALTIME
};

// Expands %e %p %t %%; anything else behind a % stays as it is.
std::string ExpandOutputName(absl::string_view pattern, const OutputFields& fields);

// "out.mtr" -> "out.sort.4711.mtr": the trace of another process of the same run.
std::string ChildOutputName(absl::string_view root_output, absl::string_view program, uint32_t pid);

absl::string_view ExtensionOf(absl::string_view name);  // ".mtr"; of ".hidden" empty

// "out.mtr", 1 -> "out.1.mtr"; 0 -> "out.mtr".
std::string NumberedName(absl::string_view name, int number);

// The basename; "a" for "/x/a" and for "/x/a/".
absl::string_view Basename(absl::string_view path);

// Renames within a file system, to `to` or, when that is taken, to a numbered
// name; never over a file that is there. Returns the name that was free.
absl::StatusOr<std::string> RenameWithoutReplacing(const std::string& from, const std::string& to);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_RUN_OUTPUT_NAME_H_
