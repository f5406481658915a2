// What the user asked `memtrace report` for: the command line's text as values.
// Pure functions; errors name the option and what it takes.

#ifndef MEMTRACE_REPORT_CLI_OPTIONS_H_
#define MEMTRACE_REPORT_CLI_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "report/analysis/analyzer.h"
#include "report/leak/leak_kinds.h"
#include "report/render/formats.h"
#include "report/render/graph_questions.h"
#include "report/render/site_measure.h"
#include "report/render/style.h"
#include "report/render/text_report.h"
#include "symbolizer/symbolizer.h"

namespace memtrace::report::render {

// What of a trace is looked at, as typed (filter_options.h). Empty: not given.
struct FilterFlags {
  std::string from, to, at;                           // times
  std::string match, function, source_file, module;   // sites, by their frames
  std::string thread, size, lifetime, age;            // blocks
};

// The options as typed. Empty: not given.
struct ReportFlags : FilterFlags {
  std::string file, format = "text", output, sort = "total";
  std::string executable;
  std::string color = "auto", sysroot, symbol_cache, index;
  std::string timeline_by, measure;
  std::vector<std::string> files, tables, debug_dirs;
  std::optional<size_t> top;
  size_t width = 0;
  size_t jobs = 0;  // 0: as many as there are processors
  std::string scan = "last", leak_kinds, leak_resolution = "high", heuristics = "all";
  std::string leader = "address";
  GraphQuestions questions;
  std::vector<std::string> suppressions;  // files
  bool suppress_children = false;
  bool full = false;
  bool debuginfod = false;
  bool series = false;
};

enum class ReportFormat {
  kText, kJson, kCsv, kMtrace, kValgrind, kValgrindXml, kMassif, kDhat, kFolded, kPprof,
  kSpeedscope, kCallgrind, kHeaptrack, kSqlite, kHtml,
};

struct ReportOptions {
  ReportFormat format = ReportFormat::kText;
  AnalyzeOptions analyze;
  symbolizer::Options symbolizer;
  std::string summary_dir;  // of index/summary_store.h; empty: nothing is kept
  bool index_beside = false;  // of index/indexed_analysis.h: beside the trace
  bool series = false;        // render/site_series_table.h, and nothing else
  ColorMode color = ColorMode::kAuto;
  SortColumn sort = SortColumn::kTotal;
  SiteMeasure measure = SiteMeasure::kLive;
  CsvTable csv_table = CsvTable::kSites;
  std::vector<TextSection> sections;
  FrameFilter frames;
  StackBy timeline_by = StackBy::kNone;
  uint32_t scan = 0;  // 0: the last
  std::optional<LeakKindSet> leak_kinds;
  size_t text_top = 10;
  size_t csv_top = kAllRows;
  size_t json_top = kJsonRows;
  size_t html_top = kHtmlRows;
};

absl::StatusOr<ReportOptions> ParseReportFlags(const ReportFlags& flags);

// Candidates that `word` is a likely misspelling of, best first, at most two.
std::vector<std::string> Suggest(absl::string_view word,
                                 const std::vector<std::string>& candidates);

}  // namespace memtrace::report::render

#endif  // MEMTRACE_REPORT_CLI_OPTIONS_H_
