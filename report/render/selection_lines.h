// What the figures of a report are of, in words: each line ends the sentence "Only ...". Times are
// not in them. Names are as they were given, and not made safe for a terminal.

#ifndef MEMTRACE_REPORT_RENDER_SELECTION_LINES_H_
#define MEMTRACE_REPORT_RENDER_SELECTION_LINES_H_

#include <string>
#include <vector>

#include "report/render/view.h"

namespace memtrace::report::render {

std::vector<std::string> SelectionLines(const ReportView& view);

}  // namespace memtrace::report::render

#endif  // MEMTRACE_REPORT_RENDER_SELECTION_LINES_H_
