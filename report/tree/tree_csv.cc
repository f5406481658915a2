// --format csv of several processes: one table, RFC 4180. Names have their control
// characters escaped and cannot be taken for formulas.

#include <algorithm>
#include <vector>

#include "report/render/csv_record.h"
#include "report/tree/tree_view.h"
#include "report/words/process_end.h"
#include "report/words/shell_words.h"

namespace memtrace::report {
namespace {

using render::CsvRecord;

void WriteProcesses(const TreeView& view, size_t top, words::Sink& out) {
  out.Write("trace,pid,ppid,parent_trace,link,executable,build_id,command,start_time_s,"
            "duration_s,end,status_or_signal,allocations,frees,bytes_allocated,live_bytes,"
            "live_blocks,peak_live_bytes,events,dropped_events,definite_bytes,definite_blocks,"
            "indirect_bytes,indirect_blocks,possible_bytes,possible_blocks,reachable_bytes,"
            "reachable_blocks\r\n");
  const TreeAnalysis& analysis = view.analysis();
  for (size_t i = 0; i < std::min(top, analysis.images.size()) && !out.done(); ++i) {
    const ProcessImage& image = analysis.images[i];
    const ImageNode& node = analysis.tree.nodes[i];
    const ProcessInfo& process = image.process;
    CsvRecord record;
    record.Text(image.file).Number(process.pid).Number(process.ppid)
        .Text(node.parent == kNoImage ? "" : analysis.images[node.parent].file)
        .Text(LinkName(node.link)).Text(process.executable).Text(process.build_id)
        .Text(words::ShellCommand(process.command));
    if (process.start_known()) {
      record.Seconds(static_cast<uint64_t>(process.start_realtime_ns));
    } else {
      record.Nothing();
    }
    const bool told = !process.imported();
    record.Seconds(process.duration_ns).Text(told ? words::EndName(process.end) : "");
    if (told && process.end == ProcessInfo::End::kExit) {
      record.Number(static_cast<uint32_t>(process.exit_status));
    } else if (process.end == ProcessInfo::End::kSignal) {
      record.Number(static_cast<uint32_t>(process.end_signal));
    } else {
      record.Nothing();
    }
    record.Number(image.totals.allocations).Number(image.totals.frees)
        .Number(image.totals.bytes_allocated).Number(image.totals.live_bytes)
        .Number(image.totals.live_blocks).Number(image.totals.peak_live_bytes)
        .Number(image.events).Number(image.dropped_events);
    for (size_t kind = 0; kind < 4; ++kind) {
      if (image.no_scan.empty()) {
        record.Number(image.leaks[kind].bytes).Number(image.leaks[kind].blocks);
      } else {
        record.Nothing().Nothing();
      }
    }
    record.WriteTo(out);
  }
}

void WriteExecutables(const TreeView& view, size_t top, words::Sink& out) {
  out.Write("executable,build_id,traces,allocations,frees,bytes_allocated,live_bytes,live_blocks,"
            "most_live_bytes,most_peak_live_bytes,dropped_events\r\n");
  for (size_t i = 0; i < std::min(top, view.executables().size()) && !out.done(); ++i) {
    const MergedExecutable& one = view.executable(view.executables()[i]);
    const Totals& totals = one.analysis.totals;
    CsvRecord()
        .Text(one.path).Text(one.build_id).Number(one.images).Number(totals.allocations)
        .Number(totals.frees).Number(totals.bytes_allocated).Number(totals.live_bytes)
        .Number(totals.live_blocks).Number(one.most_live_bytes).Number(one.most_peak_bytes)
        .Number(one.dropped_events).WriteTo(out);
  }
}

// Writes the `top` largest groups of each executable.
void WriteGroups(const TreeView& view, bool leaks, size_t top, render::SortColumn sort,
                 words::Sink& out) {
  out.Write(leaks ? "executable,traces,traces_of,bytes,blocks,allocator,fingerprint,caller,file,"
                    "line,stack\r\n"
                  : "executable,traces,traces_of,allocations,frees,bytes_allocated,live_bytes,"
                    "live_blocks,wasted_bytes,allocator,fingerprint,caller,file,line,stack\r\n");
  for (const size_t index : view.executables()) {
    const MergedExecutable& one = view.executable(index);
    const render::ReportView& sites = view.sites_of(index);
    const size_t rows = leaks ? sites.unfreed().size() : sites.sites().size();
    const std::vector<const Site*> sorted =
        leaks ? std::vector<const Site*>() : SortedSites(sites, sort);
    for (size_t i = 0; i < std::min(top, rows) && !out.done(); ++i) {
      CsvRecord record;
      record.Text(one.path);
      if (leaks) {
        const render::SiteGroup& group = sites.unfreed()[i];
        record.Number(one.ImagesOf(group.sites))
            .Number(one.images)
            .Number(group.live_bytes)
            .Number(group.live_blocks)
            .Text(render::FunctionName(group.function))
            .Text(sites.Fingerprint(group.stack, group.function))
            .CallerInItsModule(sites, group.stack)
            .Stack(sites, group.stack);
      } else {
        const Site* const group[] = {sorted[i]};
        const Site& site = *group[0];
        record.Number(one.ImagesOf(group))
            .Number(one.images)
            .Number(site.allocations)
            .Number(site.frees)
            .Number(site.bytes_allocated)
            .Number(site.live_bytes)
            .Number(site.live_blocks)
            .Wasted(sites, site.wasted_bytes)
            .Text(render::FunctionName(site.function))
            .Text(sites.Fingerprint(site.stack, site.function))
            .CallerInItsModule(sites, site.stack)
            .Stack(sites, site.stack);
      }
      record.WriteTo(out);
    }
  }
}

}  // namespace

void RenderTreeCsv(const TreeView& view, TreeTable table, size_t top, render::SortColumn sort,
                   words::Sink& out) {
  switch (table) {
    case TreeTable::kSummary: return;
    case TreeTable::kProcesses: return WriteProcesses(view, top, out);
    case TreeTable::kExecutables: return WriteExecutables(view, top, out);
    case TreeTable::kLeaks: return WriteGroups(view, /*leaks=*/true, top, sort, out);
    case TreeTable::kSites: return WriteGroups(view, /*leaks=*/false, top, sort, out);
  }
}

}  // namespace memtrace::report
