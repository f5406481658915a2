// Copies: are private copies of file pages equal in several processes, or to the file itself?
//
// Reads the memory of the processes (/proc/PID/mem) where a page of a private file mapping is the
// process's own copy, up to kMostPages; nothing is stopped, so a page that is just being
// written to counts as it was read. Nothing but a hash of it is kept.

#ifndef MEMTRACE_REPORT_PAGES_PAGE_COPIES_H_
#define MEMTRACE_REPORT_PAGES_PAGE_COPIES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "report/pages/page_sums.h"
#include "report/pages/process_pages.h"

namespace memtrace::report::pages {

struct Copies {
  static constexpr uint64_t kMostPages = 64 << 10;

  std::vector<Alert> alerts;
  uint64_t compared = 0;
  bool all = true;           // false: there were more than kMostPages
  std::string not_compared;  // why pages of some process could not be read; empty: all could
};
Copies CompareCopies(const PagesSnapshot& snapshot);

}  // namespace memtrace::report::pages

#endif  // MEMTRACE_REPORT_PAGES_PAGE_COPIES_H_
