#include "report/leak/allocated_ranges.h"

#include <algorithm>
#include <iterator>

#include "format/event_words.h"
#include "report/trace/event_decoder.h"
#include "report/trace/trace_reader.h"

namespace memtrace::report::leak {

using format::EventKind;

void AllocatedRanges::Add(uint64_t address, uint64_t bytes) {
  constexpr uint64_t kWord = uint64_t{1} << kWordBits;
  constexpr uint64_t kEnd = format::kAddressMask + 1;
  if (address >= kEnd) return;
  const uint64_t begin = (address + kWord - 1) & ~(kWord - 1);
  const uint64_t end = (address + std::min(bytes, kEnd - address)) & ~(kWord - 1);
  if (begin >= end) return;
  const uint64_t first_page = (begin + kPage - 1) >> kPageBits, end_page = end >> kPageBits;
  if (first_page >= end_page) {  // none wholly
    const uint64_t border = std::min(end, first_page << kPageBits);
    AddWords(begin, border);
    AddWords(border, end);
    return;
  }
  AddWords(begin, first_page << kPageBits);
  AddPages(first_page, end_page);
  AddWords(end_page << kPageBits, end);
}

// Within one page.
void AllocatedRanges::AddWords(uint64_t begin, uint64_t end) {
  if (begin >= end) return;
  PageWords& words = words_[begin >> kPageBits];
  const uint64_t page = begin & ~(kPage - 1);
  const uint64_t first = (begin - page) >> kWordBits, last = ((end - page) >> kWordBits) - 1;
  for (uint64_t i = first / 64; i <= last / 64; ++i) {
    uint64_t mask = UINT64_MAX;
    if (i == first / 64) mask &= UINT64_MAX << first % 64;
    if (i == last / 64) mask &= UINT64_MAX >> (63 - last % 64);
    words[i] |= mask;
  }
}

void AllocatedRanges::AddPages(uint64_t first, uint64_t end) {
  auto next = pages_.upper_bound(first);
  if (next != pages_.begin()) {
    const auto before = std::prev(next);
    if (before->second >= end) return;
    if (before->second >= first) {
      first = before->first;
      next = pages_.erase(before);
    }
  }
  while (next != pages_.end() && next->first <= end) {
    end = std::max(end, next->second);
    next = pages_.erase(next);
  }
  pages_.emplace(first, end);
}

bool AllocatedRanges::HasWord(uint64_t address) const {
  const uint64_t page = address >> kPageBits, word = (address & (kPage - 1)) >> kWordBits;
  if (const auto of_page = words_.find(page);
      of_page != words_.end() && (of_page->second[word / 64] >> word % 64 & 1) != 0) {
    return true;
  }
  const auto next = pages_.upper_bound(page);
  return next != pages_.begin() && std::prev(next)->second > page;
}

AllocationHistory::AllocationHistory(const TraceReader* reader, const std::function<bool()>& stop)
    : reader_(reader), stop_(stop) {
  for (const ThreadStream& stream : reader->streams()) {
    places_.push_back({.low_ticks = stream.first_ticks & format::kTickMask});
  }
}

const AllocatedRanges* AllocationHistory::UpTo(uint64_t ticks) {
  for (size_t stream = 0; complete_ && stream < places_.size(); ++stream) {
    complete_ = Read(stream, ticks);
  }
  return complete_ ? &ranges_ : nullptr;
}

// When a span begins is found as EventCursor finds it. A block whose later spans are for the next
// call is read once more then.
bool AllocationHistory::Read(size_t stream, uint64_t ticks) {
  Place& place = places_[stream];
  const ThreadStream& of = reader_->streams()[stream];
  while (place.block < of.blocks.size() && place.low_ticks <= ticks) {
    if (stopped_ = stop_ && stop_(); stopped_) return false;
    ReadEventBlock(*reader_, of, of.blocks[place.block], &payload_, &events_);
    if (!events_.status.ok() || events_.bad_word != SIZE_MAX) return false;
    place.low_ticks = std::max(place.low_ticks, events_.begin_ticks);
    for (; place.span < events_.spans.size(); ++place.span) {
      if (place.low_ticks > ticks) return true;
      const EventBlock::Span& span = events_.spans[place.span];
      Take(place.span == 0 ? 0 : events_.spans[place.span - 1].next, span.end);
      place.low_ticks = std::max(place.low_ticks, span.ticks);
    }
    ++place.block;
    place.span = 0;
  }
  return true;
}

void AllocationHistory::Take(size_t begin, size_t end) {
  const uint64_t* const words = events_.words.data();
  for (size_t i = begin; i < end; i += WordsOf(words[i])) {
    const EventKind kind = format::KindOf(words[i]);
    if (format::IsShortAlloc(kind)) {
      const AllocEvent e = DecodeShortAlloc(words + i);
      if (e.address != 0) ranges_.Add(e.address, e.size + e.waste);
    } else if (kind == EventKind::kWideAlloc) {
      const AllocEvent e = DecodeWideAlloc(words + i);
      if (e.address != 0 && !e.mapped) ranges_.Add(e.address, e.size + e.waste);
    }
  }
}

}  // namespace memtrace::report::leak
