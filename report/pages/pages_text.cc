// `memtrace pages` as text: the alerts, a table of regions for each process, on request its
// mappings, and the units.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "report/pages/page_line.h"
#include "report/pages/pages_report.h"
#include "report/render/table.h"
#include "report/words/escape.h"
#include "report/words/units.h"

namespace memtrace::report::pages {
namespace {

using words::HumanBytes;
using render::Ink;
using words::KeepBeginning;
using words::KeepEnd;
using render::Style;
using render::TextTable;

std::string Cell(uint64_t bytes) { return bytes == 0 ? "-" : HumanBytes(bytes); }

// Most processes have nothing swapped and no huge pages, and the line is short.
std::string RegionsTable(const ProcessPages& process, const Style& style) {
  const Figures total = process.Total();
  const bool swap = total.swap != 0, huge = total.huge + total.hugetlb != 0;
  std::vector<TextTable::Column> columns = {{"virtual"}, {"resident"}, {"share"},
                                            {"dirty"},   {"clean"},    {"shared"}};
  if (swap) columns.push_back({"swap"});
  if (huge) columns.push_back({"huge"});
  TextTable table(std::move(columns), "what");
  const auto add = [&](const Figures& f, std::string name) {
    std::vector<std::string> cells = {Cell(f.virtual_bytes),   Cell(f.rss + f.hugetlb),
                                      Cell(f.pss + f.hugetlb), Cell(f.private_dirty),
                                      Cell(f.private_clean),   Cell(f.shared_bytes())};
    if (swap) cells.push_back(Cell(f.swap));
    if (huge) cells.push_back(Cell(f.huge + f.hugetlb));
    table.AddRow(std::move(cells), [name = std::move(name)](size_t) { return name; });
  };
  for (const RegionRow& row : RegionRows(process)) add(row.figures, RowName(row.owner, row.region));
  add(total, "all");
  return table.Render(style, 2);
}

std::string Rights(const Mapping& m) {
  return absl::StrCat(m.readable ? "r" : "-", m.writable ? "w" : "-", m.executable ? "x" : "-",
                      m.shared ? "s" : "p");
}

void WriteMaps(const ProcessPages& process, uint64_t page_bytes, const Style& style,
               words::Sink& out) {
  for (const MappedRegion& region : process.mappings) {
    const Mapping& m = region.mapping;
    const std::string head =
        absl::StrFormat("  %012x %s %9s %9s  ", m.start, Rights(m), HumanBytes(m.bytes()),
                        Cell(m.rss + m.hugetlb));
    std::string name = m.name.empty() ? absl::StrCat("(", RegionName(region.region), ")")
                                      : style.Name(m.name);
    if (m.deleted) absl::StrAppend(&name, " (deleted)");
    const size_t room = style.width > head.size() + 10 ? style.width - head.size() : 10;
    out.Write(absl::StrCat(head, KeepEnd(name, room, style.ellipsis()), "\n"));
    if (m.rss + m.swap + m.hugetlb == 0 && region.pages.empty()) continue;
    if (!region.pages_known) {
      out.Write("    (its pages are not known, or not all)\n");
      if (region.pages.empty()) continue;
    }
    const size_t width = style.width > 40 ? style.width - 20 : 20;
    const PageLine line = DrawPages(region, page_bytes, width);
    out.Write(absl::StrCat("    ", style.Paint(Ink::kPlot, line.characters),
                           line.pages_each > 1 ? absl::StrCat("  x", line.pages_each) : "", "\n"));
  }
}

std::string HeadLine(const PagesReport& report) {
  const PagesSnapshot& s = report.snapshot;
  return absl::StrCat("pages of ", HumanBytes(s.page_bytes), ", ",
                      s.processes.size(), s.processes.size() == 1 ? " process" : " processes");
}

}  // namespace

std::string RowName(Owner owner, Region region) {
  return owner == Owner::kNone ? RegionName(region)
                               : absl::StrCat(OwnerName(owner), " ", RegionName(region));
}

void RenderPagesText(const PagesReport& report, const PagesTextOptions& options,
                     words::Sink& out) {
  const Style& style = options.style;
  const PagesSnapshot& snapshot = report.snapshot;
  const auto heading = [&](absl::string_view title, absl::string_view rest) {
    out.Write(absl::StrCat("\n", style.Paint(Ink::kHeading, title), rest.empty() ? "" : "  ", rest,
                           "\n"));
  };
  out.Write(absl::StrCat(style.Paint(Ink::kHeading, "memtrace pages"), "  ",
                         style.Name(snapshot.source), "\n  ", HeadLine(report), "\n"));
  out.Write(absl::StrCat(
      "\n  User pages ", style.Paint(Ink::kStrong, words::Count(report.user_pages.pages)), "  (",
      HumanBytes(report.user_pages.pages * snapshot.page_bytes), "), ",
      report.user_pages.by_frames ? "different physical pages" : "the sum of proportional shares",
      "\n"));
  const auto wrapped = [&](absl::string_view margin, absl::string_view text) {
    for (const std::string& line : words::Wrapped(text, style.width - margin.size())) {
      out.Write(absl::StrCat(margin, line, "\n"));
    }
  };
  for (const std::string& note : report.notes) wrapped("  ", words::EscapeControls(note));
  if (!report.alerts.empty()) {
    heading("ALERTS", "pages that could be shared and are not");
    for (const Alert& alert : report.alerts) {
      out.Write(absl::StrCat("  ", style.Paint(Ink::kWarning, "! "), style.Name(alert.unit), "\n"));
      wrapped("    ", AlertSentence(alert, snapshot.page_bytes));
    }
  }
  if (options.maps) {
    out.Write("\n");
    wrapped("  ", kPageLegend);
  }
  for (const ProcessPages& process : snapshot.processes) {
    if (out.done()) return;
    const std::string command =
        style.Name(process.command.empty() ? process.name : process.command);
    heading(absl::StrCat("PROCESS ", process.pid),
            KeepBeginning(command, style.width > 30 ? style.width - 20 : 10, style.ellipsis()));
    if (!process.problem.empty()) {
      out.Write(absl::StrCat("  ", style.Paint(Ink::kWarning, "! "),
                             words::EscapeControls(process.problem), "\n"));
    }
    out.Write(RegionsTable(process, style));
    if (options.maps) WriteMaps(process, snapshot.page_bytes, style, out);
  }
  if (!report.units.empty()) {
    heading("UNITS", "executables and libraries, over all of these processes");
    TextTable table({{"processes"}, {"resident"}, {"share"}, {"dirty"}, {"text"}, {"physical"}},
                    "file");
    const size_t shown = std::min(options.top, report.units.size());
    for (size_t i = 0; i < shown; ++i) {
      const Unit& unit = report.units[i];
      table.AddRow(
          {absl::StrCat(unit.pids.size()), Cell(unit.figures.rss), Cell(unit.figures.pss),
           Cell(unit.figures.private_dirty), Cell(unit.by_region[0].rss),
           unit.physical_pages == 0 ? "-" : HumanBytes(unit.physical_pages * snapshot.page_bytes)},
          [&unit, &style](size_t width) {
            return KeepEnd(style.Name(unit.name), width, style.ellipsis());
          });
    }
    out.Write(table.Render(style, 2));
    if (shown < report.units.size()) {
      out.Write(absl::StrCat("  and ", report.units.size() - shown, " more: --top ",
                             report.units.size(), "\n"));
    }
  }
}

}  // namespace memtrace::report::pages
