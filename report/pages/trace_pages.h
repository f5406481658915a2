// The pages of a process at a moment of its trace: a snapshot that the library took
// (format/faults.h), as if the process had been looked at then. Only one process, its writable
// mappings page by page, the others by their sums, and nothing is known of who else has a page.

#ifndef MEMTRACE_REPORT_PAGES_TRACE_PAGES_H_
#define MEMTRACE_REPORT_PAGES_TRACE_PAGES_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "report/pages/process_pages.h"

namespace memtrace::report::pages {

// `number`: of the snapshots, as the report counts them; 0: the last. Fails where the trace
// has no such snapshot.
absl::StatusOr<PagesSnapshot> PagesOfTrace(const std::string& file, uint32_t number);

}  // namespace memtrace::report::pages

#endif  // MEMTRACE_REPORT_PAGES_TRACE_PAGES_H_
