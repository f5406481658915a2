// --format csv: one table, RFC 4180 (CRLF, quotes doubled), a header record first.
// Times are seconds, sizes bytes; names have their control characters escaped and
// cannot be taken for formulas.

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "report/leak/leak_kinds.h"
#include "report/render/csv_record.h"
#include "report/render/formats.h"

namespace memtrace::report::render {
namespace {

constexpr std::pair<CsvTable, absl::string_view> kTables[] = {
    {CsvTable::kSites, "sites"},     {CsvTable::kLeaks, "leaks"},
    {CsvTable::kTimeline, "timeline"}, {CsvTable::kThreads, "threads"},
    {CsvTable::kMappings, "mappings"}, {CsvTable::kSizes, "sizes"},
    {CsvTable::kLifetimes, "lifetimes"}, {CsvTable::kReallocs, "reallocs"},
    {CsvTable::kModules, "modules"}, {CsvTable::kExchanges, "exchanges"},
    {CsvTable::kSiteSizes, "site-sizes"},
    {CsvTable::kTimelineBySite, "timeline-by-site"},
    {CsvTable::kTimelineByThread, "timeline-by-thread"},
    {CsvTable::kTimelineByModule, "timeline-by-module"},
    {CsvTable::kTimelineByFolder, "timeline-by-folder"},
    {CsvTable::kPressure, "pressure"},
};

void WriteSites(const ReportView& view, SortColumn sort, size_t top, words::Sink& out) {
  out.Write("allocator,allocations,frees,bytes_allocated,live_bytes,live_blocks,peak_bytes,"
            "bytes_at_peak,blocks_at_peak,temporary,wasted_bytes,largest_bytes,first_time_s,"
            "last_time_s,caller,file,line,module,fingerprint,stack,samples,bytes_allocated_low,"
            "bytes_allocated_high,live_samples,live_bytes_low,live_bytes_high,growth,"
            "held_until_exit,growth_bytes_per_s,growth_bytes_per_allocation,"
            "growth_confidence,minor_faults,major_faults,resident_bytes\r\n");
  const std::vector<const Site*> sites = SortedSites(view, sort);
  for (size_t i = 0; i < std::min(top, sites.size()) && !out.done(); ++i) {
    const Site& site = *sites[i];
    CsvRecord()
        .Text(FunctionName(site.function)).Number(site.allocations).Number(site.frees)
        .Number(site.bytes_allocated).Number(site.live_bytes).Number(site.live_blocks)
        .Number(site.peak_bytes).Number(site.bytes_at_peak).Number(site.blocks_at_peak)
        .Temporary(view, site.temporary).Wasted(view, site.wasted_bytes).Number(site.largest_bytes)
        .Seconds(site.first_time_ns).Seconds(site.last_time_ns)
        .Caller(view, site.stack).Text(view.Fingerprint(site.stack, site.function))
        .Stack(view, site.stack)
        .Sample(view, site.bytes_sample, site.allocations, site.bytes_allocated)
        .Sample(view, site.live_sample, site.live_blocks, site.live_bytes)
        .GrowthOf(site.growth).Faults(view, site).WriteTo(out);
  }
}

void WriteLeaks(const ReportView& view, size_t top, words::Sink& out) {
  out.Write("kind,bytes,blocks,allocator,first_time_s,last_time_s,caller,file,line,module,"
            "fingerprint,stack,samples,bytes_low,bytes_high,scan,record,indirect_bytes,"
            "indirect_blocks\r\n");
  if (view.leak_scan() != nullptr) {
    const std::vector<ReportView::Loss> losses = view.Losses(/*everything=*/true);
    for (size_t i = 0; i < std::min(top, losses.size()) && !out.done(); ++i) {
      const LossRecord& row = *losses[i].record;
      CsvRecord()
          .Text(row.suppressed ? "suppressed" : KindName(row.kind))
          .Number(row.bytes).Number(row.blocks)
          .Text(FunctionName(row.function)).Seconds(row.first_time_ns).Seconds(row.last_time_ns)
          .Caller(view, row.stack).Text(view.Fingerprint(row.stack, row.function))
          .Stack(view, row.stack).Number(row.blocks).Number(row.bytes).Number(row.bytes)
          .Number(view.leak_scan()->number).Number(losses[i].number).Number(row.indirect_bytes)
          .Number(row.indirect_blocks).WriteTo(out);
    }
    return;
  }
  const std::vector<SiteGroup>& rows = view.unfreed();
  for (size_t i = 0; i < std::min(top, rows.size()) && !out.done(); ++i) {
    const SiteGroup& row = rows[i];
    CsvRecord()
        .Text("unfreed").Number(row.live_bytes).Number(row.live_blocks)
        .Text(FunctionName(row.function)).Seconds(row.live_first_time_ns)
        .Seconds(row.live_last_time_ns).Caller(view, row.stack)
        .Text(view.Fingerprint(row.stack, row.function)).Stack(view, row.stack)
        .Sample(view, row.live_sample, row.live_blocks, row.live_bytes)
        .Text("").Text("").Text("").Text("").WriteTo(out);
  }
}

void WriteTimeline(const Analysis& analysis, words::Sink& out) {
  out.Write("time_s,live_bytes,live_blocks,max_live_bytes,allocations,frees,bytes_allocated,"
            "rss_bytes,minor_faults,major_faults,usable_bytes\r\n");
  for (const TimelinePoint& point : analysis.timeline) {
    CsvRecord record;
    record.Seconds(point.time_ns).Number(point.live_bytes).Number(point.live_blocks)
        .Number(point.max_live_bytes).Number(point.allocations).Number(point.frees)
        .Number(point.bytes_allocated);
    if (point.rss_bytes != 0) {
      record.Number(point.rss_bytes);
    } else {
      record.Text("");  // not known
    }
    if (analysis.faults_known()) {
      record.Number(point.minor_faults).Number(point.major_faults);
    } else {
      record.Nothing().Nothing();
    }
    record.Number(point.usable_bytes).WriteTo(out);
  }
}

void WriteThreads(const ReportView& view, words::Sink& out) {
  out.Write("tid,name,allocations,frees,bytes_allocated,live_bytes,live_blocks,temporary,"
            "first_time_s,last_time_s,in_signal_handlers\r\n");
  for (const ThreadSummary& thread : view.analysis().threads) {
    CsvRecord()
        .Number(thread.tid)
        .Text(thread.name)
        .Number(thread.allocations)
        .Number(thread.frees)
        .Number(thread.bytes_allocated)
        .Number(thread.live_bytes)
        .Number(thread.live_blocks)
        .Temporary(view, thread.temporary)
        .Seconds(thread.first_time_ns)
        .Seconds(thread.last_time_ns)
        .Number(thread.in_signal_handlers)
        .WriteTo(out);
  }
}

void WriteMappings(const ReportView& view, size_t top, words::Sink& out) {
  out.Write("kind,calls,bytes,live_bytes,mapped_file,caller,file,line,module,stack\r\n");
  const std::vector<const MappingSite*>& rows = view.mappings();
  for (size_t i = 0; i < std::min(top, rows.size()) && !out.done(); ++i) {
    const MappingSite& row = *rows[i];
    CsvRecord()
        .Text(MappingKindName(row.kind)).Number(row.calls).Number(row.bytes).Number(row.live_bytes)
        .Text(row.file).Caller(view, row.stack).Stack(view, row.stack).WriteTo(out);
  }
}

void WriteSizes(const SizeHistogram& sizes, words::Sink& out) {
  out.Write("from_bytes,to_bytes,allocations,bytes,live_blocks,live_bytes\r\n");
  for (size_t i = 0; i < kSizeClasses; ++i) {
    if (sizes.allocations[i] == 0) continue;
    CsvRecord()
        .Number(SmallestOfClass(i)).Number(LargestOfClass(i))
        .Number(sizes.allocations[i]).Number(sizes.bytes[i]).Number(sizes.live_blocks[i])
        .Number(sizes.live_bytes[i]).WriteTo(out);
  }
}

// Writes what `memtrace run` saw from outside; empty fields: not known then. The names of
// columns are the trace's.
void WritePressure(const PressureLane& lane, words::Sink& out) {
  std::string head = "time_s";
  for (const std::string& column : lane.columns) {
    absl::StrAppend(&head, ",", words::CsvField(column));
  }
  out.Write(absl::StrCat(head, "\r\n"));
  for (const PressureLane::Point& point : lane.points) {
    if (out.done()) return;
    CsvRecord record;
    record.Seconds(point.time_ns);
    for (size_t i = 0; i < lane.columns.size(); ++i) {
      const bool known = i < point.values.size() && point.values[i] != PressureLane::kNotKnown;
      if (known) {
        record.Number(point.values[i]);
      } else {
        record.Text("");
      }
    }
    record.WriteTo(out);
  }
}

}  // namespace

absl::StatusOr<CsvTable> ParseCsvTable(absl::string_view name) {
  std::vector<absl::string_view> names;
  for (const auto& [table, text] : kTables) {
    if (text == name) return table;
    names.push_back(text);
  }
  return absl::InvalidArgumentError(absl::StrCat("--table: no table \"", name, "\"; there are ",
                                                 absl::StrJoin(names, ", ")));
}

void RenderCsv(const ReportView& view, CsvTable table, SortColumn sort, size_t top,
               words::Sink& out) {
  switch (table) {
    case CsvTable::kSites: return WriteSites(view, sort, top, out);
    case CsvTable::kLeaks: return WriteLeaks(view, top, out);
    case CsvTable::kTimeline: return WriteTimeline(view.analysis(), out);
    case CsvTable::kThreads: return WriteThreads(view, out);
    case CsvTable::kMappings: return WriteMappings(view, top, out);
    case CsvTable::kPressure: return WritePressure(view.analysis().pressure, out);
    case CsvTable::kSizes: return WriteSizes(view.analysis().sizes, out);
    default: return RenderUsageCsv(view, table, top, out);
  }
}

}  // namespace memtrace::report::render
