// The picture: of each process a bar for each kind of memory, and a strip for each mapping
// with resident pages. SVG by itself, or in an HTML page with the tables; both need no
// other file, run no script and have the colours of the reader's light or dark mode.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "report/pages/page_line.h"
#include "report/pages/pages_report.h"
#include "report/words/escape.h"
#include "report/words/units.h"

namespace memtrace::report::pages {
namespace {

using words::EscapeMarkup;
using words::HumanBytes;

constexpr size_t kWidth = 1000, kLabel = 290, kRow = 16, kCells = 240;
constexpr size_t kMostMappings = 200;   // of a process; those with most pages
constexpr size_t kMostProcesses = 100;  // in a picture

constexpr char kStyle[] = R"(
:root, svg { --paper: #ffffff; --ink: #1b1f24; --faint: #6b7280; --grid: #e5e7eb;
  --own: #c2410c; --file: #2563eb; --shared: #0f766e; --many: #65a30d; --swap: #9333ea; --huge: #ca8a04; --zero: #9ca3af; }
@media (prefers-color-scheme: dark) { :root, svg { --paper: #111418; --ink: #e6e8eb; --faint: #9aa3ad; --grid: #2a2f36;
  --own: #fb923c; --file: #60a5fa; --shared: #2dd4bf; --many: #a3e635; --swap: #c084fc; --huge: #facc15; --zero: #6b7280; } }
svg { background: var(--paper); font: 12px system-ui, sans-serif; }
svg text { fill: var(--ink); } svg .faint { fill: var(--faint); } svg .title { font-weight: 600; }
.hole { fill: var(--grid); } .a { fill: var(--own); } .f { fill: var(--file); } .s { fill: var(--shared); } .m { fill: var(--many); }
.w { fill: var(--swap); } .H { fill: var(--huge); } .z { fill: var(--zero); }
)";

// The class of a character of a page line.
const char* ClassOf(char c) {
  switch (c) {
    case 'a': return "a";
    case 'f': return "f";
    case 'w': return "w";
    case 'H': return "H";
    case 'z': return "z";
    case '+': return "m";
    case '.': return "hole";
    default: return c >= '6' && c <= '9' ? "m" : "s";
  }
}

struct Strip {
  const MappedRegion* region;
  PageLine line;
};

std::vector<Strip> Strips(const ProcessPages& process, uint64_t page_bytes) {
  std::vector<const MappedRegion*> regions;
  for (const MappedRegion& region : process.mappings) {
    if (!region.pages.empty()) regions.push_back(&region);
  }
  if (regions.size() > kMostMappings) {
    std::stable_sort(regions.begin(), regions.end(), [](const auto* a, const auto* b) {
      return a->pages.size() > b->pages.size();
    });
    regions.resize(kMostMappings);
    std::sort(regions.begin(), regions.end(), [](const auto* a, const auto* b) {
      return a->mapping.start < b->mapping.start;
    });
  }
  std::vector<Strip> strips;
  for (const MappedRegion* region : regions) {
    strips.push_back({region, DrawPages(*region, page_bytes, kCells)});
  }
  return strips;
}

std::string StripSvg(const Strip& strip, size_t y) {
  const Mapping& m = strip.region->mapping;
  const std::string name = m.name.empty() ? absl::StrCat("(", RegionName(strip.region->region), ")")
                                          : m.name;
  std::string out = absl::StrCat(
      "<g><title>", EscapeMarkup(name), "\n", absl::StrFormat("%x-%x", m.start, m.end), ", ",
      HumanBytes(m.bytes()), ", resident ", HumanBytes(m.rss + m.hugetlb), "</title>",
      "<text x=\"8\" y=\"", y + 11, "\">",
      EscapeMarkup(words::KeepEnd(words::EscapeControls(name), 40, "...")), "</text>");
  const std::string& cells = strip.line.characters;
  const double each = static_cast<double>(kWidth - kLabel - 10) / kCells;
  for (size_t i = 0; i < cells.size();) {
    size_t end = i;
    while (end < cells.size() && std::string(ClassOf(cells[end])) == ClassOf(cells[i])) ++end;
    absl::StrAppend(
        &out, absl::StrFormat(
                  "<rect class=\"%s\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\"/>",
                  ClassOf(cells[i]), static_cast<double>(kLabel) + each * static_cast<double>(i),
                  y + 1, each * static_cast<double>(end - i), kRow - 4));
    i = end;
  }
  return out + "</g>\n";
}

// Where its resident bytes are: of whom they are, one above the other.
std::string BarsSvg(const ProcessPages& process, size_t* y) {
  std::string out;
  uint64_t most = 1;
  const std::vector<RegionRow> rows = RegionRows(process);
  for (const RegionRow& row : rows) most = std::max(most, row.figures.rss + row.figures.hugetlb);
  for (const RegionRow& row : rows) {
    const Figures& f = row.figures;
    const uint64_t resident = f.rss + f.hugetlb;
    if (resident == 0) continue;
    absl::StrAppend(&out, "<g><title>", RowName(row.owner, row.region), ": resident ",
                    HumanBytes(resident), ", private dirty ", HumanBytes(f.private_dirty),
                    ", private clean ", HumanBytes(f.private_clean), ", shared ",
                    HumanBytes(f.shared_bytes()), "</title><text x=\"8\" y=\"", *y + 11, "\">",
                    RowName(row.owner, row.region), "  ", HumanBytes(resident), "</text>");
    double x = kLabel;
    const std::pair<uint64_t, const char*> parts[] = {
        {f.private_dirty, "a"}, {f.private_clean, "f"}, {f.shared_bytes(), "s"}, {f.hugetlb, "H"}};
    for (const auto& [bytes, color] : parts) {
      const double width = static_cast<double>(kWidth - kLabel - 10) * static_cast<double>(bytes) /
                           static_cast<double>(most);
      absl::StrAppend(
          &out,
          absl::StrFormat("<rect class=\"%s\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\"/>",
                          color, x, *y + 1, width, kRow - 4));
      x += width;
    }
    out += "</g>\n";
    *y += kRow;
  }
  return out;
}

std::string Legend(size_t y) {
  static constexpr std::pair<const char*, const char*> kEntries[] = {
      {"a", "own (anonymous, dirty)"}, {"f", "file, mapped once"}, {"s", "shared"},
      {"m", "shared by more than five"}, {"w", "swapped out"}, {"H", "huge"}, {"z", "zeros"},
      {"hole", "not resident"}};
  std::string out;
  size_t x = 8;
  for (const auto& [color, name] : kEntries) {
    absl::StrAppend(&out, "<rect class=\"", color, "\" x=\"", x, "\" y=\"", y + 2,
                    "\" width=\"10\" height=\"10\"/><text x=\"", x + 14, "\" y=\"", y + 11, "\">",
                    name, "</text>\n");
    x += 34 + 6 * std::string(name).size();
  }
  return out;
}

std::string Picture(const PagesReport& report, bool with_style) {
  const PagesSnapshot& s = report.snapshot;
  std::string body;
  size_t y = 10;
  absl::StrAppend(&body, "<text class=\"title\" x=\"8\" y=\"", y + 11, "\">memtrace pages ",
                  EscapeMarkup(s.source), ": ", words::Count(report.user_pages.pages),
                  " user pages</text>\n");
  y += 2 * kRow;
  body += Legend(y);
  y += 2 * kRow;
  const size_t shown = std::min(s.processes.size(), kMostProcesses);
  for (size_t i = 0; i < shown; ++i) {
    const ProcessPages& process = s.processes[i];
    const std::string command = process.command.empty() ? process.name : process.command;
    const std::string shown_command =
        words::KeepBeginning(words::EscapeControls(command), 120, "...");
    absl::StrAppend(&body, "<text class=\"title\" x=\"8\" y=\"", y + 11, "\">", process.pid, "  ",
                    EscapeMarkup(shown_command), "</text>\n");
    y += kRow + 4;
    body += BarsSvg(process, &y);
    y += kRow / 2;
    const std::vector<Strip> strips = Strips(process, s.page_bytes);
    for (const Strip& strip : strips) {
      body += StripSvg(strip, y);
      y += kRow;
    }
    y += kRow;
  }
  if (shown < s.processes.size()) {
    absl::StrAppend(&body, "<text class=\"faint\" x=\"8\" y=\"", y + 11, "\">and ",
                    s.processes.size() - shown, " more processes</text>\n");
    y += 2 * kRow;
  }
  return absl::StrCat("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ", kWidth, " ", y,
                      "\" width=\"", kWidth, "\" height=\"", y, "\" role=\"img\">\n",
                      with_style ? absl::StrCat("<style>", kStyle, "</style>\n") : "", body,
                      "</svg>\n");
}

std::string HtmlTable(const std::vector<std::string>& heads,
                      const std::vector<std::vector<std::string>>& rows) {
  std::string out = "<table><thead><tr>";
  for (const std::string& head : heads) absl::StrAppend(&out, "<th>", EscapeMarkup(head), "</th>");
  out += "</tr></thead><tbody>\n";
  for (const auto& row : rows) {
    out += "<tr>";
    for (const std::string& cell : row) absl::StrAppend(&out, "<td>", EscapeMarkup(cell), "</td>");
    out += "</tr>\n";
  }
  return out + "</tbody></table>\n";
}

}  // namespace

void RenderPagesSvg(const PagesReport& report, words::Sink& out) {
  out.Write("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n" + Picture(report, true));
}

void RenderPagesHtml(const PagesReport& report, words::Sink& out) {
  const PagesSnapshot& s = report.snapshot;
  out.Write(absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width\">\n<title>memtrace pages ",
      EscapeMarkup(s.source), "</title>\n<style>", kStyle, R"(
body { background: var(--paper); color: var(--ink); font: 14px system-ui, sans-serif; margin: 2em; }
table { border-collapse: collapse; margin: 1em 0; } td, th { padding: 2px 12px; border-bottom: 1px solid var(--grid); text-align: right; }
td:first-child, th:first-child { text-align: left; } td:nth-child(n+3) { white-space: nowrap; } .alert { color: var(--own); } svg { max-width: 100%; height: auto; }
/* What is wider than the window moves in itself, and stays readable. */
table { display: block; overflow-x: auto; } .wide { overflow-x: auto; } .wide svg { min-width: 640px; }
</style></head><body>
)",
      "<h1>memtrace pages ", EscapeMarkup(s.source), "</h1>\n<p><strong>",
      words::Count(report.user_pages.pages), "</strong> user pages (",
      HumanBytes(report.user_pages.pages * s.page_bytes), "), ",
      report.user_pages.by_frames ? "different physical pages" : "the sum of proportional shares",
      ", ", words::DateTime(s.realtime_ns), "</p>\n"));
  for (const std::string& note : report.notes)
    out.Write(absl::StrCat("<p>", EscapeMarkup(note), "</p>\n"));
  if (!report.alerts.empty()) {
    out.Write("<h2>Alerts</h2>\n<ul>\n");
    for (const Alert& alert : report.alerts) {
      out.Write(absl::StrCat("<li class=\"alert\">", EscapeMarkup(alert.unit), ": ",
                             EscapeMarkup(AlertSentence(alert, s.page_bytes)), "</li>\n"));
    }
    out.Write("</ul>\n");
  }
  out.Write("<div class=\"wide\">" + Picture(report, false) + "</div>\n");
  std::vector<std::vector<std::string>> rows;
  for (const ProcessPages& process : s.processes) {
    for (const RegionRow& row : RegionRows(process)) {
      const Figures& f = row.figures;
      rows.push_back({absl::StrCat(process.pid, " ", process.name), RowName(row.owner, row.region),
                      HumanBytes(f.virtual_bytes), HumanBytes(f.rss + f.hugetlb),
                      HumanBytes(f.pss + f.hugetlb), HumanBytes(f.private_dirty),
                      HumanBytes(f.shared_bytes()), HumanBytes(f.swap)});
    }
  }
  out.Write("<h2>Processes</h2>\n" +
            HtmlTable({"process", "what", "virtual", "resident", "share", "private dirty", "shared",
                       "swapped"}, rows));
  rows.clear();
  for (const Unit& unit : report.units) {
    rows.push_back({unit.name, absl::StrCat(unit.pids.size()), HumanBytes(unit.figures.rss),
                    HumanBytes(unit.figures.pss), HumanBytes(unit.figures.private_dirty)});
  }
  out.Write("<h2>Executables and libraries</h2>\n" +
            HtmlTable({"file", "processes", "resident", "share", "private dirty"}, rows) +
            "</body></html>\n");
}

}  // namespace memtrace::report::pages
