#include "report/valgrind/render_comparison.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "report/base/path.h"
#include "report/html/page.h"
#include "report/leak/leak_kinds.h"
#include "report/leak/leak_scans.h"
#include "report/render/json_parts.h"
#include "report/words/escape.h"
#include "report/words/shell_words.h"
#include "report/words/units.h"

namespace memtrace::report::valgrind {
namespace {

using words::Count;
using render::Dump;
using render::Ink;
using render::Json;
using render::Style;
using render::WriteArray;

constexpr size_t kFramesShown = 6;

std::string SideText(const LostOnASide& side) {
  std::vector<std::string> parts;
  for (size_t kind = 0; kind < kLeakKinds; ++kind) {
    if (side.kinds[kind].blocks == 0) continue;
    parts.push_back(absl::StrCat(KindName(static_cast<LeakKind>(kind)), " ",
                                 leak::AmountText(side.kinds[kind])));
  }
  return parts.empty() ? "nothing" : absl::StrJoin(parts, ", ");
}

// Text behind `before`, which ends in column `column`, and in further lines below it.
std::string Beside(absl::string_view before, size_t column, absl::string_view text,
                   const Style& style) {
  std::string out(before);
  absl::string_view between;
  const std::string indent = absl::StrCat("\n", std::string(column, ' '));
  for (const std::string& line : words::Wrapped(text, style.width - column)) {
    absl::StrAppend(&out, std::exchange(between, indent), line);
  }
  return absl::StrCat(out, "\n");
}

absl::string_view StageText(MatchStage stage) {
  switch (stage) {
    case MatchStage::kCalls: return "paired by calls: inlined functions differ";
    case MatchStage::kPlaces: return "paired by files and lines: names of functions differ";
    case MatchStage::kFunctions: return "paired by functions: lines differ";
    case MatchStage::kFiles: return "paired by files where the system's code has no names";
    case MatchStage::kProject: return "paired by the project's own functions alone";
    case MatchStage::kNone:
    case MatchStage::kLines:
    case MatchStage::kShape: break;
  }
  return "";
}

// What finds a frame again: without a name its offset in the file, and of Valgrind's frames the
// address as it is in the XML, with the file behind it.
std::string NameOfFrame(const render::LossFrame& frame) {
  if (!frame.function.empty()) return frame.function;
  if (!frame.offset.has_value()) return absl::StrFormat("0x%X", frame.ip);
  if (frame.object.empty()) return absl::StrFormat("0x%x", *frame.offset);
  return absl::StrFormat("%s+0x%x", FileNameOf(frame.object), *frame.offset);
}

std::string FrameLine(const render::LossFrame& frame, const Style& style, size_t width) {
  std::string name = NameOfFrame(frame);
  std::string place;
  if (!frame.file.empty()) {
    place = absl::StrCat("  ", frame.file);
    if (frame.line != 0) absl::StrAppend(&place, ":", frame.line);
  } else if (!frame.object.empty() && (!frame.function.empty() || !frame.offset.has_value())) {
    place = absl::StrCat("  ", FileNameOf(frame.object));
  }
  name = style.Name(name);
  place = style.Name(place);
  const size_t used = words::DisplayWidth(place);
  const size_t room = width > used + 16 ? width - used : 16;
  return absl::StrCat(words::KeepBeginning(name, room, style.ellipsis()),
                      style.Paint(Ink::kPlace, place));
}

Ink InkOf(const ComparedLeak& leak) {
  if (leak.verdict == Verdict::kAgree) return Ink::kGood;
  return leak.expected ? Ink::kDim : Ink::kBad;
}

std::string CommandText(const std::vector<std::string>& words) {
  return words.empty() ? "not known" : words::ShellCommand(words);
}

Json SideJson(const LostOnASide& side) {
  Json json = Json::object();
  for (size_t kind = 0; kind < kLeakKinds; ++kind) {
    if (side.kinds[kind].blocks == 0) continue;
    json[std::string(KindName(static_cast<LeakKind>(kind)))] = {
        {"bytes", side.kinds[kind].bytes}, {"blocks", side.kinds[kind].blocks}};
  }
  json["indirect_bytes"] = side.indirect_bytes;
  json["records"] = side.records;
  return json;
}

Json TotalsJson(const std::array<LeakAmount, kLeakKinds>& totals) {
  Json json = Json::object();
  for (size_t kind = 0; kind < kLeakKinds; ++kind) {
    json[std::string(KindName(static_cast<LeakKind>(kind)))] = {
        {"bytes", totals[kind].bytes}, {"blocks", totals[kind].blocks}};
  }
  return json;
}

Json LeakJson(const ComparedLeak& leak) {
  Json stack = Json::array();
  const bool is_valgrinds = leak.here.records == 0;
  for (const render::LossFrame& frame : leak.stack) {
    Json json = Json::object();
    if (!frame.function.empty()) json["function"] = frame.function;
    if (!frame.object.empty()) json["module"] = frame.object;
    if (frame.offset.has_value()) json["offset"] = *frame.offset;
    if (is_valgrinds && frame.ip != 0) json["address"] = frame.ip;
    if (!frame.file.empty()) json["file"] = frame.file;
    if (frame.line != 0) json["line"] = frame.line;
    stack.push_back(std::move(json));
  }
  return {{"verdict", std::string(VerdictName(leak.verdict))},
          {"expected", leak.expected},
          {"matched_by", std::string(StageName(leak.stage))},
          {"reasons", leak.reasons},
          {"here", SideJson(leak.here)},
          {"there", SideJson(leak.there)},
          {"stack", std::move(stack)}};
}

uint64_t PeakRss(const Analysis& analysis) { return analysis.faults.peak_rss_bytes; }

}  // namespace

std::string RenderComparisonText(const Analysis& analysis, const ValgrindRun& run,
                                 const Comparison& comparison, const ComparisonText& options) {
  const Style& style = options.style;
  std::string out = absl::StrCat(style.Paint(Ink::kHeading, "memtrace compare"), "  ",
                                 style.Name(analysis.file), "\n\n");
  const auto row = [&](absl::string_view label, absl::string_view here, absl::string_view there) {
    for (const auto& [name, text] :
         {std::pair(label, absl::StrCat("here   ", here)),
          std::pair(absl::string_view(), absl::StrCat("there  ", there))}) {
      // Text that does not fit goes on in the next line, below the text behind "here" or "there".
      bool first = true;
      for (const std::string& line : words::Wrapped(text, style.width - 13 - 7)) {
        absl::StrAppend(&out, "  ",
                        first ? style.Paint(Ink::kDim, absl::StrFormat("%-10s ", name))
                              : std::string(11 + 7, ' '),
                        style.Name(line), "\n");
        first = false;
      }
    }
  };
  row("Program", CommandText(analysis.process.command),
      absl::StrCat(CommandText(run.command), ", under ",
                   run.version.empty() ? "Valgrind" : run.version));
  std::string time = "not known";
  if (run.duration_ns.has_value()) {
    time = words::Duration(*run.duration_ns);
    if (analysis.process.duration_ns > 0) {
      const double times = static_cast<double>(*run.duration_ns) /
                           static_cast<double>(analysis.process.duration_ns);
      absl::StrAppend(&time, ", ",
                      times >= 100 ? words::Count(static_cast<uint64_t>(times + 0.5))
                                   : absl::StrFormat("%.3g", times),
                      " times as long");
    }
  }
  row("Run time", words::Duration(analysis.process.duration_ns), time);
  row("Memory",
      PeakRss(analysis) == 0 ? "not known"
                             : absl::StrCat("peak RSS ", words::HumanBytes(PeakRss(analysis))),
      "not known: it is not in the file");
  row("Heap",
      absl::StrCat(words::Plural(analysis.totals.allocations, "allocation"), ", ",
                   words::Plural(analysis.totals.frees, "free")),
      run.heap.has_value() ? absl::StrCat(words::Plural(run.heap->allocations, "allocation"), ", ",
                                          words::Plural(run.heap->frees, "free"))
                           : "not known: only protocol 6 has it");
  std::vector<std::string> here, there;
  for (size_t kind = 0; kind < kLeakKinds; ++kind) {
    const absl::string_view name = KindName(static_cast<LeakKind>(kind));
    const bool unfreed = static_cast<LeakKind>(kind) == LeakKind::kUnfreed;
    if (unfreed != comparison.scanned_here) {
      here.push_back(absl::StrCat(name, " ", leak::AmountText(comparison.here[kind])));
    }
    if (!unfreed)
      there.push_back(absl::StrCat(name, " ", leak::AmountText(comparison.there[kind])));
  }
  row("Lost", absl::StrJoin(here, "; "), absl::StrJoin(there, "; "));
  for (const std::string& note : comparison.notes) {
    const std::string name = style.Name(note);
    bool first = true;
    for (const std::string& line : words::Wrapped(name, style.width - 13)) {
      absl::StrAppend(&out, "  ", style.Paint(Ink::kDim, first ? "Note       " : "           "),
                      line, "\n");
      first = false;
    }
  }

  absl::StrAppend(&out, "\n", style.Paint(Ink::kHeading, "LEAKS"), "  ");
  if (comparison.leaks.empty()) {
    return absl::StrCat(out, "none on either side\n");
  }
  std::vector<std::string> counts;
  for (size_t verdict = 0; verdict < kVerdicts; ++verdict) {
    if (comparison.counts[verdict] == 0) continue;
    const auto which = static_cast<Verdict>(verdict);
    counts.push_back(absl::StrCat(Count(comparison.counts[verdict]), " ",
                                  which == Verdict::kAgree && comparison.counts[verdict] == 1
                                      ? "agrees"
                                      : VerdictName(which)));
  }
  if (comparison.expected > 0) {
    counts.push_back(absl::StrCat(Count(comparison.expected), " as expected"));
  }
  out += Beside("", strlen("LEAKS  "), absl::StrJoin(counts, ", "), style);
  for (const ComparedLeak& leak : comparison.leaks) {
    const bool agrees = leak.verdict == Verdict::kAgree;
    const std::string verdict =
        absl::StrCat(VerdictName(leak.verdict), leak.expected ? ", expected" : "");
    absl::StrAppend(&out, "\n  ", style.Paint(InkOf(leak), verdict));
    if (agrees) {
      // As wide as the verdict, which may be painted.
      out += Beside("  ", 2 + verdict.size() + 2, SideText(leak.here), style);
    } else {
      out += "\n";
      for (const auto& [label, side] :
           {std::pair("      here   ", &leak.here), {"      there  ", &leak.there}}) {
        out += Beside(label, strlen(label), SideText(*side), style);
      }
    }
    if (leak.stage != MatchStage::kLines && leak.stage != MatchStage::kNone) {
      absl::StrAppend(&out, "      ", style.Paint(Ink::kDim, StageText(leak.stage)), "\n");
    }
    for (const std::string& reason : leak.reasons) {
      for (const std::string& line : words::Wrapped(style.Name(reason), style.width - 6)) {
        absl::StrAppend(&out, "      ", style.Paint(Ink::kWarning, line), "\n");
      }
    }
    const size_t most = options.full ? leak.stack.size() : agrees ? 3 : kFramesShown;
    const size_t shown = std::min(most, leak.stack.size());
    for (size_t i = 0; i < shown; ++i) {
      absl::StrAppend(&out, "        ", FrameLine(leak.stack[i], style, style.width - 8), "\n");
    }
    if (shown < leak.stack.size()) {
      absl::StrAppend(
          &out, "        ",
          style.Paint(Ink::kDim,
                      absl::StrCat("(", words::Plural(leak.stack.size() - shown, "more frame"),
                                   ": --full)")),
          "\n");
    }
  }
  return out;
}

void RenderComparisonJson(const Analysis& analysis, const ValgrindRun& run,
                          const Comparison& comparison, words::Sink& out) {
  const auto seconds = [](uint64_t ns) { return static_cast<double>(ns) / 1e9; };
  Json here = {{"file", analysis.file},
               {"command", analysis.process.command},
               {"duration_s", seconds(analysis.process.duration_ns)},
               {"peak_rss_bytes", PeakRss(analysis) == 0 ? Json() : Json(PeakRss(analysis))},
               {"allocations", analysis.totals.allocations},
               {"frees", analysis.totals.frees},
               {"scanned", comparison.scanned_here},
               {"leaks", TotalsJson(comparison.here)}};
  Json suppressions = Json::array();
  for (const auto& [name, count] : run.suppressions) {
    suppressions.push_back({{"name", name}, {"count", count}});
  }
  Json there = {
      {"version", run.version},
      {"protocol", run.protocol},
      {"options", run.options},
      {"command", run.command},
      {"duration_s", run.duration_ns.has_value() ? Json(seconds(*run.duration_ns)) : Json()},
      {"peak_rss_bytes", nullptr},
      {"allocations", run.heap.has_value() ? Json(run.heap->allocations) : Json()},
      {"frees", run.heap.has_value() ? Json(run.heap->frees) : Json()},
      {"other_errors", run.other_errors},
      {"suppressions", std::move(suppressions)},
      {"damage", run.damage.empty() ? Json() : Json(run.damage)},
      {"leaks", TotalsJson(comparison.there)}};
  Json counts = Json::object();
  for (size_t verdict = 0; verdict < kVerdicts; ++verdict) {
    counts[std::string(VerdictName(static_cast<Verdict>(verdict)))] = comparison.counts[verdict];
  }
  counts["expected"] = comparison.expected;
  out.Write(absl::StrCat("{\n  \"schema\": \"memtrace-compare/1\",\n  \"here\": ", Dump(here),
                         ",\n  \"there\": ", Dump(there), ",\n  \"counts\": ", Dump(counts),
                         ",\n  \"notes\": ", Dump(Json(comparison.notes)), ",\n  \"leaks\": "));
  WriteArray(comparison.leaks, comparison.leaks.size(), LeakJson, out);
  out.Write("\n}\n");
}

void RenderComparisonHtml(const Analysis& analysis, const ValgrindRun& run,
                          const Comparison& comparison, words::Sink& out) {
  html::WritePage(
      "compare",
      [&](words::Sink& data) {
        data.Write(",\"compare\":");
        RenderComparisonJson(analysis, run, comparison, data);
      },
      out);
}

}  // namespace memtrace::report::valgrind
