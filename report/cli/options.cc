#include "report/cli/options.h"

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <system_error>
#include <tuple>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/private_file.h"
#include "report/analysis/block_ranges.h"
#include "report/analysis/instant.h"
#include "report/leak/leak_kinds.h"
#include "symbolizer/symbol_cache.h"

namespace memtrace::report::render {
namespace {

constexpr size_t kMostJobs = 256;

constexpr std::pair<ReportFormat, absl::string_view> kFormats[] = {
    {ReportFormat::kText, "text"},
    {ReportFormat::kJson, "json"},
    {ReportFormat::kCsv, "csv"},
    {ReportFormat::kMtrace, "mtrace"},
    {ReportFormat::kValgrind, "valgrind"},
    {ReportFormat::kValgrindXml, "valgrind-xml"},
    {ReportFormat::kMassif, "massif"},
    {ReportFormat::kDhat, "dhat"},
    {ReportFormat::kFolded, "folded"},
    {ReportFormat::kPprof, "pprof"},
    {ReportFormat::kSpeedscope, "speedscope"},
    {ReportFormat::kCallgrind, "callgrind"},
    {ReportFormat::kHeaptrack, "heaptrack"},
    {ReportFormat::kSqlite, "sqlite"},
    {ReportFormat::kHtml, "html"},
};
constexpr std::pair<ColorMode, absl::string_view> kColors[] = {
    {ColorMode::kAuto, "auto"},
    {ColorMode::kAlways, "always"},
    {ColorMode::kNever, "never"},
};
constexpr std::pair<TextSection, absl::string_view> kSections[] = {
    {TextSection::kSummary, "summary"},     {TextSection::kLeaks, "leaks"},
    {TextSection::kGrowing, "growing"},
    {TextSection::kSites, "sites"},         {TextSection::kGrowth, "growth"},
    {TextSection::kFaults, "faults"},       {TextSection::kTemporary, "temporary"},
    {TextSection::kLifetimes, "lifetimes"}, {TextSection::kReallocs, "reallocs"},
    {TextSection::kSizes, "sizes"},         {TextSection::kModules, "modules"},
    {TextSection::kThreads, "threads"},     {TextSection::kMappings, "mappings"},
    {TextSection::kPressure, "pressure"},   {TextSection::kInvalidFrees, "invalid-frees"},
};

template <typename T, size_t N>
absl::StatusOr<T> OneOf(absl::string_view option, absl::string_view text,
                        const std::pair<T, absl::string_view> (&known)[N]) {
  std::vector<absl::string_view> names;
  for (const auto& [value, name] : known) {
    if (name == text) return value;
    names.push_back(name);
  }
  return absl::InvalidArgumentError(absl::StrCat(option, ": \"", text, "\" is none of ",
                                                 absl::StrJoin(names, ", ")));
}

absl::string_view FormatName(ReportFormat format) {
  for (const auto& [value, name] : kFormats) {
    if (value == format) return name;
  }
  return "";
}

// "--sort: is for --format text, json and csv, not html": an error unless `format` is one of these.
// `option` has the verb with it. `otherwise`: what the other formats do, instead of ", not html".
absl::Status RequireFormat(absl::string_view option, std::initializer_list<ReportFormat> these,
                           ReportFormat format, absl::string_view otherwise = "") {
  if (std::find(these.begin(), these.end(), format) != these.end()) return absl::OkStatus();
  std::string names;
  for (auto one = these.begin(); one != these.end(); ++one) {
    const absl::string_view before = one == these.begin()     ? ""
                                     : one + 1 == these.end() ? " and "
                                                              : ", ";
    absl::StrAppend(&names, before, FormatName(*one));
  }
  std::string text = absl::StrCat(option, " for --format ", names);
  if (otherwise.empty()) {
    absl::StrAppend(&text, ", not ", FormatName(format));
  } else {
    absl::StrAppend(&text, otherwise);
  }
  return absl::InvalidArgumentError(text);
}

// --from, --to, --at: of the run, which part.
absl::Status ParseRange(const ReportFlags& flags, AnalyzeOptions* analyze) {
  if (!flags.at.empty() && !(flags.from.empty() && flags.to.empty())) {
    return absl::InvalidArgumentError("--at is one instant; --from and --to are a range");
  }
  if (!flags.at.empty()) {
    const auto at = ParseInstant("--at", flags.at);
    if (!at.ok()) return at.status();
  }
  const auto range = ParseInstants(flags.from, flags.at.empty() ? flags.to : flags.at);
  if (!range.ok()) return range.status();
  const auto& [from, to] = *range;
  // Nothing happened before the start, however it is written.
  const bool ends_at_start = to.name.empty() && to.share.value_or(static_cast<double>(to.ns)) == 0;
  if (ends_at_start || (from == to && from.name.empty())) {
    return absl::InvalidArgumentError(flags.from.empty() ? "--to and --at must be after the start"
                                                         : "--from must be before --to");
  }
  analyze->range = {from.ns, to.ns};
  analyze->from_share = from.share;
  analyze->from_name = from.name;
  analyze->to_name = to.name;
  analyze->to_share = to.share;
  return absl::OkStatus();
}

absl::Status ParseLeakFlags(const ReportFlags& flags, ReportOptions* options) {
  if (flags.scan != "last" && (!absl::SimpleAtoi(flags.scan, &options->scan) ||
                               options->scan == 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--scan: \"", flags.scan, "\" is neither the number of a scan nor \"last\""));
  }
  if (!flags.leak_kinds.empty()) {
    const auto kinds = ParseKinds(flags.leak_kinds, LeakKindSet::OfScans());
    if (!kinds.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--show-leak-kinds: ", kinds.status().message()));
    }
    options->leak_kinds = *kinds;
  }
  static constexpr std::pair<size_t, absl::string_view> kResolutions[] = {
      {2, "low"}, {4, "med"}, {0, "high"}};
  const auto frames = OneOf("--leak-resolution", flags.leak_resolution, kResolutions);
  if (!frames.ok()) return frames.status();
  using leak::LeaderBy;
  static constexpr std::pair<LeaderBy, absl::string_view> kLeaders[] = {
      {LeaderBy::kAddress, "address"},
      {LeaderBy::kSequence, "sequence"},
      {LeaderBy::kCode, "code"}};
  const auto leader = OneOf("--leader", flags.leader, kLeaders);
  if (!leader.ok()) return leader.status();
  const auto heuristics = leak::ParseHeuristics(flags.heuristics);
  if (!heuristics.ok()) return heuristics.status();
  options->analyze.leaks = {*heuristics, *leader, {*frames, {}}};
  return absl::OkStatus();
}

absl::Status ParseFilters(const ReportFlags& flags, ReportOptions* options) {
  options->frames = {flags.match, flags.function, flags.source_file, flags.module};
  using Parse = absl::StatusOr<ValueRange> (*)(absl::string_view, absl::string_view);
  BlockFilter& filter = options->analyze.filter;
  const std::tuple<absl::string_view, const std::string*, Parse, ValueRange*> kRanges[] = {
      {"--size", &flags.size, ParseSizeRange, &filter.sizes},
      {"--age", &flags.age, ParseTimeRange, &filter.ages},
      {"--lifetime", &flags.lifetime, ParseTimeRange, &filter.lifetimes}};
  for (const auto& [option, text, parse, range] : kRanges) {
    if (text->empty()) continue;
    const auto parsed = parse(option, *text);
    if (!parsed.ok()) return parsed.status();
    *range = *parsed;
    range->asked = range == &filter.ages;
  }
  static constexpr std::pair<StackBy, absl::string_view> kBy[] = {
      {StackBy::kSite, "site"}, {StackBy::kThread, "thread"},
      {StackBy::kModule, "module"}, {StackBy::kFolder, "folder"}};
  if (!flags.timeline_by.empty()) {
    const auto by = OneOf("--timeline-by", flags.timeline_by, kBy);
    if (!by.ok()) return by.status();
    options->timeline_by = *by;
  }
  return absl::OkStatus();
}

// The pictures that show one number of each site.
absl::StatusOr<SiteMeasure> ParseMeasure(const ReportFlags& flags, ReportFormat format) {
  if (flags.measure.empty()) return SiteMeasure::kLive;
  const absl::Status status = RequireFormat(
      "--measure: is",
      {ReportFormat::kFolded, ReportFormat::kPprof, ReportFormat::kSpeedscope,
       ReportFormat::kCallgrind},
      format, absl::StrCat("; ", flags.format, " does not show one number of each site"));
  if (!status.ok()) return status;
  return ParseSiteMeasure(flags.measure);
}

// --table: of csv one, of text any, and no other format lets choose.
absl::Status ParseTables(const ReportFlags& flags, ReportOptions* options) {
  std::vector<std::string> tables;
  for (const std::string& list : flags.tables) {
    for (absl::string_view name : absl::StrSplit(list, ',', absl::SkipEmpty())) {
      tables.emplace_back(name);
    }
  }
  if (tables.empty() && !flags.tables.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--table: \"", flags.tables.front(), "\" names none"));
  }
  if (options->format == ReportFormat::kCsv) {
    if (tables.size() > 1) {
      return absl::InvalidArgumentError("--table: --format csv writes one table at a time");
    }
    if (!tables.empty()) {
      const auto table = ParseCsvTable(tables.front());
      if (!table.ok()) return table.status();
      options->csv_table = *table;
    }
  } else if (options->format == ReportFormat::kText) {
    for (const std::string& name : tables) {
      const auto section = OneOf("--table", name, kSections);
      if (!section.ok()) return section.status();
      options->sections.push_back(*section);
    }
  } else if (!tables.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--table: --format ", flags.format, " has no tables to choose from"));
  }
  return absl::OkStatus();
}

// Where names come from.
void ParseNameOptions(const ReportFlags& flags, symbolizer::Options* options) {
  // The user's come first; the usual one stays.
  options->debug_dirs.insert(options->debug_dirs.begin(), flags.debug_dirs.begin(),
                             flags.debug_dirs.end());
  options->sysroot = flags.sysroot;
  options->debuginfod = flags.debuginfod;
  options->cache_dir = symbolizer::SymbolCacheDirectory(flags.symbol_cache);
}

// --series: after the filters and the tables, which do not go with it.
absl::Status ParseSeries(const ReportFlags& flags, ReportOptions* options) {
  if (!flags.series) return absl::OkStatus();
  const absl::Status status =
      RequireFormat("--series: is", {ReportFormat::kText, ReportFormat::kCsv, ReportFormat::kJson},
                    options->format);
  if (!status.ok()) return status;
  if (!flags.tables.empty())
    return absl::InvalidArgumentError("--series cannot be combined with --table");
  if (!options->analyze.filter.selection().all()) {
    return absl::InvalidArgumentError(
        "--series cannot be combined with --size, --lifetime or --age; --timeline-by site can "
        "(csv: --table timeline-by-site)");
  }
  options->series = true;
  return absl::OkStatus();
}

// What would be asked for in vain.
absl::Status RefuseIdleOptions(const ReportFlags& flags, const ReportOptions& options) {
  using enum ReportFormat;
  const ReportFormat format = options.format;
  absl::Status status;  // of the first that is refused
  if (format == kHeaptrack) {
    for (const auto& [option, value] :
         {std::pair("--thread", &flags.thread), std::pair("--size", &flags.size),
          std::pair("--lifetime", &flags.lifetime), std::pair("--age", &flags.age)}) {
      if (value->empty()) continue;
      status.Update(absl::InvalidArgumentError(
          absl::StrCat(option, ": --format heaptrack has the events of all threads and blocks")));
    }
  }
  if (flags.questions.any()) {
    status.Update(RequireFormat("--graph, --why and --who-points-at are", {kText, kJson}, format));
  }
  if (flags.suppress_children && flags.suppressions.empty()) {
    status.Update(absl::InvalidArgumentError("--suppress-children needs --suppressions FILE"));
  }
  if (!flags.suppressions.empty())
    status.Update(RequireFormat("--suppressions: is", {kText, kJson, kCsv}, format));
  if (options.scan != 0) {
    status.Update(RequireFormat(
        "--scan: is", {kText, kJson, kCsv, kHtml}, format,
        format == kSqlite ? "; sqlite has the leaks of all scans (table leaks)" : ""));
  }
  if (options.timeline_by != StackBy::kNone) {
    status.Update(
        RequireFormat("--timeline-by: is", {kText}, format,
                      format == kCsv ? ", not csv; there it is --table timeline-by-..." : ""));
  }
  if (flags.sort != "total")
    status.Update(RequireFormat("--sort: is", {kText, kJson, kCsv}, format));
  if (flags.top.has_value()) {
    status.Update(RequireFormat("--top: is", {kText, kJson, kCsv, kHtml}, format,
                                absl::StrCat("; ", flags.format, " has all sites")));
  }
  if (options.leak_kinds.has_value()) {
    status.Update(
        RequireFormat("--show-leak-kinds: is", {kText, kJson, kCsv, kHtml}, format,
                      absl::StrCat("; ", flags.format, " has leaks of every kind, or none")));
  }
  if (!status.ok()) return status;
  if (!options.series) return absl::OkStatus();
  for (const auto& [option, given] :
       {std::pair("--graph, --why or --who-points-at", flags.questions.any()),
        std::pair("--suppressions", !flags.suppressions.empty()),
        std::pair("--scan", options.scan != 0),
        std::pair("--timeline-by", options.timeline_by != StackBy::kNone),
        std::pair("--sort", flags.sort != "total"),
        std::pair("--show-leak-kinds", options.leak_kinds.has_value())}) {
    if (given)
      return absl::InvalidArgumentError(absl::StrCat("--series cannot be combined with ", option));
  }
  return absl::OkStatus();
}

size_t EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> previous(b.size() + 1), row(b.size() + 1), before(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) previous[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({previous[j] + 1, row[j - 1] + 1,
                         previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);  // two letters swapped
      }
    }
    before = std::exchange(previous, row);
  }
  return previous[b.size()];
}

}  // namespace

absl::StatusOr<ReportOptions> ParseReportFlags(const ReportFlags& flags) {
  ReportOptions options;
  const auto format = OneOf("--format", flags.format, kFormats);
  if (!format.ok()) return format.status();
  options.format = *format;
  const auto color = OneOf("--color", flags.color, kColors);
  if (!color.ok()) return color.status();
  options.color = *color;
  const auto measure = ParseMeasure(flags, options.format);
  if (!measure.ok()) return measure.status();
  options.measure = *measure;
  const auto sort = ParseSortColumn(flags.sort);
  if (!sort.ok()) return sort.status();
  options.sort = *sort;

  absl::Status status = ParseRange(flags, &options.analyze);
  if (!status.ok()) return status;
  options.analyze.thread_name = flags.thread;
  if (flags.jobs > kMostJobs) {
    return absl::InvalidArgumentError(
        absl::StrCat("--jobs: ", flags.jobs, " threads are more than ", kMostJobs));
  }
  options.analyze.jobs = static_cast<unsigned>(flags.jobs);
  status = ParseFilters(flags, &options);
  if (!status.ok()) return status;
  options.analyze.keep_live_blocks =
      options.format == ReportFormat::kMtrace || options.format == ReportFormat::kSqlite;

  status = ParseLeakFlags(flags, &options);
  if (!status.ok()) return status;
  status = ParseTables(flags, &options);
  if (!status.ok()) return status;

  if (flags.full) options.json_top = options.html_top = kAllRows;
  if (flags.top.has_value()) {
    options.text_top = options.csv_top = options.json_top = options.html_top = *flags.top;
  }
  ParseNameOptions(flags, &options.symbolizer);
  status = ParseSeries(flags, &options);
  if (!status.ok()) return status;
  status = RefuseIdleOptions(flags, options);
  if (!status.ok()) return status;
  if (std::error_code error; flags.index != "off" && !flags.index.empty() &&
                             std::filesystem::exists(flags.index, error) &&
                             !std::filesystem::is_directory(flags.index, error)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--index: ", flags.index, " is no directory; name one, which is made if it is not there, "
        "or off"));
  }
  options.index_beside = flags.index.empty();
  options.summary_dir = flags.index == "off"    ? ""
                        : flags.index.empty() ? base::UserCacheDirectory()
                                              : flags.index;
  return options;
}

std::vector<std::string> Suggest(absl::string_view word,
                                 const std::vector<std::string>& candidates) {
  std::vector<std::pair<size_t, std::string>> near;
  for (const std::string& candidate : candidates) {
    const size_t distance = EditDistance(word, candidate);
    if (distance <= std::max<size_t>(1, word.size() / 3)) near.emplace_back(distance, candidate);
  }
  std::sort(near.begin(), near.end());
  std::vector<std::string> out;
  for (auto& [distance, candidate] : near) {
    if (out.size() < 2) out.push_back(std::move(candidate));
  }
  return out;
}

}  // namespace memtrace::report::render
