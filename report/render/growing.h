// Callers with sites that grow.

#ifndef MEMTRACE_REPORT_RENDER_GROWING_H_
#define MEMTRACE_REPORT_RENDER_GROWING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "report/render/json_parts.h"
#include "report/render/text_report.h"
#include "report/render/view.h"

namespace memtrace::report::render {

// The growing sites of one caller together.
struct GrowingGroup {
  StackId stack;  // of the one that grows fastest
  size_t sites = 0;
  double bytes_per_s = 0, largest_bytes_per_s = 0;
  double bytes_per_allocation = 0;
  double confidence = 0;    // of the surest
  bool held = false;        // some are freed at the exit
  bool sure = false;        // of one the interval of what it grows by is above 0
  uint64_t allocations = 0, live_bytes = 0;

  // A headline is of what is sure, and of what did not end by itself.
  bool in_verdict() const { return sure && (live_bytes != 0 || held); }
};

std::vector<GrowingGroup> GrowingGroups(const ReportView& view);  // the fastest first
// A sentence for the summary; empty: nothing grows.
std::string GrowingVerdict(const ReportView& view, const TextOptions& options);
Json GrowingJson(const ReportView& view);

}  // namespace memtrace::report::render

#endif  // MEMTRACE_REPORT_RENDER_GROWING_H_
