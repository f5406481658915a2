#include "report/gate/formats.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "report/gate/source_root.h"
#include "report/leak/leak_kinds.h"
#include "report/leak/leak_scans.h"
#include "report/names/frames_filter.h"
#include "report/render/free_errors.h"
#include "report/render/text_report.h"
#include "report/words/units.h"

namespace memtrace::report::gate {
namespace {

constexpr std::pair<GateFormat, absl::string_view> kFormats[] = {
    {GateFormat::kText, "text"},   {GateFormat::kJson, "json"},     {GateFormat::kJunit, "junit"},
    {GateFormat::kSarif, "sarif"}, {GateFormat::kGitlab, "gitlab"},
};

// "Load(int)  src/load.c:7": files below one of the roots are named from there.
std::string FrameLine(const Frame& frame, const std::vector<std::string>& roots,
                      absl::string_view gap = "  ") {
  const std::string below = BelowRoots(roots, frame);
  std::string place = render::PlaceText(frame);
  if (!below.empty()) {
    place = frame.line == 0 ? below : absl::StrCat(below, ":", frame.line);
  }
  return absl::StrCat(render::FrameName(frame), place.empty() ? "" : gap, place);
}

// "./src/load.c", which -ffile-prefix-map=DIR=. makes: repositories have no such name.
std::string WithoutDots(absl::string_view path) {
  while (absl::ConsumePrefix(&path, "./") || absl::ConsumePrefix(&path, "/")) {
  }
  return std::string(path);
}

// The first frame of the project whose file is below one of the roots.
SourcePlace PlaceOfStack(const GateReport& report, StackId stack,
                         const std::vector<std::string>& roots) {
  for (const Frame* frame : report.names->Frames(stack)) {
    if (frame->role != FrameRole::kProject || frame->file.empty()) continue;
    std::string path = BelowRoots(roots, *frame);
    // A relative name whose file is not here is taken to be of the project's root.
    if (path.empty() && frame->file.front() != '/') path = WithoutDots(frame->file);
    if (!path.empty()) return {std::move(path), frame->line};
  }
  return {};
}

// `more`: of how many others of the program it holds as well.
std::string MissingLine(const MissingPart& part, uint64_t more) {
  if (part.file.empty()) return part.why;
  const std::string others =
      more == 0 ? "" : absl::StrCat(" and ", words::Count(more), " more of ", part.program);
  return absl::StrCat(part.file, others, ": ", part.why);
}

}  // namespace

absl::StatusOr<GateFormat> ParseGateFormat(absl::string_view name) {
  std::vector<absl::string_view> names;
  for (const auto& [format, known] : kFormats) {
    if (known == name) return format;
    names.push_back(known);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("\"", name, "\" is no format; there are ", absl::StrJoin(names, ", ")));
}

std::string RenderGate(GateFormat format, const GateReport& report) {
  switch (format) {
    case GateFormat::kText: return RenderGateText(report);
    case GateFormat::kJson: return RenderGateJson(report);
    case GateFormat::kJunit: return RenderGateJunit(report);
    case GateFormat::kSarif: return RenderGateSarif(report);
    case GateFormat::kGitlab: return RenderGateGitlab(report);
  }
  return "";
}

SourcePlace PlaceOf(const GateReport& report, const GateLeak& leak) {
  return PlaceOfStack(report, leak.stack, RootsOf(report, leak.working_directory));
}

SourcePlace PlaceOf(const GateReport& report, const GateExcess& excess) {
  const std::vector<std::string> roots = RootsOf(report, excess.working_directory);
  for (const StackId stack : excess.stacks) {
    if (SourcePlace place = PlaceOfStack(report, stack, roots); !place.path.empty()) return place;
  }
  return {};
}

std::string ExcessSentence(const GateReport& report, const GateExcess& excess) {
  return absl::StrCat(excess.program, ": ", ExcessText(excess), excess.frees.empty() ? "" : ": ",
                      absl::StrJoin(FreePlaces(report, excess), "; "));
}

std::vector<std::string> FreePlaces(const GateReport& report, const GateExcess& excess) {
  const std::vector<std::string> roots = RootsOf(report, excess.working_directory);
  const auto at = [&](const std::string& what, StackId stack) {
    if (!stack) return what;
    const Frame* const caller = report.names->Caller(stack);
    return absl::StrCat(what, " at ",
                        caller != nullptr ? FrameLine(*caller, roots, " ") : "[no stack]");
  };
  std::vector<std::string> places;
  for (const WrongFree& one : excess.frees) {
    places.push_back(absl::StrCat(
        at(one.allocator, one.from), ", ", at(one.called, one.to),
        one.times > 1 ? absl::StrCat(", ", words::Count(one.times), " times") : ""));
  }
  return places;
}

std::string HowToSeeFrees(const GateExcess& excess) {
  const bool all_known =
      std::ranges::all_of(excess.frees, [](const WrongFree& one) { return bool{one.to}; });
  return all_known ? "" : std::string(render::kFreeStacksHint);
}

std::string Processes(uint64_t count) {
  return count == 1 ? "1 process" : absl::StrCat(words::Count(count), " processes");
}

std::string LeakSentence(const GateReport& report, const GateLeak& leak, absl::string_view from) {
  const Frame* caller = report.names->Caller(leak.stack);
  std::string text =
      absl::StrCat(KindPhrase(leak.kind), ": ", leak::AmountText(leak.total), ", allocated by ",
                   render::AllocationName(*report.names, leak.stack, leak.function),
                   caller == nullptr ? "" : absl::StrCat(" in ", render::FrameName(*caller)),
                   from.empty() ? "" : absl::StrCat(", on behalf of ", from));
  if (leak.indirect.blocks > 0) {
    absl::StrAppend(&text, "; with it ", leak::AmountText(leak.indirect), " indirectly");
  }
  return text;
}

std::vector<std::string> MissingParts(const GateResult& result) {
  std::vector<std::string> lines;
  for (const MissingPart& part : result.missing_evidence) lines.push_back(MissingLine(part, 0));
  return lines;
}

std::vector<std::string> MissingPartsInBrief(const GateResult& result) {
  struct Alike {
    const MissingPart* first;
    uint64_t more = 0;
  };
  std::vector<Alike> all;
  std::map<std::pair<absl::string_view, absl::string_view>, size_t> known;  // by program and reason
  for (const MissingPart& part : result.missing_evidence) {
    if (!part.program.empty()) {
      const auto [at, is_new] = known.try_emplace({part.program, part.why}, all.size());
      if (!is_new) {
        ++all[at->second].more;
        continue;
      }
    }
    all.push_back({&part});
  }
  std::vector<std::string> lines;
  for (const Alike& alike : all) lines.push_back(MissingLine(*alike.first, alike.more));
  return lines;
}

std::vector<std::string> MissingEvidence(const GateResult& result) {
  if (result.missing_evidence.empty() && result.usable == 0) return {"no process was looked at"};
  return MissingParts(result);
}

bool MissingEvidenceFails(const GateResult& result) {
  return result.usable == 0 ||
         (!result.missing_evidence.empty() && result.policy.missing_evidence_fails);
}

std::string MissingEvidenceSentence(const GateResult& result) {
  const std::vector<std::string> missing = MissingEvidence(result);
  return absl::StrCat(
      "no usable evidence: ", missing.front(),
      missing.size() == 1 ? "" : absl::StrCat(" (and ", missing.size() - 1, " more)"));
}

std::string VerdictSentence(const GateReport& report, const GateLeak& leak) {
  switch (leak.verdict) {
    case Verdict::kReported: return "not gated";
    case Verdict::kBudget: return "counted by --max-leaked";
    case Verdict::kNew: return report.baseline.empty() ? "" : "new: not in the baseline";
    case Verdict::kGrown:
      if (leak.grown_in_all) {
        return absl::StrCat("grown: in all ", leak::AmountText(leak.most_lost),
                            " in one process, the baseline allows ",
                            leak::AmountText(leak.allowed_lost));
      }
      return absl::StrCat("grown: ", leak::AmountText(leak.most),
                          " in one process, the baseline allows ", leak::AmountText(leak.allowed));
    case Verdict::kExpired:
      return absl::StrCat("expired: the baseline accepted it until ", leak.until);
    case Verdict::kWithin:
      return absl::StrCat("within the baseline, which allows ", leak::AmountText(leak.allowed));
  }
  return "";
}

std::vector<std::pair<std::string, LeakAmount>> LeakPlaces(const GateReport& report,
                                                           const GateLeak& leak) {
  std::vector<std::pair<std::string, LeakAmount>> places;
  std::map<std::string, size_t> known;
  const std::vector<std::string> roots = RootsOf(report, leak.working_directory);
  for (const auto& [stack, amount] : leak.by_stack) {
    const Frame* const caller = report.names->Caller(stack);
    const std::string place = caller != nullptr ? FrameLine(*caller, roots) : "[no stack]";
    const auto [at, is_new] = known.try_emplace(place, places.size());
    if (is_new) places.emplace_back(place, LeakAmount{});
    places[at->second].second.bytes += amount.bytes;
    places[at->second].second.blocks += amount.blocks;
  }
  std::stable_sort(places.begin(), places.end(),
                   [](const auto& a, const auto& b) { return a.second.bytes > b.second.bytes; });
  return places;
}

std::string LeakIdentity(const GateLeak& leak) {
  return absl::StrCat(leak.fingerprint, "-", KindName(leak.kind), "-", leak.program);
}

std::vector<std::string> StackLines(const GateReport& report, const GateLeak& leak) {
  const std::vector<const Frame*> frames = report.names->Frames(leak.stack);
  if (frames.empty()) return {"[no stack]"};
  const names::Cut cut = names::CutStack(frames);
  std::vector<std::string> lines;
  const size_t begin = report.full ? 0 : cut.via;
  const size_t end = report.full ? frames.size() : cut.end;
  const std::vector<std::string> roots = RootsOf(report, leak.working_directory);
  for (size_t i = begin; i < end; ++i) {
    lines.push_back(FrameLine(*frames[i], roots));
  }
  return lines;
}

std::string VerdictLine(const GateReport& report) {
  const GateResult& result = *report.result;
  std::vector<std::string> parts;
  if (result.gated > 0) {
    const GateLeak& first = result.leaks.front();
    parts.push_back(absl::StrCat(words::Plural(result.gated, "leak"),
                                 report.baseline.empty() || first.verdict == Verdict::kReported
                                     ? ""
                                     : " that the baseline does not allow"));
  }
  if (!result.excesses.empty()) {
    parts.push_back(absl::StrCat(words::Plural(result.excesses.size(), "limit"), " exceeded"));
  }
  if (!result.missing_evidence.empty()) {
    parts.push_back(absl::StrCat("no usable evidence in ",
                                 words::Plural(result.missing_evidence.size(), "case")));
  } else if (result.outcome == GateResult::Outcome::kNoEvidence) {
    parts.push_back("no process was looked at");
  }
  std::string text(OutcomeName(result.outcome));
  if (!parts.empty()) absl::StrAppend(&text, ": ", absl::StrJoin(parts, ", "));
  return text;
}

}  // namespace memtrace::report::gate
