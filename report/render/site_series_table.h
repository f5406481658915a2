// Sites over time, in equal steps: what each held at the end of a step, and allocated and freed in
// it. (`memtrace report --series`)

#ifndef MEMTRACE_REPORT_RENDER_SITE_SERIES_TABLE_H_
#define MEMTRACE_REPORT_RENDER_SITE_SERIES_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "report/render/text_report.h"
#include "report/render/view.h"
#include "report/words/sink.h"

namespace memtrace::report::render {

struct SeriesStep {
  uint64_t time_ns = 0;  // its end
  uint64_t live_bytes = 0, live_blocks = 0;  // then
  uint64_t allocations = 0, bytes_allocated = 0, frees = 0;  // in it
};

// All steps of the analysis, in order, made at most `most` by putting neighbours together.
std::vector<SeriesStep> StepsOf(const Analysis& analysis, const Site& site, size_t most = SIZE_MAX);

// The `top` sites with the highest peaks, of those that match.
std::vector<const Site*> SeriesSites(const ReportView& view, size_t top);

std::string SeriesText(const ReportView& view, const TextOptions& options);
// A record for each site and step.
void SeriesCsv(const ReportView& view, size_t top, words::Sink& out);
// Schema memtrace-series/1.
void SeriesJson(const ReportView& view, size_t top, words::Sink& out);

}  // namespace memtrace::report::render

#endif  // MEMTRACE_REPORT_RENDER_SITE_SERIES_TABLE_H_
