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

uint64_t SeenAliveUntil(const TraceMetadata& metadata, const PressureLane& lane) {
  // Wall clocks are set: by how much the end may be behind the last sample where there are samples.
  constexpr uint64_t kMostBehind = 10'000'000'000;
  const uint64_t sampled = lane.points.empty() ? 0 : lane.points.back().time_ns;
  if (!metadata.observed_end.has_value() || !metadata.process.start_known()) return sampled;
  const uint64_t end = metadata.observed_end->realtime_ns;
  const auto start = static_cast<uint64_t>(metadata.process.start_realtime_ns);
  if (end <= start) return sampled;
  return sampled != 0 && end - start > sampled + kMostBehind ? sampled
                                                             : std::max(sampled, end - start);
}

uint64_t RunEndNs(const TraceReader& reader) {
  const TraceMetadata& metadata = reader.metadata();
  if (metadata.end.has_value()) {
    return std::max(reader.clock().LastNs(), reader.clock().ToNs(metadata.end->ticks));
  }
  const uint64_t last = LastStampNs(reader);
  if (metadata.stopped.has_value()) return last;
  const PressureLane lane = metadata.pressure.Finish(metadata.start_monotonic_ns);
  return std::max({last, reader.live_until_ns(), SeenAliveUntil(metadata, lane)});
}

}  // namespace memtrace::report
