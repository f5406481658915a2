// EventCursor: the events of one thread, one after the other, with the times
// between which each happened.
//
// A block is read whole and checked at once: every event has its words, and the
// time stamps in it cut it into spans. Within a span nothing is known of an
// event's time but
//
//   low()  <= time <= high()       the stamps around it
//
// time() is the best guess in there: the first event behind a stamp is the one that
// the stamp was taken for; the others follow at the pace of the span before, or at
// the even pace of this one when that is faster; a thread that slept did so at the
// end of the span. What is written in the course of another event takes no time.
//
//   for (cursor.Next(); !cursor.done(); cursor.Next()) use(cursor.words(), ...)
//
// Stamps are not given out. They never go back: one that does counts as a repetition.
//
// Memory: one block. Park() gives it back; the next access reads it again.

#ifndef MEMTRACE_REPORT_TRACE_EVENT_CURSOR_H_
#define MEMTRACE_REPORT_TRACE_EVENT_CURSOR_H_

#include <algorithm>
#include <cstdint>

#include "format/event_words.h"
#include "report/trace/event_block.h"
#include "report/trace/read_ahead.h"
#include "report/trace/trace_reader.h"

namespace memtrace::report {

class EventCursor {
 public:
  // Of a block before it is packed (docs/trace-format.md, Loss).
  static constexpr uint64_t kMostBlockWords = 8192;

  // Reads the events of stream number `stream`. Its blocks come from `ahead`, which is of the same
  // reader; damage is noted in the reader when its place is reached. Both outlive the cursor.
  EventCursor(TraceReader* reader, ReadAhead* ahead, size_t stream);

  // Moves to the next event; the first call to the first one.
  void Next() {
    word_ += words_here_;
    if (word_ >= span_end_) {
      EnterSpan();
      if (done_) return;
    }
    Decode();
  }

  bool done() const { return done_; }

  // The event: its head word and those that belong to it.
  const uint64_t* words() const { return words_ + word_; }
  uint32_t word_count() const { return words_here_; }
  format::EventKind kind() const { return format::KindOf(words_[word_]); }

  // Nanoseconds since the process started.
  uint64_t low() const { return low_; }
  // The same as low(), in ticks modulo 2^60: nanoseconds may be too coarse to order by.
  uint64_t low_ticks() const { return low_ticks_; }
  uint64_t high() const { return high_; }
  uint64_t time() const { return time_; }

  // The event turned out to be not earlier than this; nor are those behind it. When
  // the guess was wrong by more than the pace explains, the thread slept in front of
  // this event and not at the end of the span: then the rest moves to the end.
  void RaiseTime(uint64_t time);

  uint32_t thread() const { return stream().thread; }
  // Events of this thread were lost before this event; said once.
  bool after_hole() const { return after_hole_; }
  void clear_after_hole() {
    after_hole_ = false;
    lost_words_ = 0;
  }
  // They had so many words at most.
  uint64_t lost_words() const { return lost_words_; }
  // The first slot of the next path in this block; 0: there is none.
  uint32_t NextPathSlot() const;
  // The current block came from a ring.
  bool open_ended() const { return open_ended_; }

  // Memory held, and giving it back. The cursor must not be done.
  size_t held_bytes() const { return events_.held_bytes(); }
  void Park();
  void Unpark();
  bool parked() const { return parked_; }

  // An address some events ahead in this block that a table may be asked for soon.
  // A guess: a word whose kind bits are 0 is the second of an event.
  uint64_t AddressAhead() const {
    size_t ahead = word_ + kAheadWords;
    if (ahead + 1 >= block_words_) return 0;
    ahead += format::KindOf(words_[ahead]) == format::EventKind::kInvalid;
    return words_[ahead] & format::kAddressMask;
  }

  // The first of its blocks that it will still ask for.
  size_t next_block() const { return block_ > 0 && !done_ ? block_ - 1 : block_; }

  // Writes the place of the cursor into an archive, or reads it out of one (state/state_archive.h).
  // After reading a place that was not at the end, call Resume().
  template <typename Archive>
  void Fold(Archive& archive);
  // Reads the block that it stands in. False: there is no event at this place.
  bool Resume();
  bool untouched() const { return block_ == 0 && !done_; }

 private:
  friend class SpanPlace;  // span_walk.h
  friend class SpanWalk;
  friend class SpanSteps;
  static constexpr size_t kAheadWords = 16;

  // Times within a span are counted in parts of a nanosecond, as whole numbers: a step is an
  // addition, and the same on any machine. What no event of a span may pass is far from 2^64: the
  // pace in a span of more than 19 hours is that of one of 19 hours.
  static constexpr unsigned kPartBits = 16;
  static constexpr uint64_t kMostParts = uint64_t{1} << 62;
  static constexpr uint64_t kNoPace = UINT64_MAX;

  const ThreadStream& stream() const { return reader_->streams()[stream_]; }
  void EnterSpan();
  bool LoadBlock();
  bool Read();
  void Lose(uint64_t words) {
    after_hole_ = true;
    lost_words_ += words;
  }
  void End();

  void Decode() {
    words_here_ = WordsOf(words_[word_]);  // checked when the block was cut
    if (!TakesTime(words_[word_])) return;
    position_ += pace_;
    --events_left_;
    time_ = std::min(base_ + (position_ >> kPartBits), high_);
  }

  TraceReader* reader_;
  ReadAhead* ahead_;
  size_t stream_;
  size_t block_ = 0;        // the next one to load
  EventBlock events_;       // the current one
  const uint64_t* words_ = nullptr;  // its words
  size_t block_words_ = 0;
  size_t span_ = 0;         // the next one to enter
  size_t word_ = 0;
  size_t span_end_ = 0;
  uint32_t words_here_ = 0;
  bool done_ = false;
  bool after_hole_ = false;
  uint64_t lost_words_ = 0;
  bool open_ended_ = false;
  bool parked_ = false;
  uint64_t low_ = 0;
  uint64_t low_ticks_ = 0;
  uint64_t high_ticks_ = 0;
  uint64_t high_ = 0;
  uint64_t time_ = 0;
  uint64_t pace_ = 1;       // parts of a nanosecond an event, in this span; not 0
  uint64_t last_pace_ = kNoPace;  // the even pace of the span before
  uint64_t base_ = 0;       // low(), or to where an event in the span was raised
  uint64_t position_ = 0;   // parts since base_; modulo 2^64 before the span's first event
  uint32_t events_left_ = 0;  // in this span, that take time
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_TRACE_EVENT_CURSOR_H_
