// `memtrace pages --format json`: one object with the schema memtrace-pages/1 (docs/pages.md).

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "report/pages/page_line.h"
#include "report/pages/pages_report.h"
#include "report/render/json_parts.h"
#include "report/words/units.h"

namespace memtrace::report::pages {
namespace {

using render::Json;

constexpr size_t kLineWidth = 256;

Json FiguresJson(const Figures& f) {
  return {{"virtual_bytes", f.virtual_bytes}, {"rss_bytes", f.rss}, {"pss_bytes", f.pss},
          {"private_dirty_bytes", f.private_dirty}, {"private_clean_bytes", f.private_clean},
          {"shared_dirty_bytes", f.shared_dirty}, {"shared_clean_bytes", f.shared_clean},
          {"anonymous_bytes", f.anonymous}, {"swap_bytes", f.swap}, {"huge_bytes", f.huge},
          {"hugetlb_bytes", f.hugetlb}, {"mappings", f.mappings}};
}

Json MappingJson(const MappedRegion& region, uint64_t page_bytes) {
  const Mapping& m = region.mapping;
  Figures figures;
  figures.Add(m);
  Json json = {{"start", m.start}, {"end", m.end},
               {"rights", absl::StrCat(m.readable ? "r" : "-", m.writable ? "w" : "-",
                                       m.executable ? "x" : "-", m.shared ? "s" : "p")},
               {"offset", m.offset}, {"device", m.device}, {"inode", m.inode}, {"name", m.name},
               {"deleted", m.deleted}, {"region", RegionName(region.region)}};
  json["owner"] = region.owner == Owner::kNone ? Json() : Json(OwnerName(region.owner));
  json["unit"] = region.unit.empty() ? Json() : Json(region.unit);
  json["figures"] = FiguresJson(figures);
  json["pages_known"] = region.pages_known;
  if (!region.pages.empty()) {
    const PageStates states = CountStates(region);
    json["pages"] = {{"own", states.own}, {"file_own", states.file_own}, {"shared", states.shared},
                     {"swapped", states.swapped}, {"zero", states.zero}, {"huge", states.huge}};
    const PageLine line = DrawPages(region, page_bytes, kLineWidth);
    json["page_map"] = {{"pages_each", line.pages_each}, {"characters", line.characters}};
  }
  return json;
}

Json ProcessJson(const ProcessPages& process, uint64_t page_bytes) {
  Json regions = Json::array(), mappings = Json::array();
  for (const RegionRow& row : RegionRows(process)) {
    Json json = {{"region", RegionName(row.region)}};
    json["owner"] = row.owner == Owner::kNone ? Json() : Json(OwnerName(row.owner));
    json["figures"] = FiguresJson(row.figures);
    regions.push_back(std::move(json));
  }
  for (const MappedRegion& region : process.mappings) {
    mappings.push_back(MappingJson(region, page_bytes));
  }
  Json json = {{"pid", process.pid}, {"name", process.name}, {"command", process.command},
               {"executable", process.executable}};
  json["problem"] = process.problem.empty() ? Json() : Json(process.problem);
  json["figures"] = FiguresJson(process.Total());
  json["regions"] = std::move(regions);
  json["mappings"] = std::move(mappings);
  return json;
}

Json UnitJson(const Unit& unit, bool counted) {
  Json json = {{"unit", unit.name}, {"device", unit.device}, {"inode", unit.inode},
               {"deleted", unit.deleted}, {"pids", unit.pids}, {"text_copies", unit.text_copies}};
  json["physical_pages"] = counted ? Json(unit.physical_pages) : Json();
  json["figures"] = FiguresJson(unit.figures);
  json["text"] = FiguresJson(unit.by_region[0]);
  json["read_only"] = FiguresJson(unit.by_region[1]);
  json["data"] = FiguresJson(unit.by_region[2]);
  json["bss"] = FiguresJson(unit.by_region[3]);
  return json;
}

}  // namespace

void RenderPagesJson(const PagesReport& report, words::Sink& out) {
  const PagesSnapshot& s = report.snapshot;
  const render::MemberWriter member(&out);
  out.Write("{\n  \"schema\": \"memtrace-pages/1\"");
  member("source", s.source);
  member("time", words::DateTimeIso(s.realtime_ns));
  member("page_bytes", s.page_bytes);
  member("user_pages", report.user_pages.pages);
  member("user_pages_by", report.user_pages.by_frames ? "frames" : "shares");
  member("counted", s.counted);
  member("notes", report.notes);
  out.Write(",\n  \"processes\": ");
  render::WriteArray(
      s.processes, static_cast<size_t>(-1),
      [&](const ProcessPages& process) { return ProcessJson(process, s.page_bytes); }, out);
  out.Write(",\n  \"units\": ");
  render::WriteArray(report.units, static_cast<size_t>(-1),
                     [&](const Unit& unit) { return UnitJson(unit, s.counted); }, out);
  out.Write(",\n  \"alerts\": ");
  render::WriteArray(report.alerts, static_cast<size_t>(-1),
                     [&](const Alert& alert) {
                       return Json{{"alert", AlertName(alert.kind)}, {"unit", alert.unit},
                                   {"region", RegionName(alert.region)}, {"pages", alert.pages},
                                   {"could_be", alert.could_be}, {"pids", alert.pids},
                                   {"sentence", AlertSentence(alert, s.page_bytes)}};
                     },
                     out);
  out.Write(",\n  \"skipped\": ");
  render::WriteArray(
      s.skipped, static_cast<size_t>(-1),
      [](const Skipped& skipped) {
        return Json{{"pid", skipped.pid}, {"name", skipped.name}, {"why", skipped.why}};
      },
      out);
  member("kernel_threads", s.kernel_threads);
  out.Write("\n}\n");
}

}  // namespace memtrace::report::pages
