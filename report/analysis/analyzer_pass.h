// AnalyzerPass: one pass of AnalyzeTrace() over the events of a trace (analyzer.h), in the order
// that EventOrder finds.
//
//   AnalyzerPass pass(&reader, options, selection, stacks, chosen, watch);
//   status = pass.Run()
//   pass.Finish(&analysis)
//
// Its members are in four files, by what is done with an event or a pass:
//   analyzer_pass.cc           the events that there are many of
//   analyzer_pass_extended.cc  the others
//   analyzer_pass_state.cc     states in the midst of a pass (pass_state.h)
//   analyzer_pass_finish.cc    what it has found
// Of this header only these and analyzer.cc know.

#ifndef MEMTRACE_REPORT_ANALYSIS_ANALYZER_PASS_H_
#define MEMTRACE_REPORT_ANALYSIS_ANALYZER_PASS_H_

#include <algorithm>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "format/event_words.h"
#include "report/analysis/analyzer.h"
#include "report/analysis/coverage.h"
#include "report/analysis/pass_state.h"
#include "report/analysis/selection.h"
#include "report/faults/fault_matcher.h"
#include "report/faults/faults.h"
#include "report/faults/page_snapshots.h"
#include "report/findings/analysis.h"
#include "report/leak/leak_check.h"
#include "report/model/heap_model.h"
#include "report/model/mapping_model.h"
#include "report/model/phases.h"
#include "report/model/reloads.h"
#include "report/model/slot_sites.h"
#include "report/model/stream_state.h"
#include "report/model/timeline.h"
#include "report/trace/event_cursor.h"
#include "report/trace/event_decoder.h"
#include "report/trace/event_order.h"
#include "report/trace/read_ahead.h"
#include "report/trace/stack_table.h"
#include "report/trace/trace_reader.h"

namespace memtrace::report {

class HeapRun;

class AnalyzerPass {
 public:
  // `chosen`: of the filter by lifetime; `watch`: the pass that finds these. Both may be null.
  AnalyzerPass(TraceReader* reader, const AnalyzeOptions& options, const Selection& selection,
           StackTable* stacks, const ChosenBlocks* chosen, LifetimeWatch* watch)
      : reader_(reader), options_(options), jobs_(options.jobs != 0 ? options.jobs : DefaultJobs()),
        range_(selection.range),
        window_begin_ns_(reader->window_begin_ns()), threads_(selection.threads),
        stacks_(stacks),
        model_(ModelOptions(*reader, options, selection, chosen, watch), stacks),
        fault_matcher_(reader, stacks, selection.range),
        page_snapshots_(reader, selection.range, jobs_ > 1),
        timeline_(selection.range.from_ns),
        leaks_(reader, stacks, options.leaks, selection.range, options.leak_observer,
               options.stop) {}

  // The functions that EventOrder calls.
  void Started(size_t stream, uint32_t thread) {
    if (stream >= streams_.size()) streams_.resize(stream + 1);
    const auto record = reader_->metadata().threads.find(thread);
    model_.AddThread(stream, thread, record != reader_->metadata().threads.end()
                                         ? record->second.handlers_of : 0);
  }
  void Hole(size_t stream, const EventCursor& cursor) {
    WaitList nobody;
    streams_[stream].ForgetLost(cursor.lost_words(), cursor.NextPathSlot());
    slot_sites_.Clear();
    model_.ForgetPending(stream, nobody);
  }
  // A trace may have very many short threads.
  void Ended(size_t stream) { streams_[stream].Clear(); }
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
    if (!interrupted_ && options_.stop && options_.stop()) Interrupt();
    wants_keep_ = options_.keeper != nullptr && !interrupted_ && options_.keeper->Wants(Point());
    return true;
  }
  bool IsPast(uint64_t ns) const { return ns > range_.to_ns; }
  bool WantsKeep() const { return wants_keep_; }
  void Keep();

  // DataLoss: the state that the options' source gave is not one of this trace.
  absl::Status Run();
  void Finish(Analysis* analysis);
  uint64_t bytes_decoded() const { return bytes_decoded_; }
  const std::vector<UnknownFree>& first_unknown_frees() const {
    return model_.first_unknown_frees();
  }

 private:
  static constexpr uint64_t kProgressBytes = 4 << 20;

  static HeapModel::Options ModelOptions(const TraceReader& reader, const AnalyzeOptions& options,
                                         const Selection& selection, const ChosenBlocks* chosen,
                                         LifetimeWatch* watch);
  // Blocks differ in how they are packed; what counts is the share that was read.
  ReadProgress Progress() const {
    const uint64_t total = reader_->statistics().event_content_bytes;
    return {std::min(order_->content_bytes_read(), total), total, events_};
  }
  // From now on it is as if the user had asked for no more than what was read. Threads that are
  // behind come up to there yet, as they would with such a range.
  void Interrupt() {
    interrupted_ = true;
    range_.to_ns = std::min(range_.to_ns, Point().latest_ns);
    fault_matcher_.EndAt(range_.to_ns);
    page_snapshots_.EndAt(range_.to_ns);
    leaks_.EndAt(range_.to_ns);
  }
  bool Selected(size_t stream, uint64_t time) const {
    return time >= range_.from_ns &&
           (threads_.empty() || threads_.contains(reader_->streams()[stream].thread));
  }
  // kPath: its words.
  void Define(size_t stream, const uint64_t* words) {
    if (reloads_.any()) [[unlikely]] words = reloads_.PathOfFirst(words, &path_);
    streams_[stream].Define(words, stacks_);
    slot_sites_.Forget(stream, format::PathFirst(words[0]), format::PathNodes(words[0]));
  }
  bool IsRun(const EventCursor& cursor) const;
  void Allocated(format::EventKind kind, const uint64_t* words);
  int ApplyPlainRun(size_t stream, EventCursor* cursor, uint64_t last_ticks, WaitList& waits);
  uint64_t NextDue() const { return std::min(timeline_.next_ns() - 1, fault_matcher_.next_ns()); }
  [[gnu::noinline]] uint64_t TakeDue(HeapRun& run, uint64_t time);
  [[gnu::noinline]] bool ApplyOdd(HeapRun& run, size_t stream, const uint64_t* words,
                                  EventTime when, WaitList& waits);
  [[gnu::noinline]] bool ApplyAlloc(HeapRun& run, size_t stream, const uint64_t* words,
                                    uint64_t time, uint64_t* usable);
  PassPoint Point() const {
    return {std::max({latest_ns_, latest_low_ns_, order_->latest_low()}), latest_low_ticks_,
            order_->content_bytes_read(), events_, model_.live_table_size(), model_.site_count()};
  }
  using CodePlace = std::pair<uint64_t, uint32_t>;  // a return address and its module instance

  template <typename Archive>
  void Fold(Archive& archive);
  bool TakeUp(const PassState& state);
  bool TakeUpPieces(const PassState& state);
  void ApplyExtended(size_t stream, const EventCursor& cursor);
  void ApplyMmap(const ExtendedEvent& event, MappingModel::Call* call);
  void NoteMapper(StackId stack, std::vector<CodePlace>* places);
  void ApplyStop(bool stops, uint64_t time);  // of the recording, or that it goes on
  void AddUsage(const ExtendedEvent& event, uint64_t time);
  void FillProcess(Analysis* analysis) const;
  void FillThreads(Analysis* analysis) const;
  void FillMappers(Analysis* analysis) const;

  TraceReader* const reader_;
  const AnalyzeOptions& options_;
  const unsigned jobs_;
  Range range_;
  const uint64_t window_begin_ns_;
  const absl::flat_hash_set<uint32_t>& threads_;  // serials; empty: all
  StackTable* const stacks_;
  const Reloads reloads_{reader_->metadata().modules};
  std::vector<uint64_t> path_;  // of a library that was loaded again
  HeapModel model_;
  MappingModel mappings_;
  FaultCollector faults_;
  FaultMatcher fault_matcher_;
  PageSnapshots page_snapshots_;
  UsageSample usage_;       // the latest
  uint64_t rss_bytes_ = 0;  // as last sampled
  bool before_first_mapping_ = true;
  uint64_t mapped_at_start_ = 0;
  // Where mmap was called for kLargeMmapBytes or more, and for what an arena of pymalloc is.
  std::vector<CodePlace> large_mmaps_, arena_mmaps_;
  Timeline timeline_;
  PhaseCollector phases_{range_.from_ns};
  uint64_t stops_ = 0, stopped_ns_ = 0, stopped_at_ns_ = UINT64_MAX;
  leak::LeakCheck leaks_;
  EventOrder<AnalyzerPass>* order_ = nullptr;
  std::deque<StreamState> streams_;
  SlotSites slot_sites_;
  uint32_t unknown_allocations_ = 0;  // to slot_sites_
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

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_ANALYSIS_ANALYZER_PASS_H_
