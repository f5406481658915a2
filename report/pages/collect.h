// Collect: reads the pages of running processes. Nobody is stopped: a process goes on while
// it is read, and may end. Without rights for a process it is skipped, and listed.

#ifndef MEMTRACE_REPORT_PAGES_COLLECT_H_
#define MEMTRACE_REPORT_PAGES_COLLECT_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "report/pages/page_table.h"
#include "report/pages/process_pages.h"

namespace memtrace::report::pages {

struct CollectOptions {
  std::vector<uint32_t> pids;  // empty: all processes
  bool ask_counts = true;      // kpagecount, where it may be read
  PageTable::Scan scan = PageTable::Scan::kIfThere;
};

// Fails when a process that was named is not there, or none can be read.
absl::StatusOr<PagesSnapshot> Collect(const CollectOptions& options);

// Marks the pages of huge ones: those lie at multiples of their size, and are whole.
void MarkHuge(MappedRegion* region, uint64_t page_bytes);

}  // namespace memtrace::report::pages

#endif  // MEMTRACE_REPORT_PAGES_COLLECT_H_
