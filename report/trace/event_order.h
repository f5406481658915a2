// EventOrder: the events of all threads in one order.
//
// A trace keeps the order of each thread exactly, and of different threads only
// what the time stamps tell: an event lies between the stamps before and behind
// it in its thread (event_cursor.h). A span is what lies between two stamps.
//
// Where the library gave an event a stamp of its own whenever the block had changed
// hands (StampRule::kChangeOfOwner), the order is simple and exact: the spans of all
// threads in the order of the stamps they begin with, each as a whole. An event
// behind the first of its span follows, at its address, an event of its own thread;
// the first may follow another thread's, whose span then began before. No event has
// to wait. docs/event-order.md has the proof.
//
// Other traces, made by older versions, have stamps every few events or on each,
// and the order is found from three rules:
//
//   1. Within a thread the order of the words holds.
//   2. Events whose times cannot overlap (the upper bound of one is below the
//      lower bound of the other) keep the order of their times.
//   3. The events of an address alternate. A free is written before the real free
//      and an alloc after the real one, so that in truth, and in the order of
//      writing, no address is allocated while it is live, or freed while it is not.
//
// The threads stand in a heap by the likely time of their next event. The
// earliest runs, until it would pass the next thread in line. It gives its events
// to a consumer, who knows which addresses are live, and may answer "not yet":
//   - an alloc of an address that is live waits for the free;
//   - a free (or a realloc's intent) of one that is not live waits for the alloc;
//   - both wait for a thread that has announced a realloc of it (the intent was
//     seen, the result was not).
// A thread that waits is blocked with all its later events (rule 1) until an event
// of that address happens elsewhere. The others go on: that they pass it is what
// resolves the wait.
//
// A wait ends without success when every other thread lies wholly behind the
// event that waits (rule 2: what it waits for can no longer come), or waits, or has
// ended. Before that, threads are run out of line whose next event may, by its
// bounds, still come before. Then the event that waits and is earliest is forced:
// the consumer must take it and says what it makes of it (a free of a block that
// the parent process allocated; a block whose free the trace does not have; an
// order that could not be found).
//
// How far a thread may run beyond the likely time of the next one: to the end of
// its span, and no more than kQuantumNs. Rule 2 is then still kept, because no span
// is begun whose lower bound is above the likely time of another thread's event,
// and that is no more than its upper bound.
//
// Clocks: `slack_ns` is added to upper bounds, for clocks of different processors
// and for coarse clocks, whose stamps may be older than the event they follow.
//
// Blocks are read and decoded ahead of the order by other threads (read_ahead.h); the order
// itself, and the consumer, are of one thread.
//
// Memory: what is read ahead, and one block a thread, for the threads that have begun and not
// ended; when that is more than kHeldBytes, blocks of threads far back in line are given back
// and read again later.

#ifndef MEMTRACE_REPORT_TRACE_EVENT_ORDER_H_
#define MEMTRACE_REPORT_TRACE_EVENT_ORDER_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "report/trace/event_cursor.h"
#include "report/trace/read_ahead.h"
#include "report/trace/trace_reader.h"

namespace memtrace::report {

// The addresses that blocked threads wait for. The consumer tells it of each
// address that it allocates or frees.
class WaitList {
 public:
  // The state of `address` changed.
  void Changed(uint64_t address) {
    if (mask_ == 0) return;
    if ((mask_ & BitOf(address)) != 0) changed_.push_back(address);
  }

 private:
  template <typename Consumer>
  friend class EventOrder;
  static uint64_t BitOf(uint64_t address) {
    return uint64_t{1} << (address * 0x9e3779b97f4a7c15 >> 58);
  }

  uint64_t mask_ = 0;  // a bit for each address that is waited for
  std::vector<uint64_t> changed_;
};

// Consumer:
//   void Started(size_t stream, uint32_t thread)   before the first event of a stream
//   void Hole(size_t stream, const EventCursor&)   events of the stream are missing here
//   bool Apply(size_t stream, const EventCursor& cursor, bool force, WaitList& waits)
//        false: not yet, because of the address of the event; never when `force`
//   void Prefetch(uint64_t address)
//   bool Tick()                                    every few thousand events; false: stop
// and, where it has these:
//   void Ended(size_t stream)    no event of it comes any more
//   bool IsPast(uint64_t ns)     nothing from then on matters to it: no stream is read further
//   bool WantsKeep(), Keep()     asked behind Tick(): then Keep() is called soon, between two events,
//                                where Fold() tells all that there is
//   int ApplyRun(size_t stream, EventCursor* cursor, uint64_t last_ticks, WaitList& waits)
//        takes as many events as it likes from the cursor's on, none of them "not yet", and moves
//        the cursor behind them (SpanWalk); how many. Of spans that begin behind `last_ticks`, or
//        after a hole, none but the cursor's
template <typename Consumer>
class EventOrder {
 public:
  static constexpr uint64_t kQuantumNs = 5000;
  static constexpr size_t kHeldBytes = size_t{512} << 20;
  // Every step looks through the threads that wait, so more of them do not wait: their
  // spans are taken in the order of the stamps, as if the stamps told all.
  static constexpr size_t kMostWaiting = 4096;

  // `jobs`: threads that may be at work, this one included; the order is the same for any number.
  EventOrder(TraceReader* reader, uint64_t slack_ns, unsigned jobs, Consumer* consumer)
      : ahead_(reader, jobs > 1 ? jobs - 1 : 0),
        consumer_(consumer),
        slack_ns_(slack_ns),
        exact_(reader->metadata().process.stamp_rule == format::StampRule::kChangeOfOwner ||
               reader->streams().size() > kMostWaiting) {
    cursors_.reserve(reader->streams().size());
    for (size_t i = 0; i < reader->streams().size(); ++i) cursors_.emplace_back(reader, &ahead_, i);
  }

  // False: the consumer stopped it.
  bool Run() {
    if (begun_.empty()) Start();
    return exact_ ? RunSpans() : RunByWaiting();
  }

  // The order so far, into or out of an archive (state/state_archive.h); before Run() or from
  // within Keep(). What was read is not believed before Resume().
  template <typename Archive>
  void Fold(Archive& archive) {
    std::vector<std::pair<uint64_t, size_t>> ready;
    if constexpr (!Archive::kReads) {
      for (const Ready& each : ready_) ready.emplace_back(each.time, each.stream);
    }
    uint64_t content_bytes = content_bytes_read();
    archive(begun_, ready, blocked_, forced_, content_bytes);
    archive.Check(begun_.size() == cursors_.size() && content_bytes < uint64_t{1} << 62);
    if constexpr (Archive::kReads) ahead_.CountUsed(content_bytes);
    for (EventCursor& cursor : cursors_) cursor.Fold(archive);
    if constexpr (Archive::kReads) {
      for (const Blocked& each : blocked_) ready.emplace_back(each.time, each.stream);
      std::vector<bool> in_line(cursors_.size());
      for (const auto& [time, stream] : ready) {
        archive.Check(stream < cursors_.size() && !in_line[stream]);
        if (!archive.ok()) return;
        in_line[stream] = true;
      }
      ready.resize(ready.size() - blocked_.size());
      ready_.clear();
      for (const auto& [time, stream] : ready) PushReady(time, stream);
    }
  }
  // Reads the blocks in which the streams stand. False: it is no place of this trace.
  bool Resume() {
    std::vector<size_t> first(cursors_.size());
    for (size_t i = 0; i < cursors_.size(); ++i) first[i] = cursors_[i].next_block();
    ahead_.Skip(first);
    for (const Ready& each : ready_) {
      EventCursor& cursor = cursors_[each.stream];
      if (begun_[each.stream] ? !cursor.Resume() : !cursor.untouched()) return false;
    }
    for (const Blocked& each : blocked_) {
      if (!begun_[each.stream] || !cursors_[each.stream].Resume()) return false;
    }
    UpdateBlocked();
    ParkSome();
    return true;
  }

  // Between two calls of Tick().
  void set_tick_events(int events) { tick_events_ = until_tick_ = events; }

  uint64_t forced() const { return forced_; }
  bool begun(size_t stream) const { return begun_[stream]; }
  // No stream was asked for an event that is surely later than this.
  uint64_t latest_low() const { return latest_low_; }
  uint64_t content_bytes_read() const { return ahead_.used_bytes(); }

 private:
  struct Ready {
    uint64_t time;
    size_t stream;
    bool operator>(const Ready& other) const {
      return time != other.time ? time > other.time : stream > other.stream;
    }
  };
  struct Blocked {
    uint64_t address;
    uint64_t time;
    uint64_t high;
    size_t stream;
  };
  enum class Stopped { kAhead, kBlocked, kEnded, kWoke, kByConsumer };

  static constexpr int kTickEvents = 8192;

  void PushReady(uint64_t time, size_t stream) {
    ready_.push_back({time, stream});
    std::push_heap(ready_.begin(), ready_.end(), std::greater<>());
  }
  size_t PopReady() {
    std::pop_heap(ready_.begin(), ready_.end(), std::greater<>());
    const size_t stream = ready_.back().stream;
    ready_.pop_back();
    return stream;
  }
  void Start();
  bool RunSpans();
  bool RunByWaiting();
  bool IsPast(uint64_t ns) const {
    if constexpr (requires { consumer_->IsPast(ns); }) {
      return consumer_->IsPast(ns);
    } else {
      return false;
    }
  }
  // Whether to leave off this stream, which comes next again, so that Keep() can be called.
  bool KeepIsDue(uint64_t time, size_t stream) const {
    if constexpr (requires { consumer_->WantsKeep(); }) {
      if (!consumer_->WantsKeep()) return false;
      return ready_.empty() || ready_.front() > Ready{time, stream};
    } else {
      return false;
    }
  }
  void KeepIfWanted() {
    if constexpr (requires { consumer_->WantsKeep(); }) {
      if (consumer_->WantsKeep()) [[unlikely]] consumer_->Keep();
    }
  }
  bool ApplyNext(size_t stream, bool force) {
    EventCursor& cursor = cursors_[stream];
    if (cursor.after_hole()) {
      consumer_->Hole(stream, cursor);
      cursor.clear_after_hole();
    }
    consumer_->Prefetch(cursor.AddressAhead());
    return consumer_->Apply(stream, cursor, force, waits_);
  }
  bool TickIsDue() {
    if (--until_tick_ > 0) return false;
    until_tick_ = tick_events_;
    return true;
  }
  bool Begin(size_t stream);
  void End(size_t stream) {
    if constexpr (requires { consumer_->Ended(stream); }) consumer_->Ended(stream);
  }
  uint64_t LowOf(const Ready& ready) const {
    return begun_[ready.stream] ? cursors_[ready.stream].low() : ready.time;
  }
  bool TakeEarlyStarter(size_t* stream);
  Stopped RunStream(size_t stream, bool force, bool out_of_line);
  void Block(size_t stream);
  void Wake(uint64_t now);
  void UpdateBlocked();
  void ParkSome();

  ReadAhead ahead_;
  Consumer* const consumer_;
  const uint64_t slack_ns_;
  const bool exact_;
  std::vector<EventCursor> cursors_;
  std::vector<bool> begun_;
  std::vector<Ready> ready_;  // a heap, earliest first
  std::vector<Blocked> blocked_;
  uint64_t blocked_high_ = UINT64_MAX;  // the lowest upper bound among them
  WaitList waits_;
  uint64_t forced_ = 0;
  uint64_t latest_low_ = 0;
  int tick_events_ = kTickEvents;
  int until_tick_ = kTickEvents;
  size_t begun_since_park_ = 0;
};

// The first event of a stream. False: there is none.
template <typename Consumer>
bool EventOrder<Consumer>::Begin(size_t stream) {
  begun_[stream] = true;
  consumer_->Started(stream, cursors_[stream].thread());
  cursors_[stream].Next();
  if (cursors_[stream].done()) End(stream);
  // Which looks at all streams: a trace may have a million of them.
  if (++begun_since_park_ >= std::max<size_t>(64, cursors_.size() / 256)) ParkSome();
  return !cursors_[stream].done();
}

// Puts all streams in line.
template <typename Consumer>
void EventOrder<Consumer>::Start() {
  begun_.assign(cursors_.size(), false);
  for (size_t i = 0; i < cursors_.size(); ++i) {
    const EventCursor& cursor = cursors_[i];
    // A thread's record tells when it began: its first block can wait until then.
    if ((exact_ ? cursor.low_ticks() : cursor.time()) != 0 || Begin(i)) {
      PushReady(exact_ ? cursor.low_ticks() : cursor.time(), i);
    }
  }
}

// Ready::time is in ticks here. Nothing waits: what is not as it should be, because the
// trace lacks something, the consumer takes as it is.
template <typename Consumer>
bool EventOrder<Consumer>::RunSpans() {
  while (!ready_.empty()) {
    KeepIfWanted();
    const size_t stream = PopReady();
    EventCursor& cursor = cursors_[stream];
    latest_low_ = std::max(latest_low_, cursor.low());
    if (IsPast(cursor.low())) continue;
    if (!begun_[stream]) {
      if (Begin(stream)) PushReady(cursor.low_ticks(), stream);
      continue;
    }
    if (cursor.parked()) cursor.Unpark();
    const uint64_t last = ready_.empty() ? UINT64_MAX : ready_.front().time;
    while (!cursor.done() && cursor.low_ticks() <= last) {
      if constexpr (requires { consumer_->ApplyRun(stream, &cursor, last, waits_); }) {
        if (!cursor.after_hole()) {
          const int taken = consumer_->ApplyRun(stream, &cursor, last, waits_);
          until_tick_ -= taken;
          if (taken != 0) {
            if (TickIsDue()) {
              if (!consumer_->Tick()) return false;
              if (!cursor.done() && KeepIsDue(cursor.low_ticks(), stream)) break;
            }
            continue;
          }
        }
      }
      if (IsPast(cursor.low())) break;
      ApplyNext(stream, /*force=*/true);
      cursor.Next();
      if (TickIsDue()) {
        if (!consumer_->Tick()) return false;
        if (!cursor.done() && KeepIsDue(cursor.low_ticks(), stream)) break;
      }
    }
    if (cursor.done()) {
      End(stream);
    } else {
      PushReady(cursor.low_ticks(), stream);
    }
  }
  return true;
}

template <typename Consumer>
bool EventOrder<Consumer>::RunByWaiting() {
  for (;;) {
    KeepIfWanted();
    size_t stream;
    bool force = false, out_of_line = false;
    if (ready_.empty()) {
      if (blocked_.empty()) return true;
      force = true;
    } else if (blocked_high_ != UINT64_MAX && LowOf(ready_.front()) > blocked_high_ + slack_ns_) {
      // Rule 2: what comes next in line is later than an event that waits.
      out_of_line = TakeEarlyStarter(&stream);
      force = !out_of_line;
    }
    if (force) {
      size_t earliest = 0;
      for (size_t i = 1; i < blocked_.size(); ++i) {
        const Blocked& a = blocked_[i];
        const Blocked& b = blocked_[earliest];
        if (std::pair(a.high, a.time) < std::pair(b.high, b.time)) earliest = i;
      }
      stream = blocked_[earliest].stream;
      blocked_.erase(blocked_.begin() + static_cast<ptrdiff_t>(earliest));
      UpdateBlocked();
      ++forced_;
    } else {
      if (!out_of_line) stream = PopReady();
      latest_low_ = std::max(latest_low_, cursors_[stream].low());
      if (IsPast(cursors_[stream].low())) continue;
      if (!begun_[stream]) {
        if (Begin(stream)) PushReady(cursors_[stream].time(), stream);
        continue;
      }
    }
    if (cursors_[stream].parked()) {
      cursors_[stream].Unpark();
      if (cursors_[stream].done()) {
        End(stream);
        continue;
      }
    }
    const Stopped why = RunStream(stream, force, out_of_line);
    if (why == Stopped::kByConsumer) return false;
    if (why == Stopped::kEnded) End(stream);
    if (why == Stopped::kBlocked) Block(stream);
    if (!waits_.changed_.empty()) Wake(cursors_[stream].time());
    if (why == Stopped::kAhead || why == Stopped::kWoke) {
      PushReady(cursors_[stream].time(), stream);
    }
  }
}

// Takes, of the threads in line whose next event may be before one that waits, the first.
template <typename Consumer>
bool EventOrder<Consumer>::TakeEarlyStarter(size_t* stream) {
  size_t first = ready_.size();
  for (size_t i = 0; i < ready_.size(); ++i) {
    if (LowOf(ready_[i]) > blocked_high_ + slack_ns_) continue;
    if (first == ready_.size() || ready_[first] > ready_[i]) first = i;
  }
  if (first == ready_.size()) return false;
  *stream = ready_[first].stream;
  ready_[first] = ready_.back();
  ready_.pop_back();
  std::make_heap(ready_.begin(), ready_.end(), std::greater<>());
  return true;
}

// Gives events of one stream to the consumer until it must let another go first.
template <typename Consumer>
typename EventOrder<Consumer>::Stopped EventOrder<Consumer>::RunStream(size_t stream, bool force,
                                                                       bool out_of_line) {
  EventCursor& cursor = cursors_[stream];
  uint64_t last_low = UINT64_MAX, last_time = UINT64_MAX;
  if (!ready_.empty() && !out_of_line) {
    last_low = ready_.front().time;
    last_time = last_low + kQuantumNs;
  }
  // Not behind an event that waits, either.
  if (blocked_high_ != UINT64_MAX) last_low = std::min(last_low, blocked_high_ + slack_ns_);
  for (;;) {
    if (!ApplyNext(stream, force)) return Stopped::kBlocked;
    force = false;
    cursor.Next();
    if (cursor.done()) return Stopped::kEnded;
    if (TickIsDue()) {
      if (!consumer_->Tick()) return Stopped::kByConsumer;
      if (!out_of_line && KeepIsDue(cursor.time(), stream)) return Stopped::kAhead;
    }
    if (!waits_.changed_.empty()) return Stopped::kWoke;
    if (cursor.low() > last_low || cursor.time() > last_time || IsPast(cursor.low())) {
      return Stopped::kAhead;
    }
  }
}

template <typename Consumer>
void EventOrder<Consumer>::Block(size_t stream) {
  const EventCursor& cursor = cursors_[stream];
  blocked_.push_back(
      {*cursor.words() & format::kAddressMask, cursor.time(), cursor.high(), stream});
  UpdateBlocked();
}

// Makes the threads ready that wait for an address that changed at about `now`.
template <typename Consumer>
void EventOrder<Consumer>::Wake(uint64_t now) {
  for (size_t i = 0; i < blocked_.size();) {
    const auto& changed = waits_.changed_;
    if (std::find(changed.begin(), changed.end(), blocked_[i].address) == changed.end()) {
      ++i;
      continue;
    }
    // The guess of its time was too early, for it and for what it did next.
    EventCursor& cursor = cursors_[blocked_[i].stream];
    cursor.RaiseTime(now);
    PushReady(cursor.time(), blocked_[i].stream);
    blocked_[i] = blocked_.back();
    blocked_.pop_back();
  }
  waits_.changed_.clear();
  UpdateBlocked();
}

template <typename Consumer>
void EventOrder<Consumer>::UpdateBlocked() {
  waits_.mask_ = 0;
  blocked_high_ = UINT64_MAX;
  for (const Blocked& blocked : blocked_) {
    waits_.mask_ |= WaitList::BitOf(blocked.address);
    blocked_high_ = std::min(blocked_high_, blocked.high);
  }
}

template <typename Consumer>
void EventOrder<Consumer>::ParkSome() {
  begun_since_park_ = 0;
  size_t held = 0;
  for (const EventCursor& cursor : cursors_) held += cursor.held_bytes();
  if (held <= kHeldBytes) return;
  // The later half of those in line, latest first, until half of the bound is free.
  std::vector<Ready> line = ready_;
  std::sort(line.begin(), line.end(), std::greater<>());
  for (size_t i = 0; i < line.size() / 2 && held > kHeldBytes / 2; ++i) {
    EventCursor& cursor = cursors_[line[i].stream];
    held -= cursor.held_bytes();
    if (begun_[line[i].stream]) cursor.Park();
  }
}

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_TRACE_EVENT_ORDER_H_
