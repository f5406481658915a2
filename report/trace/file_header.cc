#include "report/trace/file_header.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "format/checksum.h"
#include "report/base/unique_fd.h"

namespace memtrace::report {

absl::StatusOr<format::FileHeader> ReadFileHeader(const ByteSource& source) {
  format::FileHeader header{};
  auto read = source.ReadAt(0, {reinterpret_cast<uint8_t*>(&header), sizeof(header)});
  if (!read.ok()) return read.status();
  if (*read == 0) {
    return absl::DataLossError(
        "is empty: no trace, or of a program that was killed as it started; trace it again");
  }
  if (memcmp(header.magic, format::kFileMagic, std::min(*read, sizeof(header.magic))) != 0) {
    // Space was reserved for the header, and never filled.
    const auto* bytes = reinterpret_cast<const uint8_t*>(&header);
    if (std::all_of(bytes, bytes + *read, [](uint8_t b) { return b == 0; })) {
      return absl::DataLossError(
          "has no header: the program was killed before it could write one");
    }
    return absl::InvalidArgumentError("is not a trace: it does not begin like a .mtr file");
  }
  if (*read < sizeof(header)) {
    return absl::DataLossError(
        absl::StrCat("is cut within its header: ", *read, " of ", sizeof(header),
                     " bytes; copy it again, or trace again"));
  }
  if (header.version > format::kFormatVersion) {
    return absl::UnimplementedError(absl::StrCat("has format version ", header.version,
                                                 "; this memtrace reads up to version ",
                                                 format::kFormatVersion, ": use a newer one"));
  }
  if (header.header_checksum != format::HeaderChecksum(header)) {
    return absl::DataLossError("is damaged: the checksum of its header does not match");
  }
  if (header.version == 0 || header.header_bytes < sizeof(header) ||
      header.header_bytes > format::kMaxPayloadBytes) {
    return absl::DataLossError("is damaged: its header has an impossible version or size");
  }
  return header;
}

bool BeginsAsATrace(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  uint8_t magic[sizeof(format::kFileMagic)];
  return fd.ok() && read(fd.get(), magic, sizeof(magic)) == sizeof(magic) &&
         memcmp(magic, format::kFileMagic, sizeof(magic)) == 0;
}

}  // namespace memtrace::report
