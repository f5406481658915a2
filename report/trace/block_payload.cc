#include "report/trace/block_payload.h"

#include <zstd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "format/checksum.h"
#include "format/varint.h"
#include "format/word_codec.h"

namespace memtrace::report {
namespace {

absl::Status Damaged(const ScannedBlock& block, absl::string_view what) {
  return absl::DataLossError(absl::StrCat("damaged at byte ", block.offset, ": ", what));
}

}  // namespace

BlockPayload::~BlockPayload() { ZSTD_freeDCtx(zstd_); }

absl::Status BlockPayload::Read(const ByteSource& source, const ScannedBlock& block,
                                std::vector<uint8_t>* content) {
  absl::Status status = ReadInto(source, block, content);
  if (!status.ok()) content->clear();
  return status;
}

absl::Status BlockPayload::ReadWords(const ByteSource& source, const ScannedBlock& block,
                                     std::vector<uint64_t>* words) {
  ForgetStamps();
  absl::Status status = ReadInto(source, block, words);
  if (!status.ok()) ForgetStamps();
  words->resize(status.ok() ? block.header.content_bytes / sizeof(uint64_t) : 0);
  return status;
}

template <typename Content>
absl::Status BlockPayload::ReadInto(const ByteSource& source, const ScannedBlock& block,
                                    Content* content) {
  const format::BlockHeader& header = block.header;
  const bool raw = header.codec == format::Codec::kRaw;
  const bool columns = header.codec == format::Codec::kColumns;
  const bool words = header.codec == format::Codec::kWords;
  if (!raw && !columns && !words && header.codec != format::Codec::kZstd) {
    return absl::UnimplementedError(
        absl::StrCat("the block at byte ", block.offset, " is compressed in a way (",
                     static_cast<int>(header.codec), ") that this version does not know"));
  }
  if (raw && header.content_bytes != header.payload_bytes) {
    return Damaged(block, "the two sizes of an uncompressed block differ");
  }
  // A payload longer than the file is not worth its memory.
  if (block.payload_end() > source.Size()) {
    return Damaged(block, "the file ends within this block");
  }
  // Room for the content as it is; the buffer keeps what it has, for most are as long.
  const size_t content_bytes = header.content_bytes;
  const auto make_room = [&] {
    constexpr size_t kUnit = sizeof((*content)[0]);
    content->resize((content_bytes + kUnit - 1) / kUnit);
    return reinterpret_cast<uint8_t*>(content->data());
  };
  std::span<uint8_t> payload;
  if (raw) {
    payload = {make_room(), content_bytes};
  } else {
    compressed_.resize(header.payload_bytes);
    payload = compressed_;
  }
  auto read = source.ReadAt(block.payload_offset(), payload);
  if (!read.ok()) return read.status();
  if (*read != payload.size()) return Damaged(block, "the file ends within this block");
  if (format::Checksum(payload.data(), payload.size()) != header.payload_checksum) {
    return Damaged(block, "the checksum of the block does not match its content");
  }
  if (raw) return absl::OkStatus();

  if (columns || words) {
    const size_t count = content_bytes / sizeof(uint64_t);
    const bool whole = content_bytes % sizeof(uint64_t) == 0;
    if (columns) {
      // A vector's memory is aligned for words, and none of it is anything else yet.
      if (whole && DecodeColumns(payload, {reinterpret_cast<uint64_t*>(make_room()), count})) {
        return absl::OkStatus();
      }
      return Damaged(block, "the columns of the block do not make up its events");
    }
    if (whole && payload.size() >= format::LeastEncodedWords(count) &&
        format::DecodeWords(payload.data(), payload.size(), make_room(), count)) {
      return absl::OkStatus();
    }
    return Damaged(block, "the block does not decode to words");
  }
  if (ZSTD_getFrameContentSize(payload.data(), payload.size()) != content_bytes) {
    return Damaged(block, "the compressed size is not what the header says");
  }
  if (zstd_ == nullptr) zstd_ = ZSTD_createDCtx();
  uint8_t* const out = make_room();
  const size_t size =
      ZSTD_decompressDCtx(zstd_, out, content_bytes, payload.data(), payload.size());
  if (ZSTD_isError(size) || size != content_bytes) {
    return Damaged(block, "the block does not decompress");
  }
  return absl::OkStatus();
}

// Every length is bounded by the content's before memory is taken for it.
bool BlockPayload::DecodeColumns(std::span<const uint8_t> payload, std::span<uint64_t> words) {
  const size_t content_bytes = words.size_bytes();
  const uint8_t* next = payload.data();
  const uint8_t* const end = next + payload.size();
  const auto number = [&](uint64_t* value) {
    next = next == nullptr ? nullptr : format::GetVarint(next, end, value);
    return next != nullptr;
  };
  uint64_t count;
  if (!number(&count) || count != EventColumns::kColumns) return false;
  struct Sizes {
    uint64_t bytes, stored;
  };
  std::array<Sizes, EventColumns::kColumns> sizes;
  uint64_t sum = 0;
  for (Sizes& each : sizes) {
    if (!number(&each.bytes) || !number(&each.stored)) return false;
    // No event takes twice as many bytes in columns as in words.
    if (each.bytes > 2 * content_bytes || each.stored > each.bytes) return false;
    sum += each.bytes;
  }
  if (sum > 2 * content_bytes) return false;
  if (zstd_ == nullptr) zstd_ = ZSTD_createDCtx();
  for (size_t i = 0; i < sizes.size(); ++i) {
    const auto [bytes, stored] = sizes[i];
    if (stored > static_cast<uint64_t>(end - next)) return false;
    std::vector<uint8_t>& column = columns_.column(i);
    column.resize(bytes);
    if (stored < bytes) {
      const size_t size = ZSTD_decompressDCtx(zstd_, column.data(), bytes, next, stored);
      if (ZSTD_isError(size) || size != bytes) return false;
    } else if (bytes != 0) {
      memcpy(column.data(), next, bytes);
    }
    next += stored;
  }
  if (next != end) return false;
  return columns_.Decode(words);
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

absl::Status ReadSteadyRing(const ByteSource& source, const ScannedBlock& block,
                            RingRemains* remains) {
  constexpr int kTries = 8;
  for (int i = 0; i < kTries; ++i) {
    RingRemains after;
    absl::Status status = ReadRing(source, block, true, remains);
    if (status.ok()) status = ReadRing(source, block, false, &after);
    if (!status.ok()) return status;
    if (after.header.thread == remains->header.thread &&
        after.header.sequence == remains->header.sequence) {
      return status;
    }
  }
  remains->events.clear();
  return absl::OkStatus();
}

std::vector<uint64_t> RingRemains::Words() const {
  std::vector<uint64_t> words(events.size() / sizeof(uint64_t));
  if (!words.empty()) memcpy(words.data(), events.data(), words.size() * sizeof(uint64_t));
  return words;
}

}  // namespace memtrace::report
