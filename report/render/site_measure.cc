#include "report/render/site_measure.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace memtrace::report::render {

absl::string_view SiteMeasureName(SiteMeasure measure) {
  switch (measure) {
    case SiteMeasure::kLive: return "live";
    case SiteMeasure::kBlocks: return "blocks";
    case SiteMeasure::kAllocated: return "allocated";
    case SiteMeasure::kAllocations: return "allocations";
    case SiteMeasure::kPeak: return "peak";
    case SiteMeasure::kPeakBlocks: return "peak-blocks";
    case SiteMeasure::kWasted: return "wasted";
    case SiteMeasure::kTemporary: return "temporary";
  }
  return "";
}

absl::StatusOr<SiteMeasure> ParseSiteMeasure(absl::string_view name) {
  std::vector<absl::string_view> names;
  for (const SiteMeasure measure : kAllSiteMeasures) {
    if (SiteMeasureName(measure) == name) return measure;
    names.push_back(SiteMeasureName(measure));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--measure: \"", name, "\" is none of ", absl::StrJoin(names, ", ")));
}

bool IsBytes(SiteMeasure measure) {
  switch (measure) {
    case SiteMeasure::kLive:
    case SiteMeasure::kAllocated:
    case SiteMeasure::kPeak:
    case SiteMeasure::kWasted:
      return true;
    case SiteMeasure::kBlocks:
    case SiteMeasure::kAllocations:
    case SiteMeasure::kPeakBlocks:
    case SiteMeasure::kTemporary:
      return false;
  }
  return false;
}

uint64_t ValueOf(const Site& site, SiteMeasure measure) {
  switch (measure) {
    case SiteMeasure::kLive: return site.live_bytes;
    case SiteMeasure::kBlocks: return site.live_blocks;
    case SiteMeasure::kAllocated: return site.bytes_allocated;
    case SiteMeasure::kAllocations: return site.allocations;
    case SiteMeasure::kPeak: return site.bytes_at_peak;
    case SiteMeasure::kPeakBlocks: return site.blocks_at_peak;
    case SiteMeasure::kWasted: return site.wasted_bytes;
    case SiteMeasure::kTemporary: return site.temporary;
  }
  return 0;
}

uint64_t TotalOf(const Totals& totals, SiteMeasure measure) {
  switch (measure) {
    case SiteMeasure::kLive: return totals.live_bytes;
    case SiteMeasure::kBlocks: return totals.live_blocks;
    case SiteMeasure::kAllocated: return totals.bytes_allocated;
    case SiteMeasure::kAllocations: return totals.allocations;
    case SiteMeasure::kPeak: return totals.peak_live_bytes;
    case SiteMeasure::kPeakBlocks: return totals.peak_live_blocks;
    case SiteMeasure::kWasted: return totals.wasted_bytes;
    case SiteMeasure::kTemporary: return totals.temporary_allocations;
  }
  return 0;
}

}  // namespace memtrace::report::render
