#include "report/trace/event_cursor.h"

namespace memtrace::report {

EventCursor::EventCursor(TraceReader* reader, ReadAhead* ahead, size_t stream)
    : reader_(reader), ahead_(ahead), stream_(stream) {
  if (this->stream().first_ticks != 0) {
    low_ticks_ = this->stream().first_ticks & format::kTickMask;
    low_ = time_ = reader_->clock().ToNs(low_ticks_);
  }
}

// Reads block_ into events_.
bool EventCursor::Read() {
  const BlockRef& block = stream().blocks[block_];
  ahead_->Take(stream_, block_, &events_);
  words_ = events_.words.data();
  block_words_ = events_.words.size();
  if (!reader_->NoteOutcome(block, events_.status)) return false;
  if (events_.bad_word != SIZE_MAX) reader_->NoteBadEvent(block, events_.bad_word);
  return true;
}

void EventCursor::End() {
  done_ = true;
  events_ = {};
  words_ = nullptr;
  block_words_ = 0;
}

uint32_t EventCursor::NextPathSlot() const {
  for (size_t word = word_; word < block_words_; word += WordsOf(words_[word])) {
    if (format::KindOf(words_[word]) == format::EventKind::kPath) {
      return format::PathFirst(words_[word]);
    }
  }
  return format::kNoSlot;
}

bool EventCursor::LoadBlock() {
  const std::vector<BlockRef>& blocks = stream().blocks;
  if (events_.bad_word != SIZE_MAX) Lose(blocks[block_ - 1].content_bytes / sizeof(uint64_t));
  for (; block_ < blocks.size(); ++block_) {
    const BlockRef& block = blocks[block_];
    if (block.lost_before != 0) Lose(block.lost_before * kMostBlockWords);
    if (!Read()) {
      Lose(block.content_bytes / sizeof(uint64_t));
      continue;
    }
    low_ = std::max(low_, events_.begin_ns);
    low_ticks_ = std::max(low_ticks_, events_.begin_ticks);
    open_ended_ = blocks[block_].open_ended;
    span_ = 0;
    ++block_;
    return true;
  }
  return false;
}

// Moves to the next span that has events, over blocks; or ends.
void EventCursor::EnterSpan() {
  for (;;) {
    if (span_ == events_.spans.size()) {
      if (high_ != UINT64_MAX) low_ = std::max(low_, high_);
      low_ticks_ = std::max(low_ticks_, high_ticks_);
      if (!LoadBlock()) {
        End();
        word_ = span_end_ = 0;
        words_here_ = 0;
        return;
      }
    } else if (span_ > 0) {
      low_ = std::max(low_, high_);
      low_ticks_ = std::max(low_ticks_, high_ticks_);
    }
    const EventBlock::Span& span = events_.spans[span_];
    word_ = span_ == 0 ? 0 : events_.spans[span_ - 1].next;
    span_end_ = span.end;
    high_ = std::max(span.high, low_);
    high_ticks_ = span.ticks;
    ++span_;
    // Of the block what it has come to: each of many threads holds one, most of it still to come.
    const size_t behind = span_ == events_.spans.size() ? block_words_ : span.next;
    ahead_->CountUsed((behind - word_) * sizeof(uint64_t));
    events_left_ = span.events;
    if (span.events > 0) {
      if (high_ != UINT64_MAX) {
        const uint64_t even =
            (std::min(high_ - low_, kMostParts >> kPartBits) << kPartBits) / span.events;
        pace_ = std::min(even, last_pace_);
        last_pace_ = even;
      } else {
        pace_ = last_pace_ == kNoPace ? 0 : std::min(last_pace_, kMostParts / span.events);
      }
      pace_ = std::max<uint64_t>(pace_, 1);
    }
    // The library takes a stamp, or writes a block, for the event that comes next.
    base_ = low_;
    position_ = -pace_;
    time_ = low_;
    if (word_ < span_end_) return;
  }
}

void EventCursor::RaiseTime(uint64_t time) {
  if (time_ >= high_) return;
  const uint64_t wrong_by = time - std::min(time, time_);
  if (wrong_by > (pace_ >> (kPartBits - 3)) + 1000 && high_ != UINT64_MAX) {
    const uint64_t rest = pace_ * (events_left_ + uint64_t{1}) >> kPartBits;
    time = std::max(time, high_ - std::min(rest, high_ - low_));
  }
  if (time <= time_) return;
  base_ = time_ = std::min(time, high_);
  position_ = 0;
}

void EventCursor::Park() {
  if (parked_ || done_) return;
  events_.words = {};
  words_ = nullptr;
  parked_ = true;
}

void EventCursor::Unpark() {
  if (!parked_) return;
  parked_ = false;
  const size_t spans = events_.spans.size();
  --block_;
  // The same words again, unless the file changed under us: then the thread ends here.
  if (!Read() || events_.spans.size() != spans || block_words_ < span_end_) End();
  ++block_;
}

bool EventCursor::Resume() {
  if (done_ || block_ == 0) return false;
  --block_;
  const bool read = Read();
  ++block_;
  if (!read || span_ == 0 || span_ > events_.spans.size()) return false;
  if (span_end_ != events_.spans[span_ - 1].end || word_ >= span_end_) return false;
  size_t word = span_ == 1 ? 0 : events_.spans[span_ - 2].next;
  while (word < word_) word += WordsOf(words_[word]);
  if (word != word_ || words_here_ != WordsOf(words_[word])) return false;
  uint32_t left = 0;
  for (word += words_here_; word < span_end_; word += WordsOf(words_[word])) {
    left += TakesTime(words_[word]);
  }
  return left == events_left_;
}

}  // namespace memtrace::report
