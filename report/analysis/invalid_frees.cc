#include "report/analysis/invalid_frees.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "format/event_words.h"
#include "report/analysis/coverage.h"
#include "report/model/reloads.h"
#include "report/model/stream_state.h"
#include "report/trace/event_cursor.h"
#include "report/trace/event_decoder.h"
#include "report/trace/event_order.h"

namespace memtrace::report {
namespace {

using format::EventKind;
using Moment = InvalidFree::Moment;

class Historian {
 public:
  Historian(TraceReader* reader, std::span<const UnknownFree> unknown, StackTable* stacks,
            const std::function<bool()>& stop)
      : reader_(reader), stacks_(stacks), stop_(stop), reloads_(reader->metadata().modules) {
    for (const UnknownFree& free : unknown) ++left_[{free.address, free.stream}];
    to_come_ = unknown.size();
    for (const auto& [place, count] : left_) places_.push_back({place.first});
    std::sort(places_.begin(), places_.end(),
              [](const Place& a, const Place& b) { return a.address < b.address; });
    const auto same = [](const Place& a, const Place& b) { return a.address == b.address; };
    places_.erase(std::unique(places_.begin(), places_.end(), same), places_.end());
  }

  // The functions that EventOrder calls.
  void Started(size_t stream, uint32_t) {
    if (stream >= streams_.size()) streams_.resize(stream + 1);
  }
  void Hole(size_t stream, const EventCursor& cursor) {
    StreamState state = std::move(streams_[stream].state);
    state.ForgetLost(cursor.lost_words(), cursor.NextPathSlot());
    streams_[stream] = {.state = std::move(state)};
  }
  void Ended(size_t stream) { streams_[stream] = {}; }
  void Prefetch(uint64_t) {}
  bool Tick() {
    stopped_ = stop_ && stop_();
    // In a forked child such frees mostly are at its begin: when all are told the pass ends.
    const bool all_told = to_come_ == 0 && std::ranges::all_of(streams_, [](const Stream& each) {
      return each.story == SIZE_MAX;
    });
    return !stopped_ && !all_told;
  }
  bool Apply(size_t stream, const EventCursor& cursor, bool, WaitList&) {
    const uint64_t* const words = cursor.words();
    switch (format::KindOf(words[0])) {
      case EventKind::kPath:
        Define(stream, words);
        break;
      case EventKind::kMalloc:
      case EventKind::kCalloc:
      case EventKind::kRealloc:
        Allocated(stream, DecodeShortAlloc(words), cursor.time());
        break;
      case EventKind::kWideAlloc:
        Allocated(stream, DecodeWideAlloc(words), cursor.time());
        break;
      case EventKind::kFree:
        if (!Concerns(format::AddressOf(words[0]))) break;
        Freed(stream, format::AddressOf(words[0]),
              {(format::DetailOf(words[0]) & 1) != 0
                   ? streams_[stream].state.StackOf(static_cast<uint32_t>(words[1]), stacks_)
                   : StackId{},
               ThreadOf(stream), cursor.time(), false});
        break;
      case EventKind::kReallocIntent: {
        const uint64_t address = format::AddressOf(words[0]);
        if (!Concerns(address)) break;
        // It may fail, and then the block stays.
        std::copy_if(places_.begin(), places_.end(), std::back_inserter(streams_[stream].before),
                     [&](const Place& place) { return place.block == address; });
        Freed(stream, address, {StackId{}, ThreadOf(stream), cursor.time(), true});
        streams_[stream].intent = address;
        break;
      }
      case EventKind::kTime:
      case EventKind::kExtended:
      case EventKind::kInvalid:
        break;
    }
    return true;
  }

  InvalidFrees Finish() {
    InvalidFrees found;
    if (stopped_) return found;
    found.looked_for = true;
    found.stories = std::move(stories_);
    for (const InvalidFree& story : found.stories) found.told += story.times;
    std::stable_sort(found.stories.begin(), found.stories.end(),
                     [](const InvalidFree& a, const InvalidFree& b) { return a.times > b.times; });
    return found;
  }

 private:
  // An address that was freed, and the latest block that it was in.
  struct Place {
    uint64_t address = 0;
    uint64_t block = 0, bytes = 0;  // 0: none yet
    uint64_t span = 0;              // bytes that may be used of it, 1 at least
    format::AllocFunction function = format::AllocFunction::kMalloc;
    bool live = false;
    Moment allocated, freed;
  };
  struct Stream {
    StreamState state;
    uint64_t intent = 0;        // of the realloc that it is in; 0: none that concerns us
    std::vector<Place> before;  // those in its block, when it began
    size_t story = SIZE_MAX;    // which the realloc is in; SIZE_MAX: none
  };

  ThreadId ThreadOf(size_t stream) const {
    const uint32_t thread = reader_->streams()[stream].thread;
    const auto& records = reader_->metadata().threads;
    const auto record = records.find(thread);
    return {record != records.end() && record->second.handlers_of != 0 ? record->second.handlers_of
                                                                      : thread};
  }

  void Define(size_t stream, const uint64_t* words) {
    if (reloads_.any()) words = reloads_.PathOfFirst(words, &path_);
    streams_[stream].state.Define(words, stacks_);
  }

  // The places in [begin, end).
  std::span<Place> In(uint64_t begin, uint64_t end) {
    const auto below = [](const Place& place, uint64_t address) { return place.address < address; };
    const auto first = std::lower_bound(places_.begin(), places_.end(), begin, below);
    const auto last = std::lower_bound(first, places_.end(), end, below);
    return {first, last};
  }

  bool Concerns(uint64_t address) {
    return blocks_.contains(address) || !In(address, address + 1).empty();
  }

  void Allocated(size_t stream, const AllocEvent& e, uint64_t time) {
    const bool is_result = IsRealloc(e.function) && streams_[stream].intent != 0;
    if (is_result) Resulted(&streams_[stream], e);
    if (e.address == 0) return;
    // The begin of a block is its own, whatever its size.
    const uint64_t span = std::max<uint64_t>(e.size + e.waste, 1);
    for (Place& place : In(e.address, e.address + span)) {
      place.block = e.address;
      place.bytes = e.size;
      place.span = span;
      place.function = e.function;
      place.live = true;
      place.allocated = {streams_[stream].state.StackOf(e.slot, stacks_), ThreadOf(stream), time,
                         false};
      blocks_[e.address] = span;
    }
  }

  void Resulted(Stream* stream, const AllocEvent& e) {
    if (e.address == 0 && e.size != 0) {
      // It failed. What other threads did meanwhile to these few addresses is rare enough.
      for (const Place& place : stream->before) {
        In(place.address, place.address + 1).front() = place;
        if (place.live) blocks_[place.block] = place.span;
      }
    } else if (stream->story != SIZE_MAX) {
      Moment& again = stories_[stream->story].again;
      if (!again.stack) again.stack = stream->state.StackOf(e.slot, stacks_);
    }
    stream->intent = 0;
    stream->story = SIZE_MAX;
    stream->before.clear();
  }

  void Freed(size_t stream, uint64_t address, const Moment& when) {
    bool is_live = false;
    if (const auto block = blocks_.find(address); block != blocks_.end()) {
      const uint64_t end = address + block->second;
      blocks_.erase(block);
      for (Place& place : In(address, end)) {
        if (place.block != address || !place.live) continue;
        is_live = true;
        place.live = false;
        place.freed = when;
      }
    }
    const auto left = left_.find({address, stream});
    if (is_live || left == left_.end() || left->second == 0) return;
    --left->second;
    --to_come_;
    const std::span<Place> places = In(address, address + 1);
    if (places.empty() || places[0].block == 0) return;  // of what is there the trace knows nothing
    Tell(stream, places[0], when);
  }

  void Tell(size_t stream, const Place& place, const Moment& when) {
    InvalidFree story;
    story.kind = place.block == place.address ? InvalidFree::Kind::kFreedBefore
                 : place.live                 ? InvalidFree::Kind::kInsideLive
                                              : InvalidFree::Kind::kInsideFreed;
    story.address = place.address;
    story.offset = place.address - place.block;
    story.block_bytes = place.bytes;
    story.function = place.function;
    story.allocated = place.allocated;
    if (!place.live) story.freed = place.freed;
    story.again = when;
    const auto key = [](const InvalidFree& of) {
      return std::tuple(of.kind, of.offset, of.allocated.stack, of.freed.stack, of.freed.by_realloc,
                        of.again.stack, of.again.by_realloc);
    };
    // A realloc's stack is told with its result.
    const auto same = std::find_if(stories_.begin(), stories_.end(), [&](const InvalidFree& other) {
      return !when.by_realloc && key(other) == key(story);
    });
    if (same != stories_.end()) {
      ++same->times;
      return;
    }
    story.times = 1;
    if (when.by_realloc) streams_[stream].story = stories_.size();
    stories_.push_back(std::move(story));
  }

  TraceReader* const reader_;
  StackTable* const stacks_;
  const std::function<bool()>& stop_;
  const Reloads reloads_;
  std::vector<uint64_t> path_;
  std::deque<Stream> streams_;
  std::vector<Place> places_;  // by address
  absl::flat_hash_map<uint64_t, uint64_t> blocks_;  // live ones that a place is in, and their spans
  // How many frees by (address, stream) are still to come.
  absl::flat_hash_map<std::pair<uint64_t, uint64_t>, uint64_t> left_;
  size_t to_come_ = 0;  // of all of them
  std::vector<InvalidFree> stories_;  // by time
  bool stopped_ = false;
};

}  // namespace

bool CanTellInvalidFrees(const Analysis& analysis) {
  const Coverage& coverage = analysis.coverage;
  const bool from_the_start =
      analysis.range.whole() || (analysis.range.from_ns == 0 && coverage.live_until_ns != 0 &&
                                 analysis.range.to_ns == coverage.live_until_ns);
  return !coverage.events_missing && !coverage.interrupted && coverage.window_begin_ns == 0 &&
         from_the_start && !analysis.of_some_blocks();
}

InvalidFrees FindInvalidFrees(TraceReader* reader, std::span<const UnknownFree> unknown,
                              StackTable* stacks, unsigned jobs,
                              const std::function<bool()>& stop) {
  Historian historian(reader, unknown, stacks, stop);
  EventOrder<Historian> order(reader, ClockSlackNs(reader->metadata().process.clock), jobs,
                              &historian);
  order.Run();
  return historian.Finish();
}

std::vector<const InvalidFree*> CertainInvalidFrees(const Analysis& analysis) {
  const bool all_seen = AllAllocationsSeen(analysis);
  std::vector<const InvalidFree*> certain;
  for (const InvalidFree& story : analysis.invalid_frees.stories) {
    if (all_seen || story.kind == InvalidFree::Kind::kInsideLive) certain.push_back(&story);
  }
  return certain;
}

bool InvalidFreesAreCertain(const Analysis& analysis) {
  return CertainInvalidFrees(analysis).size() == analysis.invalid_frees.stories.size();
}

}  // namespace memtrace::report
