#include "report/trace/block_scanner.h"

#include <cstring>

#include "format/checksum.h"

namespace memtrace::report {

bool IsValidHeader(const format::BlockHeader& header) {
  return header.magic == format::kBlockMagic &&
         header.payload_bytes <= format::kMaxPayloadBytes &&
         header.content_bytes <= format::kMaxPayloadBytes &&
         header.header_checksum == format::HeaderChecksum(header);
}

absl::StatusOr<BlockState> BlockScanner::At(uint64_t offset, ScannedBlock* block) {
  auto* bytes = reinterpret_cast<uint8_t*>(&block->header);
  auto read = source_->ReadAt(offset, {bytes, sizeof(block->header)});
  if (!read.ok()) return read.status();
  if (*read < sizeof(block->header)) return BlockState::kEnd;
  if (!IsValidHeader(block->header)) return BlockState::kNoBlock;
  block->offset = offset;
  return block->payload_end() <= source_->Size() ? BlockState::kBlock : BlockState::kIncomplete;
}

absl::StatusOr<std::optional<ScannedBlock>> BlockScanner::Find(uint64_t offset, uint64_t end) {
  window_.resize(kWindowBytes);
  for (offset = AlignToBlock(offset); offset < end;) {
    offset += (source_->NextData(offset) - offset) / format::kBlockAlignment *
              format::kBlockAlignment;
    auto read = source_->ReadAt(offset, window_);
    if (!read.ok()) return read.status();
    for (size_t i = 0; i + sizeof(format::BlockHeader) <= *read && offset + i < end;
         i += format::kBlockAlignment) {
      uint32_t magic;
      memcpy(&magic, window_.data() + i, sizeof(magic));
      if (magic != format::kBlockMagic) continue;
      ScannedBlock block;
      block.offset = offset + i;
      memcpy(&block.header, window_.data() + i, sizeof(block.header));
      if (IsValidHeader(block.header)) return block;
    }
    if (*read < kWindowBytes) break;
    offset += kWindowBytes;
  }
  return std::nullopt;
}

}  // namespace memtrace::report
