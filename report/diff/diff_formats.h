// What `memtrace diff` prints. docs/report.md, "Two runs", tells what each column and key means.
// Every name is escaped.

#ifndef MEMTRACE_REPORT_DIFF_DIFF_FORMATS_H_
#define MEMTRACE_REPORT_DIFF_DIFF_FORMATS_H_

#include <cstddef>
#include <string>

#include "report/diff/run_diff.h"
#include "report/render/table.h"
#include "report/render/text_report.h"
#include "report/words/sink.h"

namespace memtrace::report {

// `text.top` rows of each verdict; with `text.full` all, with their stacks.
std::string RenderDiffText(const RunDiff& diff, const render::TextOptions& text);
// "memtrace-diff/1".
void RenderDiffJson(const RunDiff& diff, size_t top, words::Sink& out);
// The same in a page, html::PageIsThere() given.
void RenderDiffHtml(const RunDiff& diff, size_t top, words::Sink& out);
// RFC 4180 with a header record: a record for each row.
void RenderDiffCsv(const RunDiff& diff, size_t top, words::Sink& out);

// An amount of `measure` as a person reads it, with a unit; of a rate too.
std::string AmountText(Measure measure, Per per, double value, bool estimated);
// The same with a sign.
std::string ChangeText(Measure measure, Per per, double change, bool estimated);
// "caller  file:line" in at most `width` columns.
std::string CallerText(const RunSite& site, const std::string& executable, size_t width,
                       const render::TextOptions& text);

// A line below such a row where it reads as another: "called by FUNCTION  file:line", or its
// fingerprint where no caller differs and no column has it. `cells`: of a row. All that is referred
// to outlives the table.
void AddCalledBy(const ToldApart& apart, const std::string& fingerprint, size_t cells,
                 const render::TextOptions& text, render::TextTable* table);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_DIFF_DIFF_FORMATS_H_
