// --format json of several processes: "memtrace-tree/1". Keys are only ever added.

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "report/render/formats.h"
#include "report/render/json_parts.h"
#include "report/words/process_end.h"
#include "report/leak/leak_scans.h"
#include "report/words/units.h"
#include "report/tree/tree_view.h"

namespace memtrace::report {
namespace {

using render::Json;

Json TotalsJson(const Totals& totals, bool sampled, bool waste_is_known) {
  return {{"allocations", totals.allocations},
          {"frees", totals.frees},
          {"bytes_allocated", totals.bytes_allocated},
          {"live_bytes", totals.live_bytes},
          {"live_blocks", totals.live_blocks},
          {"wasted_bytes", waste_is_known ? Json(totals.wasted_bytes) : Json()},
          {"temporary_allocations", sampled ? Json() : Json(totals.temporary_allocations)},
          {"estimated", sampled}};
}

Json ImageJson(const TreeView& view, size_t index) {
  const ProcessImage& image = view.analysis().images[index];
  const ImageNode& node = view.analysis().tree.nodes[index];
  const ProcessInfo& process = image.process;
  Json json = {
      {"trace", image.file},
      {"trace_id", absl::StrFormat("%016x", image.trace_id)},
      {"parent", node.parent == kNoImage ? Json() : Json(node.parent)},
      {"link", node.link == ImageLink::kNone ? Json() : Json(std::string(LinkName(node.link)))},
      {"pid", process.pid},
      {"ppid", process.ppid},
      {"command", process.command},
      {"executable", process.executable},
      {"build_id", process.build_id},
      {"host", process.host},
      {"start_time",
       process.start_known() ? Json(words::DateTimeIso(process.start_realtime_ns)) : Json()},
      {"duration_s", render::Seconds(process.duration_ns)}};
  render::AddEndJson(process, &json);
  json["forked"] = process.forked;
  json["sample_bytes"] = process.sample_bytes;
  json["events"] = image.events;
  json["dropped_events"] = image.dropped_events;
  json["truncated"] = image.truncated;
  json["totals"] = TotalsJson(image.totals, process.sample_bytes != 0, process.waste_is_known());
  json["totals"]["peak_live_bytes"] = image.totals.peak_live_bytes;
  const bool scanned = image.no_scan.empty();
  json["leak_totals"] = scanned ? render::LeakTotalsJson(image.leaks) : Json();
  json["no_leak_scan"] = scanned ? Json() : Json(image.no_scan);
  return json;
}

void WriteExecutable(const TreeView& view, size_t index, size_t top, render::SortColumn sort,
                     words::Sink& out) {
  const MergedExecutable& one = view.executable(index);
  const render::ReportView& sites = view.sites_of(index);
  Json totals =
      TotalsJson(one.analysis.totals, sites.sampled(), one.analysis.process.waste_is_known());
  totals["most_live_bytes"] = one.most_live_bytes;
  totals["most_peak_live_bytes"] = one.most_peak_bytes;
  out.Write(absl::StrCat("{\"executable\": ", render::Dump(Json(one.path)),
                         ", \"build_id\": ", render::Dump(Json(one.build_id)),
                         ", \"traces\": ", one.images,
                         ", \"dropped_events\": ", one.dropped_events,
                         ", \"totals\": ", render::Dump(totals), ",\n     \"leaks\": "));
  render::WriteArray(
      sites.unfreed(), top,
      [&](const render::SiteGroup& group) {
        Json json = render::LeakJson(sites, group);
        json["traces"] = one.ImagesOf(group.sites);
        return json;
      },
      out);
  out.Write(absl::StrCat(",\n     \"leaks_total\": ", sites.unfreed().size(),
                         ", \"sites\": "));
  render::WriteArray(
      SortedSites(sites, sort), top,
      [&](const Site* site) {
        Json json = render::SiteJson(sites, *site);
        const Site* const group[] = {site};
        json["traces"] = one.ImagesOf(group);
        return json;
      },
      out);
  out.Write(absl::StrCat(",\n     \"sites_total\": ", sites.sites().size(), "}"));
}

}  // namespace

void RenderTreeJson(const TreeView& view, size_t top, render::SortColumn sort, words::Sink& out) {
  const TreeAnalysis& analysis = view.analysis();
  const render::MemberWriter member(&out);
  out.Write("{\n  \"schema\": \"memtrace-tree/1\"");
  Json skipped = Json::array(), notes = Json::array();
  if (analysis.not_read != 0) notes.push_back(NotReadText(analysis));
  for (const TreeAnalysis::Skipped& one : analysis.skipped) {
    skipped.push_back({{"file", one.file}, {"why", one.why}});
  }
  for (const std::string& spool : analysis.spools) {
    notes.push_back(absl::StrCat("a run has left traces in ", spool,
                                 ": memtrace run --finish packs them"));
  }
  for (const TreeAnalysis::Note& note : analysis.notes) notes.push_back(NoteText(analysis, note));
  for (const std::string& note : view.symbols().notes()) notes.push_back(note);
  if (analysis.scanned_early > 0) {
    notes.push_back(absl::StrCat(words::Plural(analysis.scanned_early, "trace"), ": ",
                                 leak::kEndWasNotScanned));
  }
  member("coverage", {{"traces", analysis.images.size()},
                      {"events", analysis.events},
                      {"dropped_events", analysis.dropped_events},
                      {"truncated", analysis.truncated},
                      {"interrupted", analysis.not_read != 0},
                      {"not_read", analysis.not_read},
                      {"all_recorded", analysis.not_all_recorded == 0},
                      {"untraced_children", analysis.untraced_children},
                      {"invalid_frees", analysis.invalid_frees},
                      {"skipped", std::move(skipped)},
                      {"notes", std::move(notes)}});
  Json totals = TotalsJson(analysis.totals, analysis.sample_bytes != 0, analysis.waste_is_known);
  totals["processes"] = analysis.tree.processes;
  totals["most_peak_live_bytes"] = analysis.totals.peak_live_bytes;
  totals["leak_totals"] =
      analysis.scanned == 0 ? Json() : render::LeakTotalsJson(analysis.leaks);
  const LeakAmount of_runtime = view.OfRuntime();
  totals["of_runtime"] = analysis.scanned == 0
                             ? Json()
                             : Json{{"bytes", of_runtime.bytes}, {"blocks", of_runtime.blocks}};
  totals["scanned"] = analysis.scanned;
  member("totals", totals);
  const render::FrameFilter& filter = view.filter();
  Json only = Json::array();
  if (!filter.all()) {
    only.push_back(absl::StrCat("leaks and sites of executables: those ", filter.Text(),
                                "; all else is of all"));
  }
  if (!view.only_executable().empty()) {
    only.push_back(
        absl::StrCat("executables: ", view.only_executable(), "; processes and totals are of all"));
  }
  member("selection", {{"match", filter.match},
                       {"function", filter.function},
                       {"file", filter.file},
                       {"module", filter.module},
                       {"executable", view.only_executable()},
                       {"only", std::move(only)}});
  out.Write(",\n  \"processes\": ");
  std::vector<size_t> indexes(analysis.images.size());
  for (size_t i = 0; i < indexes.size(); ++i) indexes[i] = i;
  render::WriteArray(indexes, render::kAllRows,
                     [&](size_t index) { return ImageJson(view, index); }, out);
  out.Write(",\n  \"executables\": [");
  bool first = true;
  for (const size_t index : view.executables()) {
    out.Write(first ? "\n    " : ",\n    ");
    first = false;
    WriteExecutable(view, index, top, sort, out);
    if (out.done()) break;
  }
  out.Write(first ? "]\n}\n" : "\n  ]\n}\n");
}

}  // namespace memtrace::report
