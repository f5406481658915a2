#include "report/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "report/byte_source.h"

namespace memtrace::report {

absl::StatusOr<std::unique_ptr<OutputFile>> OutputFile::Create(const std::string& path) {
  struct stat st;
  if (stat(path.c_str(), &st) == 0 && !S_ISREG(st.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot write ", path, ": it exists and is not a regular file"));
  }
  std::string temporary = absl::StrCat(path, ".", getpid(), ".tmp");
  const int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) return ErrnoStatus("cannot write", path, errno);
  return std::unique_ptr<OutputFile>(new OutputFile(path, std::move(temporary), fd));
}

OutputFile::~OutputFile() {
  if (fd_ >= 0) close(fd_);
  if (!committed_) unlink(temporary_.c_str());
}

absl::Status OutputFile::Commit() {
  // Errors of delayed writes come out here.
  const int closed = close(fd_);
  fd_ = -1;
  if (closed != 0) return ErrnoStatus("cannot write", path_, errno);
  if (rename(temporary_.c_str(), path_.c_str()) != 0) {
    return ErrnoStatus("cannot write", path_, errno);
  }
  committed_ = true;
  return absl::OkStatus();
}

}  // namespace memtrace::report
