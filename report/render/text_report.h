// The text report: sections that a person reads on a terminal, from the whole to
// the detail. Each section returns its lines, or nothing when it has nothing to
// say that the summary has not said already.
//
// Pure functions of a ReportView; every name in them is escaped.

#ifndef MEMTRACE_REPORT_RENDER_TEXT_REPORT_H_
#define MEMTRACE_REPORT_RENDER_TEXT_REPORT_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "report/render/numbers.h"
#include "report/render/stacked_timeline.h"
#include "report/render/style.h"
#include "report/render/view.h"
#include "report/words/units.h"

namespace memtrace::report::render {

enum class TextSection {
  kSummary, kLeaks, kGrowing, kSites, kGrowth, kFaults, kTemporary, kLifetimes, kReallocs, kSizes,
  kModules, kThreads, kMappings, kPressure, kInvalidFrees,
};

struct TextOptions {
  Style style;
  size_t top = 10;  // rows of a table
  SortColumn sort = SortColumn::kTotal;
  bool full = false;  // every row, every frame, nothing shortened
  std::vector<TextSection> sections;  // empty: all
  StackBy timeline_by = StackBy::kNone;
  // Of `memtrace leaks`, which asks for a scan: what that found alone. No --scan shows another there,
  // and what came after it was not asked for.
  bool scan_alone = false;
  // For several processes of an executable: how many of them have one of the sites of a group, and
  // how many processes there are.
  std::function<uint64_t(const SiteGroup&)> processes_of;
  uint64_t processes = 0;

  // How many rows are shown of a table that has `rows`.
  size_t Shown(size_t rows) const { return full ? rows : std::min(top, rows); }
};

std::string RenderText(const ReportView& view, const TextOptions& options);

// The sections, each in a file of its own or with its like.
std::string SummaryText(const ReportView& view, const TextOptions& options);
// Double frees, and frees within a block; where there are none, nothing unless it was asked for, as
// one of TextOptions::sections.
std::string InvalidFreesText(const ReportView& view, const TextOptions& options);
// "double_free", as JSON and SQLite name it.
absl::string_view KindName(InvalidFree::Kind kind);
// "2 double frees and 1 free of an address inside of a block"; empty where there are none.
std::string InvalidFreesPhrase(const InvalidFrees& frees);
std::string LeaksText(const ReportView& view, const TextOptions& options);
// The heading of that without a scan.
absl::string_view UnfreedTitle(const ReportView& view);
// Takes the place of LeaksText where a scan told what is reachable.
std::string LossRecordsText(const ReportView& view, const TextOptions& options);
// Why it does not have all records of the scan, and what shows them if anything does:
// "--show-leak-kinds=all shows every kind"; empty: it has them all.
std::string WhyLossesAreHidden(const ReportView& view, size_t shown);
std::string GrowingText(const ReportView& view, const TextOptions& options);
std::string SitesText(const ReportView& view, const TextOptions& options);
std::string GrowthText(const ReportView& view, const TextOptions& options);
// Phases and pools that the program told of, behind the growth.
std::string PhasesText(const ReportView& view, const TextOptions& options);
std::string FaultsText(const ReportView& view, const TextOptions& options);
// The pressure lane: what `memtrace run` saw from outside.
std::string PressureText(const ReportView& view, const TextOptions& options);
// WHOSE FAULTS, a section that comes after FaultsText().
std::string FaultSitesText(const ReportView& view, const TextOptions& options);
// The section about resident memory and whose it was, which comes after that.
std::string ResidentText(const ReportView& view, const TextOptions& options);
std::string TemporaryText(const ReportView& view, const TextOptions& options);
// How long blocks lived; reallocs, containers, and pairs that do not match; by module.
std::string LifetimesText(const ReportView& view, const TextOptions& options);
std::string ReallocsText(const ReportView& view, const TextOptions& options);
std::string ModulesText(const ReportView& view, const TextOptions& options);
// The timeline by TextOptions::timeline_by; empty where that is kNone.
std::string TimelineByText(const ReportView& view, const TextOptions& options);
// The blocks that other threads freed, a table below the threads.
std::string ExchangesText(const ReportView& view, const TextOptions& options);
std::string SizesText(const ReportView& view, const TextOptions& options);
std::string ThreadsText(const ReportView& view, const TextOptions& options);
std::string MappingsText(const ReportView& view, const TextOptions& options);

// Functions that the sections share.

// "HEADING  remark", with an empty line before it.
std::string Heading(const TextOptions& options, absl::string_view title,
                    absl::string_view remark);
// Words that stand alone, wrapped at the width behind two blanks.
std::string Sentence(const TextOptions& options, absl::string_view words, Ink ink = Ink::kPlain);
// "12 more callers: --top 22 or --full", when rows were left out.
std::string MoreLine(const TextOptions& options, size_t all, size_t shown,
                     absl::string_view noun, absl::string_view remark = "");
// A frame on one line of at most `width` columns: name, then place.
std::string FrameText(const ReportView& view, const Frame& frame, size_t width,
                      const TextOptions& options, Ink name_ink);
// The same without a view: places below `directory` are written as seen from there.
std::string FrameText(absl::string_view directory, const Frame& frame, size_t width,
                      const TextOptions& options, Ink name_ink);
// A stack, a line each frame, behind `indent` blanks.
std::string StackText(const ReportView& view, StackId stack, size_t indent,
                      const TextOptions& options);
// The caller of a stack in a table; "[no stack]" where there is none.
std::string CallerCell(const ReportView& view, StackId stack, size_t width,
                       const TextOptions& options);
// "function place" in at most `width` columns, or uncut with `options.full`: folders of the place
// go first, then parts of the function; what stays is the file's end with the line. And the
// caller's of a stack.
std::string NameWithin(absl::string_view function, absl::string_view place, size_t width,
                       const TextOptions& options);
std::string CallerWithin(const ReportView& view, StackId stack, size_t width,
                         const TextOptions& options);
// The same within a sentence, which is wrapped: no more than three lines of it.
std::string NameInSentence(absl::string_view function, absl::string_view place,
                           const TextOptions& options);
std::string CallerInSentence(const ReportView& view, StackId stack, const TextOptions& options);
// "malloc", "operator new[]": what the program called.
std::string AllocationName(const ReportView& view, StackId stack,
                           format::AllocFunction function);

// The instant the report begins and ends at, from the range and the process.
uint64_t BeginNs(const Analysis& analysis);
uint64_t EndNs(const Analysis& analysis);

}  // namespace memtrace::report::render

#endif  // MEMTRACE_REPORT_RENDER_TEXT_REPORT_H_
