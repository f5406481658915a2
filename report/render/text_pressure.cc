// PRESSURE: the program, its control group and the system as `memtrace run` saw them from
// outside. Where it did not look, nothing, or that it did not, if the section was asked for.

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "report/render/lines.h"
#include "report/render/table.h"
#include "report/render/text_report.h"
#include "report/words/escape.h"
#include "report/words/units.h"

namespace memtrace::report::render {
namespace {

using Series = std::vector<std::pair<uint64_t, uint64_t>>;

// Those that tell how much there was, most asked for first.
constexpr const char* kLevels[] = {
    "rss_anon_bytes",       "rss_file_bytes",         "rss_shmem_bytes",
    "swap_bytes",           "page_tables_bytes",      "rollup.pss_bytes",
    "rollup.anon_huge_bytes", "tree.rss_bytes",       "cgroup.current_bytes",
    "cgroup.swap_bytes",    "system.available_bytes",
};

std::string LevelsTable(const PressureLane& lane, const TextOptions& options) {
  TextTable table({{"first"}, {"most"}, {"at"}, {"last"}}, "what");
  const auto add = [&](const Series& series, const std::string& name) {
    const ColumnSummary summary = Summarize(series);
    if (!summary.known || summary.most == 0) return;
    table.AddRow({words::HumanBytes(summary.first), words::HumanBytes(summary.most),
                  words::Duration(summary.most_at_ns), words::HumanBytes(summary.last)},
                 [name, &options](size_t width) {
                   return words::KeepBeginning(name, width, options.style.ellipsis());
                 });
  };
  add(lane.ResidentBytes(), "resident");
  for (const char* level : kLevels) add(lane.Series(level), ColumnTitle(level));
  return table.empty() ? "" : table.Render(options.style, 2);
}

// By how much a count rose while the program ran.
uint64_t Rise(const PressureLane& lane, const char* column) {
  return Summarize(lane.Series(column)).growth();
}

std::string Joined(std::vector<std::string> parts) { return absl::StrJoin(parts, ", "); }

// "5 times at its limit", "1 process killed".
std::string Counted(uint64_t count, absl::string_view one, absl::string_view many,
                    absl::string_view what) {
  return absl::StrCat(words::Count(count), " ", count == 1 ? one : many, what);
}

void AddCounts(const PressureLane& lane, Lines* lines) {
  std::vector<std::string> parts;
  const auto add = [&](const char* column, const char* one, const char* many, const char* what) {
    if (const uint64_t rise = Rise(lane, column); rise != 0) {
      parts.push_back(Counted(rise, one, many, what));
    }
  };
  const auto add_stall = [&](const char* column) {
    if (const uint64_t us = Rise(lane, column); us != 0) {
      parts.push_back(absl::StrCat("stalled ", words::Duration(us * 1000)));
    }
  };
  add("major_faults", "major fault", "major faults", "");
  if (!parts.empty()) lines->Add("Program", Joined(std::exchange(parts, {})));

  add("cgroup.high", "time", "times", " above its high mark");
  add("cgroup.max", "time", "times", " at its limit");
  add("cgroup.oom_kill", "process", "processes", " killed for lack of memory");
  add("cgroup.workingset_refault_anon", "refault", "refaults", " of anonymous memory");
  add("cgroup.workingset_refault_file", "refault", "refaults", " of files");
  add_stall("cgroup.stall_some_us");
  if (const ColumnSummary limit = Summarize(lane.Series("cgroup.limit_bytes")); limit.known) {
    parts.push_back(absl::StrCat("limit ", words::HumanBytes(limit.last)));
  }
  if (!parts.empty()) lines->Add("Group", Joined(std::exchange(parts, {})));

  add("system.pswpin", "page", "pages", " swapped in");
  add("system.pswpout", "page", "pages", " swapped out");
  add("system.workingset_refault_anon", "refault", "refaults", " of anonymous memory");
  add("system.workingset_refault_file", "refault", "refaults", " of files");
  add("system.pgscan_direct", "page", "pages", " looked at by those who wanted memory");
  add("system.oom_kill", "process", "processes", " killed for lack of memory");
  add_stall("system.stall_some_us");
  lines->Add("System", parts.empty() ? "no swapping, refaults or direct reclaim meanwhile"
                                     : Joined(std::move(parts)));
}

std::string WhyThereIsNone(const Analysis& analysis) {
  if (analysis.process.imported()) return "not in the log";
  if (!analysis.pressure.columns.empty()) return "not known: no sample is of this part of the run";
  return "not known: nobody looked from outside, as memtrace run does at the first process, "
         "without --no-samples";
}

}  // namespace

std::string PressureText(const ReportView& view, const TextOptions& options) {
  const PressureLane& lane = view.analysis().pressure;
  if (lane.empty()) {
    return options.sections.empty()
               ? ""
               : Heading(options, "PRESSURE", WhyThereIsNone(view.analysis()));
  }
  const ColumnSummary cost = Summarize(lane.Series("sampler.cpu_us"));
  const uint64_t own_us = view.analysis().range.whole() ? cost.last : cost.growth();
  std::string out = Heading(
      options, "PRESSURE",
      absl::StrCat(words::Plural(lane.samples, "sample"), " from outside",
                   cost.known
                       ? absl::StrCat(", ", words::Duration(own_us * 1000), " of memtrace's time")
                       : ""));
  absl::StrAppend(&out, LevelsTable(lane, options));
  Lines lines(options);
  AddCounts(lane, &lines);
  for (const std::string& note : lane.notes) lines.Add("Note", words::EscapeControls(note));
  return absl::StrCat(out, lines.Take());
}

}  // namespace memtrace::report::render
