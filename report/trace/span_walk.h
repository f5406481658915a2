// SpanWalk, SpanSteps: the events from a cursor's current one to the end of its span, for a loop
// that keeps its place in registers. What is the same for all of a span the caller asks the cursor
// once. Their end moves the cursor to the event that the loop stopped at, or to the next span.
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
        low_(cursor->low_),
        high_(cursor->high_),
        time_(cursor->time_) {}

  // At position_. Below 2^63: EnterSpan() sees to it.
  uint64_t TimeHere() const {
    return std::min(low_ + static_cast<uint64_t>(static_cast<int64_t>(position_)), high_);
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
  double position_;  // of the latest event that takes time
  const double pace_;
  const uint64_t low_, high_;
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
      time_ = TimeHere();
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
        next_(TakesTime(*word_) ? position_ : position_ + pace_),
        entered_(TakesTime(*word_)) {}
  ~SpanSteps() {
    if (word_ < end_ && TakesTime(*word_)) Time();  // to which the cursor comes
    Leave(times_ - entered_);
  }

  uint64_t Time() {
    position_ = next_;
    next_ += pace_;
    ++times_;
    return time_ = TimeHere();
  }
  uint32_t times() const { return times_; }  // Time() was called
  uint64_t latest() const { return time_; }

  // False: the span ends.
  bool Next(uint32_t words) {
    word_ += words;
    return word_ < end_;
  }

 private:
  double next_;  // position_ of the next event that takes time
  uint32_t times_ = 0;
  const uint32_t entered_;
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_TRACE_SPAN_WALK_H_
