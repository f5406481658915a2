#include "report/run/trace_snapshot.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "report/byte_source.h"
#include "report/run/spool_directory.h"
#include "report/run/trace_follower.h"
#include "report/run/unique_fd.h"
#include "report/trace_reader.h"
#include "symbolizer/whole_io.h"

namespace memtrace::report {
namespace {

namespace fs = std::filesystem;

// A sparse file of which others write the end.
absl::Status CopyData(const std::string& from, const std::string& to) {
  const UniqueFd in(open(from.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info;
  if (in.get() < 0 || fstat(in.get(), &info) != 0) return ErrnoStatus("cannot read", from, errno);
  const UniqueFd out(open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (out.get() < 0) return ErrnoStatus("cannot write", to, errno);
  std::vector<char> buffer(1 << 20);
  for (off_t at = 0; at < info.st_size;) {
    const off_t data = lseek(in.get(), at, SEEK_DATA);
    if (data < 0) break;  // the rest is a hole
    off_t end = lseek(in.get(), data, SEEK_HOLE);
    if (end < 0 || end > info.st_size) end = info.st_size;
    for (at = data; at < end;) {
      const size_t wanted = std::min<size_t>(buffer.size(), static_cast<size_t>(end - at));
      auto offset = static_cast<uint64_t>(at);
      size_t got;
      if (!symbolizer::ReadUpTo(in.get(), offset, buffer.data(), wanted, &got)) {
        return ErrnoStatus("cannot read", from, errno);
      }
      if (got == 0) return ErrnoStatus("cannot read", from, EIO);
      if (!symbolizer::WriteAllAt(out.get(), {buffer.data(), got}, &offset)) {
        return ErrnoStatus("cannot write", to, errno);
      }
      at = static_cast<off_t>(offset);
    }
  }
  return ftruncate(out.get(), info.st_size) == 0 ? absl::OkStatus() : ErrnoStatus("cannot write", to, errno);
}

absl::StatusOr<std::string> CopyOnce(const std::string& trace, const std::string& copy) {
  // What is packed meanwhile is in both; what was taken out of the raw one is packed before.
  if (absl::Status status = CopyData(trace, copy); !status.ok()) return status;
  const std::string packed = absl::StrCat(trace, kPackedSuffix);
  if (!fs::exists(packed)) return copy;
  if (absl::Status status = CopyData(packed, absl::StrCat(copy, kPackedSuffix)); !status.ok()) return status;
  auto follower = TraceFollower::Resume(copy);
  if (!follower.ok()) return follower.status();
  if (absl::Status status = (*follower)->Finish(nullptr); !status.ok()) return status;
  return (*follower)->Publish(copy + ".whole", /*replace=*/true);
}

// Blocks of events that others followed, and that are not there. Of a file that is no trace 0: its
// reader says why.
uint64_t LostBlocks(const std::string& trace) {
  const auto reader = TraceReader::Open(trace);
  return reader.ok() ? (*reader)->statistics().lost_blocks : 0;
}

}  // namespace

absl::StatusOr<std::string> CopyRunningTrace(const std::string& trace, const std::string& directory) {
  const std::string name = fs::path(trace).filename().string();
  // A file is not copied in an instant. A block that was begun behind the place where the copy is, and
  // ended before the copy came to the next block of its thread, is missing: so once more. What the
  // trace itself lacks, it lacks the second time as well.
  constexpr int kMostCopies = 5;
  uint64_t lost_before = 0;
  for (int i = 1;; ++i) {
    const std::string directory_of_copy = absl::StrCat(directory, "/", i);
    std::error_code error;
    if (!fs::create_directory(directory_of_copy, error)) {
      return ErrnoStatus("cannot write", directory_of_copy, error.value());
    }
    auto copy = CopyOnce(trace, absl::StrCat(directory_of_copy, "/", name));
    if (!copy.ok()) return copy;
    const uint64_t lost = LostBlocks(*copy);
    if (lost == 0 || lost == lost_before || i == kMostCopies) return copy;
    lost_before = lost;
    fs::remove_all(directory_of_copy, error);
  }
}

}  // namespace memtrace::report
