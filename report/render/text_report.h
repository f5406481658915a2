// The text report: sections that a person reads on a terminal, from the whole to
// the detail. Each section returns its lines, or nothing when it has nothing to
// say that the summary has not said already.
//
// Pure functions of a ReportView; every name in them is escaped.

#ifndef MEMTRACE_REPORT_RENDER_TEXT_REPORT_H_
#define MEMTRACE_REPORT_RENDER_TEXT_REPORT_H_

#include <string>
#include <vector>

#include "report/render/style.h"
#include "report/render/units.h"
#include "report/render/view.h"

namespace memtrace::report::render {

enum class TextSection {
  kSummary, kLeaks, kSites, kGrowth, kFaults, kTemporary, kSizes, kThreads, kMappings,
};

struct TextOptions {
  Style style;
  size_t top = 10;  // rows of a table
  SortColumn sort = SortColumn::kTotal;
  bool full = false;  // every row, every frame, nothing shortened
  std::vector<TextSection> sections;  // empty: all
};

std::string RenderText(const ReportView& view, const TextOptions& options);

// The sections, each in a file of its own or with its like.
std::string SummaryText(const ReportView& view, const TextOptions& options);
std::string LeaksText(const ReportView& view, const TextOptions& options);
std::string SitesText(const ReportView& view, const TextOptions& options);
std::string GrowthText(const ReportView& view, const TextOptions& options);
std::string FaultsText(const ReportView& view, const TextOptions& options);
std::string TemporaryText(const ReportView& view, const TextOptions& options);
std::string SizesText(const ReportView& view, const TextOptions& options);
std::string ThreadsText(const ReportView& view, const TextOptions& options);
std::string MappingsText(const ReportView& view, const TextOptions& options);

// What the sections share.

// "HEADING  remark", with an empty line before it.
std::string Heading(const TextOptions& options, absl::string_view title,
                    absl::string_view remark);
// "12 more callers: --top 22 or --full", when rows were left out.
std::string MoreLine(const TextOptions& options, size_t all, size_t shown,
                     absl::string_view noun, absl::string_view remark = "");
// A frame on one line of at most `width` columns: name, then place.
std::string FrameText(const ReportView& view, const Frame& frame, size_t width,
                      const TextOptions& options, Ink name_ink);
// The caller of a stack in a table; "[no stack]" where there is none.
std::string CallerCell(const ReportView& view, StackId stack, size_t width,
                       const TextOptions& options);
// "malloc", "operator new[]": what the program called.
std::string AllocationName(const ReportView& view, StackId stack,
                           format::AllocFunction function);
// Numbers of a table: short where the terminal is narrow, so that names have room.
class Numbers {
 public:
  explicit Numbers(const TextOptions& options) : wide_(options.style.width >= kWide) {}
  std::string Bytes(uint64_t n) const { return wide_ ? HumanBytes(n) : ShortBytes(n); }
  std::string Events(uint64_t n) const { return wide_ ? Count(n) : ShortCount(n); }
  bool wide() const { return wide_; }
  // What to say about the short ones, for a heading.
  absl::string_view remark() const {
    return wide_ ? "" : "bytes in K = 1024, counts in k = 1000";
  }

 private:
  static constexpr size_t kWide = 110;
  const bool wide_;
};
// The instant the report begins and ends at, from the range and the process.
uint64_t BeginNs(const Analysis& analysis);
uint64_t EndNs(const Analysis& analysis);

}  // namespace memtrace::report::render

#endif  // MEMTRACE_REPORT_RENDER_TEXT_REPORT_H_
