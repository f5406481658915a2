// The tables of usage_tables.h and stacked_timeline.h as CSV.

#include <algorithm>

#include "report/render/csv_record.h"
#include "report/render/formats.h"
#include "report/render/stacked_timeline.h"
#include "report/render/usage_tables.h"

namespace memtrace::report::render {
namespace {

uint64_t Ns(double ns) { return static_cast<uint64_t>(ns + 0.5); }

void WriteLifetimes(const ReportView& view, size_t top, words::Sink& out) {
  out.Write("freed,p50_s,p90_s,p99_s,caller,file,line,module,fingerprint\r\n");
  for (size_t i = 0, rows = 0; i < view.sites().size() && rows < top && !out.done(); ++i) {
    const Site& site = *view.sites()[i];
    const Lifetimes lifetimes = LifetimesOf(site);
    const uint64_t blocks = lifetimes.blocks();
    if (blocks == 0) continue;
    ++rows;
    CsvRecord()
        .Number(blocks)
        .Seconds(Ns(LifetimeQuantile(view, lifetimes, 0.5)))
        .Seconds(Ns(LifetimeQuantile(view, lifetimes, 0.9)))
        .Seconds(Ns(LifetimeQuantile(view, lifetimes, 0.99)))
        .Caller(view, site.stack)
        .Text(view.Fingerprint(site.stack, site.function))
        .WriteTo(out);
  }
}

void WriteReallocs(const ReportView& view, size_t top, words::Sink& out) {
  out.Write(
      "reallocations,grown,moved,copied_bytes,longest_chain,container_growths,"
      "container_copied_bytes,caller,file,line,module,fingerprint\r\n");
  for (size_t i = 0, rows = 0; i < view.sites().size() && rows < top && !out.done(); ++i) {
    const Site& site = *view.sites()[i];
    const SiteMoves& moves = site.moves;
    if (moves.reallocations + moves.container_growths == 0) continue;
    ++rows;
    CsvRecord()
        .Number(moves.reallocations)
        .Number(moves.grown)
        .Number(moves.moved)
        .Number(moves.copied_bytes)
        .Number(moves.longest_chain)
        .Number(moves.container_growths)
        .Number(moves.container_copied_bytes)
        .Caller(view, site.stack)
        .Text(view.Fingerprint(site.stack, site.function))
        .WriteTo(out);
  }
}

void WriteModules(const ReportView& view, size_t top, words::Sink& out) {
  out.Write(
      "module,callers,allocations,frees,bytes_allocated,live_bytes,live_blocks,"
      "bytes_at_peak,wasted_bytes,temporary\r\n");
  const std::vector<ModuleUsage> rows = Modules(view);
  for (size_t i = 0; i < std::min(top, rows.size()) && !out.done(); ++i) {
    const ModuleUsage& row = rows[i];
    CsvRecord()
        .Text(row.module)
        .Number(row.callers)
        .Number(row.allocations)
        .Number(row.frees)
        .Number(row.bytes_allocated)
        .Number(row.live_bytes)
        .Number(row.live_blocks)
        .Number(row.bytes_at_peak)
        .Wasted(view, row.wasted_bytes)
        .Temporary(view, row.temporary)
        .WriteTo(out);
  }
}

void WriteExchanges(const ReportView& view, size_t top, words::Sink& out) {
  out.Write("from_tid,to_tid,blocks,bytes\r\n");
  const std::vector<ThreadExchange>& rows = view.analysis().exchanges;
  for (size_t i = 0; i < std::min(top, rows.size()) && !out.done(); ++i) {
    CsvRecord record;
    for (const ThreadId id : {rows[i].from, rows[i].to}) {
      const ThreadSummary* thread = view.ThreadOf(id);
      if (thread != nullptr) {
        record.Number(thread->tid);
      } else {
        record.Text("");
      }
    }
    record.Number(rows[i].blocks).Number(rows[i].bytes).WriteTo(out);
  }
  const ExchangeSum& rest = view.analysis().exchanges_left_out;
  if (top <= rows.size() || rest.blocks == 0 || out.done()) return;
  CsvRecord().Text("").Text("").Number(rest.blocks).Number(rest.bytes).WriteTo(out);
}

void WriteSiteSizes(const ReportView& view, size_t top, words::Sink& out) {
  out.Write("from_bytes,to_bytes,allocations,caller,file,line,module,fingerprint\r\n");
  size_t rows = 0;
  for (size_t i = 0; i < view.sites().size() && rows < top && !out.done(); ++i) {
    const Site& site = *view.sites()[i];
    for (size_t k = 0; k < kSiteSizeClasses && rows < top; ++k) {
      if (site.sizes[k] == 0) continue;
      ++rows;
      CsvRecord record;
      record.Number(k == 0 ? 0 : uint64_t{1} << (k - 1));
      if (k + 1 == kSiteSizeClasses) {
        record.Text("");
      } else {
        record.Number(k == 0 ? 0 : (uint64_t{1} << k) - 1);
      }
      record.Number(site.sizes[k])
          .Caller(view, site.stack)
          .Text(view.Fingerprint(site.stack, site.function))
          .WriteTo(out);
    }
  }
}

void WriteStacked(const ReportView& view, StackBy by, size_t top, words::Sink& out) {
  out.Write("time_s,name,live_bytes\r\n");
  const StackedTimeline timeline = StackTimeline(view, by, top);
  const auto write = [&](const StackedTimeline::Series& series) {
    for (size_t i = 0; i < series.live_bytes.size(); ++i) {
      CsvRecord()
          .Seconds(timeline.from_ns + (i + 1) * timeline.interval_ns)
          .Text(series.name)
          .Number(series.live_bytes[i])
          .WriteTo(out);
    }
  };
  for (const StackedTimeline::Series& series : timeline.series) write(series);
  if (timeline.others > 0) write(timeline.other);
}

}  // namespace

void RenderUsageCsv(const ReportView& view, CsvTable table, size_t top, words::Sink& out) {
  switch (table) {
    case CsvTable::kLifetimes:
      return WriteLifetimes(view, top, out);
    case CsvTable::kReallocs:
      return WriteReallocs(view, top, out);
    case CsvTable::kModules:
      return WriteModules(view, top, out);
    case CsvTable::kExchanges:
      return WriteExchanges(view, top, out);
    case CsvTable::kSiteSizes:
      return WriteSiteSizes(view, top, out);
    case CsvTable::kTimelineBySite:
      return WriteStacked(view, StackBy::kSite, top, out);
    case CsvTable::kTimelineByThread:
      return WriteStacked(view, StackBy::kThread, top, out);
    case CsvTable::kTimelineByModule:
      return WriteStacked(view, StackBy::kModule, top, out);
    case CsvTable::kTimelineByFolder:
      return WriteStacked(view, StackBy::kFolder, top, out);
    default:
      break;
  }
}

}  // namespace memtrace::report::render
