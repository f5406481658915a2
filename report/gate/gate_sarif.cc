// SARIF 2.1.0 (OASIS), as GitHub's code scanning and Azure DevOps read it: a rule for each kind
// of leak, its place relative to the sources, the stack as a code flow as well, and a
// fingerprint that survives rebuilds. Only what fails is a result: a server makes an alert of each,
// whatever its level.

#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "report/base/path.h"
#include "report/gate/formats.h"
#include "report/gate/source_root.h"
#include "report/render/json_parts.h"

namespace memtrace::report::gate {
namespace {

using render::Json;

struct Rule {
  const char* id;
  const char* name;
  const char* text;
};
// The first are in the order of LeakKind, those behind them in that of GateExcess::What.
constexpr Rule kRules[] = {
    {"memtrace/definite", "DefiniteLeak", "No pointer leads to the block: it can never be freed."},
    {"memtrace/indirect", "IndirectLeak", "Only lost blocks point to the block."},
    {"memtrace/possible", "PossibleLeak", "Only pointers into the middle of the block are left."},
    {"memtrace/reachable", "ReachableAtExit", "The block was still pointed to, and never freed."},
    {"memtrace/unfreed", "NotFreed",
     "The block was never freed; nobody looked for pointers to it."},
    {"memtrace/limit-leaked", "LeakedBeyondLimit", "A process leaked more than --max-leaked."},
    {"memtrace/limit-peak", "PeakBeyondLimit", "A process used more than --max-peak at once."},
    {"memtrace/limit-allocations", "AllocationsBeyondLimit",
     "A process allocated more often than --max-allocations."},
    {"memtrace/limit-growth", "GrowthBeyondLimit", "The heap grew more than --max-growth."},
    {"memtrace/limit-invalid-frees", "InvalidFree",
     "What was freed was no live block: a double free, or an address inside of a block."},
    {"memtrace/limit-mismatched-frees", "MismatchedFree",
     "A block was ended by another kind of function than it came from: operator new and free, "
     "new[] and delete."},
    {"memtrace/no-evidence", "NoEvidence",
     "What a process lost is not known: it is no proof that nothing was."},
};
static_assert(std::size(kRules) == kLeakKinds + GateExcess::kWhatCount + 1, "a rule for each");

// A URI reference: what is neither plain nor a slash is %XX.
std::string AsUri(const std::string& path) {
  std::string uri;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (absl::ascii_isalnum(byte) || absl::StrContains("/._-~+@", absl::string_view(&c, 1))) {
      uri += c;
    } else {
      absl::StrAppend(&uri, absl::StrFormat("%%%02X", byte));
    }
  }
  return uri;
}

Json PhysicalLocation(const std::string& path, uint32_t line) {
  Json json = {{"artifactLocation", {{"uri", AsUri(path)}, {"uriBaseId", "%SRCROOT%"}}}};
  json["region"] = {{"startLine", line == 0 ? 1 : line}};
  return json;
}

// A frame, with a place only where its file is the project's.
Json FrameLocation(const std::vector<std::string>& roots, const Frame& frame) {
  Json json = Json::object();
  const std::string path = BelowRoots(roots, frame);
  if (!path.empty()) json["physicalLocation"] = PhysicalLocation(path, frame.line);
  json["logicalLocations"] = Json::array(
      {{{"fullyQualifiedName", render::FrameName(frame)}, {"kind", "function"}}});
  json["message"] = {{"text", render::FrameName(frame)}};
  return json;
}

Json ResultOf(const GateReport& report, const GateLeak& leak) {
  const size_t rule = static_cast<size_t>(leak.kind);
  const std::string verdict = VerdictSentence(report, leak);
  const SourcePlace place = PlaceOf(report, leak);
  Json json = {{"ruleId", kRules[rule].id},
               {"ruleIndex", rule},
               {"level", "error"},
               {"message",
                {{"text", absl::StrCat(LeakSentence(report, leak), verdict.empty() ? "" : " (",
                                       verdict, verdict.empty() ? "" : ")", ".")}}}};
  json["locations"] = Json::array(
      {{{"physicalLocation",
         PhysicalLocation(place.path.empty() ? leak.program : place.path, place.line)}}});
  const std::vector<std::string> roots = RootsOf(report, leak.working_directory);
  Json frames = Json::array(), steps = Json::array();
  for (const Frame* frame : report.names->Frames(leak.stack)) {
    if (frame->role == FrameRole::kMarker) continue;
    Json location = FrameLocation(roots, *frame);
    Json one = {{"location", location}};
    if (!frame->module.empty()) one["module"] = std::string(FileNameOf(frame->module));
    frames.push_back(std::move(one));
    // A code flow goes from the outside in, and only through what can be shown.
    if (location.contains("physicalLocation")) {
      steps.insert(steps.begin(), Json{{"location", std::move(location)}});
    }
  }
  if (!frames.empty()) {
    json["stacks"] = Json::array({{{"message", {{"text", "allocated here"}}}, {"frames", frames}}});
  }
  if (!steps.empty()) {
    json["codeFlows"] =
        Json::array({{{"threadFlows", Json::array({{{"locations", steps}}})}}});
  }
  json["partialFingerprints"] = {{"memtraceLeak/v1", LeakIdentity(leak)}};
  if (!report.baseline.empty()) {
    json["baselineState"] = leak.verdict == Verdict::kNew     ? "new"
                            : leak.verdict == Verdict::kGrown ? "updated"
                                                              : "unchanged";  // its day has passed
  }
  json["properties"] = {{"bytes", leak.total.bytes},
                        {"blocks", leak.total.blocks},
                        {"program", leak.program},
                        {"processes", leak.processes},
                        {"verdict", std::string(VerdictName(leak.verdict))}};
  return json;
}

}  // namespace

std::string RenderGateSarif(const GateReport& report) {
  const GateResult& result = *report.result;
  Json rules = Json::array();
  for (const Rule& rule : kRules) {
    rules.push_back({{"id", rule.id},
                     {"name", rule.name},
                     {"shortDescription", {{"text", rule.text}}},
                     {"properties", {{"tags", Json::array({"memory", "leak"})}}}});
  }
  Json results = Json::array();
  for (const GateLeak& leak : result.leaks) {
    if (IsGated(leak.verdict)) results.push_back(ResultOf(report, leak));
  }
  for (const GateExcess& excess : result.excesses) {
    const size_t rule = kLeakKinds + static_cast<size_t>(excess.what);
    const SourcePlace place = PlaceOf(report, excess);
    results.push_back(
        {{"ruleId", kRules[rule].id},
         {"ruleIndex", rule},
         {"level", "error"},
         {"message", {{"text", absl::StrCat(ExcessSentence(excess), ".")}}},
         {"locations",
          Json::array({{{"physicalLocation", PhysicalLocation(place.path.empty() ? excess.program
                                                                                 : place.path,
                                                              place.line)}}})},
         {"partialFingerprints",
          {{"memtraceLeak/v1",
            absl::StrCat(kRules[rule].id, "-", excess.phases, "-", excess.program)}}}});
  }
  // A server takes no result for leaks that are all mended.
  if (MissingEvidenceFails(result)) {
    const size_t rule = std::size(kRules) - 1;
    results.push_back(
        {{"ruleId", kRules[rule].id},
         {"ruleIndex", rule},
         {"level", "error"},
         {"message", {{"text", absl::StrCat(MissingEvidenceSentence(result), ".")}}},
         {"locations",
          Json::array({{{"physicalLocation", PhysicalLocation("memtrace check", 1)}}})},
         {"partialFingerprints", {{"memtraceLeak/v1", "no-evidence"}}}});
  }
  Json notifications = Json::array();
  for (const std::string& missing : MissingParts(result)) {
    notifications.push_back({{"level", "error"}, {"message", {{"text", missing}}}});
  }
  for (const std::string& note : result.notes) {
    notifications.push_back({{"level", "note"}, {"message", {{"text", note}}}});
  }
  const bool looked = result.outcome != GateResult::Outcome::kNoEvidence;
  Json run = {{"tool",
               {{"driver",
                 {{"name", "memtrace"}, {"semanticVersion", MEMTRACE_VERSION}, {"rules", rules}}}}},
              {"columnKind", "utf16CodeUnits"},
              {"invocations", Json::array({{{"executionSuccessful", looked},
                                            {"exitCode", result.exit_code()},
                                            {"toolExecutionNotifications", notifications}}})},
              {"results", results}};
  const Json json = {{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
                     {"version", "2.1.0"},
                     {"runs", Json::array({run})}};
  return render::Dump(json) + "\n";
}

}  // namespace memtrace::report::gate
