// Measure of a site: the one number that a picture shows of each.
//
// Pure functions, any thread.

#ifndef MEMTRACE_REPORT_RENDER_SITE_MEASURE_H_
#define MEMTRACE_REPORT_RENDER_SITE_MEASURE_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "report/analysis.h"

namespace memtrace::report::render {

enum class SiteMeasure : uint8_t {
  kLive,         // bytes live at the end
  kBlocks,       // blocks live at the end
  kAllocated,    // bytes of all allocations
  kAllocations,
  kPeak,         // bytes live at the program's peak
  kPeakBlocks,   // blocks live then
  kWasted,       // bytes usable but not asked for, over all allocations
  kTemporary,    // allocations freed before the thread's next
};
inline constexpr size_t kSiteMeasures = 8;
inline constexpr std::array<SiteMeasure, kSiteMeasures> kAllSiteMeasures = {
    SiteMeasure::kLive,  SiteMeasure::kBlocks,     SiteMeasure::kAllocated,
    SiteMeasure::kAllocations, SiteMeasure::kPeak, SiteMeasure::kPeakBlocks,
    SiteMeasure::kWasted, SiteMeasure::kTemporary};

// The names --measure takes: "live", "blocks", ...
absl::StatusOr<SiteMeasure> ParseSiteMeasure(absl::string_view name);
absl::string_view SiteMeasureName(SiteMeasure measure);

bool IsBytes(SiteMeasure measure);
uint64_t ValueOf(const Site& site, SiteMeasure measure);
// What the values of all sites add up to.
uint64_t TotalOf(const Totals& totals, SiteMeasure measure);

}  // namespace memtrace::report::render

#endif  // MEMTRACE_REPORT_RENDER_SITE_MEASURE_H_
