#include "report/render/output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "symbolizer/whole_io.h"

namespace memtrace::report::render {
namespace {

constexpr size_t kBufferBytes = 1 << 16;

absl::Status WriteError(absl::string_view path, int error) {
  return absl::UnavailableError(
      absl::StrCat("cannot write ", path.empty() ? "standard output" : path, ": ",
                   std::strerror(error)));
}

}  // namespace

absl::StatusOr<Output> Output::Open(const std::string& path) {
  std::signal(SIGPIPE, SIG_IGN);
  Output file;
  if (path.empty() || path == "-") {
    file.fd_ = STDOUT_FILENO;
    return file;
  }
  file.path_ = path;
  struct stat existing;
  if (stat(path.c_str(), &existing) == 0 && !S_ISREG(existing.st_mode)) {
    if (S_ISDIR(existing.st_mode)) return WriteError(path, EISDIR);
    file.fd_ = open(path.c_str(), O_WRONLY | O_CLOEXEC);  // a device or a pipe: no renaming
    if (file.fd_ < 0) return WriteError(path, errno);
    return file;
  }
  std::string name = absl::StrCat(path, ".XXXXXX");
  file.fd_ = mkostemp(name.data(), O_CLOEXEC);
  if (file.fd_ < 0) return WriteError(path, errno);
  file.temporary_ = std::move(name);
  const mode_t mask = umask(0);  // mkostemp made it 0600; the report is as public as any file
  umask(mask);
  fchmod(file.fd_, 0666 & ~mask);
  return file;
}

Output::Output(Output&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, {})),
      buffer_(std::move(other.buffer_)),
      fd_(std::exchange(other.fd_, -1)),
      error_(other.error_),
      closed_(other.closed_) {}

Output::~Output() {
  if (fd_ >= 0 && fd_ != STDOUT_FILENO) close(fd_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void Output::Write(absl::string_view text) {
  buffer_.append(text.data(), text.size());
  if (buffer_.size() >= kBufferBytes) Flush();
}

void Output::Flush() {
  if (!done() && !symbolizer::WriteAll(fd_, buffer_)) {
    if (errno == EPIPE) {
      closed_ = true;
    } else {
      error_ = errno;
    }
  }
  buffer_.clear();
}

absl::Status Output::Commit() {
  Flush();
  if (error_ != 0) return WriteError(path_, error_);
  if (path_.empty()) return absl::OkStatus();
  if (close(std::exchange(fd_, -1)) != 0) return WriteError(path_, errno);
  if (temporary_.empty()) return absl::OkStatus();
  if (rename(temporary_.c_str(), path_.c_str()) != 0) return WriteError(path_, errno);
  temporary_.clear();
  return absl::OkStatus();
}

}  // namespace memtrace::report::render
