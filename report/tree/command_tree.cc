#include "report/tree/command_tree.h"

#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "report/base/interruption.h"
#include "report/cli/exit_status.h"
#include "report/cli/filter_options.h"
#include "report/cli/refusals.h"
#include "report/render/output.h"
#include "report/render/progress.h"
#include "report/tree/trace_set.h"
#include "report/tree/tree_analysis.h"
#include "report/tree/tree_view.h"
#include "report/words/escape.h"
#include "symbolizer/symbolizer_process.h"

namespace memtrace::report {
namespace {

using render::ReportFormat;

constexpr std::pair<TreeTable, absl::string_view> kTables[] = {
    {TreeTable::kSummary, "summary"},         {TreeTable::kProcesses, "processes"},
    {TreeTable::kExecutables, "executables"}, {TreeTable::kLeaks, "leaks"},
    {TreeTable::kSites, "sites"},
};

absl::StatusOr<std::vector<TreeTable>> ParseTables(const std::vector<std::string>& lists,
                                                   ReportFormat format) {
  std::vector<TreeTable> tables;
  std::vector<absl::string_view> names;
  for (const auto& [table, name] : kTables) {
    if (format == ReportFormat::kText || table != TreeTable::kSummary) names.push_back(name);
  }
  for (const std::string& list : lists) {
    for (const absl::string_view word : absl::StrSplit(list, ',', absl::SkipEmpty())) {
      bool known = false;
      for (const auto& [table, name] : kTables) {
        if (name != word) continue;
        known = format == ReportFormat::kText || table != TreeTable::kSummary;
        tables.push_back(table);
      }
      if (known) continue;
      return absl::InvalidArgumentError(absl::StrCat("--table: of several traces there is no \"",
                                                     word, "\"; there are ",
                                                     absl::StrJoin(names, ", ")));
    }
  }
  if (format == ReportFormat::kCsv && tables.size() > 1) {
    return absl::InvalidArgumentError("--table: --format csv writes one table at a time");
  }
  if (format == ReportFormat::kJson && !tables.empty()) {
    return absl::InvalidArgumentError("--table: --format json has no tables to choose from");
  }
  return tables;
}

// A table of whole processes that a choice of sites would not change. The text says what is of all.
absl::Status RefuseIdleFilters(const render::ReportFlags& flags, ReportFormat format,
                               TreeTable table) {
  if (format != ReportFormat::kCsv || table == TreeTable::kLeaks || table == TreeTable::kSites) {
    return absl::OkStatus();
  }
  const bool processes = table == TreeTable::kProcesses;
  const auto refuse = [processes](absl::string_view option) {
    return absl::InvalidArgumentError(absl::StrCat(
        option, ": the table ", processes ? "processes" : "executables",
        " is of whole processes; --table leaks and --table sites are of a choice"));
  };
  for (const GivenFilter& filter : GivenFilters(flags)) {
    if (filter.of_sites) return refuse(filter.option);
  }
  return processes && !flags.executable.empty() ? refuse("--executable") : absl::OkStatus();
}

// Times and threads are those of one process.
absl::Status RefuseWhatIsOfOneTrace(const render::ReportFlags& flags) {
  const auto refuse = [](absl::string_view option) {
    return absl::InvalidArgumentError(
        absl::StrCat(option, ": is for the report of one trace, not of several"));
  };
  for (const GivenFilter& filter : GivenFilters(flags)) {
    if (!filter.of_sites) return refuse(filter.option);
  }
  if (flags.series) return refuse("--series");
  if (flags.questions.any()) return refuse("--graph, --why, --who-points-at");
  if (!flags.suppressions.empty()) return refuse("--suppressions");
  if (!flags.leak_kinds.empty()) return refuse("--show-leak-kinds");
  if (flags.scan != "last") return refuse("--scan");
  if (flags.leak_resolution != "high") return refuse("--leak-resolution");
  if (flags.leader != "address") return refuse("--leader");
  if (flags.heuristics != "all") return refuse("--leak-check-heuristics");
  if (!flags.timeline_by.empty()) return refuse("--timeline-by");
  for (const absl::string_view format : {"mtrace", "valgrind", "valgrind-xml", "massif", "dhat",
                                         "folded", "pprof", "speedscope", "callgrind",
                                         "heaptrack", "sqlite", "html"}) {
    if (flags.format == format) return refuse(absl::StrCat("--format ", format));
  }
  return absl::OkStatus();
}

absl::Status Render(const render::ReportFlags& flags, const render::ReportOptions& options,
                    const std::vector<TreeTable>& tables, const TreeView& view,
                    render::Output& out) {
  switch (options.format) {
    case ReportFormat::kText: {
      TreeTextOptions text;
      text.text.style = render::StyleFor(out.fd(), options.color, flags.width);
      text.text.top = options.text_top;
      text.text.sort = options.sort;
      text.text.full = flags.full;
      text.tables = tables;
      if (flags.top.has_value()) text.sites = *flags.top;
      out.Write(RenderTreeText(view, text));
      break;
    }
    case ReportFormat::kJson:
      RenderTreeJson(view, options.json_top, options.sort, out);
      break;
    case ReportFormat::kCsv:
      RenderTreeCsv(view, tables.empty() ? TreeTable::kProcesses : tables.front(),
                    options.csv_top, options.sort, out);
      break;
    case ReportFormat::kMtrace:
    case ReportFormat::kValgrind:
    case ReportFormat::kValgrindXml:
    case ReportFormat::kMassif:
    case ReportFormat::kDhat:
    case ReportFormat::kFolded:
    case ReportFormat::kPprof:
    case ReportFormat::kSpeedscope:
    case ReportFormat::kCallgrind:
    case ReportFormat::kHeaptrack:
    case ReportFormat::kSqlite:
    case ReportFormat::kHtml:
      break;
  }
  return out.Commit();
}

// Ctrl-C ends the reading, not the report.
TreeAnalysis ReadUntilInterrupted(const TraceSet& set, const render::ReportOptions& options,
                                  symbolizer::SymbolizerProcess* symbolizer,
                                  render::Progress* progress) {
  const Interruption interruption;
  return AnalyzeTree(
      set, [&](double share) { progress->Report("reading", share); }, {},
      {.jobs = options.analyze.jobs,
       .find_names = ModuleNamesBy(symbolizer),
       .stop = [&] { return interruption.requested(); }});
}

}  // namespace

bool MeansATree(const render::ReportFlags& flags) {
  return flags.files.size() > 1 || (!flags.files.empty() && IsDirectory(flags.files.front()));
}

TraceSet FindThose(const std::vector<std::string>& paths,
                   std::vector<TreeAnalysis::Skipped>* not_there) {
  TraceSet all;
  for (const std::string& path : paths) {
    auto set = FindTraces({path});
    if (!set.ok()) {
      absl::string_view why = set.status().message();
      absl::ConsumePrefix(&why, absl::StrCat(path, ": "));
      not_there->push_back({path, std::string(why)});
      continue;
    }
    all.files.insert(all.files.end(), set->files.begin(), set->files.end());
    all.spools.insert(all.spools.end(), set->spools.begin(), set->spools.end());
    all.total_bytes += set->total_bytes;
  }
  return all;
}

absl::Status ReportTree(const render::ReportFlags& flags, int* exit_code) {
  absl::Status status = RefuseWhatIsOfOneTrace(flags);
  if (!status.ok()) return status;
  render::ReportFlags common = flags;
  common.tables.clear();
  const auto options = render::ParseReportFlags(common);
  if (!options.ok()) return options.status();
  const auto tables = ParseTables(flags.tables, options->format);
  if (!tables.ok()) return tables.status();
  status = RefuseIdleFilters(flags, options->format,
                             tables->empty() ? TreeTable::kProcesses : tables->front());
  if (!status.ok()) return status;
  std::vector<TreeAnalysis::Skipped> not_there;
  const TraceSet set = FindThose(flags.files, &not_there);
  for (const TraceSet::File& file : set.files) {
    status = RefuseToReplace(file.path, flags.output);
    if (!status.ok()) return status;
  }

  symbolizer::SymbolizerProcess symbolizer(options->symbolizer);
  symbolizer.StartForkServer();
  render::Progress progress;
  TreeAnalysis analysis = ReadUntilInterrupted(set, *options, &symbolizer, &progress);
  if (analysis.not_read != 0) {
    progress.Clear();
    std::fprintf(stderr, "memtrace: %s\n",
                 analysis.images.empty()
                     ? "the reading was interrupted before a trace was read to its end: there is "
                       "nothing to report"
                     : NotReadText(analysis).c_str());
    *exit_code = kExitInterrupted;
    if (analysis.images.empty()) return absl::OkStatus();
  }
  analysis.skipped.insert(analysis.skipped.begin(), not_there.begin(), not_there.end());
  analysis.name = flags.files.size() == 1
                      ? flags.files.front()
                      : absl::StrCat(flags.files.front(), " and ", flags.files.size() - 1, " more");
  if (analysis.images.empty()) {
    const TreeAnalysis::Skipped& first = analysis.skipped.front();
    return absl::InvalidArgumentError(absl::StrCat(
        "no trace could be read: ", first.file, ": ", first.why,
        analysis.skipped.size() > 1
            ? absl::StrCat("; and ", analysis.skipped.size() - 1, " more") : ""));
  }
  const auto view = TreeView::Create(
      analysis, SymbolizeBy(&symbolizer),
      [&](double share) { progress.Report("symbolizing", share); }, flags.executable,
      options->frames);
  if (!view.ok()) return view.status();
  progress.Clear();

  auto out = render::Output::Open(flags.output);
  if (!out.ok()) return out.status();
  status = Render(flags, *options, *tables, *view, *out);
  for (const TreeAnalysis::Skipped& one : analysis.skipped) {
    const std::string line = absl::StrCat("skipped ", one.file, ": ", one.why);
    std::fprintf(stderr, "memtrace: %s\n", words::EscapeControls(line).c_str());
  }
  if (!analysis.skipped.empty() && analysis.not_read == 0) *exit_code = kExitFailed;
  return status;
}

}  // namespace memtrace::report
