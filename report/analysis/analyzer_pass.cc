#include "report/analysis/analyzer_pass.h"

#include <algorithm>

#include "report/model/heap_events.h"
#include "report/model/heap_run.h"
#include "report/trace/span_walk.h"

namespace memtrace::report {

using format::EventKind;

HeapModel::Options AnalyzerPass::ModelOptions(const TraceReader& reader,
                                              const AnalyzeOptions& options,
                                              const Selection& selection,
                                              const ChosenBlocks* chosen, LifetimeWatch* watch) {
  const ProcessInfo& process = reader.metadata().process;
  HeapModel::Options model = HeapModel::Options::OrderOf(reader);
  model.range = selection.range;
  model.threads = selection.threads;
  model.keep_live_blocks = options.keep_live_blocks;
  model.forked = (reader.header().flags & format::kFileForked) != 0;
  model.page_bytes = process.page_bytes;
  model.slack_ns = ClockSlackNs(process.clock) + 1000;
  model.sample_bytes = process.sample_bytes;
  model.filter = options.filter;
  model.chosen = chosen;
  model.watch = watch;
  return model;
}

bool AnalyzerPass::Apply(size_t stream, const EventCursor& cursor, bool force, WaitList& waits) {
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
    Define(stream, words);
    return true;
  }
  const uint64_t time = cursor.time();
  if (time < window_begin_ns_) [[unlikely]] return true;  // there by chance
  if (time > range_.to_ns) [[unlikely]] {
    return true;
  }
  if (time >= range_.from_ns) timeline_.Advance(time, model_);
  latest_ns_ = std::max(latest_ns_, time);
  fault_matcher_.Advance(time, model_, mappings_);
  if (kind == EventKind::kExtended) {
    ApplyExtended(stream, cursor);
    return true;
  }
  if (!ApplyHeapEvent(model_, state, stacks_, stream, cursor, force, waits)) return false;
  Allocated(kind, words);
  if (time >= range_.from_ns && kind != EventKind::kReallocIntent) {
    ++events_;
    from_rings_ += cursor.open_ended();
  }
  return true;
}

// A heap event was applied: faults may have waited for its block.
void AnalyzerPass::Allocated(EventKind kind, const uint64_t* words) {
  if (!fault_matcher_.any() || kind == EventKind::kFree || kind == EventKind::kReallocIntent) {
    return;
  }
  const uint64_t address = format::AddressOf(words[0]);
  const HeldBlock* block = address != 0 ? model_.FindLive(address) : nullptr;
  if (block != nullptr && fault_matcher_.Noted(address, block->size() + block->waste(), model_)) {
    fault_matcher_.Claim(*block, model_);
  }
}

// Whether nothing that Apply() has to look for at each event can come within the cursor's span.
bool AnalyzerPass::IsRun(const EventCursor& cursor) const {
  return cursor.low_ticks() <= page_snapshots_.next_ticks() &&
         cursor.low_ticks() <= leaks_.next_ticks() && cursor.low() >= window_begin_ns_ &&
         cursor.low() >= range_.from_ns && cursor.high() <= range_.to_ns;
}

// Apply() for events that there are many of, with all that is the same for a span done once.
int AnalyzerPass::ApplyRun(size_t stream, EventCursor* cursor, uint64_t last_ticks,
                           WaitList& waits) {
  if (!IsRun(*cursor)) return 0;
  if (HeapRun::Suits(model_, stream)) return ApplyPlainRun(stream, cursor, last_ticks, waits);
  const uint64_t low = cursor->low(), high = cursor->high();
  latest_low_ns_ = std::max(latest_low_ns_, low);
  latest_low_ticks_ = std::max(latest_low_ticks_, cursor->low_ticks());
  StreamState& state = streams_[stream];
  const bool open_ended = cursor->open_ended();
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
      Define(stream, words);
      continue;
    }
    timeline_.Advance(time, model_);
    fault_matcher_.Advance(time, model_, mappings_);
    ApplyHeapEvent(model_, state, stacks_, stream, words, {time, low, high}, /*force=*/true, waits);
    Allocated(kind, words);
    latest_ns_ = std::max(latest_ns_, time);
    counted += kind != EventKind::kReallocIntent;
  } while (walk.Next(WordsOf(*walk.words())));
  events_ += counted;
  if (open_ended) from_rings_ += counted;
  return taken;
}

// What a plain run has come to that is not for it: an interval or a fault that is due, ...
uint64_t AnalyzerPass::TakeDue(HeapRun& run, uint64_t time) {
  run.Pause();
  timeline_.Advance(time, model_);
  fault_matcher_.Advance(time, model_, mappings_);
  run.Resume();
  return NextDue();
}

// ... or an event that is out of the ordinary. False: so is the model now.
bool AnalyzerPass::ApplyOdd(HeapRun& run, size_t stream, const uint64_t* words, EventTime when,
                            WaitList& waits) {
  run.Pause();
  ApplyHeapEvent(model_, streams_[stream], stacks_, stream, words, when, /*force=*/true, waits);
  Allocated(format::KindOf(words[0]), words);
  run.Resume();
  return HeapRun::Suits(model_, stream);
}

// An allocation that slot_sites_ does not know, of `usable` bytes. False: it is not for a run.
bool AnalyzerPass::ApplyAlloc(HeapRun& run, size_t stream, const uint64_t* words, uint64_t time,
                              uint64_t* usable) {
  const AllocEvent e = DecodeShortAlloc(words);
  *usable = e.size + e.waste;
  if (e.address == 0) return false;
  const bool realloc = e.function == format::AllocFunction::kRealloc;
  SlotSites::Allocation allocation(slot_sites_.KeyOf(stream), words);
  if (realloc) allocation = allocation.OfAnySize();
  const auto size = static_cast<uint32_t>(e.size), waste = static_cast<uint32_t>(e.waste);
  const SlotSites::Entry& entry = slot_sites_.At(allocation);
  uint32_t site = entry.site();
  if (!entry.Is(allocation)) {
    if (e.slot == format::kStoppedSlot) return false;  // of no site, perhaps
    site = model_.SiteOf(streams_[stream].StackOf(e.slot, stacks_), e.function);
    // One in four: what does not come again soon would only take another one's place.
    if (++unknown_allocations_ % 4 == 0) slot_sites_.Keep(allocation, waste, site);
  }
  return realloc && run.HasIntent()
             ? run.ReallocResult(e.address, size, waste, site, time)
             : run.Alloc(e.address, size, waste, site, time) != nullptr;
}

// The same over spans, as long as the model finds nothing out of the ordinary.
int AnalyzerPass::ApplyPlainRun(size_t stream, EventCursor* cursor, uint64_t last_ticks,
                                WaitList& waits) {
  constexpr uint32_t kMostEvents = 8192;
  HeapRun run(&model_, &slot_sites_, stream);
  uint64_t key = slot_sites_.KeyOf(stream);
  const bool faults = fault_matcher_.any();
  uint64_t not_due = NextDue();  // up to this time
  uint32_t taken = 0;
  bool plain = true;
  // What IsRun() asks, of spans whose begin is later than that of the first.
  last_ticks = std::min({last_ticks, page_snapshots_.next_ticks(), leaks_.next_ticks()});
  uint64_t low, low_ticks;
  do {
    low = cursor->low();
    low_ticks = cursor->low_ticks();
    const uint64_t high = cursor->high();
    const bool open_ended = cursor->open_ended();
    const bool prefetches = model_.WantsPrefetch();
    uint32_t paths = 0, intents = 0;
    SpanSteps steps(cursor);
    for (;;) {
      const uint64_t* const words = steps.words();
      const uint64_t head = words[0];
      const uint64_t address = format::AddressOf(head);
      const EventKind kind = format::KindOf(head);
      if (prefetches) model_.Prefetch(steps.AddressAhead());
      uint64_t time;
      if (format::IsPlainFree(head)) {
        time = steps.Time();
        if (time > not_due) [[unlikely]] not_due = TakeDue(run, time);
        if (run.Free(address, time)) [[likely]] {
          if (!steps.Next(1)) break;
          continue;
        }
      } else if (format::IsShortAlloc(kind)) {
        time = steps.Time();
        if (time > not_due) [[unlikely]] not_due = TakeDue(run, time);
        const SlotSites::Allocation allocation(key, words);
        SlotSites::Entry& entry = slot_sites_.At(allocation);
        uint64_t usable;
        bool applied;
        if (kind != EventKind::kRealloc && entry.Is(allocation)) [[likely]] {
          usable = uint64_t{entry.size()} + entry.waste();
          applied = run.AllocAgain(address, &entry, time);
        } else {
          applied = ApplyAlloc(run, stream, words, time, &usable);
        }
        if (applied) [[likely]] {
          if (faults && fault_matcher_.Noted(address, usable, model_)) [[unlikely]] {
            fault_matcher_.Claim(*model_.FindLive(address), model_);
          }
          if (!steps.Next(2)) break;
          continue;
        }
      } else if (kind == EventKind::kPath) {
        Define(stream, words);
        key = slot_sites_.KeyOf(stream);
        ++paths;
        if (!steps.Next(WordsOf(head))) break;
        continue;
      } else if (kind == EventKind::kExtended) {
        plain = false;
        break;
      } else {
        time = steps.Time();
        if (time > not_due) not_due = TakeDue(run, time);
        if (kind == EventKind::kReallocIntent) {
          ++intents;
          if (run.ReallocIntent(address)) [[likely]] {
            if (!steps.Next(1)) break;
            continue;
          }
        }
      }
      plain = ApplyOdd(run, stream, words, {time, low, high}, waits);
      if (!steps.Next(WordsOf(head)) || !plain) break;
    }
    const uint32_t times = steps.times();
    if (times != 0) latest_ns_ = std::max(latest_ns_, steps.latest());
    steps.End();
    taken += times + paths;
    const uint32_t counted = times - intents;
    events_ += counted;
    if (open_ended) from_rings_ += counted;
  } while (plain && taken < kMostEvents && !cursor->done() && !cursor->after_hole() &&
           cursor->low_ticks() <= last_ticks && cursor->high() <= range_.to_ns);
  run.Pause();
  latest_low_ns_ = std::max(latest_low_ns_, low);
  latest_low_ticks_ = std::max(latest_low_ticks_, low_ticks);
  return static_cast<int>(taken);
}

absl::Status AnalyzerPass::Run() {
  EventOrder<AnalyzerPass> order(reader_, ClockSlackNs(reader_->metadata().process.clock),
                                 jobs_, this);
  order_ = &order;
  if (options_.keeper != nullptr) order.set_tick_events(options_.keeper->every_events());
  if (options_.source != nullptr && !options_.filter.selection().needs_lifetimes()) {
    // No state has what was found at scans and at snapshots of pages: so the pass begins before the
    // first one that is of the selection.
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
  if (interrupted_) read_share_ = Progress().share();
  order_ = nullptr;
  if (options_.progress && !interrupted_) {
    const uint64_t total = reader_->statistics().event_content_bytes;
    options_.progress({total, total, events_});
  }
  return absl::OkStatus();
}

}  // namespace memtrace::report
