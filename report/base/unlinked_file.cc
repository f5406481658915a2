#include "report/base/unlinked_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace memtrace::report {

absl::StatusOr<UnlinkedFile> CreateUnlinkedFile(absl::string_view purpose) {
  const char* const named = getenv("TMPDIR");
  UnlinkedFile file;
  file.place = named != nullptr && *named != '\0' ? named : "/tmp";
  file.fd = UniqueFd(open(file.place.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (file.fd.ok()) return file;
  // Some file systems have no such files.
  std::string path = absl::StrCat(file.place, "/memtrace.XXXXXX");
  file.fd = UniqueFd(mkostemp(path.data(), O_CLOEXEC));
  if (!file.fd.ok()) {
    return absl::UnavailableError(absl::StrCat("cannot make a file in ", file.place, " for ",
                                               purpose, ": ", strerror(errno),
                                               "; set TMPDIR to a directory with room"));
  }
  unlink(path.c_str());
  return file;
}

}  // namespace memtrace::report
