// Measure of a site: the one number that a picture shows of each.
//
// Pure functions of a view that does not change, any thread.

#ifndef MEMTRACE_REPORT_RENDER_SITE_MEASURE_H_
#define MEMTRACE_REPORT_RENDER_SITE_MEASURE_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "report/findings/analysis.h"
#include "report/render/view.h"

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
  // These come from the trace's snapshots of pages, where it has any (ResidentMemory).
  kResident,      // resident bytes of the blocks live at the end
  kPeakResident,  // of those live when most memory was resident
};
inline constexpr size_t kSiteMeasures = 10;
inline constexpr std::array<SiteMeasure, kSiteMeasures> kAllSiteMeasures = {
    SiteMeasure::kLive,  SiteMeasure::kBlocks,     SiteMeasure::kAllocated,
    SiteMeasure::kAllocations, SiteMeasure::kPeak, SiteMeasure::kPeakBlocks,
    SiteMeasure::kWasted, SiteMeasure::kTemporary, SiteMeasure::kResident,
    SiteMeasure::kPeakResident};

// The names --measure takes: "live", "blocks", ...
absl::StatusOr<SiteMeasure> ParseSiteMeasure(absl::string_view name);
absl::string_view SiteMeasureName(SiteMeasure measure);

bool IsBytes(SiteMeasure measure);
// Whether the faults and the resident pages of sites are known. They are known for all
// blocks of a site together, but not for a choice of its blocks, and pages not for another
// time than the snapshot's.
bool KnowsFaultsOfSites(const Analysis& analysis);
bool KnowsPagesOfSites(const Analysis& analysis);
// The measures that the trace has.
std::vector<SiteMeasure> MeasuresOf(const Analysis& analysis);
// FailedPrecondition, with the cure: `measure` is none of these.
absl::Status CheckMeasure(const Analysis& analysis, SiteMeasure measure);
uint64_t ValueOf(const ReportView& view, const Site& site, SiteMeasure measure);

}  // namespace memtrace::report::render

#endif  // MEMTRACE_REPORT_RENDER_SITE_MEASURE_H_
