// The first screen: what ran, how it ended, how much, and what the trace lacks.

#include "absl/strings/str_cat.h"
#include "report/analysis/coverage.h"
#include "report/render/lines.h"
#include "report/render/numbers.h"
#include "report/render/summary_facts.h"
#include "report/render/text_report.h"
#include "report/render/verdict.h"
#include "report/words/escape.h"
#include "report/words/units.h"

namespace memtrace::report::render {
namespace {

// Of a long command (the files of a whole directory, a class path).
constexpr size_t kMostCommandLines = 4;

void AddCoverage(const ReportView& view, const TextOptions& options, Lines* lines) {
  const Analysis& analysis = view.analysis();
  const Numbers numbers(view, options.style);
  const Coverage& coverage = analysis.coverage;
  std::vector<std::string> bad, remarks;
  if (coverage.interrupted) {
    bad.push_back(absl::StrCat(InterruptionText(analysis),
                               InterruptedBehindTheEvents(analysis)
                                   ? "" : "; what was live then may have been freed later"));
  }
  if (coverage.dropped_events > 0) {
    bad.push_back(absl::StrCat(words::Plural(coverage.dropped_events, "event"),
                               analysis.process.imported()
                                   ? " lost, as the log says"
                                   : " lost: the library could not write them"));
  }
  for (const std::string& text :
       MissingTexts(/*dropped_events=*/0, coverage.truncated, coverage.damage)) {
    bad.push_back(words::EscapeControls(text));
  }
  if (coverage.unordered_events > 0) {
    bad.push_back(absl::StrCat(words::Plural(coverage.unordered_events, "event"),
                               " could not be ordered across threads"));
  }
  const InvalidFrees& invalid = analysis.invalid_frees;
  if (invalid.told > 0) {
    bad.push_back(absl::StrCat(InvalidFreesPhrase(invalid), ": see INVALID FREES"));
  }
  if (coverage.unknown_frees > invalid.told) {
    const bool known = invalid.looked_for && invalid.not_looked_for == 0;
    bad.push_back(absl::StrCat(words::Plural(coverage.unknown_frees - invalid.told, "free"),
                               " of blocks whose allocation the trace does not have",
                               known ? "" : ", or that were freed before"));
  }
  if (coverage.cross_check_differences > 0) {
    bad.push_back(absl::StrCat(words::Plural(coverage.cross_check_differences, "stack"),
                               " differed from libunwind's, of ",
                               words::Count(coverage.cross_checked)));
  }
  if (coverage.marked_stacks > 0) {
    bad.push_back(absl::StrCat(numbers.Plural(coverage.marked_stacks, "allocation"), " (",
                               words::Percent(coverage.marked_stacks, analysis.totals.allocations),
                               ") with a stack that is not complete: the last frame says why"));
  }
  if (coverage.recovered_events > 0) {
    remarks.push_back(absl::StrCat(words::Plural(coverage.recovered_events, "event"),
                                   " recovered from the rings: the process did not write its end"));
  }
  if (std::string stops = StopsNote(coverage).text; !stops.empty()) {
    remarks.push_back(std::move(stops));
  }
  // Lost page faults are no events of the heap, so its coverage does not count them.
  if (const uint64_t lost = analysis.fault_details.lost; lost > 0) {
    remarks.push_back(absl::StrCat(words::Plural(lost, "page fault"), lost == 1 ? " was" : " were",
                                   " lost: whose, nobody knows"));
  }
  if (coverage.inherited_frees > 0) {
    remarks.push_back(
        absl::StrCat(words::Plural(coverage.inherited_frees, "free"),
                     " of blocks that the parent process allocated",
                     invalid.not_looked_for == 0
                         ? ""
                         : absl::StrCat("; whether a block was freed twice was not looked for in ",
                                        words::Count(invalid.not_looked_for), " of these")));
  }
  if (coverage.cross_checked > 0 && coverage.cross_check_differences == 0) {
    remarks.push_back(absl::StrCat(words::Plural(coverage.cross_checked, "stack"),
                                   " cross-checked with libunwind: no difference"));
  }
  if (analysis.process.stack_mode == format::StackMode::kOff) {
    remarks.emplace_back("stacks were off: a call site is the frame that called, and no more");
  }
  // The analyzer's notes tell of lost blocks, of frees it did not see, of an early stop.
  for (const CoverageNote& note : coverage.notes) {
    remarks.push_back(words::EscapeControls(note.text));
  }
  for (const std::string& note : view.symbols().notes()) remarks.push_back(note);  // escaped there

  const bool nothing_lost = !coverage.events_missing && !coverage.truncated;
  lines->Add("Coverage", absl::StrCat(words::Plural(coverage.events, "event"),
                                      numbers.estimated() ? " of sampled blocks" : "",
                                      nothing_lost ? ", none lost" : ""));
  for (const std::string& line : bad) lines->Add("", absl::StrCat("! ", line), Ink::kWarning);
  for (const std::string& line : remarks) lines->Add("", line);
}

void AddVerdicts(const ReportView& view, const TextOptions& options, Lines* lines) {
  for (const std::string& verdict : Verdicts(view, options)) {
    lines->Add("Verdict", verdict, Ink::kBad);
  }
}

void AddFacts(const ReportView& view, const TextOptions& options, Lines* lines) {
  absl::string_view last;
  for (const Fact& fact : SummaryFacts(view)) {
    const bool goes_on = fact.label == last && fact.label != "Only";
    lines->Add(goes_on ? "" : fact.label, options.style.Name(fact.text), fact.ink,
               fact.label == "Program" ? kMostCommandLines : SIZE_MAX);
    last = fact.label;
  }
}

}  // namespace

std::string SummaryText(const ReportView& view, const TextOptions& options) {
  Lines lines(options);
  AddVerdicts(view, options, &lines);
  AddFacts(view, options, &lines);
  AddCoverage(view, options, &lines);
  return absl::StrCat(options.style.Paint(Ink::kHeading, "memtrace report"), "  ",
                      options.style.Name(view.analysis().file), "\n\n", lines.Take());
}

}  // namespace memtrace::report::render
