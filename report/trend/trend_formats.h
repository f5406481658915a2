// What `memtrace trend` prints. docs/nightly.md tells what each column and key means.

#ifndef MEMTRACE_REPORT_TREND_TREND_FORMATS_H_
#define MEMTRACE_REPORT_TREND_TREND_FORMATS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "report/render/text_report.h"
#include "report/trend/trend.h"
#include "report/words/sink.h"

namespace memtrace::report {

std::string RenderTrendText(const Trend& trend, const std::string& name,
                            const render::TextOptions& text);
// "memtrace-trend/1".
void RenderTrendJson(const Trend& trend, size_t top, words::Sink& out);
// RFC 4180: a record for each site and night.
void RenderTrendCsv(const Trend& trend, size_t top, words::Sink& out);

// One character for each value; the highest is full, 0 is empty. Of more than `most` values each
// character is of several that follow each other, and shows the highest of them.
std::string Sparkline(const std::vector<double>& series, size_t most, bool utf8);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_TREND_TREND_FORMATS_H_
