#include "report/cli/refusals.h"

#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "report/trace/file_header.h"

namespace memtrace::report {

absl::Status RefuseToReplace(const std::string& read, const std::string& output,
                             absl::string_view what) {
  struct stat input, written;
  if (output.empty() || stat(read.c_str(), &input) != 0 || stat(output.c_str(), &written) != 0 ||
      input.st_dev != written.st_dev || input.st_ino != written.st_ino || !S_ISREG(input.st_mode)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("cannot write ", output, ": it is ", what, "; give another name with -o"));
}

absl::Status RefuseTerminal(absl::string_view format, const std::string& output) {
  if ((!output.empty() && output != "-") || isatty(STDOUT_FILENO) == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--format ", format, ": it is not for a terminal; name a file with -o FILE"));
}

absl::Status RefuseToReplaceNoTrace(const std::string& output) {
  struct stat info;
  if (output.empty() || stat(output.c_str(), &info) != 0 || !S_ISREG(info.st_mode) ||
      info.st_size == 0 || BeginsAsATrace(output)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "will not replace ", output, ": it is no trace; give another name with -o, or remove it"));
}

}  // namespace memtrace::report
