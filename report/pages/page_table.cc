#include "report/pages/page_table.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace memtrace::report::pages {
namespace {

constexpr uint64_t kEntriesAtOnce = 64 << 10;

// The kernel's interface (Linux 6.7), which headers of older systems do not have.
struct PageRegion {
  uint64_t start, end, categories;
};
struct PageScan {
  uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
  uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};
constexpr unsigned long kPageScan = _IOWR('f', 16, PageScan);
constexpr uint64_t kPresent = 1 << 3, kSwapped = 1 << 4;

absl::Status Error(absl::string_view file, int error) {
  return absl::Status(error == ESRCH ? absl::StatusCode::kNotFound : absl::ErrnoToStatusCode(error),
                      absl::StrCat(file, ": ", strerror(error)));
}

// The next stretches with pages, from *start on; advances it. Negative: errno.
int NextStretches(int fd, uint64_t* start, uint64_t end, std::vector<PageRegion>* regions) {
  regions->resize(512);
  PageScan scan = {};
  scan.size = sizeof(scan);
  scan.start = *start;
  scan.end = end;
  scan.vec = reinterpret_cast<uint64_t>(regions->data());
  scan.vec_len = regions->size();
  scan.category_anyof_mask = kPresent | kSwapped;
  scan.return_mask = kPresent | kSwapped;
  const int found = ioctl(fd, kPageScan, &scan);
  if (found < 0) return -errno;
  regions->resize(static_cast<size_t>(found));
  *start = found == 0 ? end : std::max(scan.walk_end, *start);
  return found;
}

}  // namespace

absl::StatusOr<PageTable> PageTable::Open(const std::string& file, uint64_t page_bytes, Scan scan) {
  UniqueFd fd(open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.ok()) return Error(file, errno);
  PageTable table(std::move(fd), page_bytes);
  if (scan == Scan::kIfThere) {
    // An empty range tells whether the call is there.
    uint64_t start = 0;
    std::vector<PageRegion> regions;
    table.scans_ = NextStretches(table.fd_.get(), &start, page_bytes, &regions) >= 0;
  }
  return table;
}

absl::StatusOr<bool> PageTable::ReadStretch(
    uint64_t start, uint64_t end, uint64_t expected, uint64_t* budget, uint64_t* found,
    const std::function<void(uint64_t, PageEntry)>& take) const {
  std::vector<uint64_t> entries;
  for (uint64_t at = start; at < end && *found < expected;) {
    if (*budget == 0) return false;
    const uint64_t count = std::min({kEntriesAtOnce, (end - at) / page_bytes_, *budget});
    if (count == 0) break;
    entries.resize(count);
    const ssize_t n = pread(fd_.get(), entries.data(), count * sizeof(entries[0]),
                            static_cast<off_t>(at / page_bytes_ * sizeof(entries[0])));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Error("pagemap", errno);
    const uint64_t got = static_cast<uint64_t>(n) / sizeof(entries[0]);
    if (got == 0) return Error("pagemap", ESRCH);  // the process has ended
    *budget -= got;
    entries_read_ += got;
    for (uint64_t i = 0; i < got && *found < expected; ++i) {
      const PageEntry entry{entries[i]};
      if (!entry.present() && !entry.swapped()) continue;
      if (entry.guard()) continue;
      // Others may be the kernel's page of zeros, which smaps does not count.
      if (entry.swapped() || entry.of_file() || entry.exclusive()) ++*found;
      take(at + i * page_bytes_, entry);
    }
    at += got * page_bytes_;
  }
  return true;
}

absl::StatusOr<bool> PageTable::Read(uint64_t start, uint64_t end, uint64_t expected,
                                     const std::function<void(uint64_t, PageEntry)>& take) const {
  uint64_t budget = kMostEntries, found = 0;
  // Addresses of the upper half ([vsyscall]) have no entries.
  if (expected == 0 || start >= uint64_t{1} << 63) return true;
  if (!scans_) return ReadStretch(start, end, expected, &budget, &found, take);
  std::vector<PageRegion> regions;
  for (uint64_t at = start; at < end && found < expected;) {
    const int stretches = NextStretches(fd_.get(), &at, end, &regions);
    if (stretches < 0) return Error("pagemap", -stretches);
    for (const PageRegion& region : regions) {
      const auto whole = ReadStretch(std::max(region.start, start), std::min(region.end, end),
                                     expected, &budget, &found, take);
      if (!whole.ok() || !*whole) return whole;
    }
  }
  return true;
}

}  // namespace memtrace::report::pages
