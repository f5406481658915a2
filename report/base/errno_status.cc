#include "report/base/errno_status.h"

#include <cerrno>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"

namespace memtrace::report {

absl::Status ErrnoStatus(absl::string_view what, absl::string_view path, int error) {
  const std::string message =
      absl::StrCat(what, " ", path.empty() ? "''" : path, ": ", strerror(error));
  return error == ENOENT ? absl::NotFoundError(message) : absl::UnavailableError(message);
}

}  // namespace memtrace::report
