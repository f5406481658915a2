// CSV and the raw dump.

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "report/pages/page_line.h"
#include "report/pages/pages_report.h"
#include "report/words/escape.h"

namespace memtrace::report::pages {
namespace {

constexpr char kFigureNames[] =
    "virtual_bytes,rss_bytes,pss_bytes,private_dirty_bytes,private_clean_bytes,shared_dirty_bytes,"
    "shared_clean_bytes,anonymous_bytes,swap_bytes,huge_bytes,hugetlb_bytes";

std::string FigureFields(const Figures& f) {
  return absl::StrJoin({f.virtual_bytes, f.rss, f.pss, f.private_dirty, f.private_clean,
                        f.shared_dirty, f.shared_clean, f.anonymous, f.swap, f.huge, f.hugetlb},
                       ",");
}

void WriteRegions(const PagesReport& report, words::Sink& out) {
  out.Write(absl::StrCat("pid,process,owner,region,mappings,", kFigureNames, "\r\n"));
  for (const ProcessPages& process : report.snapshot.processes) {
    for (const RegionRow& row : RegionRows(process)) {
      out.Write(absl::StrCat(process.pid, ",", words::CsvField(process.name), ",",
                             OwnerName(row.owner), ",", RegionName(row.region), ",",
                             row.figures.mappings, ",", FigureFields(row.figures), "\r\n"));
    }
  }
}

void WriteMappings(const PagesReport& report, words::Sink& out) {
  out.Write(absl::StrCat("pid,start,end,rights,offset,device,inode,owner,region,", kFigureNames,
                         ",own_pages,file_own_pages,shared_pages,swapped_pages,zero_pages,"
                         "huge_pages,pages_known,name\r\n"));
  for (const ProcessPages& process : report.snapshot.processes) {
    for (const MappedRegion& region : process.mappings) {
      const Mapping& m = region.mapping;
      Figures figures;
      figures.Add(m);
      const PageStates states = CountStates(region);
      out.Write(absl::StrFormat("%d,%x,%x,%s%s%s%s,%d,%s,%d,%s,%s,", process.pid, m.start, m.end,
                                m.readable ? "r" : "-", m.writable ? "w" : "-",
                                m.executable ? "x" : "-", m.shared ? "s" : "p", m.offset, m.device,
                                m.inode, OwnerName(region.owner), RegionName(region.region)));
      out.Write(absl::StrCat(FigureFields(figures), ",", states.own, ",", states.file_own, ",",
                             states.shared, ",", states.swapped, ",", states.zero, ",", states.huge,
                             ",", region.pages_known ? 1 : 0, ",", words::CsvField(m.name),
                             "\r\n"));
    }
    if (out.done()) return;
  }
}

void WriteUnits(const PagesReport& report, words::Sink& out) {
  out.Write(absl::StrCat("unit,device,inode,processes,physical_pages,text_copies,", kFigureNames,
                         ",text_rss_bytes,read_only_rss_bytes,data_rss_bytes,bss_rss_bytes\r\n"));
  for (const Unit& unit : report.units) {
    out.Write(absl::StrCat(
        words::CsvField(unit.name), ",", unit.device, ",", unit.inode, ",", unit.pids.size(), ",",
        report.snapshot.counted ? absl::StrCat(unit.physical_pages) : "", ",", unit.text_copies,
        ",", FigureFields(unit.figures), ",", unit.by_region[0].rss, ",", unit.by_region[1].rss,
        ",", unit.by_region[2].rss, ",", unit.by_region[3].rss, "\r\n"));
  }
}

void WriteAlerts(const PagesReport& report, words::Sink& out) {
  out.Write("alert,unit,region,pages,could_be,processes\r\n");
  for (const Alert& alert : report.alerts) {
    out.Write(absl::StrCat(AlertName(alert.kind), ",", words::CsvField(alert.unit), ",",
                           RegionName(alert.region), ",", alert.pages, ",", alert.could_be, ",",
                           absl::StrJoin(alert.pids, " "), "\r\n"));
  }
}

}  // namespace

void RenderPagesCsv(const PagesReport& report, PagesTable table, words::Sink& out) {
  switch (table) {
    case PagesTable::kRegions: return WriteRegions(report, out);
    case PagesTable::kMappings: return WriteMappings(report, out);
    case PagesTable::kUnits: return WriteUnits(report, out);
    case PagesTable::kAlerts: return WriteAlerts(report, out);
  }
}

void RenderPagesRaw(const PagesReport& report, words::Sink& out) {
  out.Write("# pid address frame mapped state region; frame - hidden, mapped - not counted\n");
  for (const ProcessPages& process : report.snapshot.processes) {
    for (const MappedRegion& region : process.mappings) {
      for (const Page& page : region.pages) {
        out.Write(absl::StrFormat(
            "%d %x %s %s %c %s\n", process.pid, page.address,
            page.frame == 0 ? "-" : absl::StrFormat("%x", page.frame),
            page.is(Page::kCounted) ? absl::StrCat(page.mapped) : "-", PageCharacter(page),
            RegionName(region.region)));
      }
      if (out.done()) return;
    }
  }
}

}  // namespace memtrace::report::pages
