#include "report/block_writer.h"

#include <unistd.h>
#include <zstd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "format/checksum.h"
#include "report/block_scanner.h"
#include "report/byte_source.h"

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
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = pwrite(fd_, bytes.data() + done, bytes.size() - done,
                             static_cast<off_t>(position_ + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return ErrnoStatus("cannot write", path_, n < 0 ? errno : ENOSPC);
    done += static_cast<size_t>(n);
  }
  position_ += bytes.size();
  return absl::OkStatus();
}

absl::Status BlockWriter::WriteFileHeader(format::FileHeader header) {
  header.header_checksum = format::HeaderChecksum(header);
  return WriteAll({reinterpret_cast<const uint8_t*>(&header), sizeof(header)});
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
  if (level_ != 0 && !content.empty()) {
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
  return WriteAll({buffer_.data(), end});
}

}  // namespace memtrace::report
