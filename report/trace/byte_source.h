// ByteSource: the bytes of a trace, wherever they are: a file, also one that is
// still growing, or memory. Read by position; no state, so readers may share it.

#ifndef MEMTRACE_REPORT_TRACE_BYTE_SOURCE_H_
#define MEMTRACE_REPORT_TRACE_BYTE_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"

namespace memtrace::report {

class ByteSource {
 public:
  virtual ~ByteSource() = default;

  // Bytes there are now.
  virtual uint64_t Size() const = 0;

  // Fills `out` from `offset` on. Fewer bytes than asked only at the end.
  virtual absl::StatusOr<size_t> ReadAt(uint64_t offset, std::span<uint8_t> out) const = 0;

  // The first byte at or after `offset` that may be other than 0; Size() if there is none. A
  // file whose tail is reserved and not written is mostly a hole.
  virtual uint64_t NextData(uint64_t offset) const { return offset; }
};

// Reads with pread: a file that is cut while it is read gives a short read, where
// a mapping would give SIGBUS.
class FileSource : public ByteSource {
 public:
  // A regular file; a directory, a pipe and so on are refused. By the name of a HeldFile: that one.
  static absl::StatusOr<std::unique_ptr<FileSource>> Open(const std::string& path);
  // Reads an open file; `fd` stays the caller's.
  explicit FileSource(int fd) : fd_(fd) {}
  ~FileSource() override;
  FileSource(const FileSource&) = delete;
  FileSource& operator=(const FileSource&) = delete;

  uint64_t Size() const override;
  absl::StatusOr<size_t> ReadAt(uint64_t offset, std::span<uint8_t> out) const override;
  uint64_t NextData(uint64_t offset) const override;
  int fd() const { return fd_; }

 private:
  int fd_;
  bool owned_ = false;
};

// A file that is read more than once: while this exists, FileSource::Open() of the name gives it,
// whatever becomes of the name. `memtrace run` packs a trace when its process has ended, and
// removes the raw one. A file that cannot be opened is not held. One at a time; not while another
// thread opens files.
class HeldFile {
 public:
  explicit HeldFile(const std::string& path);
  ~HeldFile();
  HeldFile(const HeldFile&) = delete;
  HeldFile& operator=(const HeldFile&) = delete;

 private:
  friend class FileSource;
  const std::string path_;
  std::unique_ptr<FileSource> file_;  // null: it could not be opened
};

class MemorySource : public ByteSource {
 public:
  explicit MemorySource(std::string bytes) : bytes_(std::move(bytes)) {}
  uint64_t Size() const override { return bytes_.size(); }
  absl::StatusOr<size_t> ReadAt(uint64_t offset, std::span<uint8_t> out) const override;

 private:
  std::string bytes_;
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_TRACE_BYTE_SOURCE_H_
