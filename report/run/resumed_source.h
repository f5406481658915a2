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
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "format/trace_format.h"
#include "report/trace/block_payload.h"
#include "report/trace/block_scanner.h"
#include "report/trace/byte_source.h"

namespace memtrace::report {

class ResumedSource : public ByteSource {
 public:
  // To be packed: every block of the packed part is looked at as a whole, for its writer has died.
  static absl::StatusOr<std::unique_ptr<ByteSource>> Open(const std::string& packed_path,
                                                          std::unique_ptr<ByteSource> raw);

  // To be read, of a run that goes on. The packed part may grow meanwhile; of it the headers are
  // read here, not the events. `raw` is the raw trace itself, where nothing is taken out of it
  // (reader_lock.h); else a copy, and the packed part had `packed_before` bytes when it was begun.
  // The file header is that of a raw trace, which needs no end.
  static absl::StatusOr<std::unique_ptr<ResumedSource>> OfLiveRun(
      std::unique_ptr<ByteSource> packed, std::unique_ptr<ByteSource> raw,
      uint64_t packed_before = UINT64_MAX);

  // A thread's block that was packed while the raw part was copied is there, and one before it is
  // not: that was written where the copy had passed already. A new copy has it.
  bool misses_blocks() const { return misses_blocks_; }

  uint64_t Size() const override { return size_.value_or(raw_begin_ + raw_->Size()); }
  absl::StatusOr<size_t> ReadAt(uint64_t offset, std::span<uint8_t> out) const override;
  uint64_t NextData(uint64_t offset) const override {
    return offset < raw_begin_ ? offset : raw_begin_ + raw_->NextData(offset - raw_begin_);
  }

 private:
  // The events of a block, by their numbers.
  struct Events {
    uint32_t thread = 0, first = 0, last = 0;
    bool is_late = false;  // packed while the raw part was copied
  };

  ResumedSource() = default;
  absl::Status FindTaken();
  absl::Status FindPacked();
  absl::Status FindRaw();
  absl::StatusOr<bool> IsWholePacked(const ScannedBlock& block);
  bool NeedsContent(const format::BlockHeader& header) const;
  void LookForMissing();
  absl::StatusOr<size_t> ReadParts(uint64_t offset, std::span<uint8_t> out) const;

  std::unique_ptr<ByteSource> packed_, raw_;
  bool is_live_ = false;
  uint64_t packed_before_ = 0;
  std::optional<format::FileHeader> header_;  // instead of that of the packed part
  std::optional<uint64_t> size_;  // with a copy: up to the last block that is not taken
  uint64_t packed_end_ = 0;                   // of its last whole block
  uint64_t raw_begin_ = 0;
  absl::flat_hash_set<uint64_t> taken_;  // raw offsets of headers to hide
  bool misses_blocks_ = false;

  // While the parts are looked through.
  absl::flat_hash_set<uint64_t> packed_events_, packed_records_;
  std::vector<Events> events_;
  BlockPayload payload_;
  std::vector<uint8_t> content_;
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_RUN_RESUMED_SOURCE_H_
