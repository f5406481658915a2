#include "report/render/site_measure.h"

#include <algorithm>
#include <string>
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
    case SiteMeasure::kResident: return "resident";
    case SiteMeasure::kPeakResident: return "peak-resident";
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
    case SiteMeasure::kResident:
    case SiteMeasure::kPeakResident:
      return true;
    case SiteMeasure::kBlocks:
    case SiteMeasure::kAllocations:
    case SiteMeasure::kPeakBlocks:
    case SiteMeasure::kTemporary:
      return false;
  }
  return false;
}

namespace {

bool IsOfAllBlocks(const Analysis& analysis) {
  const BlockSelection& selection = analysis.selection;
  return !analysis.some_threads && selection.sizes.all() && !selection.needs_lifetimes();
}

}  // namespace

bool KnowsFaultsOfSites(const Analysis& analysis) {
  return analysis.fault_details.source != format::FaultSource::kNone && IsOfAllBlocks(analysis);
}

bool KnowsPagesOfSites(const Analysis& analysis) {
  return !analysis.resident.bridges.empty() && analysis.range.whole() && IsOfAllBlocks(analysis);
}

std::vector<SiteMeasure> MeasuresOf(const Analysis& analysis) {
  const bool pages_are_known = KnowsPagesOfSites(analysis);
  std::vector<SiteMeasure> known;
  for (const SiteMeasure measure : kAllSiteMeasures) {
    const bool of_pages =
        measure == SiteMeasure::kResident || measure == SiteMeasure::kPeakResident;
    if ((of_pages && !pages_are_known) ||
        (measure == SiteMeasure::kWasted && !analysis.process.waste_is_known()) ||
        (measure == SiteMeasure::kTemporary && analysis.process.sample_bytes != 0)) {
      continue;
    }
    known.push_back(measure);
  }
  return known;
}

absl::Status CheckMeasure(const Analysis& analysis, SiteMeasure measure) {
  if (measure == SiteMeasure::kWasted && !analysis.process.waste_is_known()) {
    return absl::FailedPreconditionError(
        "--measure wasted: the program's allocator is not glibc's, and does not tell what a block "
        "can hold");
  }
  if (measure == SiteMeasure::kTemporary && analysis.process.sample_bytes != 0) {
    return absl::FailedPreconditionError(
        "--measure temporary: the trace is of a sample, which does not tell what comes between two "
        "events");
  }
  const std::vector<SiteMeasure> known = MeasuresOf(analysis);
  if (std::find(known.begin(), known.end(), measure) != known.end()) return absl::OkStatus();
  const std::string option = absl::StrCat("--measure ", SiteMeasureName(measure), ": ");
  if (analysis.resident.bridges.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        option, "the trace has no snapshot of the resident pages; record it by memtrace run, or "
        "with MEMTRACE_FAULTS=auto or snapshots"));
  }
  return absl::FailedPreconditionError(
      absl::StrCat(option, "which pages are resident is known of all blocks of a site together, "
                   "not of a choice of them by time, thread, size, age or lifetime"));
}

uint64_t ValueOf(const ReportView& view, const Site& site, SiteMeasure measure) {
  const auto resident = [](const ResidentSite* pages) {
    return pages == nullptr ? 0 : pages->resident_bytes;
  };
  switch (measure) {
    case SiteMeasure::kLive: return site.live_bytes;
    case SiteMeasure::kBlocks: return site.live_blocks;
    case SiteMeasure::kAllocated: return site.bytes_allocated;
    case SiteMeasure::kAllocations: return site.allocations;
    case SiteMeasure::kPeak: return site.bytes_at_peak;
    case SiteMeasure::kPeakBlocks: return site.blocks_at_peak;
    case SiteMeasure::kWasted: return site.wasted_bytes;
    case SiteMeasure::kTemporary: return site.temporary;
    case SiteMeasure::kResident: return resident(view.ResidentOf(site.stack, site.function));
    case SiteMeasure::kPeakResident:
      return resident(view.ResidentAtPeak(site.stack, site.function));
  }
  return 0;
}

}  // namespace memtrace::report::render
