// Tables of call sites by caller: all allocations, and temporary ones.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "report/render/table.h"
#include "report/render/text_report.h"
#include "report/words/units.h"

namespace memtrace::report::render {
std::string SitesText(const ReportView& view, const TextOptions& options) {
  if (view.callers().empty()) {
    return Heading(options, "ALLOCATORS", !view.filtered() ? "no allocations"
                                                               : "no site matches");
  }
  std::vector<SiteGroup> groups = view.callers();
  SortGroups(view, options.sort, &groups);
  const Numbers numbers(view, options.style);
  const auto column = [&](absl::string_view header, SortColumn sort) {
    return TextTable::Column{std::string(header), false, options.sort == sort};
  };
  std::vector<TextTable::Column> columns = {
      column("total", SortColumn::kTotal),   column("wasted", SortColumn::kWasted),
      column("live", SortColumn::kLive),
      column(numbers.wide() ? "at peak" : "peak", SortColumn::kPeak),
      column(numbers.wide() ? "allocations" : "allocs", SortColumn::kAllocations),
      column("frees", SortColumn::kFrees),
      column(numbers.wide() ? "temporary" : "temp.", SortColumn::kTemporary),
  };
  // The number of blocks only has a column where there is room, or it is asked for.
  const bool blocks = numbers.wide() || options.sort == SortColumn::kBlocks;
  if (blocks) columns.insert(columns.begin() + 3, column("blocks", SortColumn::kBlocks));
  if (numbers.estimated()) {  // the interval of the total, for the column that is not known
    columns.pop_back();
    columns.insert(columns.begin() + 1, {"95 % of total"});
  }
  if (options.processes_of) columns.insert(columns.begin(), {"traces"});
  TextTable table(std::move(columns),
                  options.sort == SortColumn::kCaller
                      ? absl::StrCat("caller", options.style.utf8 ? "\u25be" : "v") : "caller");
  const size_t shown = options.Shown(groups.size());
  for (size_t i = 0; i < shown; ++i) {
    const SiteGroup& group = groups[i];
    std::vector<std::string> cells = {
        numbers.Bytes(group.bytes_allocated), numbers.Wasted(group.wasted_bytes),
        numbers.Bytes(group.live_bytes),      numbers.Bytes(group.bytes_at_peak),
        numbers.Events(group.allocations),    numbers.Events(group.frees),
        numbers.Events(group.temporary)};
    if (blocks) cells.insert(cells.begin() + 3, numbers.Events(group.live_blocks));
    if (numbers.estimated()) {
      cells.pop_back();
      cells.insert(cells.begin() + 1, numbers.ShortInterval(group.bytes_sample));
    }
    if (options.processes_of) {
      cells.insert(cells.begin(), words::Count(options.processes_of(group)));
    }
    table.AddRow(std::move(cells), [&view, &options, stack = group.stack](size_t width) {
      return CallerCell(view, stack, width, options);
    });
  }
  std::string remark = absl::StrCat("by ", SortColumnName(options.sort));
  if (numbers.estimated()) absl::StrAppend(&remark, "; estimates of a sample");
  if (!numbers.wide()) absl::StrAppend(&remark, "; ", numbers.remark());
  return absl::StrCat(Heading(options, "ALLOCATORS", remark), table.Render(options.style, 2),
                      MoreLine(options, groups.size(), shown, "caller"));
}

std::string TemporaryText(const ReportView& view, const TextOptions& options) {
  if (view.sampled()) {
    return Heading(options, "TEMPORARY ALLOCATIONS",
                   "not known: a sample does not show what was allocated in between");
  }
  std::vector<SiteGroup> groups;
  uint64_t temporary = 0, allocations = 0;
  for (const SiteGroup& group : view.callers()) {
    allocations += group.allocations;
    temporary += group.temporary;
    if (group.temporary > 0) groups.push_back(group);
  }
  if (groups.empty()) return Heading(options, "TEMPORARY ALLOCATIONS", "none");
  SortGroups(view, SortColumn::kTemporary, &groups);
  const Numbers numbers(view, options.style);
  TextTable table({{"temporary"}, {"share"}, {"of its own"}, {"mean size"}}, "caller");
  const size_t shown = options.Shown(groups.size());
  for (size_t i = 0; i < shown; ++i) {
    const SiteGroup& group = groups[i];
    table.AddRow(
        {numbers.Events(group.temporary), words::Percent(group.temporary, temporary),
         words::Percent(group.temporary, group.allocations),
         words::HumanBytes(group.bytes_allocated / std::max<uint64_t>(group.allocations, 1))},
        [&view, &options, stack = group.stack](size_t width) {
          return CallerCell(view, stack, width, options);
        });
  }
  return absl::StrCat(
      Heading(options, "TEMPORARY ALLOCATIONS",
              absl::StrCat(words::Count(temporary), " of ", words::Count(allocations), " (",
                           words::Percent(temporary, allocations), ") freed before the next")),
      table.Render(options.style, 2), MoreLine(options, groups.size(), shown, "caller"));
}

}  // namespace memtrace::report::render
