#include "report/run/trace_snapshot.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "report/base/clock.h"
#include "report/base/errno_status.h"
#include "report/base/unique_fd.h"
#include "report/base/unlinked_file.h"
#include "report/run/reader_lock.h"
#include "report/run/resumed_source.h"
#include "report/run/running_copy.h"
#include "report/run/spool_directory.h"
#include "report/trace/file_header.h"

namespace memtrace::report {
namespace {

constexpr int kMostCopies = 3;
constexpr int kMostLooks = 3;  // for what is packed
constexpr timespec kPause = {0, 20'000'000};

// A file that stays open, whatever becomes of its name.
class OpenFile : public ByteSource {
 public:
  explicit OpenFile(UniqueFd fd) : fd_(std::move(fd)), file_(fd_.get()) {}
  int fd() const { return fd_.get(); }
  uint64_t Size() const override { return file_.Size(); }
  absl::StatusOr<size_t> ReadAt(uint64_t offset, std::span<uint8_t> out) const override {
    return file_.ReadAt(offset, out);
  }
  uint64_t NextData(uint64_t offset) const override { return file_.NextData(offset); }

 private:
  const UniqueFd fd_;
  const FileSource file_;
};

// Who names the file is another process: nothing is waited for, nor a link followed.
absl::StatusOr<std::unique_ptr<OpenFile>> OpenRegular(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!fd.ok()) return ErrnoStatus("cannot read", path, errno);
  struct stat info;
  if (fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is no regular file"));
  }
  return std::make_unique<OpenFile>(std::move(fd));
}

absl::StatusOr<std::unique_ptr<OpenFile>> CopyOf(const OpenFile& raw, const std::string& trace) {
  auto file = CreateUnlinkedFile("a copy of the trace");
  if (!file.ok()) return file.status();
  const absl::Status copied = CopyRunningFile(
      raw.fd(), trace, file->fd.get(), absl::StrCat("a copy of the trace to ", file->place));
  if (!copied.ok()) return copied;
  return std::make_unique<OpenFile>(std::move(file->fd));
}

// What is packed of it, where somebody does that. nullptr: there is no such file.
absl::StatusOr<std::unique_ptr<OpenFile>> PackedPart(const std::string& trace) {
  auto packed = OpenRegular(absl::StrCat(trace, kPackedSuffix));
  if (absl::IsNotFound(packed.status())) return nullptr;
  return packed;
}

// Its file is begun a moment after the raw one.
absl::StatusOr<std::unique_ptr<OpenFile>> AwaitPackedPart(const std::string& trace) {
  auto packed = PackedPart(trace);
  for (int i = 1; packed.ok() && *packed == nullptr && i < kMostLooks; ++i) {
    nanosleep(&kPause, nullptr);
    packed = PackedPart(trace);
  }
  return packed;
}

bool HasNoName(const OpenFile& file) {
  struct stat info;
  return fstat(file.fd(), &info) == 0 && info.st_nlink == 0;
}

}  // namespace

absl::StatusOr<TraceSnapshot> TakeSnapshot(const std::string& trace, bool may_lock) {
  // Before it is opened: the run record goes after the last trace.
  const bool is_in_spool = IsInSpool(trace);
  auto raw = OpenRegular(trace);
  if (!raw.ok()) return raw.status();
  const auto header = ReadFileHeader(**raw);
  const bool keeps_newest = header.ok() && (header->flags & format::kFileNewest) != 0;
  const auto is_packed = [&] {
    return absl::NotFoundError(absl::StrCat(trace, " is packed, under another name"));
  };
  TraceSnapshot snapshot;
  for (int i = 1;; ++i) {
    // Open before the copy, which it goes with also when the run has ended meanwhile.
    auto packed = is_in_spool && !keeps_newest ? AwaitPackedPart(trace) : PackedPart(trace);
    if (!packed.ok()) return packed.status();
    snapshot.opened_ns = NowNs(CLOCK_MONOTONIC);
    if (keeps_newest || (*packed == nullptr && !is_in_spool)) {
      snapshot.source = *std::move(raw);
      return snapshot;
    }
    if (*packed == nullptr && HasNoName(**raw)) return is_packed();
    if (*packed != nullptr && may_lock && LockForReading((*packed)->fd())) {
      const int packed_fd = (*packed)->fd();
      auto both = ResumedSource::OfLiveRun(*std::move(packed), *std::move(raw));
      if (!both.ok()) return both.status();
      snapshot.source = *std::move(both);
      snapshot.reading_is_over = [packed_fd, source = snapshot.source] {
        UnlockForReading(packed_fd);
      };
      return snapshot;
    }
    const uint64_t packed_before = *packed == nullptr ? 0 : (*packed)->Size();
    auto copy = CopyOf(**raw, trace);
    if (!copy.ok()) return copy.status();
    if (*packed == nullptr) packed = PackedPart(trace);
    if (!packed.ok()) return packed.status();
    if (*packed == nullptr) {
      // Nobody packs it before its process has ended, or that was meanwhile.
      if (HasNoName(**raw)) return is_packed();
      snapshot.source = *std::move(copy);
      return snapshot;
    }
    auto both = ResumedSource::OfLiveRun(*std::move(packed), *std::move(copy), packed_before);
    if (!both.ok()) return both.status();
    if (!(*both)->misses_blocks() || i == kMostCopies) {
      snapshot.source = *std::move(both);
      return snapshot;
    }
  }
}

}  // namespace memtrace::report
