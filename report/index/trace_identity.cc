#include "report/index/trace_identity.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "format/checksum.h"
#include "report/base/errno_status.h"
#include "report/trace/byte_source.h"
#include "report/trace/file_header.h"

namespace memtrace::report::index {
namespace {

constexpr uint64_t kWhole = 1 << 20;
constexpr uint64_t kEnd = 64 << 10;
constexpr uint64_t kPiece = 4 << 10;
constexpr uint64_t kPieces = 256;

class Sampler {
 public:
  explicit Sampler(const ByteSource& source) : source_(source) {}

  absl::Status Add(uint64_t offset, uint64_t bytes) {
    buffer_.resize(bytes);
    auto read = source_.ReadAt(offset, buffer_);
    if (!read.ok()) return read.status();
    const uint64_t parts[] = {hash_, offset, *read, format::Checksum(buffer_.data(), *read)};
    hash_ = format::Checksum(parts, sizeof(parts));
    return absl::OkStatus();
  }
  uint64_t hash() const { return hash_; }

 private:
  const ByteSource& source_;
  std::vector<uint8_t> buffer_;
  uint64_t hash_ = 0;
};

}  // namespace

absl::StatusOr<TraceIdentity> IdentifyTrace(const std::string& path) {
  auto source = FileSource::Open(path);
  if (!source.ok()) return source.status();
  const auto header = ReadFileHeader(**source);
  if (!header.ok()) {
    return absl::Status(header.status().code(),
                        path + " " + std::string(header.status().message()));
  }
  struct stat st;
  if (fstat((*source)->fd(), &st) != 0) return ErrnoStatus("cannot read", path, errno);
  TraceIdentity identity;
  identity.trace_id = header->trace_id;
  identity.bytes = static_cast<uint64_t>(st.st_size);
  identity.modified_ns = int64_t{st.st_mtim.tv_sec} * 1'000'000'000 + st.st_mtim.tv_nsec;
  Sampler sampler(**source);
  absl::Status status = sampler.Add(0, std::min(identity.bytes, kWhole));
  if (identity.bytes > kWhole) {
    const uint64_t step = (identity.bytes - kEnd) / kPieces;
    for (uint64_t i = 0; i < kPieces && status.ok(); ++i) status = sampler.Add(i * step, kPiece);
    if (status.ok()) status = sampler.Add(identity.bytes - kEnd, kEnd);
  }
  if (!status.ok()) return status;
  identity.sample_hash = sampler.hash();
  return identity;
}

void Put(const TraceIdentity& identity, PackedWriter* out) {
  out->Number(identity.trace_id);
  out->Number(identity.bytes);
  out->Signed(identity.modified_ns);
  out->Number(identity.sample_hash);
}

TraceIdentity GetIdentity(PackedReader* in) {
  TraceIdentity identity;
  identity.trace_id = in->Number();
  identity.bytes = in->Number();
  identity.modified_ns = in->Signed();
  identity.sample_hash = in->Number();
  return identity;
}

}  // namespace memtrace::report::index
