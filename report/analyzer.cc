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
#include "report/faults/correlation.h"
#include "report/faults/fault_matcher.h"
#include "report/faults/page_snapshots.h"
#include "report/heap_events.h"
#include "report/heap_model.h"
#include "report/heap_run.h"
#include "report/index/state_archive.h"
#include "report/mapping_model.h"
#include "report/memory_map.h"
#include "report/pass_state.h"
#include "report/phases.h"
#include "report/selection.h"
#include "report/span_walk.h"
#include "report/stream_state.h"
#include "report/timeline.h"
#include "report/trace_reader.h"

namespace memtrace::report {
namespace {

using format::EventKind;
using format::ExtendedType;

class Analyzer {
 public:
  // `chosen`: of the filter by lifetime; `watch`: the pass that finds these. Both may be null.
  Analyzer(TraceReader* reader, const AnalyzeOptions& options, const Selection& selection,
           StackTable* stacks, const ChosenBlocks* chosen, LifetimeWatch* watch)
      : reader_(reader), options_(options), range_(selection.range),
        window_begin_ns_(reader->window_begin_ns()), threads_(selection.threads),
        stacks_(stacks),
        model_({selection.range, selection.threads, options.keep_live_blocks,
                (reader->header().flags & format::kFileForked) != 0,
                reader->metadata().process.page_bytes,
                ClockSlackNs(reader->metadata().process.clock) + 1000,
                reader->metadata().process.stamp_rule == format::StampRule::kChangeOfOwner,
                reader->metadata().process.sample_bytes, options.filter, chosen, watch},
               stacks),
        fault_matcher_(reader, stacks, selection.range),
        page_snapshots_(reader, selection.range),
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
  // A trace may have very many short threads.
  void Ended(size_t stream) { streams_[stream].Forget(); }
  bool Apply(size_t stream, const EventCursor& cursor, bool force, WaitList& waits);
  int ApplyRun(size_t stream, EventCursor* cursor, uint64_t last_ticks, WaitList& waits);
  void Prefetch(uint64_t address) { model_.Prefetch(address); }
  bool Tick() {
    if (options_.progress && order_ != nullptr) {
      const ReadProgress progress = Progress();
      if (progress.done >= reported_ + kProgressBytes) {
        reported_ = progress.done;
        options_.progress(progress);
      }
    }
    if (options_.stop && options_.stop()) {
      interrupted_ = true;
      read_share_ = Progress().share();
    }
    wants_keep_ = options_.keeper != nullptr && !interrupted_ && options_.keeper->Wants(Point());
    return !interrupted_;
  }
  bool IsPast(uint64_t ns) const { return ns > range_.to_ns; }
  bool WantsKeep() const { return wants_keep_; }
  void Keep();

  // DataLoss: the state that the options' source gave is not one of this trace.
  absl::Status Run();
  void Finish(Analysis* analysis);
  uint64_t bytes_decoded() const { return bytes_decoded_; }

 private:
  static constexpr uint64_t kProgressBytes = 4 << 20;

  // Blocks differ in how they are packed; what counts is the share that was read.
  ReadProgress Progress() const {
    const uint64_t total = reader_->statistics().event_content_bytes;
    return {std::min(order_->content_bytes_read(), total), total, events_};
  }
  bool Selected(size_t stream, uint64_t time) const {
    return time >= range_.from_ns &&
           (threads_.empty() || threads_.contains(reader_->streams()[stream].thread));
  }
  bool IsRun(const EventCursor& cursor) const;
  void Allocated(EventKind kind, const uint64_t* words);
  int ApplyPlainRun(size_t stream, EventCursor* cursor, uint64_t last_ticks, WaitList& waits);
  PassPoint Point() const {
    return {std::max({latest_ns_, latest_low_ns_, order_->latest_low()}), latest_low_ticks_,
            order_->content_bytes_read(), events_, model_.live_table_size(), model_.site_count()};
  }
  template <typename Archive>
  void Fold(Archive& archive);
  bool TakeUp(const PassState& state);
  bool TakeUpPieces(const PassState& state);
  void ApplyExtended(size_t stream, const EventCursor& cursor);
  void AddUsage(const ExtendedEvent& event, uint64_t time);
  void FillProcess(Analysis* analysis) const;
  void FillModules(Analysis* analysis) const;
  void FillThreads(Analysis* analysis) const;

  TraceReader* const reader_;
  const AnalyzeOptions& options_;
  Range range_;
  const uint64_t window_begin_ns_;
  const absl::flat_hash_set<uint32_t>& threads_;  // serials; empty: all
  StackTable* const stacks_;
  HeapModel model_;
  MappingModel mappings_;
  FaultCollector faults_;
  FaultMatcher fault_matcher_;
  PageSnapshots page_snapshots_;
  UsageSample usage_;       // the latest
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
  uint64_t latest_low_ns_ = 0, latest_low_ticks_ = 0;  // of any event
  bool wants_keep_ = false;
  uint32_t kept_stacks_ = 0;  // up to these, stacks and sites are in pieces that were kept
  size_t kept_sites_ = 0;
  uint64_t bytes_before_ = 0;
  uint64_t bytes_decoded_ = 0;
  bool interrupted_ = false;
  double read_share_ = 1;
};

bool Analyzer::Apply(size_t stream, const EventCursor& cursor, bool force, WaitList& waits) {
  const uint64_t* words = cursor.words();
  const EventKind kind = format::KindOf(words[0]);
  // Everything that follows came after that instant (format/memory_scan.h).
  if (cursor.low_ticks() > leaks_.next_ticks()) [[unlikely]] {
    leaks_.Take(model_, cursor.low_ticks());
  }
  if (cursor.low_ticks() > page_snapshots_.next_ticks()) [[unlikely]] {
    page_snapshots_.Take(model_, mappings_, cursor.low_ticks());
  }
  latest_low_ns_ = std::max(latest_low_ns_, cursor.low());
  latest_low_ticks_ = std::max(latest_low_ticks_, cursor.low_ticks());
  StreamState& state = streams_[stream];
  if (kind == EventKind::kPath) {
    state.Define(words, stacks_);
    return true;
  }
  const uint64_t time = cursor.time();
  if (time < window_begin_ns_) [[unlikely]] return true;  // there by chance
  if (time > range_.to_ns) [[unlikely]] {
    return true;
  }
  if (time >= range_.from_ns) timeline_.Advance(time, model_);
  latest_ns_ = std::max(latest_ns_, time);
  if (time > fault_matcher_.next_ns()) [[unlikely]] {
    fault_matcher_.Advance(time, model_, mappings_);
  }
  if (kind == EventKind::kExtended) {
    ApplyExtended(stream, cursor);
    return true;
  }
  if (!ApplyHeapEvent(model_, state, stacks_, stream, cursor, force, waits)) return false;
  if (fault_matcher_.any()) Allocated(kind, words);
  if (time >= range_.from_ns && kind != EventKind::kReallocIntent) {
    ++events_;
    from_rings_ += cursor.open_ended();
  }
  return true;
}

// A heap event was applied: faults may have waited for its block.
void Analyzer::Allocated(EventKind kind, const uint64_t* words) {
  if (kind == EventKind::kFree || kind == EventKind::kReallocIntent) return;
  const uint64_t address = format::AddressOf(words[0]);
  const HeldBlock* block = address != 0 ? model_.FindLive(address) : nullptr;
  if (block != nullptr && fault_matcher_.Noted(address, block->size() + block->waste(), model_)) {
    fault_matcher_.Claim(*block, model_);
  }
}

// What Apply() looks at for each event cannot come in the cursor's span.
bool Analyzer::IsRun(const EventCursor& cursor) const {
  return cursor.low_ticks() <= page_snapshots_.next_ticks() &&
         cursor.low_ticks() <= leaks_.next_ticks() && cursor.low() >= window_begin_ns_ &&
         cursor.low() >= range_.from_ns && cursor.high() <= range_.to_ns;
}

// Apply() for events that there are many of, with all that is the same for a span done once.
int Analyzer::ApplyRun(size_t stream, EventCursor* cursor, uint64_t last_ticks, WaitList& waits) {
  if (!IsRun(*cursor)) return 0;
  if (HeapRun::Suits(model_, stream)) return ApplyPlainRun(stream, cursor, last_ticks, waits);
  const uint64_t low = cursor->low(), high = cursor->high();
  latest_low_ns_ = std::max(latest_low_ns_, low);
  latest_low_ticks_ = std::max(latest_low_ticks_, cursor->low_ticks());
  StreamState& state = streams_[stream];
  const bool open_ended = cursor->open_ended(), faults = fault_matcher_.any();
  int taken = 0;
  uint64_t counted = 0;
  SpanWalk walk(cursor);
  do {
    const uint64_t* words = walk.words();
    const EventKind kind = format::KindOf(words[0]);
    const uint64_t time = walk.time();
    if (kind == EventKind::kExtended) break;
    model_.Prefetch(walk.AddressAhead());
    ++taken;
    if (kind == EventKind::kPath) {
      state.Define(words, stacks_);
      continue;
    }
    timeline_.Advance(time, model_);
    if (time > fault_matcher_.next_ns()) [[unlikely]] {
      fault_matcher_.Advance(time, model_, mappings_);
    }
    ApplyHeapEvent(model_, state, stacks_, stream, words, {time, low, high}, /*force=*/true, waits);
    if (faults) Allocated(kind, words);
    latest_ns_ = std::max(latest_ns_, time);
    counted += kind != EventKind::kReallocIntent;
  } while (walk.Next(WordsOf(*walk.words())));
  events_ += counted;
  if (open_ended) from_rings_ += counted;
  return taken;
}

// The same over spans, as long as the model finds nothing out of the ordinary.
int Analyzer::ApplyPlainRun(size_t stream, EventCursor* cursor, uint64_t last_ticks,
                            WaitList& waits) {
  constexpr uint32_t kMostEvents = 8192;
  StreamState& state = streams_[stream];
  HeapRun run(&model_, stream);
  const bool faults = fault_matcher_.any();
  uint32_t taken = 0;
  bool plain = true;
  do {
    const uint64_t low = cursor->low(), high = cursor->high();
    latest_low_ns_ = std::max(latest_low_ns_, low);
    latest_low_ticks_ = std::max(latest_low_ticks_, cursor->low_ticks());
    const bool open_ended = cursor->open_ended();
    uint32_t paths = 0, intents = 0;
    const auto advance = [&](uint64_t time) {
      if (!timeline_.IsDue(time) && time <= fault_matcher_.next_ns()) [[likely]] return;
      run.Pause();
      timeline_.Advance(time, model_);
      fault_matcher_.Advance(time, model_, mappings_);
      run.Resume();
    };
    {
      SpanSteps steps(cursor);
      uint32_t words_here = 0;
      do {
        const uint64_t head = steps.words()[0];
        const EventKind kind = format::KindOf(head);
        if (kind == EventKind::kFree) {
          model_.Prefetch(steps.AddressAhead());
          const uint64_t time = steps.Time();
          advance(time);
          const bool with_stack = (format::DetailOf(head) & 1) != 0;
          words_here = 1 + with_stack;
          if (!with_stack && run.Free(format::AddressOf(head), time)) [[likely]] continue;
        } else if (kind == EventKind::kMalloc || kind == EventKind::kCalloc) {
          model_.Prefetch(steps.AddressAhead());
          const uint64_t time = steps.Time();
          advance(time);
          words_here = 2;
          const AllocEvent e = DecodeShortAlloc(steps.words());
          if (e.slot != format::kStoppedSlot &&
              run.Alloc(e.address, static_cast<uint32_t>(e.size), static_cast<uint32_t>(e.waste),
                        state.StackOf(e.slot, stacks_), e.function, time)) [[likely]] {
            if (faults && fault_matcher_.Noted(e.address, e.size + e.waste, model_)) [[unlikely]] {
              fault_matcher_.Claim(*model_.FindLive(e.address), model_);
            }
            continue;
          }
        } else if (kind == EventKind::kPath) {
          words_here = WordsOf(head);
          state.Define(steps.words(), stacks_);
          ++paths;
          continue;
        } else if (kind == EventKind::kExtended) {
          plain = false;
          break;
        } else {
          model_.Prefetch(steps.AddressAhead());
          advance(steps.Time());
          words_here = WordsOf(head);
          intents += kind == EventKind::kReallocIntent;
        }
        run.Pause();
        ApplyHeapEvent(model_, state, stacks_, stream, steps.words(),
                       {steps.latest(), low, high}, /*force=*/true, waits);
        if (faults) Allocated(kind, steps.words());
        run.Resume();
        if (!HeapRun::Suits(model_, stream)) [[unlikely]] {
          steps.Next(words_here);
          plain = false;
          break;
        }
      } while (steps.Next(words_here));
      if (steps.times() != 0) latest_ns_ = std::max(latest_ns_, steps.latest());
      taken += steps.times() + paths;
      const uint32_t counted = steps.times() - intents;
      events_ += counted;
      if (open_ended) from_rings_ += counted;
    }
  } while (plain && taken < kMostEvents && !cursor->done() && !cursor->after_hole() &&
           cursor->low_ticks() <= last_ticks && IsRun(*cursor));
  return static_cast<int>(taken);
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
      phases_.Add(event, time, model_.counters(), usage_);
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
  usage_ = sample;
}

// The members; what the archive has of stacks and sites is in pieces of their own.
template <typename Archive>
void Analyzer::Fold(Archive& archive) {
  uint64_t stacks = stacks_->size(), sites = model_.site_count();
  archive(stacks, sites);
  archive.Check(stacks <= stacks_->size() && sites == model_.site_count());
  archive(rss_bytes_, usage_, before_first_mapping_, mapped_at_start_, stops_, stopped_ns_,
          stopped_at_ns_, names_, events_, from_rings_, latest_ns_);
  model_.Fold(archive);
  mappings_.Fold(archive);
  faults_.Fold(archive);
  fault_matcher_.Fold(archive);
  timeline_.Fold(archive);
  phases_.Fold(archive);
  uint64_t streams = streams_.size();
  archive(streams);
  archive.Check(streams <= reader_->streams().size());
  if (!archive.ok()) return;
  streams_.resize(streams);
  for (StreamState& stream : streams_) stream.Fold(archive);
  order_->Fold(archive);
  auto damages = reader_->event_damages();
  archive(damages);
  if constexpr (Archive::kReads) {
    archive.Check(archive.at_end());
    if (archive.ok()) reader_->NoteAgain(damages);
  }
}

void Analyzer::Keep() {
  wants_keep_ = false;
  index::StateWriter piece, state;
  std::vector<StackNode> nodes;
  std::vector<std::pair<StackId, format::AllocFunction>> sites;
  while (kept_stacks_ < stacks_->size()) nodes.push_back(stacks_->node({++kept_stacks_}));
  for (; kept_sites_ + 1 < model_.site_count(); ++kept_sites_) {
    const auto site = static_cast<uint32_t>(kept_sites_ + 1);
    sites.emplace_back(model_.SiteStack(site), model_.SiteFunction(site));
  }
  piece(nodes, sites);
  Fold(state);
  options_.keeper->Keep(Point(), piece.Take(), state.Take());
}

// Stacks may be there already, of an earlier pass over this trace.
bool Analyzer::TakeUpPieces(const PassState& state) {
  uint32_t stacks = 0;
  for (const std::string& bytes : state.pieces) {
    index::StateReader piece(bytes);
    piece.set_stacks(UINT32_MAX);
    std::vector<StackNode> nodes;
    std::vector<std::pair<StackId, format::AllocFunction>> sites;
    piece(nodes, sites);
    if (!piece.ok() || !piece.at_end()) return false;
    for (const StackNode& node : nodes) {
      if (node.parent.value > stacks) return false;
      if (stacks_->Intern(node.parent, node.pc, node.instance).value != ++stacks) return false;
    }
    for (const auto& [stack, function] : sites) {
      const size_t before = model_.site_count();
      if (stack.value > stacks) return false;
      model_.AddSite(stack, function);
      if (model_.site_count() != before + 1) return false;
    }
  }
  return true;
}

bool Analyzer::TakeUp(const PassState& state) {
  if (!TakeUpPieces(state)) return false;
  index::StateReader reader(state.state);
  reader.set_stacks(stacks_->size());
  Fold(reader);
  if (!reader.ok() || streams_.size() < model_.thread_count() || !order_->Resume()) return false;
  for (size_t i = 0; i < reader_->streams().size(); ++i) {
    if (order_->begun(i) && i >= model_.thread_count()) return false;
  }
  if (range_.from_ns > window_begin_ns_) {
    model_.ForgetFigures();
    mappings_.ForgetFigures();
    faults_.ForgetFigures();
    fault_matcher_.ForgetFigures();
    phases_.ForgetFigures();
    timeline_ = Timeline(range_.from_ns);
    usage_.live_bytes = usage_.bytes_allocated = 0;
    events_ = from_rings_ = 0;
  }
  bytes_before_ = order_->content_bytes_read();
  return true;
}

absl::Status Analyzer::Run() {
  EventOrder<Analyzer> order(reader_, ClockSlackNs(reader_->metadata().process.clock),
                             options_.jobs != 0 ? options_.jobs : DefaultJobs(), this);
  order_ = &order;
  if (options_.keeper != nullptr) order.set_tick_events(options_.keeper->every_events());
  if (options_.source != nullptr && !options_.filter.selection().needs_lifetimes()) {
    // What was found at scans and snapshots of pages is in no state: begin before the first one that
    // is of the selection.
    const bool as_it_is = range_.from_ns <= window_begin_ns_;
    PassState state;
    bool found = false;
    if (!as_it_is) {
      found = options_.source->Find(range_.from_ns, UINT64_MAX, &state);
    } else if (threads_.empty() && options_.filter.selection().all()) {
      found = options_.source->Find(range_.to_ns == UINT64_MAX ? UINT64_MAX : range_.to_ns + 1,
                                    std::min(leaks_.next_ticks(), page_snapshots_.next_ticks()),
                                    &state);
    }
    if (found && !TakeUp(state)) {
      order_ = nullptr;
      return absl::DataLossError("the index is not one of this trace");
    }
  }
  order.Run();
  bytes_decoded_ = order.content_bytes_read() - bytes_before_;
  order_ = nullptr;
  // As if the user had asked for no more than was read.
  if (interrupted_) range_.to_ns = std::min(range_.to_ns, latest_ns_);
  if (options_.progress && !interrupted_) {
    const uint64_t total = reader_->statistics().event_content_bytes;
    options_.progress({total, total, events_});
  }
  return absl::OkStatus();
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
    process.duration_ns = std::max(latest_ns_, end);
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
  analysis->selection = options_.filter.selection();
  analysis->some_threads = !threads_.empty();
  FillProcess(analysis);
  FillModules(analysis);
  const uint64_t end = std::min(analysis->process.duration_ns, range_.to_ns);
  if (!interrupted_) {
    leaks_.Take(model_, UINT64_MAX);
    page_snapshots_.Take(model_, mappings_, UINT64_MAX);
  }
  page_snapshots_.Finish(&analysis->resident);
  analysis->leak_scans = leaks_.Finish();
  timeline_.Finish(end, model_, faults_.samples(), analysis);
  phases_.Finish(end, model_.counters(), usage_, analysis);
  if (stopped_at_ns_ != UINT64_MAX) stopped_ns_ += end - std::min(end, stopped_at_ns_);
  analysis->coverage.interrupted = interrupted_;
  analysis->coverage.read_share = read_share_;
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
  analysis->pressure = reader_->metadata().pressure.Finish(reader_->metadata().start_monotonic_ns);
  FillResident(analysis->pressure, &analysis->timeline);
  faults_.Finish(range_, &analysis->faults);
  analysis->fault_details.correlation = CorrelateFaults(analysis->faults.samples);
  // What was counted last: at the end, or by a sample of a process that was killed.
  uint64_t minor = usage_.minor_faults, major = usage_.major_faults;
  if (const auto& end_record = reader_->metadata().end; end_record.has_value()) {
    minor = std::max(minor, end_record->minor_faults);
    major = std::max(major, end_record->major_faults);
  }
  fault_matcher_.Finish(model_, mappings_, minor, major, analysis->faults.samples,
                        &analysis->fault_details);
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
  if (options.stacks == nullptr) trace.stacks = std::make_unique<StackTable>();
  StackTable* const stacks = options.stacks != nullptr ? options.stacks : trace.stacks.get();
  std::optional<LifetimeWatch> watch;
  if (options.filter.selection().needs_lifetimes()) {
    watch.emplace(options.filter.lifetimes, options.filter.ages);
    AnalyzeOptions quiet = options;
    quiet.leak_observer = nullptr;
    quiet.progress = nullptr;
    quiet.keeper = nullptr;
    Analyzer first(&reader, quiet, *selection, stacks, nullptr, &*watch);
    absl::Status status = first.Run();
    if (!status.ok()) return status;
    Analysis ends;
    first.Finish(&ends);
    watch->Finish(std::min(ends.process.duration_ns, selection->range.to_ns));
  }
  Analyzer analyzer(&reader, options, *selection, stacks,
                    watch.has_value() ? &watch->chosen() : nullptr, nullptr);
  absl::Status status = analyzer.Run();
  if (!status.ok()) return status;
  analyzer.Finish(&trace.analysis);
  trace.event_bytes_decoded = analyzer.bytes_decoded();
  return trace;
}

absl::StatusOr<AnalyzedTrace> AnalyzeTrace(const std::string& path,
                                           const AnalyzeOptions& options) {
  auto reader = TraceReader::Open(path);
  if (!reader.ok()) return reader.status();
  return AnalyzeTrace(**reader, options);
}

}  // namespace memtrace::report
