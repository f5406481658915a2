// Lifetimes, moves, modules, exchanges between threads and stacked timelines, as JSON.

#include "report/analysis/invalid_frees.h"
#include "report/render/json_parts.h"
#include "report/render/stacked_timeline.h"
#include "report/render/mismatches.h"
#include "report/render/text_report.h"
#include "report/render/usage_tables.h"

namespace memtrace::report::render {
namespace {

Json QuantilesJson(const ReportView& view, const Lifetimes& lifetimes) {
  const uint64_t blocks = lifetimes.blocks();
  if (blocks == 0) return nullptr;
  return {{"blocks", blocks},
          {"p50_s", Seconds(LifetimeQuantile(view, lifetimes, 0.5))},
          {"p90_s", Seconds(LifetimeQuantile(view, lifetimes, 0.9))},
          {"p99_s", Seconds(LifetimeQuantile(view, lifetimes, 0.99))}};
}

Json SeriesJson(const StackedTimeline::Series& series) {
  return {{"name", series.name}, {"live_bytes", series.live_bytes}};
}

}  // namespace

Json StackedTimelineJson(const ReportView& view) {
  Json json = Json::object();
  for (const StackBy by : {StackBy::kSite, StackBy::kThread, StackBy::kModule, StackBy::kFolder}) {
    const StackedTimeline timeline = StackTimeline(view, by);
    json["from_s"] = Seconds(static_cast<double>(timeline.from_ns));
    json["interval_s"] = Seconds(static_cast<double>(timeline.interval_ns));
    Json series = Json::array();
    for (const StackedTimeline::Series& one : timeline.series) series.push_back(SeriesJson(one));
    json[std::string(StackByName(by))] = {{"series", std::move(series)},
                                          {"other", timeline.other.live_bytes},
                                          {"others", timeline.others}};
  }
  return json;
}

Json LifetimesJson(const ReportView& view) {
  const Lifetimes all = LifetimesOf(view);
  Json classes = Json::array();
  for (size_t i = 0; i < LifetimeHistogram::kClasses; ++i) {
    if (all.classes.freed[i] == 0) continue;
    classes.push_back({{"from_s", Seconds(static_cast<double>(LifetimeHistogram::BeginOf(i)))},
                       {"to_s", Seconds(static_cast<double>(LifetimeHistogram::BeginOf(i + 1)))},
                       {"blocks", all.classes.freed[i]}});
  }
  Json json = QuantilesJson(view, all);
  if (json.is_null()) json = {{"blocks", 0}};
  json["classes"] = std::move(classes);
  return json;
}

Json ModulesJson(const ReportView& view) {
  Json json = Json::array();
  for (const ModuleUsage& module : Modules(view)) {
    json.push_back({{"module", module.module},
                    {"callers", module.callers},
                    {"allocations", module.allocations},
                    {"frees", module.frees},
                    {"bytes_allocated", module.bytes_allocated},
                    {"live_bytes", module.live_bytes},
                    {"live_blocks", module.live_blocks},
                    {"bytes_at_peak", module.bytes_at_peak},
                    {"wasted_bytes",
                     view.analysis().process.waste_is_known() ? Json(module.wasted_bytes) : Json()},
                    {"temporary", view.sampled() ? Json() : Json(module.temporary)}});
  }
  return json;
}

Json ExchangeJson(const ReportView& view, const ThreadExchange& exchange) {
  const auto tid = [&](ThreadId id) {
    const ThreadSummary* thread = view.ThreadOf(id);
    return thread != nullptr ? Json(thread->tid) : Json();
  };
  return {{"from_tid", tid(exchange.from)},
          {"to_tid", tid(exchange.to)},
          {"blocks", exchange.blocks},
          {"bytes", exchange.bytes}};
}

Json MismatchesJson(const ReportView& view) {
  Json pairs = Json::array();
  for (const Mismatch& one : Mismatches(view)) {
    pairs.push_back({{"allocator", one.allocator},
                     {"ended_by", one.ended_by},
                     {"times", one.times},
                     {"allocated_at", view.CallerText(one.allocated)},
                     {"ended_at", view.CallerText(one.ended)}});
  }
  // Without the stacks of frees it is not known which function freed a block.
  return {{"frees_known", view.analysis().frees_with_stack != 0}, {"pairs", std::move(pairs)}};
}

namespace {

Json MomentJson(const ReportView& view, const InvalidFree::Moment& moment) {
  const ThreadSummary* thread = view.ThreadOf(moment.thread);
  return {{"time_s", Seconds(moment.time_ns)},
          {"tid", thread != nullptr ? Json(thread->tid) : Json()},
          {"by", moment.by_realloc ? "realloc" : "free"},
          {"caller", moment.stack ? Json(view.CallerText(moment.stack)) : Json()},
          {"stack", moment.stack ? StackJson(view, moment.stack) : Json()}};
}

}  // namespace

Json InvalidFreesJson(const ReportView& view) {
  Json stories = Json::array();
  const InvalidFrees& frees = view.analysis().invalid_frees;
  for (const InvalidFree& one : frees.stories) {
    Json allocated = MomentJson(view, one.allocated);
    allocated["by"] = std::string(FunctionName(one.function));
    stories.push_back({{"kind", std::string(KindName(one.kind))},
                       {"times", one.times},
                       {"address", one.address},
                       {"offset", one.offset},
                       {"block_bytes", one.block_bytes},
                       {"allocated", std::move(allocated)},
                       {"freed", one.kind == InvalidFree::Kind::kInsideLive
                                     ? Json() : MomentJson(view, one.freed)},
                       {"again", MomentJson(view, one.again)}});
  }
  return {{"certain", InvalidFreesAreCertain(view.analysis())},
          {"not_looked_for", frees.not_looked_for},
          {"of_unseen_blocks", frees.of_unseen_blocks},
          {"stories", std::move(stories)}};
}

Json SiteLifetimeJson(const ReportView& view, const Site& site) {
  return QuantilesJson(view, LifetimesOf(site));
}

Json SiteMovesJson(const Site& site) {
  const SiteMoves& moves = site.moves;
  if (moves.reallocations + moves.container_growths == 0) return nullptr;
  return {{"reallocations", moves.reallocations},
          {"grown", moves.grown},
          {"moved", moves.moved},
          {"copied_bytes", moves.copied_bytes},
          {"longest_chain", moves.longest_chain},
          {"container_growths", moves.container_growths},
          {"container_copied_bytes", moves.container_copied_bytes}};
}

Json SiteSizesJson(const Site& site) {
  Json json = Json::array();
  for (size_t i = 0; i < kSiteSizeClasses; ++i) {
    if (site.sizes[i] == 0) continue;
    const bool last = i + 1 == kSiteSizeClasses;
    json.push_back({{"from_bytes", SmallestOfClass(i)},
                    {"to_bytes", last ? Json() : Json(LargestOfClass(i))},
                    {"allocations", site.sizes[i]}});
  }
  return json;
}

}  // namespace memtrace::report::render
