// BlockScanner: where the blocks of a trace are, also in a file that is being
// written and in one that is damaged. Looks at headers only; payloads are read
// and checked by block_payload.h.
//
// What stands at an offset is one of
//   kBlock       a valid header, and the file is long enough for its payload
//   kIncomplete  a valid header, but the file ends within its payload
//   kNoBlock     anything else: a gap, a damaged header, or a header that a
//                writer has reserved space for and not written yet
//   kEnd         the file ends here, or too short for a header
// In a growing file all but kBlock can become kBlock later.

#ifndef MEMTRACE_REPORT_TRACE_BLOCK_SCANNER_H_
#define MEMTRACE_REPORT_TRACE_BLOCK_SCANNER_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "format/trace_format.h"
#include "report/trace/byte_source.h"

namespace memtrace::report {

constexpr uint64_t AlignToBlock(uint64_t offset) {
  return (offset + format::kBlockAlignment - 1) & ~uint64_t{format::kBlockAlignment - 1};
}

struct ScannedBlock {
  uint64_t offset = 0;  // of the header
  format::BlockHeader header;

  uint64_t payload_offset() const { return offset + sizeof(format::BlockHeader); }
  uint64_t payload_end() const { return payload_offset() + header.payload_bytes; }
  uint64_t end() const { return AlignToBlock(payload_end()); }  // where the next one may be
};

enum class BlockState { kBlock, kIncomplete, kNoBlock, kEnd };

// The number by which a block of events is known among all of a trace.
inline uint64_t KeyOf(uint32_t thread, uint32_t sequence) {
  return uint64_t{thread} << 32 | sequence;
}

// Whether the header is one that a reader accepts: magic, checksum, sizes.
bool IsValidHeader(const format::BlockHeader& header);

class BlockScanner {
 public:
  explicit BlockScanner(const ByteSource* source) : source_(source) {}

  // Tells what is at `offset`, a multiple of 64. `block` is set for kBlock and kIncomplete.
  absl::StatusOr<BlockState> At(uint64_t offset, ScannedBlock* block);

  // The first kBlock or kIncomplete at or after `offset` and before `end`.
  absl::StatusOr<std::optional<ScannedBlock>> Find(uint64_t offset, uint64_t end = UINT64_MAX);

 private:
  static constexpr size_t kWindowBytes = 256 << 10;

  const ByteSource* source_;
  std::vector<uint8_t> window_;  // for Find()
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_TRACE_BLOCK_SCANNER_H_
