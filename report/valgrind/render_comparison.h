// A Comparison as a person reads it, and as JSON ("memtrace-compare/1").

#ifndef MEMTRACE_REPORT_VALGRIND_RENDER_COMPARISON_H_
#define MEMTRACE_REPORT_VALGRIND_RENDER_COMPARISON_H_

#include <string>

#include "report/findings/analysis.h"
#include "report/render/style.h"
#include "report/valgrind/comparison.h"
#include "report/valgrind/valgrind_run.h"
#include "report/words/sink.h"

namespace memtrace::report::valgrind {

struct ComparisonText {
  render::Style style;
  bool full = false;  // every frame of every stack
};

std::string RenderComparisonText(const Analysis& analysis, const ValgrindRun& run,
                                 const Comparison& comparison, const ComparisonText& options);
void RenderComparisonJson(const Analysis& analysis, const ValgrindRun& run,
                          const Comparison& comparison, words::Sink& out);

// The same in a page, html::PageIsThere() given.
void RenderComparisonHtml(const Analysis& analysis, const ValgrindRun& run,
                          const Comparison& comparison, words::Sink& out);

}  // namespace memtrace::report::valgrind

#endif  // MEMTRACE_REPORT_VALGRIND_RENDER_COMPARISON_H_
