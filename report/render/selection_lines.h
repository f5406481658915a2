// What the figures of a report are of, in words: each line ends the sentence "Only ...". Times are
// not in them. Names are as they were given, and not made safe for a terminal.

#ifndef MEMTRACE_REPORT_RENDER_SELECTION_LINES_H_
#define MEMTRACE_REPORT_RENDER_SELECTION_LINES_H_

#include <string>
#include <vector>

#include "report/render/view.h"

namespace memtrace::report::render {

// Of the blocks alone, whatever sites are shown: the range of time, threads, sizes, what became of
// them.
std::vector<std::string> BlockLines(const Analysis& analysis);
// `of_sites_alone`: the figures are those of the sites of the view, whatever was analyzed.
std::vector<std::string> SelectionLines(const ReportView& view, bool of_sites_alone = false);
// The range of time before these, where there is one.
std::vector<std::string> SelectionLinesWithRange(const ReportView& view,
                                                 bool of_sites_alone = true);
// The same as one line, made safe for one: "only sites ...; only blocks ...".
// Empty: all was looked at.
std::string SelectionText(const ReportView& view, bool of_sites_alone = true);

}  // namespace memtrace::report::render

#endif  // MEMTRACE_REPORT_RENDER_SELECTION_LINES_H_
