#include "report/analyzer.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <utility>

#include "absl/strings/str_cat.h"
#include "report/checked_stacks.h"
#include "report/coverage.h"
#include "report/event_decoder.h"
#include "report/event_order.h"
#include "report/faults.h"
#include "report/heap_events.h"
#include "report/heap_model.h"
#include "report/mapping_model.h"
#include "report/memory_map.h"
#include "report/phases.h"
#include "report/selection.h"
#include "report/stream_state.h"
#include "report/timeline.h"
#include "report/trace_reader.h"

namespace memtrace::report {
namespace {

using format::EventKind;
using format::ExtendedType;

class Analyzer {
 public:
  Analyzer(TraceReader* reader, const AnalyzeOptions& options, const Selection& selection,
           StackTable* stacks)
      : reader_(reader), options_(options), range_(selection.range),
        window_begin_ns_(reader->window_begin_ns()), threads_(selection.threads),
        stacks_(stacks),
        model_({selection.range, selection.threads, options.keep_live_blocks,
                (reader->header().flags & format::kFileForked) != 0,
                reader->metadata().process.page_bytes,
                ClockSlackNs(reader->metadata().process.clock) + 1000,
                reader->metadata().process.stamp_rule == format::StampRule::kChangeOfOwner,
                reader->metadata().process.sample_bytes},
               stacks),
        timeline_(selection.range.from_ns),
        leaks_(reader, stacks, options.leaks, selection.range, options.leak_observer) {}

  // What EventOrder asks for.
  void Started(size_t stream, uint32_t thread) {
    if (stream >= streams_.size()) streams_.resize(stream + 1);
    const auto record = reader_->metadata().threads.find(thread);
    model_.AddThread(stream, thread, record != reader_->metadata().threads.end()
                                         ? record->second.handlers_of : 0);
  }
  void Hole(size_t stream) {
    WaitList nobody;
    streams_[stream].Forget();
    model_.ForgetPending(stream, nobody);
  }
  bool Apply(size_t stream, const EventCursor& cursor, bool force, WaitList& waits);
  void Prefetch(uint64_t address) { model_.Prefetch(address); }
  bool Tick() {
    if (options_.progress && order_ != nullptr) {
      // Blocks differ in how they are packed; what counts is the share that was read.
      const uint64_t total = reader_->statistics().event_content_bytes;
      const uint64_t done = std::min(order_->content_bytes_read(), total);
      if (done >= reported_ + kProgressBytes) {
        reported_ = done;
        options_.progress(done, total);
      }
    }
    return !past_end_;
  }

  void Run();
  void Finish(Analysis* analysis);

 private:
  static constexpr uint64_t kProgressBytes = 4 << 20;

  bool Selected(size_t stream, uint64_t time) const {
    return time >= range_.from_ns &&
           (threads_.empty() || threads_.contains(reader_->streams()[stream].thread));
  }
  void ApplyExtended(size_t stream, const EventCursor& cursor);
  void AddUsage(const ExtendedEvent& event, uint64_t time);
  void FillProcess(Analysis* analysis) const;
  void FillModules(Analysis* analysis) const;
  void FillThreads(Analysis* analysis) const;

  TraceReader* const reader_;
  const AnalyzeOptions& options_;
  const Range range_;
  const uint64_t window_begin_ns_;
  const absl::flat_hash_set<uint32_t>& threads_;  // serials; empty: all
  StackTable* const stacks_;
  HeapModel model_;
  MappingModel mappings_;
  FaultCollector faults_;
  uint64_t rss_bytes_ = 0;  // as last sampled
  bool before_first_mapping_ = true;
  uint64_t mapped_at_start_ = 0;
  Timeline timeline_;
  PhaseCollector phases_;
  uint64_t stops_ = 0, stopped_ns_ = 0, stopped_at_ns_ = UINT64_MAX;
  leak::LeakCheck leaks_;
  EventOrder<Analyzer>* order_ = nullptr;
  std::deque<StreamState> streams_;
  absl::flat_hash_map<uint32_t, std::string> names_;  // by thread, of kThreadName events
  uint64_t events_ = 0;
  uint64_t from_rings_ = 0;
  uint64_t latest_ns_ = 0;
  uint64_t reported_ = 0;
  bool past_end_ = false;
};

bool Analyzer::Apply(size_t stream, const EventCursor& cursor, bool force, WaitList& waits) {
  const uint64_t* words = cursor.words();
  const EventKind kind = format::KindOf(words[0]);
  // Everything that follows came after that instant (format/memory_scan.h).
  if (cursor.low_ticks() > leaks_.next_ticks()) [[unlikely]] {
    leaks_.Take(model_, cursor.low_ticks());
  }
  StreamState& state = streams_[stream];
  if (kind == EventKind::kPath) {
    state.Define(words, stacks_);
    return true;
  }
  const uint64_t time = cursor.time();
  if (time < window_begin_ns_) [[unlikely]] return true;  // there by chance
  if (time > range_.to_ns) [[unlikely]] {
    past_end_ |= cursor.low() > range_.to_ns;
    return true;
  }
  if (time >= range_.from_ns) timeline_.Advance(time, model_);
  latest_ns_ = std::max(latest_ns_, time);
  if (kind == EventKind::kExtended) {
    ApplyExtended(stream, cursor);
    return true;
  }
  if (!ApplyHeapEvent(model_, state, stacks_, stream, cursor, force, waits)) return false;
  if (time >= range_.from_ns && kind != EventKind::kReallocIntent) {
    ++events_;
    from_rings_ += cursor.open_ended();
  }
  return true;
}

void Analyzer::ApplyExtended(size_t stream, const EventCursor& cursor) {
  const ExtendedEvent event(cursor.words(), cursor.word_count());
  const uint64_t time = cursor.time();
  MappingModel::Call call{MappingSite::Kind::kMmap,
                          streams_[stream].StackOf(event.slot(), stacks_),
                          {},
                          Selected(stream, time)};
  switch (event.type()) {
    case ExtendedType::kMmap:
      call.file = event.text(6);
      call.anonymous = (event.high(3) & 0x20) != 0;  // MAP_ANONYMOUS on Linux
      // A call that began the recording was made before the memory map was read.
      if (std::exchange(before_first_mapping_, false) && call.anonymous &&
          reader_->metadata().map_at_start.has_value() &&
          MapHasAnonymous(reader_->metadata().map_at_start->text, event.word(1),
                          event.word(1) + event.word(2))) {
        mapped_at_start_ = event.word(2);
      }
      mappings_.Map(event.word(1), event.word(2), call);
      break;
    case ExtendedType::kMunmap:
      mappings_.Unmap(stream, event.word(1), event.word(2));
      break;
    case ExtendedType::kMunmapFailed:
      mappings_.UnmapFailed(stream, event.word(1));
      break;
    case ExtendedType::kMremap:
      mappings_.Remap(event.word(1), event.word(2), event.word(3), event.word(4), call);
      break;
    case ExtendedType::kBrk:
    case ExtendedType::kHeapGrowth:
      call.kind = event.type() == ExtendedType::kBrk ? MappingSite::Kind::kBrk
                                                     : MappingSite::Kind::kHeapGrowth;
      mappings_.Break(event.word(1), event.word(2), call);
      break;
    case ExtendedType::kArenaGrowth:
      call.kind = MappingSite::Kind::kArenaGrowth;
      mappings_.Arena(event.word(1), event.word(2), call);
      break;
    case ExtendedType::kShmat:
      call.kind = MappingSite::Kind::kShm;
      mappings_.Map(event.word(1), event.word(2), call);
      break;
    case ExtendedType::kShmdt:
      mappings_.Detach(event.word(1));
      break;
    case ExtendedType::kUsage:
      AddUsage(event, time);
      break;
    case ExtendedType::kThreadName:
      names_[cursor.thread()] = std::string(event.text(1));
      break;
    case ExtendedType::kPoolCreate:
      model_.CreatePool(stream, event.word(1), event.text(3), call.stack, time);
      break;
    case ExtendedType::kPoolDestroy:
      model_.DestroyPool(stream, event.word(1), time);
      break;
    case ExtendedType::kCustomAlloc:
      model_.CustomAlloc(stream,
                         {event.word(3) != 0 ? format::AllocFunction::kPoolAlloc
                                             : format::AllocFunction::kBlockAlloc,
                          event.word(1) & format::kAddressMask, event.word(2), 0, call.stack,
                          false, event.slot() == format::kStoppedSlot},
                         event.word(3), time);
      if (time >= range_.from_ns) ++events_;
      break;
    case ExtendedType::kCustomFree:
      model_.CustomFree(stream, event.word(1) & format::kAddressMask, event.word(2), time);
      if (time >= range_.from_ns) ++events_;
      break;
    case ExtendedType::kIgnoreBlock:
      model_.IgnoreBlock(event.word(1) & format::kAddressMask);
      break;
    case ExtendedType::kLeaksDisabled:
      model_.DisableLeaks(cursor.thread(), event.word(1) != 0);
      break;
    case ExtendedType::kPhase:
      phases_.Add(event, time, model_.counters());
      break;
    case ExtendedType::kRecordingStopped:
      if (event.word(1) != 0) {
        ++stops_;
        stopped_at_ns_ = time;
      } else if (stopped_at_ns_ != UINT64_MAX) {
        stopped_ns_ += time - std::min(time, std::exchange(stopped_at_ns_, UINT64_MAX));
      }
      break;
  }
}

void Analyzer::AddUsage(const ExtendedEvent& event, uint64_t time) {
  UsageSample sample;
  sample.time_ns = time;
  sample.minor_faults = event.word(1);
  sample.major_faults = event.word(2);
  if (event.word(3) != 0) rss_bytes_ = event.word(3);  // 0: not asked at this sample
  sample.rss_bytes = rss_bytes_;
  sample.peak_rss_bytes = event.word(4);
  sample.tool_minor_faults = event.word(5);
  sample.live_bytes = model_.counters().live_bytes;
  sample.bytes_allocated = model_.counters().bytes_allocated;
  faults_.Add(sample);
}

void Analyzer::Run() {
  EventOrder<Analyzer> order(reader_, ClockSlackNs(reader_->metadata().process.clock), this);
  order_ = &order;
  order.Run();
  order_ = nullptr;
  if (options_.progress) {
    const uint64_t total = reader_->statistics().event_content_bytes;
    options_.progress(total, total);
  }
}

void Analyzer::FillProcess(Analysis* analysis) const {
  const TraceMetadata& metadata = reader_->metadata();
  ProcessInfo& process = analysis->process;
  process = metadata.process;
  process.pid = reader_->header().pid;
  process.forked = (reader_->header().flags & format::kFileForked) != 0;
  process.duration_ns = latest_ns_;
  bool events_after_end = false;
  if (metadata.end.has_value()) {
    const uint64_t end = reader_->clock().ToNs(metadata.end->ticks);
    events_after_end = latest_ns_ > end + ClockSlackNs(process.clock);
    if (range_.to_ns == UINT64_MAX) process.duration_ns = std::max(latest_ns_, end);
  }
  FillEnd(metadata, events_after_end, &process);
}

void Analyzer::FillModules(Analysis* analysis) const {
  for (const ModuleRecord& record : reader_->metadata().modules) {
    ModuleInfo module = record.info;
    module.load_time_ns = reader_->clock().ToNs(record.load_ticks);
    if (record.unload_ticks != 0) {
      module.unload_time_ns = std::max<uint64_t>(reader_->clock().ToNs(record.unload_ticks), 1);
    }
    analysis->modules.push_back(std::move(module));
  }
}

// The model knows threads by the order of their streams; add who they were.
void Analyzer::FillThreads(Analysis* analysis) const {
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
  if (!threads_.empty()) {
    std::erase_if(analysis->threads, [&](const ThreadSummary& thread) {
      return !threads_.contains(thread.id.value);
    });
  }
}

void Analyzer::Finish(Analysis* analysis) {
  analysis->file = reader_->name();
  analysis->range = range_;
  FillProcess(analysis);
  FillModules(analysis);
  const uint64_t end = std::min(analysis->process.duration_ns, range_.to_ns);
  leaks_.Take(model_, UINT64_MAX);
  analysis->leak_scans = leaks_.Finish();
  timeline_.Finish(end, model_, faults_.samples(), analysis);
  phases_.Finish(end, model_.counters(), analysis);
  if (stopped_at_ns_ != UINT64_MAX) stopped_ns_ += end - std::min(end, stopped_at_ns_);
  analysis->coverage.stops = stops_;
  analysis->coverage.stopped_ns = stopped_ns_;
  model_.Finish(analysis);
  if (window_begin_ns_ != 0) {
    // Of blocks that were allocated before the window.
    analysis->totals.earlier_frees += analysis->coverage.unknown_frees;
    analysis->coverage.unknown_frees = 0;
    analysis->coverage.window_begin_ns = window_begin_ns_;
  }
  FillThreads(analysis);
  faults_.Finish(range_, &analysis->faults);
  mappings_.Finish(analysis);
  if (range_.whole() && threads_.empty()) {
    analysis->memory_map.program_mmap_at_start_bytes = mapped_at_start_;
    ExplainMemoryMap(reader_->metadata(), &analysis->memory_map);
    if (reader_->metadata().end.has_value()) {
      Faults& faults = analysis->faults;
      faults.peak_rss_bytes =
          std::max(faults.peak_rss_bytes, reader_->metadata().end->peak_rss_bytes);
    }
  }
  analysis->coverage.events = events_;
  if (!reader_->metadata().end.has_value()) analysis->coverage.recovered_events = from_rings_;
  FillCoverage(*reader_, analysis);
  FillCheckedStacks(*reader_, analysis);
}

}  // namespace

absl::StatusOr<AnalyzedTrace> AnalyzeTrace(TraceReader& reader, const AnalyzeOptions& options) {
  auto selection = Select(reader, options);
  if (!selection.ok()) return selection.status();
  AnalyzedTrace trace;
  trace.stacks = std::make_unique<StackTable>();
  Analyzer analyzer(&reader, options, *selection, trace.stacks.get());
  analyzer.Run();
  analyzer.Finish(&trace.analysis);
  return trace;
}

absl::StatusOr<AnalyzedTrace> AnalyzeTrace(const std::string& path,
                                           const AnalyzeOptions& options) {
  auto reader = TraceReader::Open(path);
  if (!reader.ok()) return reader.status();
  return AnalyzeTrace(**reader, options);
}

}  // namespace memtrace::report
