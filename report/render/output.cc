#include "report/render/output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <utility>

#include "base/whole_io.h"
#include "report/base/errno_status.h"

namespace memtrace::report::render {
namespace {

constexpr size_t kBufferBytes = 1 << 16;

absl::Status WriteError(absl::string_view path, int error) {
  return ErrnoStatus("cannot write", path.empty() ? "standard output" : path, error);
}

bool IsStandardOutput(const struct stat& file) {
  struct stat output;
  return fstat(STDOUT_FILENO, &output) == 0 && output.st_dev == file.st_dev &&
         output.st_ino == file.st_ino;
}

}  // namespace

absl::StatusOr<Output> Output::Open(const std::string& path) {
  std::signal(SIGPIPE, SIG_IGN);
  Output file;
  struct stat existing;
  const bool exists = stat(path.c_str(), &existing) == 0;
  if (path.empty() || path == "-" || (exists && IsStandardOutput(existing))) {
    file.fd_ = STDOUT_FILENO;
    return file;
  }
  file.path_ = path;
  if (exists && !S_ISREG(existing.st_mode)) {
    if (S_ISDIR(existing.st_mode)) return WriteError(path, EISDIR);
    file.fd_ = open(path.c_str(), O_WRONLY | O_CLOEXEC);  // a device or a pipe: no renaming
    if (file.fd_ < 0) return WriteError(path, errno);
    return file;
  }
  auto whole = OutputFile::Create(path);
  if (!whole.ok()) return whole.status();
  file.file_ = *std::move(whole);
  file.fd_ = file.file_->fd();
  return file;
}

Output::Output(Output&& other) noexcept
    : path_(std::move(other.path_)),
      file_(std::move(other.file_)),
      buffer_(std::move(other.buffer_)),
      fd_(std::exchange(other.fd_, -1)),
      error_(other.error_),
      closed_(other.closed_) {}

Output::~Output() {
  if (file_ == nullptr && fd_ >= 0 && fd_ != STDOUT_FILENO) close(fd_);
}

void Output::Write(absl::string_view text) {
  buffer_.append(text.data(), text.size());
  if (buffer_.size() >= kBufferBytes) Flush();
}

void Output::Flush() {
  if (!done() && !base::WriteAll(fd_, buffer_)) {
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
  const int fd = std::exchange(fd_, -1);
  if (file_ != nullptr) return file_->Commit();
  return close(fd) == 0 ? absl::OkStatus() : WriteError(path_, errno);
}

}  // namespace memtrace::report::render
