// The formats that other programs read. docs/report.md tells what each column
// and key means.

#ifndef MEMTRACE_REPORT_RENDER_FORMATS_H_
#define MEMTRACE_REPORT_RENDER_FORMATS_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "report/render/view.h"
#include "report/words/sink.h"

namespace memtrace::report::render {

class GraphView;

inline constexpr size_t kAllRows = SIZE_MAX;

// "memtrace-report/1". `top` bounds "leaks" and "sites"; "leaks_total" and
// "sites_total" say how many there are. `graph`: what was asked about the heap graph, or nullptr.
// `sort`: of the sites.
void RenderJson(const ReportView& view, size_t top, words::Sink& out,
                const GraphView* graph = nullptr, SortColumn sort = SortColumn::kTotal);
// Unless the user says otherwise: a stack in JSON takes kilobytes, and a large
// program has 100,000 sites.
inline constexpr size_t kJsonRows = 1000;

// The page of report/html with the same document inside, its stacks as numbers (stack_numbers.h).
// html::PageIsThere() must be ok.
void RenderHtml(ReportView view, size_t top, words::Sink& out);
// Enough for nearly every program; the page stays quick with them.
inline constexpr size_t kHtmlRows = 20000;

enum class CsvTable {
  kSites, kLeaks, kTimeline, kThreads, kMappings, kSizes, kLifetimes, kReallocs, kModules,
  kExchanges, kSiteSizes, kTimelineBySite, kTimelineByThread, kTimelineByModule,
  kTimelineByFolder, kPressure,
};
absl::StatusOr<CsvTable> ParseCsvTable(absl::string_view name);
// RFC 4180 with a header record; `sort` orders sites.
void RenderCsv(const ReportView& view, CsvTable table, SortColumn sort, size_t top,
               words::Sink& out);

// Writes one of the tables from kLifetimes to kTimelineByFolder.
void RenderUsageCsv(const ReportView& view, CsvTable table, size_t top, words::Sink& out);

// Writes what glibc's mtrace(1) would print about Analysis::live.
void RenderMtrace(const ReportView& view, words::Sink& out);

// These write the file that ms_print reads, and the one that dh_view reads (version 2).
void RenderMassif(const ReportView& view, words::Sink& out);
void RenderDhat(const ReportView& view, words::Sink& out);

}  // namespace memtrace::report::render

#endif  // MEMTRACE_REPORT_RENDER_FORMATS_H_
