#include "report/analysis/run_end.h"

#include <algorithm>

#include "format/event_words.h"
#include "report/trace/block_payload.h"
#include "report/trace/event_block.h"

namespace memtrace::report {

uint64_t LastStampNs(const TraceReader& reader) {
  const ClockMap& clock = reader.clock();
  uint64_t last = clock.LastNs();
  BlockPayload payload;
  EventBlock block;
  for (const ThreadStream& stream : reader.streams()) {
    if (stream.blocks.empty()) continue;
    const BlockRef& ref = stream.blocks.back();
    last = std::max(last, clock.ToNs(ref.clock_ticks & format::kTickMask));
    if (!ref.open_ended) continue;
    ReadEventBlock(reader, stream, ref, &payload, &block);
    if (block.status.ok()) last = std::max(last, clock.ToNs(block.spans.back().ticks));
  }
  return last;
}

uint64_t RunEndNs(const TraceReader& reader) {
  const TraceMetadata& metadata = reader.metadata();
  if (metadata.end.has_value()) {
    return std::max(reader.clock().LastNs(), reader.clock().ToNs(metadata.end->ticks));
  }
  const uint64_t last = LastStampNs(reader);
  return metadata.stopped.has_value() ? last : std::max(last, reader.live_until_ns());
}

}  // namespace memtrace::report
