// "resident" of the JSON: the snapshots of the resident pages.

#include <utility>

#include "report/render/fault_words.h"
#include "report/render/json_parts.h"

namespace memtrace::report::render {
namespace {

Json ResidentSiteJson(const ReportView& view, const ResidentSite& site) {
  return {{"resident_bytes", site.resident_bytes},
          {"live_bytes", site.live_bytes},
          {"live_blocks", site.blocks},
          {"untouched_bytes", site.untouched_bytes},
          {"swapped_bytes", site.swapped_bytes},
          {"pinned_bytes", site.pinned_bytes},
          {"pinning_blocks", site.pinning_blocks},
          {"enclosed_bytes", site.enclosed_bytes},
          {"allocator", std::string(FunctionName(site.function))},
          {"fingerprint", view.Fingerprint(site.stack, site.function)},
          {"stack", StackJson(view, site.stack)}};
}

}  // namespace

Json ResidentJson(const ReportView& view, size_t top) {
  const ResidentMemory& resident = view.analysis().resident;
  const RssBridge* const peak = resident.Peak();
  const RssBridge* const end = resident.End();
  Json list = Json::array();
  for (const RssBridge& bridge : resident.bridges) {
    Json json = {{"number", bridge.number},
                 {"time_s", Seconds(bridge.time_ns)},
                 {"reason", bridge.reason == format::SnapshotReason::kEnd    ? "end"
                            : bridge.reason == format::SnapshotReason::kMark ? "mark"
                                                                             : "growth"},
                 {"name", bridge.name.empty() ? Json() : Json(bridge.name)},
                 {"source", bridge.source == format::PageSource::kPagemap ? "pagemap" : "mincore"},
                 {"peak", &bridge == peak},
                 {"rss_bytes", bridge.rss},
                 {"smaps_rollup_rss_bytes", bridge.rollup_rss},
                 {"peak_rss_bytes", bridge.peak_rss}};
    Json parts = Json::object();
    for (size_t i = 0; i < kRssParts; ++i) {
      parts[std::string(RssPartName(static_cast<RssPart>(i)))] = bridge.parts[i];
    }
    json["parts"] = std::move(parts);
    json["live_bytes"] = bridge.live_bytes;
    json["untouched_bytes"] = bridge.untouched_bytes;
    json["swap_bytes"] = bridge.swap;
    json["huge_bytes"] = bridge.huge;
    json["page_table_bytes"] = bridge.page_tables;
    json["not_exclusive_bytes"] = bridge.zero_or_shared;
    json["pinned_bytes"] = bridge.pinned_bytes;
    json["enclosed_bytes"] = bridge.enclosed_bytes;
    json["pages_left_out"] = bridge.pages_left_out;
    if (&bridge == peak || &bridge == end) {
      Json sites = Json::array();
      for (const ResidentSite& site : bridge.sites) {
        if (sites.size() == top) break;
        if (view.Matches(site.stack)) sites.push_back(ResidentSiteJson(view, site));
      }
      json["sites"] = std::move(sites);
    }
    list.push_back(std::move(json));
  }
  return list;
}

Json ResidentPartsJson() {
  Json json = Json::object();
  for (size_t i = 0; i < kRssParts; ++i) {
    const auto part = static_cast<RssPart>(i);
    json[std::string(RssPartName(part))] = std::string(RssPartText(part));
  }
  return json;
}

}  // namespace memtrace::report::render
