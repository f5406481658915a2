// SARIF 2.1.0 (OASIS), as GitHub's code scanning and Azure DevOps read it: a rule for each kind
// of leak, its place relative to the sources, the stack as a code flow as well, and a
// fingerprint that survives rebuilds. Only what fails is a result: a server makes an alert of each,
// whatever its level.

#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "format/checksum.h"
#include "report/base/path.h"
#include "report/gate/alert_text.h"
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
  const char* more;  // what is behind the text in the full description
  const char* help;
};
constexpr char kWhereItIs[] =
    "The place is where the block was allocated, which is not where it was forgotten.";
constexpr char kFreeIt[] =
    "Free the block on each way out of whoever owns it; the stack says who allocated it. Until "
    "then --baseline or --suppressions accepts it.";
constexpr char kUseLess[] =
    "memtrace report on the process's trace, which --traces keeps, shows what allocates how much. "
    "The limit is an option of memtrace check.";
// The first are in the order of LeakKind, those behind them in that of GateExcess::What.
constexpr Rule kRules[] = {
    {"memtrace/definite", "DefiniteLeak", "No pointer leads to the block: it can never be freed.",
     kWhereItIs, kFreeIt},
    {"memtrace/indirect", "IndirectLeak", "Only lost blocks point to the block.", kWhereItIs,
     "Free it with the block that leads to it, which is a leak of its own."},
    {"memtrace/possible", "PossibleLeak", "Only pointers into the middle of the block are left.",
     kWhereItIs, kFreeIt},
    {"memtrace/reachable", "ReachableAtExit", "The block was still pointed to, and never freed.",
     kWhereItIs, kFreeIt},
    {"memtrace/unfreed", "NotFreed",
     "The block was never freed; nobody looked for pointers to it.", kWhereItIs, kFreeIt},
    {"memtrace/limit-leaked", "LeakedBeyondLimit", "A process leaked more than --max-leaked.",
     "All its leaks of the kinds that fail count together.", kUseLess},
    {"memtrace/limit-peak", "PeakBeyondLimit", "A process used more than --max-peak at once.",
     "What counts is the most that was allocated and not yet freed.", kUseLess},
    {"memtrace/limit-allocations", "AllocationsBeyondLimit",
     "A process allocated more often than --max-allocations.", "Each allocation counts once.",
     kUseLess},
    {"memtrace/limit-growth", "GrowthBeyondLimit", "The heap grew more than --max-growth.",
     "It is measured between two phases or marks that the program named.", kUseLess},
    {"memtrace/limit-invalid-frees", "InvalidFree",
     "What was freed was no live block: a double free, or an address inside of a block.",
     "The place is that of the free.",
     "Let one owner free each block, by the address that the allocation returned. "
     "--max-invalid-frees allows some."},
    {"memtrace/limit-mismatched-frees", "MismatchedFree",
     "A block was ended by another kind of function than it came from: operator new and free, "
     "new[] and delete.",
     "The place is that of the free.",
     "End a block by the function that belongs to the one it came from: malloc and free, new and "
     "delete, new[] and delete[]. --max-mismatched-frees allows some."},
    {"memtrace/no-evidence", "NoEvidence",
     "What a process lost is not known: it is no proof that nothing was.",
     "The message says of which process, and why.",
     "Let the process end by itself, with the library in it, and keep its trace; "
     "--missing-evidence report accepts that some prove nothing."},
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

// GitHub looks at none but primaryLocationLineHash, and has "HASH:COUNT" there. Where a file has
// none its upload makes one of the text of the line, the same for all leaks of that line.
Json Fingerprints(const std::string& identity) {
  return {{"memtraceLeak/v1", identity},
          {"primaryLocationLineHash",
           absl::StrFormat("%016x:1", format::Checksum(identity.data(), identity.size()))}};
}

Json ResultOf(const GateReport& report, const AlertTexts& texts, const GateLeak& leak) {
  const size_t rule = static_cast<size_t>(leak.kind);
  const SourcePlace place = PlaceOf(report, leak);
  Json json = {{"ruleId", kRules[rule].id},
               {"ruleIndex", rule},
               {"level", "error"},
               {"message", {{"text", absl::StrCat(texts.Of(leak), ".")}}}};
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
  json["partialFingerprints"] = Fingerprints(LeakIdentity(leak));
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
                     {"fullDescription", {{"text", absl::StrCat(rule.text, " ", rule.more)}}},
                     {"help", {{"text", rule.help}}},
                     {"properties", {{"tags", Json::array({"memory", "leak"})}}}});
  }
  Json results = Json::array();
  const AlertTexts texts(report);
  for (const GateLeak& leak : result.leaks) {
    if (IsGated(leak.verdict)) results.push_back(ResultOf(report, texts, leak));
  }
  for (const GateExcess& excess : result.excesses) {
    const size_t rule = kLeakKinds + static_cast<size_t>(excess.what);
    const SourcePlace place = PlaceOf(report, excess);
    results.push_back(
        {{"ruleId", kRules[rule].id},
         {"ruleIndex", rule},
         {"level", "error"},
         {"message", {{"text", absl::StrCat(ExcessSentence(report, excess), ".")}}},
         {"locations",
          Json::array({{{"physicalLocation", PhysicalLocation(place.path.empty() ? excess.program
                                                                                 : place.path,
                                                              place.line)}}})},
         {"partialFingerprints", Fingerprints(absl::StrCat(kRules[rule].id, "-", excess.phases, "-",
                                                           excess.program))}});
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
         {"partialFingerprints", Fingerprints("no-evidence")}});
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
