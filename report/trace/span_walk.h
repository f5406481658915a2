// SpanWalk, SpanSteps: the events from a cursor's current one to the end of its span, for a loop
// that keeps its place in registers. What is the same for all of a span the caller asks the cursor
// once. Their end moves the cursor to the event that the loop stopped at, or to the next span. That of
// SpanWalk is its destructor's; that of SpanSteps the caller tells, so that no call in the loop has to
// leave the place where a destructor finds it.
//
//   SpanWalk walk(&cursor);
//   do {
//     if (no event for this loop) break;
//     use(walk.words(), walk.time());
//   } while (walk.Next(words of the event));
//
// SpanSteps is for a loop that asks for the kind of each event anyway, and so knows how many words
// it has and whether it takes time:
//
//   SpanSteps steps(&cursor);
//   do {
//     if (no event for this loop) break;
//     if (it takes time) use(steps.words(), steps.Time()); else use(steps.words());
//   } while (steps.Next(words of the event));
//   steps.End();
//
// Time() is called once for each event that takes time and that the loop took, and for no other.

#ifndef MEMTRACE_REPORT_TRACE_SPAN_WALK_H_
#define MEMTRACE_REPORT_TRACE_SPAN_WALK_H_

#include <algorithm>
#include <cstdint>

#include "format/event_words.h"
#include "report/trace/event_cursor.h"

namespace memtrace::report {

// What SpanWalk and SpanSteps both know of the cursor's span.
class SpanPlace {
 public:
  SpanPlace(const SpanPlace&) = delete;
  SpanPlace& operator=(const SpanPlace&) = delete;

  const uint64_t* words() const { return word_; }

  // See EventCursor::AddressAhead().
  uint64_t AddressAhead() const {
    const uint64_t* ahead = word_ + EventCursor::kAheadWords;
    if (ahead >= prefetch_end_) return 0;
    ahead += format::KindOf(*ahead) == format::EventKind::kInvalid;
    return *ahead & format::kAddressMask;
  }

 protected:
  explicit SpanPlace(EventCursor* cursor)
      : cursor_(*cursor),
        word_(cursor->words_ + cursor->word_),
        end_(cursor->words_ + cursor->span_end_),
        prefetch_end_(cursor->words_ + cursor->block_words_ - 1),
        position_(cursor->position_),
        pace_(cursor->pace_),
        base_(cursor->base_),
        high_(cursor->high_),
        time_(cursor->time_) {}

  uint64_t TimeAt(uint64_t position) const {
    return std::min(base_ + (position >> EventCursor::kPartBits), high_);
  }

  // Gives the cursor its place, `taken` events further that take time.
  void Leave(uint32_t taken) {
    cursor_.word_ = static_cast<size_t>(word_ - cursor_.words_);
    cursor_.position_ = position_;
    cursor_.time_ = time_;
    cursor_.events_left_ -= taken;
    if (word_ >= end_) {
      cursor_.words_here_ = 0;
      cursor_.Next();
    } else {
      cursor_.words_here_ = WordsOf(*word_);
    }
  }

  EventCursor& cursor_;
  const uint64_t* word_;
  const uint64_t* const end_;
  const uint64_t* const prefetch_end_;
  uint64_t position_;  // of the latest event that takes time
  const uint64_t pace_;
  const uint64_t base_, high_;
  uint64_t time_;
};

class SpanWalk : public SpanPlace {
 public:
  explicit SpanWalk(EventCursor* cursor) : SpanPlace(cursor) {}
  ~SpanWalk() { Leave(taken_); }

  uint64_t time() const { return time_; }

  // False: the span ends.
  bool Next(uint32_t words) {
    word_ += words;
    if (word_ >= end_) return false;
    if (TakesTime(*word_)) [[likely]] {
      position_ += pace_;
      ++taken_;
      time_ = TimeAt(position_);
    }
    return true;
  }

 private:
  uint32_t taken_ = 0;
};

class SpanSteps : public SpanPlace {
 public:
  explicit SpanSteps(EventCursor* cursor)
      : SpanPlace(cursor),
        // The cursor has come to its event already.
        first_(TakesTime(*word_) ? position_ : position_ + pace_),
        next_(first_),
        // Of the span, the one it has come to included.
        events_(cursor->events_left_ + TakesTime(*word_)) {}

  uint64_t Time() {
    const uint64_t time = TimeAt(next_);
    next_ += pace_;
    return time;
  }
  // False: the span ends.
  bool Next(uint32_t words) {
    word_ += words;
    return word_ < end_;
  }

  // How often Time() was called, and what it gave last.
  uint32_t times() const {
    return word_ >= end_ ? events_ : static_cast<uint32_t>((next_ - first_) / pace_);
  }
  uint64_t latest() const { return TimeAt(next_ - pace_); }

  // Moves the cursor.
  void End() {
    uint32_t come_to = times();
    if (come_to != 0) {
      position_ = next_ - pace_;
      time_ = latest();
    }
    if (word_ < end_ && TakesTime(*word_)) {
      position_ = next_;
      time_ = TimeAt(position_);
      ++come_to;
    }
    Leave(come_to - (events_ - cursor_.events_left_));
  }

 private:
  const uint64_t first_;  // the first event's position that takes time
  uint64_t next_;         // the next one's
  const uint32_t events_;
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_TRACE_SPAN_WALK_H_
