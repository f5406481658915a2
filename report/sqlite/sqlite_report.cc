#include "report/sqlite/sqlite_report.h"

#ifdef MEMTRACE_HAVE_SQLITE

#include <algorithm>
#include <map>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "report/analysis/coverage.h"
#include "report/base/output_file.h"
#include "report/leak/leak_kinds.h"
#include "report/leak/leak_scans.h"
#include "report/names/frames_filter.h"
#include "report/render/mismatches.h"
#include "report/render/selection_lines.h"
#include "report/render/text_report.h"
#include "report/sqlite/database.h"
#include "report/sqlite/schema.h"
#include "report/sqlite/site_rows.h"
#include "report/trace/trace_metadata.h"
#include "report/words/process_end.h"

namespace memtrace::report::sqlite {
namespace {

using render::ReportView;

absl::string_view RoleName(FrameRole role) {
  switch (role) {
    case FrameRole::kProject: return "project";
    case FrameRole::kSystem: return "system";
    case FrameRole::kAllocator: return "allocator";
    case FrameRole::kStart: return "start";
    case FrameRole::kInvoker: return "invoker";
    case FrameRole::kMarker: return "marker";
  }
  return "project";
}

// Tables in the order of their references: what is pointed to comes first.
class Writer {
 public:
  Writer(const ReportView& view, Database* database) : view_(view), database_(database) {}

  void WriteAll() {
    database_->Execute(kTables);
    WriteMeta();
    WriteProcess();
    WriteCoverage();
    WriteModules();
    WriteThreads();
    WriteFrames();
    WriteStacks();
    WriteSites();
    WriteLeaks();
    WriteTimeline();
    WritePhases();
    WritePools();
    WriteMappings();
    WriteBlockEnds();
    WriteInvalidFrees();
    WriteFaultSites(view_, database_);
    WriteSizes();
    WriteLiveBlocks();
    database_->Execute(kIndices);
    database_->Execute(kViews);
  }

 private:
  const Analysis& analysis() const { return view_.analysis(); }
  static void Stack(StackId stack, Insert* row) { row->NumberOrNull(stack.value); }

  void WriteMeta();
  void WriteProcess();
  void WriteCoverage();
  void WriteModules();
  void WriteThreads();
  void WriteFrames();
  void WriteStacks();
  void WriteSites();
  void WriteLeaks();
  void WriteTimeline();
  void WritePhases();
  void WritePools();
  void WriteMappings();
  void WriteBlockEnds();
  void WriteInvalidFrees();
  void WriteSizes();
  void WriteLiveBlocks();

  const ReportView& view_;
  Database* const database_;
  absl::flat_hash_map<std::pair<uint32_t, format::AllocFunction>, uint64_t> site_ids_;
};

void Writer::WriteMeta() {
  Insert row(database_, "meta", 2);
  row.Text("schema").Text(kSchemaName).Row();
  row.Text("trace").Text(analysis().file).Row();
  const render::FrameFilter& filter = view_.filter();
  for (const auto& [key, value] : {std::pair("match", &filter.match),
                                   {"function", &filter.function},
                                   {"file", &filter.file},
                                   {"module", &filter.module}}) {
    if (!value->empty()) row.Text(key).Text(*value).Row();
  }
  if (!analysis().only_thread.empty()) row.Text("thread").Text(analysis().only_thread).Row();
  const BlockSelection& selection = analysis().selection;
  for (const auto& [name, range] :
       {std::pair("size", &selection.sizes), std::pair("lifetime_ns", &selection.lifetimes),
        std::pair("age_ns", &selection.ages)}) {
    if (range->low != 0) row.Text(absl::StrCat("min_", name)).Number(range->low).Row();
    if (range->high != UINT64_MAX) row.Text(absl::StrCat("max_", name)).Number(range->high).Row();
  }
  const std::string only = absl::StrJoin(render::SelectionLines(view_), "; ");
  if (!only.empty()) row.Text("only").Text(only).Row();
  if (!analysis().range.whole()) {
    const uint64_t end = analysis().process.duration_ns;
    row.Text("from_ns").Number(std::min(analysis().range.from_ns, end)).Row();
    row.Text("to_ns").Number(std::min(analysis().range.to_ns, end)).Row();
  }
}

void Writer::WriteProcess() {
  const ProcessInfo& process = analysis().process;
  Insert row(database_, "process", 15);
  row.Number(process.pid).NumberOrNull(process.ppid).TextOrNull(process.executable)
      .TextOrNull(ProcessBuildId(process, analysis().modules))
      .TextOrNull(absl::StrJoin(process.command, " "))
      .TextOrNull(process.working_directory).TextOrNull(process.host).TextOrNull(process.kernel)
      .NumberOrNull(static_cast<uint64_t>(process.start_realtime_ns)).Number(process.duration_ns)
      .TextOrNull(process.imported() ? "" : words::EndName(process.end));
  if (process.end == ProcessInfo::End::kExit && !process.imported()) {
    row.Signed(process.exit_status);
  } else {
    row.Null();
  }
  if (process.end == ProcessInfo::End::kSignal) {
    row.Signed(process.end_signal);
  } else {
    row.Null();
  }
  row.Number(process.forked).NumberOrNull(process.sample_bytes).Row();

  const Totals& totals = analysis().totals;
  const bool whole = !view_.sampled();
  Insert(database_, "totals", 12)
      .Number(totals.allocations).Number(totals.frees).Number(totals.bytes_allocated)
      .Number(totals.live_bytes).Number(totals.live_blocks).Number(totals.peak_live_bytes)
      .Number(totals.peak_live_blocks).Number(totals.peak_time_ns)
      .NumberIf(analysis().process.waste_is_known(), totals.wasted_bytes)
      .NumberIf(whole, totals.temporary_allocations).NumberIf(whole, totals.reallocations)
      .Number(totals.failed_allocations).Row();
}

void Writer::WriteCoverage() {
  const Coverage& coverage = analysis().coverage;
  std::map<std::string, uint64_t> values = {
      {"events", coverage.events},
      {"dropped_events", coverage.dropped_events},
      {"recovered_events", coverage.recovered_events},
      {"unordered_events", coverage.unordered_events},
      {"marked_stacks", coverage.marked_stacks},
      {"inherited_frees", coverage.inherited_frees},
      {"unknown_frees", coverage.unknown_frees},
      {"unseen_frees", coverage.unseen_frees},
      {"lost_blocks", coverage.lost_blocks},
      {"cross_checked", coverage.cross_checked},
      {"cross_check_differences", coverage.cross_check_differences},
      {"tool_memory_bytes", coverage.tool_memory_bytes},
      {"tool_minor_faults", coverage.tool_minor_faults},
      {"stops", coverage.stops},
      {"stopped_ns", coverage.stopped_ns},
      {"stopped_allocations", coverage.stopped_allocations},
      {"stopped_frees", coverage.stopped_frees},
      {"untraced_children", coverage.untraced_children.count},
      {"truncated", coverage.truncated},
      {"all_recorded", AllRecorded(coverage)}};
  // Names that differ in bytes which are no UTF-8 are one here, and the first has it.
  for (const auto& [name, value] : coverage.counters) {
    values.try_emplace(Utf8(absl::StrCat("counter.", name)), value);
  }
  Insert row(database_, "coverage", 2);
  for (const auto& [name, value] : values) row.Text(name).Number(value).Row();
  Insert note(database_, "notes", 1);
  for (const std::string& text : CoverageNotes(analysis())) note.Text(text).Row();
  for (const std::string& text : view_.symbols().notes()) note.Text(text).Row();
}

void Writer::WriteModules() {
  Insert row(database_, "modules", 10);
  absl::flat_hash_set<uint32_t> seen;  // a damaged trace may have a number twice
  for (const ModuleInfo& module : analysis().modules) {
    if (!seen.insert(module.id.value).second) continue;
    row.Number(module.id.value).TextOrNull(module.path).TextOrNull(HexOf(module.build_id))
        .Number(module.start).Number(module.end).Signed(static_cast<int64_t>(module.bias))
        .Number((module.flags & format::kModuleExecutable) != 0)
        .Number((module.flags & format::kModuleTracer) != 0).Number(module.load_time_ns)
        .NumberOrNull(module.unload_time_ns).Row();
  }
}

void Writer::WriteThreads() {
  Insert row(database_, "threads", 12);
  for (const ThreadSummary& thread : analysis().threads) {
    row.Number(thread.id.value)
        .NumberOrNull(thread.tid)
        .TextOrNull(thread.name)
        .Number(thread.in_signal_handlers)
        .Number(thread.allocations)
        .Number(thread.frees)
        .Number(thread.bytes_allocated)
        .Number(thread.live_bytes)
        .Number(thread.live_blocks)
        .NumberIf(!view_.sampled(), thread.temporary)
        .Number(thread.first_time_ns)
        .Number(thread.last_time_ns)
        .Row();
  }
}

void Writer::WriteFrames() {
  Insert row(database_, "frames", 10);
  for (uint32_t id = 1; id < view_.symbols().frame_count(); ++id) {
    const Frame& frame = view_.symbols().frame({id});
    row.Number(id).TextOrNull(frame.function).TextOrNull(frame.linkage_name)
        .TextOrNull(frame.module).Number(frame.offset).TextOrNull(frame.file)
        .NumberOrNull(frame.line).Number(frame.inlined).Text(RoleName(frame.role))
        .Text(render::FrameName(frame)).Row();
  }
}

void Writer::WriteStacks() {
  Insert stack_row(database_, "stacks", 3), frame_row(database_, "stack_frames", 3);
  absl::flat_hash_set<StackId> seen;
  const auto write = [&](StackId stack) {
    if (!stack || !seen.insert(stack).second) return;
    const std::vector<FrameId> ids = view_.symbols().Stack(stack);
    stack_row.Number(stack.value).Number(ids.size());
    if (ids.empty()) {
      stack_row.Null();
    } else {
      stack_row.Number(ids[names::CutStack(view_.Frames(stack)).caller].value);
    }
    stack_row.Row();
    for (size_t i = 0; i < ids.size(); ++i) {
      frame_row.Number(stack.value).Number(i).Number(ids[i].value).Row();
    }
  };
  for (const Site* site : view_.sites()) write(site->stack);
  for (const MappingSite* mapping : view_.mappings()) write(mapping->stack);
  for (const Pool& pool : analysis().pools) write(pool.stack);
  for (const BlockEnds& ends : analysis().block_ends) {
    if (view_.Matches(ends.from)) write(ends.to);
  }
  for (const InvalidFree& one : analysis().invalid_frees.stories) {
    for (const auto* moment : {&one.allocated, &one.freed, &one.again}) write(moment->stack);
  }
  for (const LeakScan& scan : analysis().leak_scans) {
    for (const LossRecord& record : scan.records) write(record.stack);
  }
  for (const FaultSite& site : analysis().fault_details.sites) {
    if (view_.Matches(site.stack)) write(site.stack);
  }
}

void Writer::WriteSites() {
  Insert row(database_, "sites", 28);
  uint64_t id = 0;
  const bool waste = analysis().process.waste_is_known();
  for (const Site* site : view_.sites()) {
    site_ids_[{site->stack.value, site->function}] = ++id;
    row.Number(id);
    Stack(site->stack, &row);
    row.Text(render::FunctionName(site->function))
        .Text(view_.Fingerprint(site->stack, site->function))
        .Number(site->allocations)
        .Number(site->frees)
        .Number(site->bytes_allocated)
        .Number(site->live_bytes)
        .Number(site->live_blocks)
        .Number(site->peak_bytes)
        .Number(site->bytes_at_peak)
        .Number(site->blocks_at_peak)
        .NumberIf(waste, site->wasted_bytes)
        .NumberIf(waste, site->live_wasted_bytes)
        .NumberIf(!view_.sampled(), site->temporary)
        .Number(site->freed_by_other_thread)
        .Number(site->largest_bytes)
        .Number(site->first_time_ns)
        .Number(site->last_time_ns);
    if (site->live_blocks > 0) {
      row.Number(site->live_first_time_ns).Number(site->live_last_time_ns);
    } else {
      row.Null().Null();
    }
    row.Real(site->freed_lifetime_ns);
    WriteGrowth(site->growth, &row);
    row.Row();
  }
}

void Writer::WriteLeaks() {
  Insert scan_row(database_, "leak_scans", 6);
  for (const LeakScan& scan : analysis().leak_scans) {
    scan_row.Number(scan.number).Number(scan.time_ns).Text(leak::ReasonName(scan.reason))
        .Text(leak::StateName(scan.state))
        .TextOrNull(scan.label).TextOrNull(scan.failure).Row();
  }
  Insert row(database_, "leaks", 12);
  uint64_t id = 0;
  bool known = false;
  for (const LeakScan& scan : analysis().leak_scans) {
    if (scan.state != LeakScan::State::kDone) continue;
    known = true;
    for (const LossRecord& record : scan.records) {
      if (!view_.Matches(record.stack)) continue;
      row.Number(++id).Number(scan.number).Text(KindName(record.kind));
      Stack(record.stack, &row);
      row.Text(render::FunctionName(record.function))
          .Text(view_.Fingerprint(record.stack, record.function)).Number(record.bytes)
          .Number(record.blocks).Number(record.indirect_bytes).Number(record.indirect_blocks)
          .Number(record.first_time_ns).Number(record.last_time_ns).Row();
    }
  }
  if (known) return;
  for (const render::SiteGroup& group : view_.unfreed()) {
    row.Number(++id).Null().Text(KindName(LeakKind::kUnfreed));
    Stack(group.stack, &row);
    row.Text(render::FunctionName(group.function))
        .Text(view_.Fingerprint(group.stack, group.function)).Number(group.live_bytes)
        .Number(group.live_blocks).Number(0).Number(0).Number(group.live_first_time_ns)
        .Number(group.live_last_time_ns).Row();
  }
}

void Writer::WriteTimeline() {
  Insert row(database_, "timeline", 10);
  absl::flat_hash_set<uint64_t> seen;
  for (const TimelinePoint& point : analysis().timeline) {
    if (!seen.insert(point.time_ns).second) continue;
    row.Number(point.time_ns).Number(point.live_bytes).Number(point.live_blocks)
        .Number(point.max_live_bytes).Number(point.allocations).Number(point.frees)
        .Number(point.bytes_allocated).NumberOrNull(point.rss_bytes)
        .NumberIf(analysis().faults_known(), point.minor_faults)
        .NumberIf(analysis().faults_known(), point.major_faults).Row();
  }
  Insert sample_row(database_, "usage_samples", 8);
  for (const UsageSample& sample : analysis().faults.samples) {
    sample_row.Number(sample.time_ns).Number(sample.minor_faults).Number(sample.major_faults)
        .Number(sample.tool_minor_faults).NumberOrNull(sample.rss_bytes)
        .NumberOrNull(sample.peak_rss_bytes).Number(sample.live_bytes)
        .Number(sample.bytes_allocated).Row();
  }
}

void Writer::WritePhases() {
  Insert row(database_, "phases", 12);
  uint64_t id = 0;
  for (const Phase& phase : analysis().phases) {
    row.Number(++id).Text(phase.name).Number(phase.times).Number(phase.open)
        .Number(phase.total_ns).Number(phase.allocations).Number(phase.frees)
        .Number(phase.bytes_allocated).Signed(phase.growth_bytes).Signed(phase.growth_blocks)
        .Number(phase.first_begin.time_ns).Number(phase.last_end.time_ns).Row();
  }
  Insert mark_row(database_, "marks", 4);
  for (const Mark& mark : analysis().marks) {
    mark_row.Text(mark.name).Number(mark.time_ns).Number(mark.live_bytes)
        .Number(mark.live_blocks).Row();
  }
}

void Writer::WritePools() {
  Insert row(database_, "pools", 11);
  uint64_t id = 0;
  for (const Pool& pool : analysis().pools) {
    row.Number(++id).TextOrNull(pool.name);
    Stack(pool.stack, &row);
    row.Number(pool.created).Number(pool.destroyed).Number(pool.allocations).Number(pool.frees)
        .Number(pool.bytes_allocated).Number(pool.live_bytes).Number(pool.live_blocks)
        .Number(pool.peak_bytes).Row();
  }
}

void Writer::WriteMappings() {
  Insert row(database_, "mappings", 7);
  uint64_t id = 0;
  for (const MappingSite* mapping : view_.mappings()) {
    row.Number(++id).Text(render::MappingKindName(mapping->kind));
    Stack(mapping->stack, &row);
    row.TextOrNull(mapping->file).Number(mapping->calls).Number(mapping->bytes)
        .Number(mapping->live_bytes).Row();
  }
}

void Writer::WriteBlockEnds() {
  absl::flat_hash_map<std::pair<StackId, StackId>, std::string> mismatched;
  for (const render::Mismatch& one : render::Mismatches(view_)) {
    mismatched[{one.allocated, one.ended}] = one.ended_by;
  }
  Insert row(database_, "block_ends", 5);
  for (const BlockEnds& ends : analysis().block_ends) {
    const auto site = site_ids_.find({ends.from.value, ends.from_function});
    if (site == site_ids_.end()) continue;
    const auto wrong = mismatched.find({ends.from, ends.to});
    const bool is_realloc = ends.by == BlockEnds::By::kRealloc;
    row.Number(site->second)
        .Text(wrong != mismatched.end() ? absl::string_view(wrong->second)
                                        : is_realloc ? "realloc" : "free");
    Stack(ends.to, &row);
    row.Number(ends.times).Number(wrong != mismatched.end()).Row();
  }
}

void Writer::WriteInvalidFrees() {
  Insert row(database_, "invalid_frees", 11);
  for (const InvalidFree& one : analysis().invalid_frees.stories) {
    row.Text(render::KindName(one.kind)).Number(one.times).Number(one.address).Number(one.offset)
        .Number(one.block_bytes).Number(one.allocated.time_ns);
    Stack(one.allocated.stack, &row);
    if (one.kind == InvalidFree::Kind::kInsideLive) {
      row.Null();
    } else {
      row.Number(one.freed.time_ns);
    }
    Stack(one.freed.stack, &row);
    row.Number(one.again.time_ns);
    Stack(one.again.stack, &row);
    row.Row();
  }
}

void Writer::WriteSizes() {
  Insert row(database_, "size_classes", 6);
  const SizeHistogram& sizes = analysis().sizes;
  for (size_t i = 0; i < kSizeClasses; ++i) {
    if (sizes.allocations[i] == 0) continue;
    row.Number(SmallestOfClass(i)).Number(LargestOfClass(i))
        .Number(sizes.allocations[i]).Number(sizes.bytes[i]).Number(sizes.live_blocks[i])
        .Number(sizes.live_bytes[i]).Row();
  }
}

void Writer::WriteLiveBlocks() {
  Insert row(database_, "live_blocks", 7);
  for (const LiveBlock& block : analysis().live) {
    if (view_.filtered() && !view_.Matches(block.stack)) continue;
    const auto site = site_ids_.find({block.stack.value, block.function});
    row.Number(block.address).Number(block.bytes)
        .NumberOrNull(site == site_ids_.end() ? 0 : site->second).Number(block.time_ns)
        .Number(block.ignored).Number(block.holds_blocks).NumberOrNull(block.pool).Row();
  }
}

}  // namespace

bool HasSqlite() { return true; }

absl::Status CheckSqliteOutput(const std::string& path) {
  if (!path.empty() && path != "-") return absl::OkStatus();
  return absl::InvalidArgumentError("--format sqlite: it is a file; name it with -o FILE");
}

absl::Status WriteSqlite(const ReportView& view, const std::string& path) {
  auto file = OutputFile::Create(path);
  if (!file.ok()) return file.status();
  Database database((*file)->temporary_path());
  Writer(view, &database).WriteAll();
  const absl::Status written = database.Close();
  return written.ok() ? (*file)->Commit() : written;
}

}  // namespace memtrace::report::sqlite

#else  // MEMTRACE_HAVE_SQLITE

namespace memtrace::report::sqlite {

bool HasSqlite() { return false; }

absl::Status CheckSqliteOutput(const std::string&) {
  return absl::UnimplementedError(
      "--format sqlite: this memtrace was built without it; install libsqlite3-dev and build "
      "again");
}

absl::Status WriteSqlite(const render::ReportView&, const std::string& path) {
  return CheckSqliteOutput(path);
}

}  // namespace memtrace::report::sqlite

#endif
