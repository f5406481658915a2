// --format json: unfreed blocks, loss records, memory scans.

#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "report/leak/heuristics.h"
#include "report/leak/leak_kinds.h"
#include "report/leak/leak_scans.h"
#include "report/render/json_parts.h"
#include "report/render/scan_notes.h"

namespace memtrace::report::render {
namespace {

Json LeakAmountJson(const LeakAmount& amount) {
  return {{"bytes", amount.bytes}, {"blocks", amount.blocks}};
}

}  // namespace

Json LeakJson(const ReportView& view, const SiteGroup& group) {
  Json json = {{"kind", "unfreed"},
          {"bytes", group.live_bytes},
          {"blocks", group.live_blocks},
          {"fingerprint", view.Fingerprint(group.stack, group.function)},
          {"first_time_s", Seconds(group.live_first_time_ns)},
          {"last_time_s", Seconds(group.live_last_time_ns)},
          {"allocator", std::string(FunctionName(group.function))},
          {"strict_fingerprint", view.StrictFingerprint(group.stack, group.function)},
          {"stack", StackJson(view, group.stack)}};
  if (view.sampled()) AddSample(&json, "bytes", group.live_sample);
  return json;
}

Json LossJson(const ReportView& view, const ReportView::Loss& loss) {
  const LossRecord& record = *loss.record;
  return {{"kind", std::string(record.suppressed ? "suppressed" : KindName(record.kind))},
          {"lost_as", std::string(KindName(record.kind))},  // what it is without suppressions
          {"bytes", record.bytes},
          {"blocks", record.blocks},
          {"fingerprint", view.Fingerprint(record.stack, record.function)},
          {"strict_fingerprint", view.StrictFingerprint(record.stack, record.function)},
          {"first_time_s", Seconds(record.first_time_ns)},
          {"last_time_s", Seconds(record.last_time_ns)},
          {"allocator", std::string(FunctionName(record.function))},
          {"stack", StackJson(view, record.stack)},
          {"record", loss.number},
          {"indirect_bytes", record.indirect_bytes},
          {"indirect_blocks", record.indirect_blocks},
          {"heuristic_blocks", record.heuristic_blocks},
          {"is_new", record.is_new},
          {"of_runtime", record.of_runtime},
          {"bytes_before", record.before.bytes},
          {"blocks_before", record.before.blocks},
          {"indirect_bytes_before", record.indirect_before.bytes}};
}

Json LeakTotalsJson(const std::array<LeakAmount, kLeakKinds>& totals) {
  Json json = Json::object();
  for (const LeakKind kind : kScanKinds) {
    json[KindName(kind)] = LeakAmountJson(totals[static_cast<size_t>(kind)]);
  }
  return json;
}

Json LeakKindsJson() {
  Json json = Json::object();
  for (size_t i = 0; i < kLeakKinds; ++i) {
    const auto kind = static_cast<LeakKind>(i);
    json[KindName(kind)] = std::string(KindPhrase(kind));
  }
  return json;
}

Json LeakScanJson(const ReportView& view, const LeakScan& scan) {
  Json json = {{"number", scan.number},
               {"reason", std::string(leak::ReasonName(scan.reason))},
               {"when", std::string(leak::ReasonText(scan.reason, view.analysis().process))},
               {"show", std::string(leak::ShowName(scan.show))},
               {"label", scan.label},
               {"time_s", Seconds(scan.time_ns)}};
  const bool done = scan.state == LeakScan::State::kDone;
  json["state"] = std::string(leak::StateName(scan.state));
  json["failure"] = done ? Json() : Json(scan.failure);
  json["notes"] = scan.notes;
  for (std::string& note : NotesOnScan(view, scan)) json["notes"].push_back(std::move(note));
  json["frees_unseen"] = scan.frees_unseen;
  json["totals"] = done ? LeakTotalsJson(scan.totals) : Json();
  Json heuristics = Json::object();
  for (size_t i = 1; i <= leak::kHeuristics; ++i) {
    heuristics[leak::HeuristicName(static_cast<leak::Pointer>(i))] =
        LeakAmountJson(scan.by_heuristic[i]);
  }
  json["reachable_via_heuristic"] = done ? std::move(heuristics) : Json();
  json["records"] = scan.records.size();
  json["ignored"] = LeakAmountJson(scan.ignored);
  json["suppressed"] = LeakAmountJson(scan.suppressed);
  json["of_runtime"] = LeakAmountJson(scan.of_runtime);
  json["suppressed_records"] = scan.suppressed_records;
  json["suppressions"] = Json::array();
  for (const UsedSuppression& each : scan.suppressions) {
    json["suppressions"].push_back({{"name", each.name},
                                    {"file", each.file.empty() ? Json() : Json(each.file)},
                                    {"line", each.line},
                                    {"records", each.records},
                                    {"bytes", each.amount.bytes},
                                    {"blocks", each.amount.blocks}});
  }
  json["cost"] = done ? Json{{"threads_stood_s", Seconds(scan.cost.stood_ns)},
                             {"fork_s", Seconds(scan.cost.fork_ns)},
                             {"cpu_s", Seconds(scan.cost.cpu_ns)},
                             {"elapsed_s", Seconds(scan.cost.elapsed_ns)},
                             {"root_bytes", scan.cost.root_bytes},
                             {"heap_bytes", scan.cost.heap_bytes},
                             {"in_process", scan.cost.in_process}}
                      : Json();
  return json;
}

}  // namespace memtrace::report::render
