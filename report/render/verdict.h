// What somebody who reads a single line has to know: the sentences above a report.

#ifndef MEMTRACE_REPORT_RENDER_VERDICT_H_
#define MEMTRACE_REPORT_RENDER_VERDICT_H_

#include <string>
#include <vector>

#include "report/render/text_report.h"
#include "report/render/view.h"

namespace memtrace::report::render {

// Sentences about invalid frees, about blocks that a scan found to be lost, and about sites that
// grow. Empty: nothing of the kind is known.
std::vector<std::string> Verdicts(const ReportView& view, const TextOptions& options);

}  // namespace memtrace::report::render

#endif  // MEMTRACE_REPORT_RENDER_VERDICT_H_
