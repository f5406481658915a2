// BlockWriter: appends blocks to a trace file: compresses, checks, aligns. Events are
// compressed as columns (event_columns.h), everything else as it is.
//
// Writes at its own position, so that nothing else may write to the file. After
// an error the file ends with a block that a reader may not accept; the position
// is not moved, so a later block replaces it.

#ifndef MEMTRACE_REPORT_TRACE_BLOCK_WRITER_H_
#define MEMTRACE_REPORT_TRACE_BLOCK_WRITER_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "format/trace_format.h"
#include "report/trace/event_columns.h"

struct ZSTD_CCtx_s;

namespace memtrace::report {

class BlockWriter {
 public:
  // `fd` stays the caller's. `level`: of zstd; 0 writes raw blocks.
  BlockWriter(int fd, std::string path, int level);
  ~BlockWriter();
  BlockWriter(const BlockWriter&) = delete;
  BlockWriter& operator=(const BlockWriter&) = delete;

  // The checksum is filled in here.
  absl::Status WriteFileHeader(format::FileHeader header);

  // `header` says kind, thread, sequence, clocks, dropped_events and flags; codec,
  // sizes and checksums are filled in here.
  absl::Status Write(format::BlockHeader header, std::span<const uint8_t> content);

  uint64_t bytes_written() const { return position_; }
  uint64_t blocks_written() const { return blocks_; }

 private:
  size_t CompressColumns(std::span<const uint8_t> content, std::span<uint8_t> out);
  absl::Status WriteAll(std::span<const uint8_t> bytes);

  const int fd_;
  const std::string path_;
  const int level_;
  ZSTD_CCtx_s* zstd_ = nullptr;
  uint64_t position_ = 0;
  uint64_t blocks_ = 0;
  EventColumns columns_;
  std::vector<uint64_t> words_;
  std::vector<uint8_t> compressed_;
  std::vector<uint8_t> buffer_;  // header, payload, padding of one block
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_TRACE_BLOCK_WRITER_H_
