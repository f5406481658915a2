// Packer: a raw trace, finished or still being written, -> a packed one.
//
//   Packer packer(raw, out_fd, out_path, options);
//   packer.Start()      once the raw file has its FileHeader
//   packer.Advance()    as often as wanted: packs what has become complete
//   packer.Finish()     when the traced process is gone: the rest, and its rings
//
// `memtrace run` does so beside the program; `memtrace pack` calls the three in a
// row. The packed file is at every moment a trace that can be read, of what has
// been packed so far.
//
// Blocks of a thread are merged up to `merge_bytes` of content; what is buffered
// over all threads stays below `buffer_bytes`. Blocks that the raw file lacks are
// missing in the packed one as well: sequence numbers are kept. A damaged block
// is left out and counted.
//
// A packed file can be packed again (kRing blocks are then absent).
//
// A flight recorder (kFileNewest) writes over what it has written: it is packed when its
// process has ended, by Finish() alone.
//
// Single-threaded; reads the raw file with pread only.

#ifndef MEMTRACE_REPORT_TRACE_PACKER_H_
#define MEMTRACE_REPORT_TRACE_PACKER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "report/trace/block_payload.h"
#include "report/trace/block_scanner.h"
#include "report/trace/block_writer.h"
#include "report/trace/byte_source.h"
#include "report/trace/clock_map.h"
#include "report/trace/flight_segments.h"

namespace memtrace::report {

struct PackerOptions {
  int level = 9;                       // of zstd
  // Bytes of content per block, for each thread. The coder forgets with each block what it has
  // learnt: with blocks of 1 MiB a trace of cc1plus is 6 % larger.
  size_t merge_bytes = 2 << 20;
  size_t buffer_bytes = 64 << 20;      // of content not yet written, all threads
  uint64_t lag_bytes = 64 << 20;       // Advance() writes what is buffered since longer ago
  bool seal = false;  // Seal() will be called if all went well: without it the file is cut short
  // Sees every block that is taken over, decoded, rings included.
  std::function<void(const format::BlockHeader&, std::span<const uint8_t>)> observer;
};

class Packer {
 public:
  // `raw` and `out_fd` stay the caller's; `out_path` is for messages. The out file is empty.
  Packer(const ByteSource* raw, int out_fd, std::string out_path, const PackerOptions& options);

  // Reads and copies the FileHeader. FailedPrecondition: the raw file does not have
  // one yet (it is empty or shorter); try again later. Other errors are final.
  absl::Status Start();

  // Packs every block that is complete now. Errors: of reading or writing; fatal.
  absl::Status Advance();

  // Advance(), then what is left: blocks behind gaps, the contents of rings that
  // never became blocks, buffered blocks. The caller may then fsync and rename.
  absl::Status Finish();

  // Appends records of the caller as a kMetadata block; `records` is whole records.
  absl::Status WriteRecords(std::span<const uint8_t> records);

  // Last of all, with PackerOptions::seal: nothing is missing.
  absl::Status Seal();

  // Everything before this offset of the raw file is in the packed file.
  uint64_t written_position() const;
  // Everything before this offset of the raw file is in the packed file or buffered.
  uint64_t position() const { return gaps_.empty() ? position_ : gaps_.front().begin; }
  uint64_t bytes_written() const { return writer_.bytes_written(); }
  uint64_t blocks() const { return blocks_; }            // taken over
  uint64_t damaged_blocks() const { return damaged_blocks_; }
  size_t buffered_threads() const { return pending_.size(); }
  // After Finish(): what the raw file said in place, of losses and of its end.
  const std::optional<format::StatusArea>& status() const { return status_; }

 private:
  // Space in the raw file that is not a complete block yet, or never will be.
  struct Gap {
    uint64_t begin;
    uint64_t end;
  };

  // Blocks of one thread that were read and not yet written.
  struct Pending {
    format::BlockHeader header{};  // of the last of them
    uint32_t merged_before = 0;
    uint32_t dropped_events = 0;   // of all of them
    uint64_t raw_offset = 0;       // of the first of them
    std::vector<uint8_t> content;  // empty: nothing pending
    bool any = false;
  };

  absl::Status Walk(uint64_t* position, uint64_t end, bool final, std::vector<Gap>* gaps);
  // True: taken over (or found damaged, when `final`); false: not complete yet.
  absl::StatusOr<bool> Take(const ScannedBlock& block, bool final);
  absl::Status TakeEvents(const ScannedBlock& block, const std::vector<uint8_t>& content);
  absl::Status TakeRings();
  absl::Status TakeStatus();
  absl::Status Flush(Pending& pending);
  absl::Status FlushAll();
  template <typename Header>
  void KeepClocks(const Header& header);
  absl::Status WriteClockPairs();
  bool Seen(uint32_t thread, uint32_t sequence) const;

  const ByteSource* const raw_;
  const PackerOptions options_;
  BlockScanner scanner_;
  BlockPayload payload_;
  BlockWriter writer_;
  bool started_ = false;
  uint64_t position_ = 0;
  std::vector<Gap> gaps_;            // in order of their offsets
  std::vector<ScannedBlock> rings_;
  format::FileHeader header_{};  // of the raw file
  FlightSegments segments_;
  std::optional<ScannedBlock> status_block_;
  std::optional<format::StatusArea> status_;
  absl::flat_hash_map<uint32_t, Pending> pending_;
  size_t pending_bytes_ = 0;
  // Sequence numbers seen of each thread: all below the first, and those in the set.
  absl::flat_hash_map<uint32_t, uint32_t> next_sequence_;
  absl::flat_hash_set<uint64_t> seen_later_;  // thread << 32 | sequence
  // The same of blocks that others wrote of a thread's private ring, which may
  // come again and longer.
  absl::flat_hash_set<uint64_t> written_early_;
  ClockBounds clock_bounds_;
  std::vector<std::pair<uint64_t, uint64_t>> clock_pairs_;  // of headers left out, not yet written
  std::vector<uint8_t> content_;
  uint64_t last_ticks_ = 0, last_monotonic_ns_ = 0;  // of the last block taken over
  uint64_t blocks_ = 0;
  uint64_t damaged_blocks_ = 0;
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_TRACE_PACKER_H_
