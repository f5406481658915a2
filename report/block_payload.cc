#include "report/block_payload.h"

#include <zstd.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "format/checksum.h"

namespace memtrace::report {
namespace {

absl::Status Damaged(const ScannedBlock& block, absl::string_view what) {
  return absl::DataLossError(absl::StrCat("damaged at byte ", block.offset, ": ", what));
}

}  // namespace

BlockPayload::~BlockPayload() { ZSTD_freeDCtx(zstd_); }

absl::Status BlockPayload::Read(const ByteSource& source, const ScannedBlock& block,
                                std::vector<uint8_t>* content) {
  const format::BlockHeader& header = block.header;
  content->clear();
  const bool raw = header.codec == format::Codec::kRaw;
  if (!raw && header.codec != format::Codec::kZstd) {
    return absl::UnimplementedError(
        absl::StrCat("the block at byte ", block.offset, " is compressed in a way (",
                     static_cast<int>(header.codec), ") that this version does not know"));
  }
  if (raw && header.content_bytes != header.payload_bytes) {
    return Damaged(block, "the two sizes of an uncompressed block differ");
  }
  std::vector<uint8_t>& payload = raw ? *content : compressed_;
  // A payload longer than the file is not worth its memory.
  if (block.payload_end() > source.Size()) {
    return Damaged(block, "the file ends within this block");
  }
  payload.resize(header.payload_bytes);
  auto read = source.ReadAt(block.payload_offset(), payload);
  if (!read.ok()) return read.status();
  if (*read != payload.size()) {
    content->clear();
    return Damaged(block, "the file ends within this block");
  }
  if (format::Checksum(payload.data(), payload.size()) != header.payload_checksum) {
    content->clear();
    return Damaged(block, "the checksum of the block does not match its content");
  }
  if (raw) return absl::OkStatus();

  if (ZSTD_getFrameContentSize(payload.data(), payload.size()) != header.content_bytes) {
    return Damaged(block, "the compressed size is not what the header says");
  }
  if (zstd_ == nullptr) zstd_ = ZSTD_createDCtx();
  content->resize(header.content_bytes);
  const size_t size = ZSTD_decompressDCtx(zstd_, content->data(), content->size(), payload.data(),
                                          payload.size());
  if (ZSTD_isError(size) || size != content->size()) {
    content->clear();
    return Damaged(block, "the block does not decompress");
  }
  return absl::OkStatus();
}

absl::Status ReadRing(const ByteSource& source, const ScannedBlock& block, bool events,
                      RingRemains* remains) {
  *remains = {};
  constexpr uint64_t kMask = format::kRingAlignment - 1;
  const uint64_t start = (block.payload_offset() + kMask) & ~kMask;
  const uint64_t end = std::min(block.payload_end(), source.Size());
  format::RingHeader header;
  if (start + sizeof(header) > end) return absl::OkStatus();
  auto read = source.ReadAt(start, {reinterpret_cast<uint8_t*>(&header), sizeof(header)});
  if (!read.ok()) return read.status();
  if (*read != sizeof(header) || header.magic != format::kRingMagic) return absl::OkStatus();
  remains->header = header;
  // The numbers were written by a process that may have died in the middle, and
  // nothing guards them: they are bounded by each other and by the file.
  const uint64_t room = end - start - sizeof(header);
  const uint64_t bytes =
      std::min<uint64_t>({header.committed_bytes, header.capacity_bytes, room}) & ~uint64_t{7};
  remains->header.committed_bytes = static_cast<uint32_t>(bytes);
  if (!events) return absl::OkStatus();
  remains->events.resize(bytes);
  read = source.ReadAt(start + sizeof(header), remains->events);
  if (!read.ok()) return read.status();
  remains->events.resize(*read & ~size_t{7});
  return absl::OkStatus();
}

}  // namespace memtrace::report
