// --format json: a call site.

#include <string>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "report/findings/growth.h"
#include "report/render/json_parts.h"
#include "report/render/site_measure.h"

namespace memtrace::report::render {
namespace {

Json GrowthRateJson(const Growth& growth) {
  if (growth.verdict != Growth::Verdict::kGrowing) return nullptr;
  return {{"bytes_per_s", growth.bytes_per_s},
          {"bytes_per_s_low", growth.bytes_per_s_low},
          {"bytes_per_s_high", growth.bytes_per_s_high},
          {"blocks_per_s", growth.blocks_per_s},
          {"bytes_per_allocation", growth.bytes_per_allocation},
          {"confidence", growth.confidence}};
}

}  // namespace

void AddSample(Json* json, absl::string_view of, const SampledSum& sum) {
  const Interval interval = sum.Interval95();
  (*json)[absl::StrCat(of, "_samples")] = sum.samples;
  (*json)[absl::StrCat(of, "_low")] = interval.low;
  (*json)[absl::StrCat(of, "_high")] = interval.high;
}

Json SiteJson(const ReportView& view, const Site& site) {
  const bool judged = site.growth.verdict != Growth::Verdict::kUnknown;
  const bool snapshot =
      view.analysis().resident.End() != nullptr && KnowsPagesOfSites(view.analysis());
  const bool counted = KnowsFaultsOfSites(view.analysis());
  const FaultSite* faults = counted ? view.FaultsOf(site.stack, site.function) : nullptr;
  const ResidentSite* resident = snapshot ? view.ResidentOf(site.stack, site.function) : nullptr;
  Json json = {
      {"allocations", site.allocations},
      {"frees", site.frees},
      {"bytes_allocated", site.bytes_allocated},
      {"live_bytes", site.live_bytes},
      {"live_blocks", site.live_blocks},
      {"peak_bytes", site.peak_bytes},
      {"temporary", view.sampled() ? Json() : Json(site.temporary)},
      {"wasted_bytes", view.analysis().process.waste_is_known() ? Json(site.wasted_bytes) : Json()},
      {"growth", judged ? Json(std::string(VerdictName(site.growth.verdict))) : Json()},
      {"resident_bytes", resident != nullptr ? Json(resident->resident_bytes)
                         : snapshot          ? Json(0)
                                             : Json()},
      {"minor_faults", faults != nullptr ? Json(faults->faults.minor)
                       : counted         ? Json(0)
                                         : Json()},
      {"major_faults", faults != nullptr ? Json(faults->faults.major)
                       : counted         ? Json(0)
                                         : Json()},
      {"untouched_bytes", resident != nullptr ? Json(resident->untouched_bytes) : Json()},
      {"pinned_bytes", resident != nullptr ? Json(resident->pinned_bytes) : Json()},
      {"enclosed_bytes", resident != nullptr ? Json(resident->enclosed_bytes) : Json()},
      {"allocator", std::string(FunctionName(site.function))},
      {"fingerprint", view.Fingerprint(site.stack, site.function)},
      {"bytes_at_peak", site.bytes_at_peak},
      {"blocks_at_peak", site.blocks_at_peak},
      {"largest_bytes", site.largest_bytes},
      {"freed_by_other_thread", site.freed_by_other_thread},
      {"first_time_s", Seconds(site.first_time_ns)},
      {"last_time_s", Seconds(site.last_time_ns)},
      {"strict_fingerprint", view.StrictFingerprint(site.stack, site.function)},
      {"growth_rate", GrowthRateJson(site.growth)},
      {"held_until_exit", judged ? Json(site.growth.held_until_exit) : Json()},
      {"lifetime", SiteLifetimeJson(view, site)},
      {"moves", SiteMovesJson(site)},
      {"sizes", SiteSizesJson(site)},
      {"stack", StackJson(view, site.stack)}};
  if (view.sampled()) {
    AddSample(&json, "bytes_allocated", site.bytes_sample);
    AddSample(&json, "live_bytes", site.live_sample);
  }
  return json;
}

}  // namespace memtrace::report::render
