#include "report/trace/block_writer.h"

#include <zstd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/whole_io.h"
#include "format/checksum.h"
#include "format/varint.h"
#include "report/base/errno_status.h"
#include "report/trace/block_scanner.h"

namespace memtrace::report {

BlockWriter::BlockWriter(int fd, std::string path, int level)
    : fd_(fd), path_(std::move(path)), level_(level) {
  if (level_ != 0) {
    zstd_ = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(zstd_, ZSTD_c_compressionLevel, level_);
  }
}

BlockWriter::~BlockWriter() { ZSTD_freeCCtx(zstd_); }

absl::Status BlockWriter::WriteAll(std::span<const uint8_t> bytes) {
  uint64_t end = position_;
  if (!base::WriteAllAt(fd_, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}, &end)) {
    return ErrnoStatus("cannot write", path_, errno);
  }
  position_ = end;
  return absl::OkStatus();
}

absl::Status BlockWriter::WriteFileHeader(format::FileHeader header) {
  header.header_checksum = format::HeaderChecksum(header);
  return WriteAll({reinterpret_cast<const uint8_t*>(&header), sizeof(header)});
}

// The payload of a kColumns block, or 0 when it does not fit in `out`.
size_t BlockWriter::CompressColumns(std::span<const uint8_t> content, std::span<uint8_t> out) {
  if (content.size() % sizeof(uint64_t) != 0) return 0;
  words_.resize(content.size() / sizeof(uint64_t));
  memcpy(words_.data(), content.data(), content.size());
  columns_.Encode(words_);
  compressed_.clear();
  uint8_t directory[(1 + 2 * EventColumns::kColumns) * format::kMaxVarintBytes];
  uint8_t* next = format::PutVarint(directory, EventColumns::kColumns);
  for (size_t i = 0; i < EventColumns::kColumns; ++i) {
    const std::vector<uint8_t>& column = columns_.column(i);
    const size_t begin = compressed_.size();
    compressed_.resize(begin + ZSTD_compressBound(column.size()));
    size_t stored = column.empty() ? 0
                                   : ZSTD_compress2(zstd_, compressed_.data() + begin,
                                                    compressed_.size() - begin, column.data(),
                                                    column.size());
    if (ZSTD_isError(stored) || stored >= column.size()) {
      stored = column.size();
      if (stored != 0) memcpy(compressed_.data() + begin, column.data(), stored);
    }
    compressed_.resize(begin + stored);
    next = format::PutVarint(next, column.size());
    next = format::PutVarint(next, stored);
  }
  const auto directory_bytes = static_cast<size_t>(next - directory);
  if (directory_bytes + compressed_.size() > out.size()) return 0;
  memcpy(out.data(), directory, directory_bytes);
  if (!compressed_.empty()) {
    memcpy(out.data() + directory_bytes, compressed_.data(), compressed_.size());
  }
  return directory_bytes + compressed_.size();
}

absl::Status BlockWriter::Write(format::BlockHeader header, std::span<const uint8_t> content) {
  if (content.size() > format::kMaxPayloadBytes) {
    return absl::InternalError(absl::StrCat("a block of ", content.size(), " bytes is too long"));
  }
  const size_t bound =
      level_ != 0 ? std::max(ZSTD_compressBound(content.size()), content.size()) : content.size();
  buffer_.resize(sizeof(header) + AlignToBlock(bound));
  uint8_t* payload = buffer_.data() + sizeof(header);
  size_t payload_bytes = 0;
  header.codec = format::Codec::kRaw;
  if (level_ != 0 && !content.empty() && header.kind == format::BlockKind::kEvents) {
    payload_bytes = CompressColumns(content, {payload, content.size() - 1});
    if (payload_bytes != 0) header.codec = format::Codec::kColumns;
  }
  if (level_ != 0 && !content.empty() && header.codec == format::Codec::kRaw) {
    const size_t n = ZSTD_compress2(zstd_, payload, bound, content.data(), content.size());
    if (!ZSTD_isError(n) && n < content.size()) {
      header.codec = format::Codec::kZstd;
      payload_bytes = n;
    }
  }
  if (header.codec == format::Codec::kRaw) {
    if (!content.empty()) memcpy(payload, content.data(), content.size());
    payload_bytes = content.size();
  }
  header.magic = format::kBlockMagic;
  header.payload_bytes = static_cast<uint32_t>(payload_bytes);
  header.content_bytes = static_cast<uint32_t>(content.size());
  header.payload_checksum = format::Checksum(payload, payload_bytes);
  header.header_checksum = format::HeaderChecksum(header);
  memcpy(buffer_.data(), &header, sizeof(header));
  const size_t end = AlignToBlock(sizeof(header) + payload_bytes);
  memset(payload + payload_bytes, 0, end - sizeof(header) - payload_bytes);
  const absl::Status status = WriteAll({buffer_.data(), end});
  if (status.ok()) ++blocks_;
  return status;
}

}  // namespace memtrace::report
