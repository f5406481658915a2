#include "report/event_cursor.h"

namespace memtrace::report {

using format::EventKind;

namespace {

// kTime words carry 60 bits; so that a header's ticks compare with them.
constexpr uint64_t kTickMask = (uint64_t{1} << 60) - 1;

}  // namespace

EventCursor::EventCursor(TraceReader* reader, const ThreadStream* stream)
    : reader_(reader), stream_(stream) {
  if (stream->first_ticks != 0) {
    low_ticks_ = stream->first_ticks & kTickMask;
    low_ = time_ = reader_->clock().ToNs(low_ticks_, &clock_hint_);
  }
}

// Reads block_ into words_ and cuts it into spans_. The stamp before it is cut_low_.
bool EventCursor::ReadAndCut() {
  const BlockRef& block = stream_->blocks[block_];
  spans_.clear();
  if (!reader_->ReadEvents(*stream_, block, &words_)) return false;
  const ClockMap& clock = reader_->clock();
  uint64_t low = cut_low_, ticks = cut_ticks_;
  if (block.open_ended && block.clock_ticks != 0) {
    low = std::max(low, clock.ToNs(block.clock_ticks & kTickMask, &clock_hint_));
    ticks = std::max(ticks, block.clock_ticks & kTickMask);
  }
  cut_low_ = low;
  cut_ticks_ = ticks;
  const uint64_t* words = words_.data();
  const size_t size = words_.size();
  size_t i = 0;
  uint32_t events = 0;
  while (i < size) {
    const uint64_t head = words[i];
    const EventKind kind = format::KindOf(head);
    if (kind == EventKind::kTime) {
      low = std::max(low, clock.ToNs(format::TicksOf(head), &clock_hint_));
      ticks = std::max(ticks, format::TicksOf(head));
      spans_.push_back({static_cast<uint32_t>(i), static_cast<uint32_t>(i + 1), events, low, ticks});
      events = 0;
      ++i;
      continue;
    }
    const uint32_t n = format::EventWords(head);
    if (n == 0 || n > size - i) {
      reader_->NoteBadEvent(block, i);
      words_.resize(i);
      break;
    }
    events += TakesTime(head);
    i += n;
  }
  uint64_t high = UINT64_MAX;
  if (!block.open_ended && block.clock_ticks != 0) {
    high = std::max(low, clock.ToNs(block.clock_ticks & kTickMask, &clock_hint_));
    ticks = std::max(ticks, block.clock_ticks & kTickMask);
  }
  const auto end = static_cast<uint32_t>(words_.size());
  spans_.push_back({end, end, events, high, ticks});
  return true;
}

bool EventCursor::LoadBlock() {
  for (; block_ < stream_->blocks.size(); ++block_) {
    const BlockRef& block = stream_->blocks[block_];
    after_hole_ |= block.after_hole;
    cut_low_ = low_;
    cut_ticks_ = low_ticks_;
    if (!ReadAndCut()) {
      after_hole_ = true;
      continue;
    }
    content_bytes_read_ += words_.size() * sizeof(uint64_t);
    low_ = cut_low_;
    low_ticks_ = cut_ticks_;
    open_ended_ = block.open_ended;
    span_ = 0;
    ++block_;
    return true;
  }
  return false;
}

// Moves to the next span that has events, over blocks; or ends.
void EventCursor::EnterSpan() {
  for (;;) {
    if (span_ == spans_.size()) {
      if (high_ != UINT64_MAX) low_ = std::max(low_, high_);
      low_ticks_ = std::max(low_ticks_, high_ticks_);
      if (!LoadBlock()) {
        done_ = true;
        words_ = {};
        spans_ = {};
        word_ = span_end_ = 0;
        words_here_ = 0;
        return;
      }
    } else if (span_ > 0) {
      low_ = std::max(low_, high_);
      low_ticks_ = std::max(low_ticks_, high_ticks_);
    }
    const Span& span = spans_[span_];
    word_ = span_ == 0 ? 0 : spans_[span_ - 1].next;
    span_end_ = span.end;
    high_ = span.high;
    high_ticks_ = span.ticks;
    ++span_;
    events_left_ = span.events;
    if (span.events > 0) {
      if (high_ != UINT64_MAX) {
        const double even = static_cast<double>(high_ - low_) / span.events;
        pace_ = last_pace_ >= 0 ? std::min(even, last_pace_) : even;
        last_pace_ = even;
      } else {
        // No end is known; the sum must stay a time.
        pace_ = std::min(std::max(last_pace_, 0.0), 0x1p62 / (span.events + 1.0));
      }
    }
    // The library takes a stamp, or writes a block, for the event that comes next.
    position_ = -pace_;
    time_ = low_;
    if (word_ < span_end_) return;
  }
}

void EventCursor::RaiseTime(uint64_t time) {
  if (time_ >= high_) return;
  const double wrong_by = static_cast<double>(time) - static_cast<double>(time_);
  if (wrong_by > 8 * pace_ + 1000 && high_ != UINT64_MAX) {
    const auto rest = static_cast<uint64_t>(pace_ * (events_left_ + 1.0));
    time = std::max(time, high_ - std::min(rest, high_ - low_));
  }
  if (time <= time_) return;
  time_ = std::min(time, high_);
  position_ = static_cast<double>(time_ - low_);
}

void EventCursor::Park() {
  if (parked_ || done_) return;
  words_ = {};
  parked_ = true;
}

void EventCursor::Unpark() {
  if (!parked_) return;
  parked_ = false;
  --block_;
  const size_t spans = spans_.size();
  const size_t size = span_end_;
  // The same words again, unless the file changed under us: then the thread ends here.
  if (!ReadAndCut() || spans_.size() != spans || words_.size() < size) {
    done_ = true;
    words_ = {};
  }
  ++block_;
}

}  // namespace memtrace::report
