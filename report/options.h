// What the user asked `memtrace report` for: the command line's text as values.
// Pure functions; errors name the option and what it takes.

#ifndef MEMTRACE_REPORT_OPTIONS_H_
#define MEMTRACE_REPORT_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "report/analyzer.h"
#include "report/instant.h"
#include "report/leak/leak_kinds.h"
#include "report/render/formats.h"
#include "report/render/style.h"
#include "report/render/text_report.h"
#include "symbolizer/symbolizer.h"

namespace memtrace::report::render {

// The options as typed. Empty: not given.
struct ReportFlags {
  std::string file, format = "text", output, from, to, thread, match, sort = "total";
  std::string executable;
  std::string color = "auto", sysroot;
  std::vector<std::string> files, tables, debug_dirs;
  std::optional<size_t> top;
  size_t width = 0;
  std::string scan = "last", leak_kinds, leak_resolution = "high", heuristics = "all";
  std::string leader = "address";
  bool full = false;
  bool debuginfod = false;
};

enum class ReportFormat {
  kText, kJson, kCsv, kMtrace, kValgrind, kValgrindXml, kMassif, kDhat,
};

struct ReportOptions {
  ReportFormat format = ReportFormat::kText;
  AnalyzeOptions analyze;
  symbolizer::Options symbolizer;
  ColorMode color = ColorMode::kAuto;
  SortColumn sort = SortColumn::kTotal;
  CsvTable csv_table = CsvTable::kSites;
  std::vector<TextSection> sections;
  uint32_t scan = 0;  // 0: the last
  std::optional<leak::KindSet> leak_kinds;
  size_t text_top = 10;
  size_t csv_top = kAllRows;
  size_t json_top = kJsonRows;
};

absl::StatusOr<ReportOptions> ParseReportFlags(const ReportFlags& flags);

// Candidates that `word` is a likely misspelling of, best first, at most two.
std::vector<std::string> Suggest(absl::string_view word,
                                 const std::vector<std::string>& candidates);

}  // namespace memtrace::report::render

#endif  // MEMTRACE_REPORT_OPTIONS_H_
