// PageCounts: how often a physical page is mapped and what it is, by /proc/kpagecount and
// kpageflags: for root only. Frames are asked for in bulk: sorted, and those that lie close
// together by one read.

#ifndef MEMTRACE_REPORT_PAGES_PAGE_COUNTS_H_
#define MEMTRACE_REPORT_PAGES_PAGE_COUNTS_H_

#include <cstdint>
#include <span>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "report/base/unique_fd.h"

namespace memtrace::report::pages {

struct FrameFacts {
  uint64_t mapped = 0;  // so many times, over all processes
  uint64_t flags = 0;   // linux/kernel-page-flags.h

  bool huge() const { return (flags >> 17 & 1) != 0 || (flags >> 22 & 1) != 0; }  // hugetlb, THP
  bool zero() const { return (flags >> 24 & 1) != 0; }
  bool same() const { return (flags >> 21 & 1) != 0; }  // merged by KSM
};

class PageCounts {
 public:
  // Both files, or why not.
  static PageCounts Open(const std::string& directory = "/proc");
  bool usable() const { return count_.ok() && flags_.ok(); }
  const std::string& why_not() const { return why_not_; }

  // Adds what is known of `frames`, which it sorts.
  void Look(std::span<uint64_t> frames, absl::flat_hash_map<uint64_t, FrameFacts>* facts) const;

 private:
  UniqueFd count_, flags_;
  std::string why_not_;
};

}  // namespace memtrace::report::pages

#endif  // MEMTRACE_REPORT_PAGES_PAGE_COUNTS_H_
