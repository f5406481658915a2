// "memtrace-check/1", GitLab's code quality, and what all JSON of the gate shares.

#include <utility>

#include "report/gate/alert_text.h"
#include "report/gate/formats.h"
#include "report/leak/leak_kinds.h"
#include "report/render/json_parts.h"
#include "report/render/text_report.h"

namespace memtrace::report::gate {
namespace {

using render::Json;

Json AmountJson(const LeakAmount& amount) {
  return {{"bytes", amount.bytes}, {"blocks", amount.blocks}};
}

Json LeakJson(const GateReport& report, const GateLeak& leak) {
  Json json = {{"program", leak.program},
               {"kind", std::string(KindName(leak.kind))},
               {"verdict", std::string(VerdictName(leak.verdict))},
               {"gated", IsGated(leak.verdict)},
               {"fingerprint", leak.fingerprint},
               {"allocator", render::AllocationName(*report.names, leak.stack, leak.function)},
               {"bytes", leak.total.bytes},
               {"blocks", leak.total.blocks},
               {"indirect_bytes", leak.indirect.bytes},
               {"indirect_blocks", leak.indirect.blocks},
               {"processes", leak.processes},
               {"most_bytes", leak.most.bytes},
               {"most_blocks", leak.most.blocks},
               {"stacks", leak.stacks}};
  if (leak.kind == LeakKind::kDefinite) {
    json["most_lost_bytes"] = leak.most_lost.bytes;
    json["most_lost_blocks"] = leak.most_lost.blocks;
  }
  if (leak.verdict == Verdict::kGrown || leak.verdict == Verdict::kWithin ||
      leak.verdict == Verdict::kExpired) {
    json["allowed"] = AmountJson(leak.allowed);
    if (leak.kind == LeakKind::kDefinite) json["allowed_lost"] = AmountJson(leak.allowed_lost);
    if (!leak.until.empty()) json["until"] = leak.until;
  }
  json["places"] = Json::array();
  for (const auto& [place, amount] : LeakPlaces(report, leak)) {
    json["places"].push_back(
        {{"place", place}, {"bytes", amount.bytes}, {"blocks", amount.blocks}});
  }
  json["stack"] = render::StackJson(*report.names, leak.stack);
  return json;
}

Json EntryJson(const BaselineEntry& entry) {
  return {{"line", entry.line},
          {"kind", std::string(KindName(entry.kind))},
          {"fingerprint", entry.fingerprint},
          {"program", entry.program},
          {"caller", entry.caller}};
}

Json ExcessJson(const GateReport& report, const GateExcess& excess) {
  Json json = {{"limit", std::string(ExcessName(excess.what))},
               {"most", excess.limit},
               {"value", excess.value},
               {"program", excess.program},
               {"file", excess.file},
               {"pid", excess.pid},
               {"processes", excess.processes}};
  if (!excess.phases.empty()) json["phases"] = excess.phases;
  if (!excess.frees.empty()) json["places"] = FreePlaces(report, excess);
  return json;
}

const char* SeverityOf(LeakKind kind) {
  switch (kind) {
    case LeakKind::kDefinite: return "major";
    case LeakKind::kIndirect:
    case LeakKind::kPossible:
    case LeakKind::kUnfreed: return "minor";
    case LeakKind::kReachable: return "info";
  }
  return "minor";
}

}  // namespace

std::string RenderGateJson(const GateReport& report) {
  const GateResult& result = *report.result;
  Json json = {{"schema", "memtrace-check/1"},
               {"outcome", std::string(OutcomeName(result.outcome))},
               {"exit_code", result.exit_code()},
               {"fail_on", Json::array()},
               {"processes", result.processes},
               {"usable_processes", result.usable},
               {"replaced_processes", result.replaced},
               {"programs", result.programs},
               {"other_processes", result.other_processes},
               {"other_programs", result.other_programs},
               {"gated_leaks", result.gated}};
  for (size_t i = 0; i < kLeakKinds; ++i) {
    const LeakKind kind = static_cast<LeakKind>(i);
    if (result.policy.fail_on.Has(kind)) json["fail_on"].push_back(std::string(KindName(kind)));
    json["totals"][std::string(KindName(kind))] =
        kind == LeakKind::kUnfreed || result.policy.needs_scan() ||
                (result.all_scanned && result.usable > 0)
            ? AmountJson(result.totals[i])
            : Json();
  }
  json["totals"]["suppressed"] = AmountJson(result.suppressed);
  json["frees_unseen"] = result.frees_unseen;
  json["missing_evidence"] = MissingParts(result);
  json["notes"] = result.notes;
  json["limits"] = Json::array();
  for (const GateExcess& excess : result.excesses) {
    json["limits"].push_back(ExcessJson(report, excess));
  }
  json["leaks"] = Json::array();
  for (const GateLeak& leak : result.leaks) json["leaks"].push_back(LeakJson(report, leak));
  json["baseline"] = report.baseline.empty() ? Json() : Json(report.baseline);
  json["fixed"] = Json::array();
  for (const BaselineEntry& entry : result.fixed) json["fixed"].push_back(EntryJson(entry));
  json["baseline_suppressed"] = Json::array();
  for (const auto& [entry, by] : result.suppressed_entries) {
    Json one = EntryJson(entry);
    one["suppression"] = {{"name", by->name},
                          {"file", by->file.empty() ? Json() : Json(by->file)},
                          {"line", by->line}};
    json["baseline_suppressed"].push_back(std::move(one));
  }
  json["baseline_not_run"] = Json::array();
  for (const BaselineEntry& entry : result.not_run) {
    json["baseline_not_run"].push_back(EntryJson(entry));
  }
  json["suppressions"] = Json::array();
  for (const suppress::Suppression& one : report.suppressions->all()) {
    if (one.file.empty() && one.records == 0) continue;
    json["suppressions"].push_back({{"name", one.name},
                                    {"file", one.file.empty() ? Json() : Json(one.file)},
                                    {"line", one.line},
                                    {"records", one.records},
                                    {"bytes", one.bytes},
                                    {"blocks", one.blocks}});
  }
  return render::Dump(json) + "\n";
}

std::string RenderGateGitlab(const GateReport& report) {
  Json json = Json::array();
  const AlertTexts texts(report);
  for (const GateLeak& leak : report.result->leaks) {
    if (!IsGated(leak.verdict)) continue;
    const SourcePlace place = PlaceOf(report, leak);
    json.push_back({{"description", texts.Of(leak)},
                    {"check_name", "memtrace/" + std::string(KindName(leak.kind))},
                    {"fingerprint", LeakIdentity(leak)},
                    {"severity", SeverityOf(leak.kind)},
                    {"location",
                     {{"path", place.path.empty() ? leak.program : place.path},
                      {"lines", {{"begin", place.line == 0 ? 1 : place.line}}}}}});
  }
  for (const GateExcess& excess : report.result->excesses) {
    const std::string name(ExcessName(excess.what));
    const SourcePlace place = PlaceOf(report, excess);
    json.push_back({{"description", ExcessSentence(report, excess)},
                    {"check_name", "memtrace/limit-" + name},
                    {"fingerprint", "limit-" + name + "-" + excess.phases + "-" + excess.program},
                    {"severity", "major"},
                    {"location",
                     {{"path", place.path.empty() ? excess.program : place.path},
                      {"lines", {{"begin", place.line == 0 ? 1 : place.line}}}}}});
  }
  // A server takes an empty file for leaks that are all mended.
  if (MissingEvidenceFails(*report.result)) {
    json.push_back({{"description", MissingEvidenceSentence(*report.result)},
                    {"check_name", "memtrace/no-evidence"},
                    {"fingerprint", "no-evidence"},
                    {"severity", "critical"},
                    {"location", {{"path", "memtrace check"}, {"lines", {{"begin", 1}}}}}});
  }
  return render::Dump(json) + "\n";
}

}  // namespace memtrace::report::gate
