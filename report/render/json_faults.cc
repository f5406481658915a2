// "faults" of the JSON: counts, whose they were, what they go with.

#include <utility>

#include "absl/strings/str_cat.h"
#include "report/render/fault_words.h"
#include "report/render/json_parts.h"

namespace memtrace::report::render {
namespace {

Json SumsJson(const FaultSums& sums) { return {{"minor", sums.minor}, {"major", sums.major}}; }

Json TouchersJson(const ReportView& view, const std::vector<FaultToucher>& touchers) {
  Json list = Json::array();
  for (const FaultToucher& toucher : touchers) {
    Json json = SumsJson(toucher.faults);
    json["function"] = TouchedBy(view, toucher);
    json["in_kernel"] = !toucher.code;
    json["stack"] = toucher.code ? StackJson(view, toucher.code) : Json::array();
    list.push_back(std::move(json));
  }
  return list;
}

Json FaultSiteJson(const ReportView& view, const FaultSite& site) {
  Json json = SumsJson(site.faults);
  json["by_allocator"] = site.by_allocator;
  json["allocator"] = std::string(FunctionName(site.function));
  json["fingerprint"] = view.Fingerprint(site.stack, site.function);
  json["first_time_s"] = Seconds(site.first_time_ns);
  json["last_time_s"] = Seconds(site.last_time_ns);
  json["touched_by"] = TouchersJson(view, site.touchers);
  json["stack"] = StackJson(view, site.stack);
  return json;
}

Json FaultMappingJson(const ReportView& view, const FaultMapping& mapping) {
  Json json = SumsJson(mapping.faults);
  json["file"] = mapping.file.empty() ? Json() : Json(mapping.file);
  json["touched_by"] = TouchersJson(view, mapping.touchers);
  json["stack"] = StackJson(view, mapping.stack);
  return json;
}

Json ThrashJson(const FaultDetails& details) {
  Json list = Json::array();
  for (const ThrashStretch& stretch : details.thrash) {
    list.push_back({{"from_s", Seconds(stretch.begin_ns)},
                    {"to_s", Seconds(stretch.end_ns)},
                    {"refaults", stretch.refaults},
                    {"live_bytes", stretch.live_bytes}});
  }
  return list;
}

Json LaggedJson(const FaultCorrelation& correlation) {
  if (correlation.bins == 0) return Json();
  Json json = {{"bins", correlation.bins},
               {"bin_s", Seconds(correlation.bin_ns)}};
  const auto add = [&](const char* name, const LaggedCorrelation& pair) {
    json[name] = pair.known ? Json({{"now", pair.now},
                                    {"best", pair.best},
                                    {"lag_s", Seconds(pair.lag_ns)}})
                            : Json();
  };
  add("live_bytes_vs_minor", correlation.live_minor);
  add("allocated_bytes_vs_minor", correlation.allocated_minor);
  add("live_bytes_vs_major", correlation.live_major);
  add("allocated_bytes_vs_major", correlation.allocated_major);
  return json;
}

// Counted is the run as a whole: of a part of it only what was seen is known, what came before
// where it begins with the process, and that nothing was lost where nothing ever was.
Json AccountJson(const FaultDetails& details, bool whole) {
  const auto of_run = [whole](const FaultSums& sums) { return whole ? SumsJson(sums) : Json(); };
  const bool no_time = details.last_lost_ns == 0 || details.last_lost_ns == UINT64_MAX;
  return {{"counted", of_run(details.counted)},
          {"before",
           whole || details.before.all() != 0 ? SumsJson(details.before) : Json()},
          {"seen", SumsJson(details.told)},
          {"seen_in_kernel", SumsJson(details.in_kernel)},
          {"lost", whole || details.last_lost_ns == 0 ? Json(details.lost) : Json()},
          {"last_lost_s", no_time ? Json() : Json(Seconds(details.last_lost_ns))},
          {"not_seen", of_run(details.not_told)}};
}

}  // namespace

Json FaultsJson(const ReportView& view, size_t top) {
  const Faults& faults = view.analysis().faults;
  const FaultDetails& details = view.analysis().fault_details;
  const auto known = [&](double r) { return faults.correlation_known ? Json(r) : Json(); };
  const bool told = !view.analysis().process.imported();  // a log has none
  const bool counted = view.analysis().faults_known();
  Json json = {
      {"source", told ? Json(FaultSourceName(view.analysis())) : Json()},
      {"minor", counted ? Json(faults.minor) : Json()},
      {"major", counted ? Json(faults.major) : Json()},
      {"attributed_minor",
       details.source == format::FaultSource::kNone ? Json() : Json(details.told.minor)},
      {"tool_minor", faults.tool_minor},
      {"correlation",
       {{"live_bytes_vs_minor", known(faults.correlation_live)},
        {"allocated_bytes_vs_minor", known(faults.correlation_allocated)},
        {"lagged", LaggedJson(details.correlation)},
        {"words", counted ? Json(CorrelationSentences(view.analysis())) : Json::array()}}},
      {"thrash", ThrashJson(details)},
      {"peak_rss_bytes", faults.peak_rss_bytes == 0 ? Json() : Json(faults.peak_rss_bytes)}};
  json["why_not_perf"] = details.why.empty() ? Json() : Json(details.why);
  if (details.source == format::FaultSource::kNone) return json;
  json["with_kernel"] = details.source == format::FaultSource::kAllEvents;
  json["words"] = FaultSentences(view, [](absl::string_view function, absl::string_view place) {
    return absl::StrCat(function, place.empty() ? "" : " ", place);
  });
  json["refaults"] = details.refaults;
  json["ns_per_minor"] = details.ns_per_fault;
  json["account"] = AccountJson(details, view.analysis().range.whole());
  Json by_kind = Json::object(), kinds = Json::object();
  for (size_t i = 0; i < kMemoryKinds; ++i) {
    const auto kind = static_cast<MemoryKind>(i);
    const std::string name(MemoryKindName(kind));
    by_kind[name] = SumsJson(details.by_kind[i]);
    kinds[name] = std::string(MemoryKindText(kind));
  }
  json["by_memory"] = std::move(by_kind);
  json["memory_kinds"] = std::move(kinds);
  Json sites = Json::array();
  for (const FaultSite& site : details.sites) {
    if (sites.size() == top) break;
    if (view.Matches(site.stack)) sites.push_back(FaultSiteJson(view, site));
  }
  json["sites"] = std::move(sites);
  Json mappings = Json::array();
  for (const FaultMapping& mapping : details.mappings) {
    if (mappings.size() == top) break;
    if (view.Matches(mapping.stack)) mappings.push_back(FaultMappingJson(view, mapping));
  }
  json["mappings"] = std::move(mappings);
  Json places = Json::array();
  for (const FaultPlace& place : details.places) {
    if (places.size() == top) break;
    Json each = SumsJson(place.faults);
    each["memory"] = std::string(MemoryKindName(place.kind));
    each["name"] = place.name;
    places.push_back(std::move(each));
  }
  json["places"] = std::move(places);
  json["touched_by"] = TouchersJson(view, details.touchers);
  return json;
}

}  // namespace memtrace::report::render
