// The formats of `memtrace check`. docs/gate.md tells what each says, and who reads it.

#ifndef MEMTRACE_REPORT_GATE_FORMATS_H_
#define MEMTRACE_REPORT_GATE_FORMATS_H_

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "report/gate/judge.h"
#include "report/render/style.h"
#include "report/render/view.h"
#include "report/suppress/suppressions.h"

namespace memtrace::report::gate {

enum class GateFormat { kText, kJson, kJunit, kSarif, kGitlab };
absl::StatusOr<GateFormat> ParseGateFormat(absl::string_view name);

// The data that every format is made from.
struct GateReport {
  const GateResult* result = nullptr;
  const render::ReportView* names = nullptr;
  const suppress::Suppressions* suppressions = nullptr;
  std::string baseline;     // file; empty: none
  std::string baseline_changes;  // kText: what an update did to it; empty: there was none
  std::set<std::string> unfinished;  // programs that may not have come to all that they leak
  std::vector<std::string> source_roots;  // files below one are the project's, and named from there
  render::Style style;      // kText
  bool full = false;        // kText: whole stacks, every leak
  size_t top = 10;          // kText: leaks of each sort that are shown
};

std::string RenderGate(GateFormat format, const GateReport& report);
std::string RenderGateText(const GateReport& report);
std::string RenderGateJson(const GateReport& report);   // "memtrace-check/1"
std::string RenderGateJunit(const GateReport& report);
std::string RenderGateSarif(const GateReport& report);  // 2.1.0
std::string RenderGateGitlab(const GateReport& report);

// Functions that the formats share.

// A place in the project's sources that a leak is shown at.
struct SourcePlace {
  std::string path;  // below the source root; empty: there is none
  uint32_t line = 0;
};
// The place of the first frame whose file is below a root of the leak (source_root.h).
SourcePlace PlaceOf(const GateReport& report, const GateLeak& leak);
// Of wrong frees the same of the first that has such a frame: where it was freed, else where it
// was allocated. Other limits have no place.
SourcePlace PlaceOf(const GateReport& report, const GateExcess& excess);
// "app: 1 invalid free, at most 0: malloc at f() a.c:2, free at g() a.c:9".
std::string ExcessSentence(const GateReport& report, const GateExcess& excess);
// "operator new at f() a.cc:3, free at g() a.cc:9, 3 times" of each of its frees; places are named
// as those of leaks are.
std::vector<std::string> FreePlaces(const GateReport& report, const GateExcess& excess);
// How to learn where it was freed, as far as that is not known; else empty.
std::string HowToSeeFrees(const GateExcess& excess);
// "definitely lost: 256 bytes in 1 block, allocated by calloc in LeakOneTable", and ", on behalf of "
// `from`, if there is one.
std::string LeakSentence(const GateReport& report, const GateLeak& leak,
                         absl::string_view from = "");
// "FILE: why" for each process or file that gives no usable evidence; empty: all give some.
std::vector<std::string> MissingParts(const GateResult& result);
// The same, of processes of one program for one reason a line: "FILE and 9 more of PROGRAM: why".
std::vector<std::string> MissingPartsInBrief(const GateResult& result);
// MissingParts(), or, where there are none and no process was looked at, a line that says so.
std::vector<std::string> MissingEvidence(const GateResult& result);
// Whether the gate fails because evidence is missing.
bool MissingEvidenceFails(const GateResult& result);
// "no usable evidence: FILE: why (and 2 more)".
std::string MissingEvidenceSentence(const GateResult& result);
// Whether the leak is gated, and why: "new: not in the baseline". Empty: it is, and
// there is no baseline.
std::string VerdictSentence(const GateReport& report, const GateLeak& leak);
// A text by which the leak is known in all runs and after rebuilds.
std::string LeakIdentity(const GateLeak& leak);
// The places of the callers that leak, "load  two.c:7", the one with most bytes first. A
// fingerprint has no lines, so that a known leak may have a new place.
std::vector<std::pair<std::string, LeakAmount>> LeakPlaces(const GateReport& report,
                                                           const GateLeak& leak);
// A line for each frame worth reading; not escaped.
std::vector<std::string> StackLines(const GateReport& report, const GateLeak& leak);
// "failed: 2 leaks, 1 limit".
std::string VerdictLine(const GateReport& report);
std::string Processes(uint64_t count);             // "1 process", "2 processes"

}  // namespace memtrace::report::gate

#endif  // MEMTRACE_REPORT_GATE_FORMATS_H_
