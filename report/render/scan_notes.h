// What is said of a memory scan beside its figures, in every format: what looks lost and may be no
// leak, and what allocators within the program hide of leaks. What a scan did not look through is
// LeakScan::notes.

#ifndef MEMTRACE_REPORT_RENDER_SCAN_NOTES_H_
#define MEMTRACE_REPORT_RENDER_SCAN_NOTES_H_

#include <string>
#include <vector>

#include "report/findings/leaks.h"
#include "report/render/view.h"

namespace memtrace::report::render {

std::vector<std::string> NotesOnScan(const ReportView& view, const LeakScan& scan);

}  // namespace memtrace::report::render

#endif  // MEMTRACE_REPORT_RENDER_SCAN_NOTES_H_
