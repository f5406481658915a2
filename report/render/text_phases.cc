// PHASES and POOLS: what the program said by memtrace.h. Nothing where it said nothing.

#include <string>

#include "absl/strings/str_cat.h"
#include "report/render/table.h"
#include "report/render/text_report.h"
#include "report/words/escape.h"
#include "report/words/units.h"

namespace memtrace::report::render {
namespace {

std::string Signed(const Numbers& numbers, int64_t bytes) {
  if (bytes == 0) return "0";
  return bytes < 0 ? absl::StrCat("-", numbers.Bytes(uint64_t{0} - static_cast<uint64_t>(bytes)))
                   : absl::StrCat("+", numbers.Bytes(static_cast<uint64_t>(bytes)));
}

std::string NameCell(const TextOptions& options, const std::string& name, absl::string_view more,
                     size_t width) {
  const std::string text = absl::StrCat(name.empty() ? "(no name)" : options.style.Name(name),
                                        more.empty() ? "" : ", ", more);
  return words::KeepBeginning(text, width, options.style.ellipsis());
}

std::string Phases(const Analysis& analysis, const Numbers& numbers, const TextOptions& options) {
  if (analysis.phases.empty()) return "";
  TextTable table({{"times"}, {numbers.wide() ? "allocations" : "allocs"}, {"total"},
                   {"live before"}, {"live after"}, {"growth"}, {"faults"}},
                  "phase, time in it");
  const size_t all = analysis.phases.size();
  const size_t shown = options.Shown(all);
  for (size_t i = 0; i < shown; ++i) {
    const Phase& phase = analysis.phases[i];
    table.AddRow({words::Count(phase.times), numbers.Events(phase.allocations),
                  numbers.Bytes(phase.bytes_allocated), numbers.Bytes(phase.first_begin.live_bytes),
                  numbers.Bytes(phase.last_end.live_bytes), Signed(numbers, phase.growth_bytes),
                  words::Count(phase.minor_faults + phase.major_faults)},
                 [&](size_t width) {
                   return NameCell(options, phase.name,
                                   absl::StrCat(words::Duration(phase.total_ns),
                                                phase.open == 0 ? "" : ", not ended"),
                                   width);
                 });
  }
  return absl::StrCat(Heading(options, "PHASES", numbers.remark()),
                      table.Render(options.style, 2), MoreLine(options, all, shown, "phase"));
}

std::string Pools(const ReportView& view, const Numbers& numbers, const TextOptions& options) {
  const Analysis& analysis = view.analysis();
  if (analysis.pools.empty()) return "";
  TextTable table({{"total"}, {"live"}, {"peak"}, {numbers.wide() ? "allocations" : "allocs"},
                   {"frees"}, {"pools"}},
                  "name, created by");
  const size_t all = analysis.pools.size();
  const size_t shown = options.Shown(all);
  for (size_t i = 0; i < shown; ++i) {
    const Pool& pool = analysis.pools[i];
    table.AddRow({numbers.Bytes(pool.bytes_allocated), numbers.Bytes(pool.live_bytes),
                  numbers.Bytes(pool.peak_bytes), numbers.Events(pool.allocations),
                  numbers.Events(pool.frees), words::Count(pool.created)},
                 [&](size_t width) {
                   const Frame* frame = view.Caller(pool.stack);
                   return NameCell(options, pool.name,
                                   frame != nullptr ? options.style.Name(FrameName(*frame)) : "",
                                   width);
                 });
  }
  return absl::StrCat(Heading(options, "POOLS", numbers.remark()),
                      table.Render(options.style, 2), MoreLine(options, all, shown, "pool"));
}

}  // namespace

std::string PhasesText(const ReportView& view, const TextOptions& options) {
  const Numbers numbers(view, options.style);
  return absl::StrCat(Phases(view.analysis(), numbers, options), Pools(view, numbers, options));
}

}  // namespace memtrace::report::render
