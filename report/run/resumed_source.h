// ResumedSource: a packed trace that was not finished, and behind it what its raw
// trace still has, as if they were one file.
//
// The raw part begins at a multiple of the page size, so that its rings keep the
// alignment by which they are found. Blocks of it that the packed part has already
// read as gaps; where the packed part is cut, it reads as a gap as well.

#ifndef MEMTRACE_REPORT_RUN_RESUMED_SOURCE_H_
#define MEMTRACE_REPORT_RUN_RESUMED_SOURCE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "report/trace/byte_source.h"

namespace memtrace::report {

class ResumedSource : public ByteSource {
 public:
  static absl::StatusOr<std::unique_ptr<ByteSource>> Open(const std::string& packed_path,
                                                          std::unique_ptr<ByteSource> raw);

  uint64_t Size() const override { return raw_begin_ + raw_->Size(); }
  absl::StatusOr<size_t> ReadAt(uint64_t offset, std::span<uint8_t> out) const override;
  uint64_t NextData(uint64_t offset) const override {
    return offset < raw_begin_ ? offset : raw_begin_ + raw_->NextData(offset - raw_begin_);
  }

 private:
  ResumedSource() = default;
  absl::Status FindTaken();

  std::unique_ptr<ByteSource> packed_, raw_;
  uint64_t packed_end_ = 0;  // of its last whole block
  uint64_t raw_begin_ = 0;
  absl::flat_hash_set<uint64_t> taken_;  // raw offsets of headers to hide
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_RUN_RESUMED_SOURCE_H_
