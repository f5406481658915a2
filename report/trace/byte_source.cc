#include "report/trace/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/whole_io.h"
#include "report/base/errno_status.h"
#include "report/trace/run_record.h"

namespace memtrace::report {
namespace {

const HeldFile* g_held_file = nullptr;

}  // namespace

absl::StatusOr<std::unique_ptr<FileSource>> FileSource::Open(const std::string& path) {
  const HeldFile* const held =
      g_held_file != nullptr && g_held_file->path_ == path ? g_held_file : nullptr;
  // Not waiting for who would write a FIFO: it is refused below.
  const int fd = held != nullptr
                     ? fcntl(held->file_->fd(), F_DUPFD_CLOEXEC, 0)
                     : open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) {
    const int error = errno;
    const absl::Status status = ErrnoStatus("cannot open", path, error);
    if (error != ENOENT) return status;
    return absl::NotFoundError(absl::StrCat(status.message(), WhoWrites(path)));
  }
  auto source = std::make_unique<FileSource>(fd);
  source->owned_ = true;
  struct stat st;
  if (fstat(fd, &st) != 0) return ErrnoStatus("cannot read", path, errno);
  if (S_ISDIR(st.st_mode)) return ErrnoStatus("cannot read", path, EISDIR);
  if (!S_ISREG(st.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot read ", path, ": not a regular file; copy the trace to one"));
  }
  return source;
}

FileSource::~FileSource() {
  if (owned_) close(fd_);
}

uint64_t FileSource::Size() const {
  struct stat st;
  return fstat(fd_, &st) == 0 && st.st_size > 0 ? static_cast<uint64_t>(st.st_size) : 0;
}

uint64_t FileSource::NextData(uint64_t offset) const {
  if (offset > INT64_MAX) return offset;
  const off_t data = lseek(fd_, static_cast<off_t>(offset), SEEK_DATA);
  if (data >= 0) return static_cast<uint64_t>(data);
  return errno == ENXIO ? std::max(offset, Size()) : offset;  // or: no holes here
}

absl::StatusOr<size_t> FileSource::ReadAt(uint64_t offset, std::span<uint8_t> out) const {
  size_t done = 0;
  if (offset > INT64_MAX - out.size()) return done;
  if (!base::ReadUpTo(fd_, offset, out.data(), out.size(), &done)) {
    return absl::UnavailableError(
        absl::StrCat("cannot read at byte ", offset + done, ": ", strerror(errno)));
  }
  return done;
}

HeldFile::HeldFile(const std::string& path) : path_(path) {
  auto file = FileSource::Open(path);
  if (!file.ok()) return;
  file_ = *std::move(file);
  g_held_file = this;
}

HeldFile::~HeldFile() {
  if (file_ != nullptr) g_held_file = nullptr;
}

absl::StatusOr<size_t> MemorySource::ReadAt(uint64_t offset, std::span<uint8_t> out) const {
  if (offset >= bytes_.size() || out.empty()) return 0;
  const size_t n = std::min<uint64_t>(out.size(), bytes_.size() - offset);
  memcpy(out.data(), bytes_.data() + offset, n);
  return n;
}

}  // namespace memtrace::report
