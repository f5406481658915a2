#include "report/trace/flight_segments.h"

#include <algorithm>

namespace memtrace::report {

std::optional<format::StatusArea> ReadStatusArea(const ByteSource& source,
                                                 const ScannedBlock& block) {
  format::StatusArea area{};
  const size_t bytes = std::min<size_t>(block.header.payload_bytes, sizeof(area));
  auto read = source.ReadAt(block.payload_offset(), {reinterpret_cast<uint8_t*>(&area), bytes});
  if (!read.ok() || *read != bytes || area.magic != format::kStatusMagic) return std::nullopt;
  return area;
}

absl::Status FlightSegments::Read(const ByteSource& source, const format::FileHeader& header) {
  if ((header.flags & format::kFileNewest) == 0 || (header.flags & format::kFilePacked) != 0) {
    return absl::OkStatus();
  }
  BlockScanner scanner(&source);
  ScannedBlock block;
  auto state = scanner.At(AlignToBlock(header.header_bytes), &block);
  if (!state.ok()) return state.status();
  if (*state != BlockState::kBlock || block.header.kind != format::BlockKind::kStatus) {
    return absl::OkStatus();
  }
  const auto area = ReadStatusArea(source, block);
  if (!area.has_value() || area->segments < 2 || area->segments > format::kMaxSegments ||
      area->segment_bytes == 0 || area->segments_begun < area->segments) {
    return absl::OkStatus();
  }
  area_ = *area;
  count_ = area_.segments;
  return absl::OkStatus();
}

uint64_t FlightSegments::IndexOf(uint64_t offset) const {
  if (!Contains(offset)) return count_;
  return std::min<uint64_t>((offset - area_.segments_begin) / area_.segment_bytes, count_);
}

bool FlightSegments::IsVoid(const ScannedBlock& block) const {
  const uint64_t index = IndexOf(block.offset);
  if (index >= count_) return false;
  uint64_t from = area_.segment_ticks[index];
  if (half_begun() && index == area_.segment_beginning % count_) {
    from = area_.segment_ticks[area_.segments_begun % count_];
  }
  return block.header.clock_ticks < from;
}

void FlightSegments::Note(const ScannedBlock& block) {
  const uint64_t index = IndexOf(block.offset);
  if (index >= count_ || block.offset >= first_[index].offset) return;
  first_[index] = {block.offset, block.header.clock_ticks};
}

uint64_t FlightSegments::WindowTicks() const {
  if (count_ == 0) return 0;
  const uint64_t newest = std::max(area_.segments_begun, area_.segment_beginning);
  if (newest < 2 * uint64_t{count_}) return 0;  // no segment was begun a second time
  // Blocks that were reserved in an older segment were stamped before the first one in this.
  const uint64_t index = (area_.segments_begun + 1 + (half_begun() ? 1 : 0)) % count_;
  return first_[index].offset != UINT64_MAX ? std::max<uint64_t>(first_[index].ticks, 1)
                                            : std::max<uint64_t>(area_.segment_ticks[index], 1);
}

}  // namespace memtrace::report
