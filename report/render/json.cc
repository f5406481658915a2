// --format json: "memtrace-report/1". Keys are only ever added; a value that this
// version does not know is null, never a made-up 0.
//
// The large arrays are written element by element, so that a report with a
// hundred thousand sites is not held as a document.

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "report/analysis/coverage.h"
#include "report/leak/leak_scans.h"
#include "report/render/formats.h"
#include "report/render/graph_view.h"
#include "report/render/growing.h"
#include "report/render/json_parts.h"
#include "report/render/json_pressure.h"
#include "report/render/selection_lines.h"
#include "report/render/site_measure.h"
#include "report/render/stack_numbers.h"
#include "report/render/summary_facts.h"
#include "report/words/process_end.h"
#include "report/words/shell_words.h"
#include "report/words/units.h"

namespace memtrace::report::render {
namespace {

// null: all. An end that is open is null.
Json RangeJson(const ValueRange& range, double unit) {
  if (range.all()) return nullptr;
  const auto end = [&](uint64_t value) {
    return unit == 1 ? Json(value) : Json(static_cast<double>(value) / unit);
  };
  return {{"from", end(range.low)},
          {"to", range.high == UINT64_MAX ? Json() : end(range.high)}};
}

Json FrameJson(const Frame& frame) {
  Json json = Json::object();
  if (!frame.function.empty()) json["function"] = frame.function;
  if (frame.role == FrameRole::kMarker) {
    json["marker"] = true;
    return json;
  }
  if (!frame.module.empty()) json["module"] = frame.module;
  json["offset"] = frame.offset;
  if (!frame.file.empty()) json["file"] = frame.file;
  if (frame.line != 0) json["line"] = frame.line;
  json["inlined"] = frame.inlined;
  return json;
}

}  // namespace

Json StackJson(const ReportView& view, StackId stack) {
  if (view.stack_numbers() != nullptr) return view.stack_numbers()->Of(stack);
  Json json = Json::array();
  for (const Frame* frame : view.Frames(stack)) json.push_back(FrameJson(*frame));
  return json;
}

namespace {

Json ProcessJson(const Analysis& analysis) {
  const ProcessInfo& process = analysis.process;
  Json json = {{"pid", process.pid},
               {"ppid", process.ppid},
               {"command", process.command},
               {"command_line", words::ShellCommand(process.command)},
               {"executable", process.executable},
               {"build_id", ProcessBuildId(process, analysis.modules)},
               {"working_directory", process.working_directory},
               {"host", process.host},
               {"kernel", process.kernel},
               {"duration_s", Seconds(process.duration_ns)},
               {"exit_work_s", Seconds(process.exit_work_ns)},
               {"short_run", process.is_short_run()}};
  json["start_time"] =
      process.start_known() ? Json(words::DateTimeIso(process.start_realtime_ns)) : Json();
  AddEndJson(process, &json);
  AddKillJson(process, &json);
  json["exit_at_once"] = process.exit_at_once;
  json["forked"] = process.forked;
  json["page_bytes"] = process.page_bytes;
  json["sample_bytes"] = process.sample_bytes;
  return json;
}

Json SummaryJson(const ReportView& view) {
  Json json = Json::array();
  for (const Fact& fact : SummaryFacts(view)) {
    json.push_back({{"label", std::string(fact.label)}, {"text", fact.text}});
  }
  return json;
}

Json UnseenAllocatorsJson(const Coverage& coverage) {
  Json json = Json::array();
  for (const UnseenAllocator& one : coverage.unseen_allocators) {
    const char* way = one.way == UnseenAllocator::Way::kComesFirst ? "comes_first"
                      : one.way == UnseenAllocator::Way::kHidden   ? "hidden"
                                                                   : "own_names";
    json.push_back({{"module", one.module}, {"allocator", one.allocator}, {"way", way}});
    if (one.allocator.empty()) json.back()["allocator"] = nullptr;
  }
  return json;
}

Json CoverageJson(const ReportView& view) {
  const Coverage& coverage = view.analysis().coverage;
  Json notes = CoverageNotes(view.analysis());
  for (const std::string& note : view.symbols().notes()) notes.push_back(note);
  if (leak::EndWasNotScanned(view.analysis())) notes.push_back(leak::kEndWasNotScanned);
  Json counters = Json::object();
  for (const auto& [name, value] : coverage.counters) counters[name] = value;
  return {
      {"events", coverage.events},
      {"dropped_events", coverage.dropped_events},
      {"recovered_events", coverage.recovered_events},
      {"unordered_events", coverage.unordered_events},
      {"marked_stacks", coverage.marked_stacks},
      {"cross_checked", coverage.cross_checked},
      {"cross_check_differences", coverage.cross_check_differences},
      {"tool_memory_bytes",
       coverage.tool_memory_bytes != 0 ? Json(coverage.tool_memory_bytes) : Json()},
      {"notes", std::move(notes)},
      {"inherited_frees", coverage.inherited_frees},
      {"unknown_frees", coverage.unknown_frees},
      {"unseen_frees", coverage.unseen_frees},
      {"window_begin_s",
       coverage.window_begin_ns == 0 ? Json() : Json(Seconds(coverage.window_begin_ns))},
      {"lost_blocks", coverage.lost_blocks},
      {"recording_end_s",
       coverage.recording_end_ns.has_value() ? Json(Seconds(*coverage.recording_end_ns)) : Json()},
      {"stops", coverage.stops},
      {"stopped_s", Seconds(coverage.stopped_ns)},
      {"stopped_allocations", coverage.stopped_allocations},
      {"stopped_frees", coverage.stopped_frees},
      {"untraced_children", coverage.untraced_children.count},
      {"live_until_s",
       coverage.live_until_ns == 0 ? Json() : Json(Seconds(coverage.live_until_ns))},
      {"truncated", coverage.truncated},
      {"interrupted", coverage.interrupted},
      {"all_recorded", AllRecorded(coverage)},
      {"read_share", coverage.read_share},
      {"unseen_allocators", UnseenAllocatorsJson(coverage)},
      {"modules_not_examined", coverage.modules_not_examined},
      {"counters", std::move(counters)}};
}

Json TotalsJson(const ReportView& view) {
  const Totals& totals = view.analysis().totals;
  Json json = {
      {"allocations", totals.allocations},
      {"frees", totals.frees},
      {"bytes_allocated", totals.bytes_allocated},
      {"live_bytes", totals.live_bytes},
      {"live_blocks", totals.live_blocks},
      {"peak_live_bytes", totals.peak_live_bytes},
      {"peak_time_s", Seconds(totals.peak_time_ns)},
      {"wasted_bytes",
       view.analysis().process.waste_is_known() ? Json(totals.wasted_bytes) : Json()},
      {"temporary_allocations", view.sampled() ? Json() : Json(totals.temporary_allocations)},
      {"peak_live_blocks", totals.peak_live_blocks},
      {"reallocations", view.sampled() ? Json() : Json(totals.reallocations)},
      {"failed_allocations", totals.failed_allocations},
      {"earlier_frees", totals.earlier_frees},
      {"estimated", view.sampled()}};
  if (view.sampled()) {
    AddSample(&json, "bytes_allocated", totals.bytes_sample);
    AddSample(&json, "live_bytes", totals.live_sample);
  }
  return json;
}

Json PointJson(const TimelinePoint& point, bool faults_known) {
  return {{"time_s", Seconds(point.time_ns)},
          {"live_bytes", point.live_bytes},
          {"live_blocks", point.live_blocks},
          {"allocations", point.allocations},
          {"frees", point.frees},
          {"rss_bytes", point.rss_bytes == 0 ? Json() : Json(point.rss_bytes)},
          {"minor_faults", faults_known ? Json(point.minor_faults) : Json()},
          {"major_faults", faults_known ? Json(point.major_faults) : Json()},
          {"max_live_bytes", point.max_live_bytes},
          {"bytes_allocated", point.bytes_allocated},
          {"usable_bytes", point.usable_bytes}};
}

Json ThreadJson(const ThreadSummary& thread, bool sampled) {
  return {{"tid", thread.tid},
          {"name", thread.name},
          {"in_signal_handlers", thread.in_signal_handlers},
          {"allocations", thread.allocations},
          {"frees", thread.frees},
          {"bytes_allocated", thread.bytes_allocated},
          {"live_bytes", thread.live_bytes},
          {"live_blocks", thread.live_blocks},
          {"temporary", sampled ? Json() : Json(thread.temporary)},
          {"first_time_s", Seconds(thread.first_time_ns)},
          {"last_time_s", Seconds(thread.last_time_ns)}};
}

Json MappingJson(const ReportView& view, const MappingSite& mapping) {
  Json json = {{"kind", std::string(MappingKindName(mapping.kind))},
               {"calls", mapping.calls},
               {"bytes", mapping.bytes},
               {"live_bytes", mapping.live_bytes}};
  if (!mapping.file.empty()) json["file"] = mapping.file;
  json["stack"] = StackJson(view, mapping.stack);
  return json;
}

Json MemoryMapJson(const MemoryMapSummary& map) {
  if (!map.known) return nullptr;
  return {{"heap_bytes", map.heap_bytes},
          {"heap_at_start_bytes", map.heap_at_start_bytes},
          {"heap_growth_seen_bytes", map.heap_growth_seen_bytes},
          {"anonymous_bytes", map.anonymous_bytes},
          {"anonymous_at_start_bytes", map.anonymous_at_start_bytes},
          {"mapped_blocks_bytes", map.mapped_blocks_bytes},
          {"arena_bytes", map.arena_bytes},
          {"thread_stack_bytes", map.thread_stack_bytes},
          {"program_mmap_bytes", map.program_mmap_bytes},
          {"program_other_mmap_bytes", map.program_other_mmap_bytes},
          {"tool_bytes", map.tool_bytes},
          {"unexplained_bytes", map.unexplained_bytes}};
}

Json SizesJson(const SizeHistogram& sizes) {
  Json json = Json::array();
  for (size_t i = 0; i < kSizeClasses; ++i) {
    if (sizes.allocations[i] == 0) continue;
    json.push_back({{"from_bytes", SmallestOfClass(i)},
                    {"to_bytes", LargestOfClass(i)},
                    {"allocations", sizes.allocations[i]},
                    {"bytes", sizes.bytes[i]},
                    {"live_blocks", sizes.live_blocks[i]},
                    {"live_bytes", sizes.live_bytes[i]}});
  }
  return json;
}

Json InstantJson(const Phase::Instant& instant) {
  return {{"time_s", Seconds(instant.time_ns)},
          {"live_bytes", instant.live_bytes},
          {"live_blocks", instant.live_blocks}};
}

Json PhaseJson(const Phase& phase) {
  return {{"name", phase.name},
          {"times", phase.times},
          {"open", phase.open},
          {"total_s", Seconds(phase.total_ns)},
          {"allocations", phase.allocations},
          {"frees", phase.frees},
          {"bytes_allocated", phase.bytes_allocated},
          {"minor_faults", phase.minor_faults},
          {"major_faults", phase.major_faults},
          {"growth_bytes", phase.growth_bytes},
          {"growth_blocks", phase.growth_blocks},
          {"largest_growth_bytes", phase.largest_growth_bytes},
          {"first_begin", InstantJson(phase.first_begin)},
          {"first_end", InstantJson(phase.first_end)},
          {"last_begin", InstantJson(phase.last_begin)},
          {"last_end", InstantJson(phase.last_end)}};
}

Json MarkJson(const Mark& mark) {
  return {{"name", mark.name},
          {"time_s", Seconds(mark.time_ns)},
          {"live_bytes", mark.live_bytes},
          {"live_blocks", mark.live_blocks}};
}

Json PoolJson(const ReportView& view, const Pool& pool) {
  return {{"name", pool.name},
          {"created", pool.created},
          {"destroyed", pool.destroyed},
          {"allocations", pool.allocations},
          {"frees", pool.frees},
          {"bytes_allocated", pool.bytes_allocated},
          {"live_bytes", pool.live_bytes},
          {"live_blocks", pool.live_blocks},
          {"peak_bytes", pool.peak_bytes},
          {"first_created_s", Seconds(pool.first_created_ns)},
          {"stack", StackJson(view, pool.stack)}};
}

}  // namespace

// Names are bytes; JSON is UTF-8. All that is not printable ASCII is escaped: somebody may
// look at the report in a terminal, where U+009B begins a command like ESC [.
std::string Dump(const Json& json) {
  std::string text = json.dump(-1, ' ', true, Json::error_handler_t::replace);
  return absl::StrReplaceAll(text, {{"\x7f", "\\u007f"}});
}

void AddEndJson(const ProcessInfo& process, Json* json) {
  const bool told = !process.imported();
  (*json)["end"] = told ? Json(std::string(words::EndName(process.end))) : Json();
  (*json)["exit_status"] =
      told && process.end == ProcessInfo::End::kExit ? Json(process.exit_status) : Json();
  (*json)["end_signal"] =
      process.end == ProcessInfo::End::kSignal ? Json(process.end_signal) : Json();
}

void MemberWriter::operator()(absl::string_view key, const Json& value) const {
  out_.Write(absl::StrCat(",\n  \"", key, "\": ", Dump(value)));
}

void RenderJson(const ReportView& view, size_t top, words::Sink& out, const GraphView* graph,
                SortColumn sort) {
  const Analysis& analysis = view.analysis();
  const MemberWriter member(&out);
  out.Write("{\n  \"schema\": \"memtrace-report/1\"");
  member("process", ProcessJson(analysis));
  member("range",
         {{"from_s", Seconds(std::min(analysis.range.from_ns, analysis.process.duration_ns))},
          {"to_s", Seconds(std::min(analysis.range.to_ns, analysis.process.duration_ns))},
          {"whole", analysis.range.whole()},
          {"match", view.filter().match},
          {"function", view.filter().function},
          {"file", view.filter().file},
          {"module", view.filter().module},
          {"sizes", RangeJson(analysis.selection.sizes, 1)},
          {"lifetimes_s", RangeJson(analysis.selection.lifetimes, 1e9)},
          {"ages_s", RangeJson(analysis.selection.ages, 1e9)},
          {"thread", analysis.only_thread},
          {"only", SelectionLines(view)}});
  member("summary", SummaryJson(view));
  member("coverage", CoverageJson(view));
  member("totals", TotalsJson(view));
  out.Write(",\n  \"leaks\": ");
  if (view.leak_scan() != nullptr) {
    const std::vector<ReportView::Loss> losses = view.Losses(/*everything=*/true);
    WriteArray(losses, top, [&](const ReportView::Loss& loss) { return LossJson(view, loss); },
               out);
    member("leaks_total", losses.size());
  } else {
    WriteArray(view.unfreed(), top,
               [&](const SiteGroup& group) { return LeakJson(view, group); }, out);
    member("leaks_total", view.unfreed().size());
  }
  member("leak_kinds", LeakKindsJson());
  out.Write(",\n  \"leak_scans\": ");
  WriteArray(analysis.leak_scans, kAllRows,
             [&](const LeakScan& scan) { return LeakScanJson(view, scan); }, out);
  member("leak_scan", view.leak_scan() != nullptr ? Json(view.leak_scan()->number) : Json());
  member("no_leak_scan", view.leak_scan() != nullptr ? Json() : Json(leak::WhyNoScan(analysis)));
  out.Write(",\n  \"sites\": ");
  WriteArray(
      SortedSites(view, sort), top, [&](const Site* site) { return SiteJson(view, *site); }, out);
  member("sites_total", view.sites().size());
  member("growing", GrowingJson(view));
  out.Write(absl::StrCat(",\n  \"timeline\": { \"interval_s\": ",
                         Dump(Seconds(analysis.timeline_interval_ns)), ", \"points\": "));
  WriteArray(analysis.timeline, kAllRows,
             [known = analysis.faults_known()](const TimelinePoint& point) {
               return PointJson(point, known);
             },
             out);
  out.Write(absl::StrCat(", \"stacked\": ", Dump(StackedTimelineJson(view)), " }"));
  member("shutdown_s", analysis.shutdown_ns == UINT64_MAX ? Json()
                                                          : Json(Seconds(analysis.shutdown_ns)));
  member("faults", FaultsJson(view, top));
  member("resident", ResidentJson(view, top));
  member("resident_parts", ResidentPartsJson());
  WritePressure(analysis.pressure, out);
  out.Write(",\n  \"threads\": ");
  WriteArray(analysis.threads, kAllRows,
             [&](const ThreadSummary& thread) { return ThreadJson(thread, view.sampled()); }, out);
  out.Write(",\n  \"mappings\": ");
  WriteArray(view.mappings(), kAllRows,
             [&](const MappingSite* mapping) { return MappingJson(view, *mapping); }, out);
  member("memory_map", MemoryMapJson(analysis.memory_map));
  member("sizes", SizesJson(analysis.sizes));
  member("lifetimes", LifetimesJson(view));
  member("modules", ModulesJson(view));
  out.Write(",\n  \"thread_exchanges\": ");
  WriteArray(analysis.exchanges, kAllRows,
             [&](const ThreadExchange& one) { return ExchangeJson(view, one); }, out);
  member("thread_exchanges_left_out", {{"blocks", analysis.exchanges_left_out.blocks},
                                       {"bytes", analysis.exchanges_left_out.bytes}});
  member("mismatches", MismatchesJson(view));
  member("invalid_frees", InvalidFreesJson(view));
  out.Write(",\n  \"phases\": ");
  WriteArray(analysis.phases, kAllRows, PhaseJson, out);
  out.Write(",\n  \"marks\": ");
  WriteArray(analysis.marks, kAllRows, MarkJson, out);
  member("phases_left_out", analysis.phases_left_out);
  member("marks_left_out", analysis.marks_left_out);
  out.Write(",\n  \"pools\": ");
  WriteArray(analysis.pools, kAllRows, [&](const Pool& pool) { return PoolJson(view, pool); },
             out);
  if (graph != nullptr) WriteGraphJson(*graph, top, out);
  out.Write("\n}\n");
}

}  // namespace memtrace::report::render
