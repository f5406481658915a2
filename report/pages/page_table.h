// PageTable: the pages of a process, by /proc/PID/pagemap.
//
// A mapping may be a terabyte with ten pages in it. So nothing is read of a mapping
// that has neither resident nor swapped pages by smaps; of another, reading ends when
// as many were found as smaps told, and never goes beyond kMostEntries. Where the kernel
// has PAGEMAP_SCAN (Linux 6.7), it says which stretches have pages at all.
//
// The frame numbers are hidden from ordinary users. Whether a page is mapped once or more
// often is not (since Linux 4.2).

#ifndef MEMTRACE_REPORT_PAGES_PAGE_TABLE_H_
#define MEMTRACE_REPORT_PAGES_PAGE_TABLE_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "report/base/unique_fd.h"

namespace memtrace::report::pages {

struct PageEntry {
  uint64_t raw = 0;

  bool present() const { return raw >> 63 & 1; }
  bool swapped() const { return raw >> 62 & 1; }
  bool of_file() const { return raw >> 61 & 1; }  // or of shared anonymous memory
  bool guard() const { return raw >> 58 & 1; }    // MADV_GUARD_INSTALL
  bool exclusive() const { return raw >> 56 & 1; }
  // Physical frame; 0: hidden.
  uint64_t frame() const { return present() ? raw & ((uint64_t{1} << 55) - 1) : 0; }
};

class PageTable {
 public:
  // Of a mapping: 256 GiB of 4 KiB pages.
  static constexpr uint64_t kMostEntries = uint64_t{1} << 26;

  enum class Scan { kIfThere, kNever };
  static absl::StatusOr<PageTable> Open(const std::string& file, uint64_t page_bytes,
                                        Scan scan = Scan::kIfThere);

  // Calls `take(address, entry)` for pages of [start, end) that are present or swapped out,
  // in order, until `expected` of them were taken. True: everything was looked at, or all
  // that was expected is found.
  absl::StatusOr<bool> Read(uint64_t start, uint64_t end, uint64_t expected,
                            const std::function<void(uint64_t, PageEntry)>& take) const;

  uint64_t entries_read() const { return entries_read_; }
  bool scans() const { return scans_; }

 private:
  PageTable(UniqueFd fd, uint64_t page_bytes) : fd_(std::move(fd)), page_bytes_(page_bytes) {}
  absl::StatusOr<bool> ReadStretch(uint64_t start, uint64_t end, uint64_t expected,
                                   uint64_t* budget, uint64_t* found,
                                   const std::function<void(uint64_t, PageEntry)>& take) const;

  UniqueFd fd_;
  uint64_t page_bytes_;
  bool scans_ = false;
  mutable uint64_t entries_read_ = 0;
};

}  // namespace memtrace::report::pages

#endif  // MEMTRACE_REPORT_PAGES_PAGE_TABLE_H_
