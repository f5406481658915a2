#include "report/trace/event_block.h"

#include <algorithm>

#include "report/trace/block_payload.h"
#include "report/trace/trace_reader.h"

namespace memtrace::report {

using format::EventKind;

void ReadEventBlock(const TraceReader& reader, const ThreadStream& stream, const BlockRef& ref,
                    BlockPayload* payload, EventBlock* block) {
  block->spans.clear();
  block->begin_ns = block->begin_ticks = 0;
  block->bad_word = SIZE_MAX;
  block->status = reader.DecodeEvents(stream, ref, payload, &block->words);
  if (!block->status.ok()) return;

  const ClockMap& clock = reader.clock();
  size_t clock_hint = 0;
  uint64_t low = 0, ticks = 0;
  if (ref.open_ended && ref.clock_ticks != 0) {
    low = clock.ToNs(ref.clock_ticks & format::kTickMask, &clock_hint);
    ticks = ref.clock_ticks & format::kTickMask;
  }
  block->begin_ns = low;
  block->begin_ticks = ticks;
  const uint64_t* words = block->words.data();
  const size_t size = block->words.size();
  uint32_t events = 0;
  const auto end_span = [&](size_t at, uint32_t its_events) {
    low = std::max(low, clock.ToNs(format::TicksOf(words[at]), &clock_hint));
    ticks = std::max(ticks, format::TicksOf(words[at]));
    block->spans.push_back(
        {static_cast<uint32_t>(at), static_cast<uint32_t>(at + 1), its_events, low, ticks});
  };
  if (const auto stamps = payload->stamps(); !stamps.empty() && stamps.back().word == size) {
    // The decoder has seen to it that these are events.
    block->spans.reserve(stamps.size());
    for (const EventColumns::Stamp& stamp : stamps.first(stamps.size() - 1)) {
      end_span(stamp.word, stamp.events);
    }
    events = stamps.back().events;
  } else {
    for (size_t i = 0; i < size;) {
      const uint64_t head = words[i];
      if (format::KindOf(head) == EventKind::kTime) {
        end_span(i, events);
        events = 0;
        ++i;
        continue;
      }
      const uint32_t n = WordsOf(head);
      if (n == 0 || n > size - i) {
        block->bad_word = i;
        block->words.resize(i);
        break;
      }
      events += TakesTime(head);
      i += n;
    }
  }
  uint64_t high = UINT64_MAX;
  if (!ref.open_ended && ref.clock_ticks != 0) {
    high = std::max(low, clock.ToNs(ref.clock_ticks & format::kTickMask, &clock_hint));
    ticks = std::max(ticks, ref.clock_ticks & format::kTickMask);
  }
  const auto end = static_cast<uint32_t>(block->words.size());
  block->spans.push_back({end, end, events, high, ticks});
}

}  // namespace memtrace::report
