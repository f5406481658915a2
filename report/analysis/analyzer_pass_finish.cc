// The part of AnalyzerPass that runs after the last event: it puts what the pass has found into an
// Analysis, together with the process, the threads and the coverage that the trace tells of.

#include <algorithm>

#include "report/analysis/analyzer_pass.h"
#include "report/analysis/checked_stacks.h"
#include "report/analysis/run_end.h"
#include "report/faults/correlation.h"
#include "report/model/memory_map.h"

namespace memtrace::report {

namespace {

// A scan before the destructors ends within the run, all else is behind it. Of a scan that failed
// it is not known how long it took.
void FillExitWork(const Analysis& analysis, ProcessInfo* process) {
  uint64_t early_ns = 0;
  for (const LeakScan& scan : analysis.leak_scans) {
    if (scan.reason == format::ScanReason::kExitLate) {
      process->exit_work_begin_ns = std::min(process->exit_work_begin_ns, scan.time_ns);
    } else if (scan.reason == format::ScanReason::kExitEarly) {
      early_ns += scan.cost.elapsed_ns;
    }
  }
  if (const RssBridge* const pages = analysis.resident.End()) {
    process->exit_work_begin_ns = std::min(process->exit_work_begin_ns, pages->time_ns);
  }
  process->exit_work_ns =
      early_ns + process->duration_ns - std::min(process->duration_ns, process->exit_work_begin_ns);
}

}  // namespace

void AnalyzerPass::FillProcess(Analysis* analysis) const {
  const TraceMetadata& metadata = reader_->metadata();
  ProcessInfo& process = analysis->process;
  process = metadata.process;
  process.pid = reader_->header().pid;
  process.forked = (reader_->header().flags & format::kFileForked) != 0;
  process.last_event_ns = latest_ns_;
  const bool tells_end = metadata.end.has_value() || metadata.stopped.has_value();
  // Where a part was read there are later ones.
  if (!tells_end && (!range_.whole() || interrupted_)) {
    process.last_event_ns = std::max(latest_ns_, LastStampNs(*reader_));
  }
  process.duration_ns = process.last_event_ns;
  uint64_t events_after_end_ns = 0;
  if (metadata.end.has_value()) {
    const uint64_t end = reader_->clock().ToNs(metadata.end->ticks);
    if (latest_ns_ > end + ClockSlackNs(process.clock)) events_after_end_ns = latest_ns_ - end;
    process.duration_ns = std::max(process.duration_ns, end);
  }
  if (metadata.stopped.has_value()) {  // nothing is known from behind that
    process.duration_ns =
        std::max(process.last_event_ns, reader_->clock().ToNs(metadata.stopped->ticks));
  } else {
    process.duration_ns = std::max(process.duration_ns, reader_->live_until_ns());
  }
  FillEnd(metadata, events_after_end_ns, &process);
  process.at_work = process.end == ProcessInfo::End::kCut && reader_->live_until_ns() != 0;
  const bool end_is_seen_outside = process.end == ProcessInfo::End::kSignal ||
                                   process.end == ProcessInfo::End::kCut || process.exit_unseen;
  if (end_is_seen_outside && !metadata.stopped.has_value()) {
    process.duration_ns =
        std::max(process.duration_ns, SeenAliveUntil(metadata, analysis->pressure));
  }
}

// The model knows threads by the order of their streams; add who they were.
void AnalyzerPass::FillThreads(Analysis* analysis) const {
  const auto& records = reader_->metadata().threads;
  for (ThreadSummary& thread : analysis->threads) {
    const auto record = records.find(thread.id.value);
    if (record != records.end()) {
      thread.tid = record->second.tid;
      thread.name = record->second.name;
      thread.in_signal_handlers = record->second.handlers_of != 0;
    }
    const auto name = names_.find(thread.id.value);
    if (name != names_.end()) thread.name = name->second;
  }
  // Of the others those are told that freed blocks of the selection: the frees of all are theirs.
  if (!threads_.empty()) {
    std::erase_if(analysis->threads, [&](const ThreadSummary& thread) {
      return !threads_.contains(thread.id.value) && thread.frees == 0;
    });
  }
}

void AnalyzerPass::FillMappers(Analysis* analysis) const {
  const ModuleIndex modules(analysis->modules);
  const auto add = [&](const CodePlace& place, std::vector<ModuleId>* mappers) {
    const ModuleInfo* const module = modules.Find(place.second, place.first);
    const ModuleId id = module == nullptr ? ModuleId{} : module->id;
    if (std::ranges::find(*mappers, id) == mappers->end()) mappers->push_back(id);
  };
  std::vector<ModuleId>& mappers = analysis->large_mappers;
  for (const CodePlace& place : large_mmaps_) add(place, &mappers);
  for (const CodePlace& place : arena_mmaps_) add(place, &analysis->arena_mappers);
  // A child has from its parent what no call of its own mapped.
  const auto& map = reader_->metadata().map_at_start;
  if (map.has_value() ? HasPrivateMemoryOf(map->text, kLargeMmapBytes) : analysis->process.forked) {
    mappers.push_back({});
  }
}

void AnalyzerPass::Finish(Analysis* analysis) {
  analysis->file = reader_->name();
  analysis->range = range_;
  analysis->selection = options_.filter.selection();
  analysis->some_threads = !threads_.empty();
  analysis->only_thread = options_.thread_name;
  analysis->pressure = reader_->metadata().pressure.Finish(reader_->metadata().start_monotonic_ns);
  FillProcess(analysis);
  analysis->modules = fault_matcher_.modules();
  const uint64_t end = std::min(analysis->process.duration_ns, range_.to_ns);
  leaks_.Take(model_, UINT64_MAX);
  page_snapshots_.Take(model_, mappings_, UINT64_MAX);
  page_snapshots_.Finish(model_, &analysis->resident);
  analysis->leak_scans = leaks_.Finish();
  FillExitWork(*analysis, &analysis->process);
  fault_matcher_.Advance(UINT64_MAX, model_, mappings_);
  // For a part of a run the marks do not fit: the samples also tell of faults outside of it.
  const std::vector<FaultMarks::Mark> marks =
      range_.whole() ? fault_matcher_.marks().All() : std::vector<FaultMarks::Mark>();
  timeline_.Finish(end, model_, faults_.samples(), marks, analysis);
  phases_.Finish(end, model_.counters(), usage_, analysis);
  if (stops_ == 0 && model_.stopped_allocations() + model_.stopped_frees() != 0) {
    stops_ = 1;  // since it began
    stopped_at_ns_ = window_begin_ns_;
  }
  if (stopped_at_ns_ != UINT64_MAX) stopped_ns_ += end - std::min(end, stopped_at_ns_);
  analysis->coverage.interrupted = interrupted_ || leaks_.stopped();
  analysis->coverage.read_share = read_share_;
  analysis->coverage.stops = stops_;
  analysis->coverage.stopped_ns = stopped_ns_;
  model_.Finish(analysis);
  if (analysis->selection.needs_lifetimes()) {
    // Blocks that were chosen by how they ended always grow in number, or never.
    for (Site& site : analysis->sites) site.growth = {};
  }
  if (window_begin_ns_ != 0) {
    // These are frees of blocks that were allocated before the window.
    analysis->totals.earlier_frees += analysis->coverage.unknown_frees;
    analysis->coverage.unknown_frees = 0;
    analysis->coverage.window_begin_ns = window_begin_ns_;
  }
  FillThreads(analysis);
  FillResident(analysis->pressure, faults_.samples(), &analysis->timeline);
  analysis->pressure.Narrow(range_.from_ns, range_.to_ns);
  UsageSample at_end;
  if (const auto& record = reader_->metadata().end; record.has_value()) {
    at_end.time_ns = reader_->clock().ToNs(record->ticks);
    at_end.minor_faults = record->minor_faults;
    at_end.major_faults = record->major_faults;
    at_end.tool_minor_faults = reader_->metadata().counter("tool_minor_faults");
  }
  faults_.Finish(range_, at_end.time_ns != 0 ? &at_end : nullptr, &analysis->faults);
  analysis->faults.counted =
      reader_->metadata().end.has_value() || !analysis->faults.samples.empty();
  // The last counts that there are: those of the end or, if the process was killed, of a sample.
  uint64_t minor = usage_.minor_faults, major = usage_.major_faults;
  if (const auto& end_record = reader_->metadata().end; end_record.has_value()) {
    minor = std::max(minor, end_record->minor_faults);
    major = std::max(major, end_record->major_faults);
  }
  fault_matcher_.Finish(model_, mappings_, minor, major, analysis->faults.samples,
                        &analysis->fault_details);
  if (analysis->of_some_blocks()) {
    // The samples have the heap of these blocks alone, and the faults of all.
    analysis->faults.correlation_known = false;
    analysis->faults.correlation_live = analysis->faults.correlation_allocated = 0;
    analysis->fault_details.thrash.clear();
  } else {
    analysis->fault_details.correlation = CorrelateFaults(analysis->faults.samples);
  }
  if (range_.whole() && reader_->metadata().end.has_value()) {
    CountToTheEnd(std::max(minor, analysis->fault_details.counted.minor),
                  std::max(major, analysis->fault_details.counted.major),
                  reader_->metadata().counter("tool_minor_faults"), &analysis->faults);
  } else if (analysis->faults.counted) {
    const FaultDetails& details = analysis->fault_details;
    FaultSums seen = details.before;
    seen += details.told;
    CountTheSeen(seen, details.by_kind[static_cast<size_t>(MemoryKind::kTool)].minor,
                 &analysis->faults);
  }
  const auto& map_at_end = reader_->metadata().map_at_end;
  mappings_.Finish(map_at_end.has_value() ? std::string_view(map_at_end->text) : "", analysis);
  FillMappers(analysis);
  // Of some of the blocks, what the others explain would be growth that no event explains.
  if (range_.whole() && !analysis->of_some_blocks()) {
    analysis->memory_map.program_mmap_at_start_bytes = mapped_at_start_;
    ExplainMemoryMap(reader_->metadata(), &analysis->memory_map);
  }
  if (range_.whole()) {
    if (reader_->metadata().end.has_value()) {
      Faults& faults = analysis->faults;
      faults.peak_rss_bytes =
          std::max(faults.peak_rss_bytes, reader_->metadata().end->peak_rss_bytes);
    }
    // Taken after it, or by another count of the kernel's: no part of the report has more.
    for (const RssBridge& bridge : analysis->resident.bridges) {
      analysis->faults.peak_rss_bytes =
          std::max({analysis->faults.peak_rss_bytes, bridge.peak_rss, bridge.rss});
    }
  }
  analysis->coverage.events = events_;
  if (!reader_->metadata().end.has_value()) analysis->coverage.recovered_events = from_rings_;
  FillCoverage(*reader_, analysis);
  FillCheckedStacks(*reader_, analysis);
}

}  // namespace memtrace::report
