// TraceReader: opens a trace, raw or packed, finished or being written, whole or
// damaged, and gives out its parts.
//
// Opening walks the block headers once and keeps an index of them, 40 bytes a
// block, by thread and sequence number; and reads the metadata blocks. Event
// blocks are read when asked for, so memory does not grow with the file beyond
// its index.
//
// Damage is noted, not fatal: damage() says where and what. The events of a ring
// take the place of the block they should have become, when that is missing or
// damaged.
//
// Threads: one reader belongs to one thread; what is const, others may call as well (read_ahead.h).

#ifndef MEMTRACE_REPORT_TRACE_TRACE_READER_H_
#define MEMTRACE_REPORT_TRACE_TRACE_READER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "format/trace_format.h"
#include "report/trace/block_payload.h"
#include "report/trace/block_scanner.h"
#include "report/trace/byte_source.h"
#include "report/trace/clock_map.h"
#include "report/trace/flight_segments.h"
#include "report/trace/trace_metadata.h"

namespace memtrace::report {

// A kEvents block, or a ring that stands for one.
struct BlockRef {
  uint64_t offset = 0;
  uint64_t clock_ticks = 0;     // when it was written; when begun, if `open_ended`
  uint32_t sequence = 0;        // the last it stands for
  uint32_t merged_before = 0;   // and this many before it
  uint32_t content_bytes = 0;
  uint32_t dropped_events = 0;
  bool open_ended = false;      // from a ring: clock_ticks is a lower bound, there is no upper
  bool is_ring = false;         // in this file it still is one
  uint32_t lost_before = 0;     // blocks of the thread, between the one before and this

  uint32_t first_sequence() const { return sequence - merged_before; }
};

struct ThreadStream {
  uint32_t thread = 0;           // serial
  uint64_t first_ticks = 0;      // no event is earlier; 0 not known
  std::vector<BlockRef> blocks;  // in the order of the events
};

// A kMemoryScan block.
struct ScanBlockRef {
  uint64_t offset = 0;
  uint32_t scan = 0;      // its number
  uint32_t sequence = 0;  // of the block in it: 1, 2, ...
  uint32_t content_bytes = 0;
};

// A kFaults block.
struct FaultBlockRef {
  uint64_t offset = 0;
  uint32_t sequence = 0;  // 1, 2, ... in the trace
  uint32_t content_bytes = 0;
};

struct TraceStatistics {
  uint64_t file_bytes = 0;
  uint64_t event_blocks = 0;
  uint64_t metadata_blocks = 0;
  uint64_t ring_blocks = 0;       // of any content
  uint64_t rings_used = 0;        // hold events that no block has
  uint64_t unknown_blocks = 0;    // of a kind that this version does not know
  uint64_t event_bytes = 0;       // as stored, with headers
  uint64_t event_content_bytes = 0;  // decoded, without what rings hold
  uint64_t metadata_bytes = 0;
  uint64_t scan_blocks = 0;
  uint64_t scan_bytes = 0;        // as stored, with headers
  uint64_t fault_blocks = 0;
  uint64_t gaps = 0;              // unwritten space between blocks
  uint64_t gap_bytes = 0;
  uint64_t lost_blocks = 0;       // holes in the sequence numbers, and damaged event blocks
  uint64_t dropped_events = 0;    // by the library, as block headers say
};

class TraceReader {
 public:
  // A file, or the trace of that name that is being recorded (live_trace.h).
  static absl::StatusOr<std::unique_ptr<TraceReader>> Open(const std::string& path);
  // `name` begins the messages.
  static absl::StatusOr<std::unique_ptr<TraceReader>> FromSource(
      std::unique_ptr<ByteSource> source, const std::string& name) {
    return FromSource(std::move(source), name, 0);
  }

  const std::string& name() const { return name_; }
  const format::FileHeader& header() const { return header_; }
  const TraceMetadata& metadata() const { return metadata_; }
  const ClockMap& clock() const { return clock_; }
  const std::vector<ThreadStream>& streams() const { return streams_; }  // by serial
  const TraceStatistics& statistics() const { return statistics_; }

  // Reads the words of a block. A damaged one comes from its ring if that has a copy;
  // otherwise `words` is empty, the damage is noted and false returned.
  bool ReadEvents(const ThreadStream& stream, const BlockRef& block, std::vector<uint64_t>* words);

  // The two halves of it. The first notes nothing, and any number of threads may call it at
  // once, each with a payload of its own; the second is for the thread the reader belongs to.
  absl::Status DecodeEvents(const ThreadStream& stream, const BlockRef& block,
                            BlockPayload* payload, std::vector<uint64_t>* words) const;
  bool NoteOutcome(const BlockRef& block, const absl::Status& status);

  // Blocks of memory scans, by scan and sequence. What they say: leak/scan_reader.h.
  const std::vector<ScanBlockRef>& scan_blocks() const { return scan_blocks_; }
  // False: it is damaged, which is noted; `content` is empty.
  bool ReadScanBlock(const ScanBlockRef& block, std::vector<uint8_t>* content);

  // Faults and snapshots of pages, by sequence. What they say: faults/fault_stream.h.
  const std::vector<FaultBlockRef>& fault_blocks() const { return fault_blocks_; }
  // False: it is damaged, which is noted; `content` is empty.
  bool ReadFaultBlock(const FaultBlockRef& block, std::vector<uint8_t>* content) {
    return ReadBlockAt(block.offset, block.content_bytes, content);
  }

  // Damage that NoteOutcome() and NoteBadEvent() noted, in the order of the calls; and noting
  // it again without them.
  struct EventDamage {
    uint64_t offset = 0;
    std::string message;
    bool lost = false;  // the block with all that was in it
  };
  const std::vector<EventDamage>& event_damages() const { return event_damages_; }
  void NoteAgain(const std::vector<EventDamage>& damages);

  // The words of a block were not whole events: noted as damage at that word.
  void NoteBadEvent(const BlockRef& block, size_t word);

  // From when on it is known what the process did, in ns since its start: a flight recorder keeps
  // the newest events only. 0: from the beginning.
  uint64_t window_begin_ns() const { return window_begin_ns_; }

  // Not 0: the process was still at work when the trace was opened, this long after its start. Of
  // what came later, the trace has more of some threads and less of others.
  uint64_t live_until_ns() const { return live_until_ns_; }

  // Says what the first damage in the file is; empty when none was found so far.
  std::string damage() const;
  // The file ends within a block, or space was reserved at its end: the process was
  // killed, or is still running. Nothing that it had completed is missing.
  bool cut() const { return cut_; }
  // Where the file ends within a block; empty when it does not.
  const std::string& cut_place() const { return cut_place_; }

 private:
  TraceReader(std::unique_ptr<ByteSource> source, std::string name)
      : source_(std::move(source)), name_(std::move(name)) {}
  static absl::StatusOr<std::unique_ptr<TraceReader>> OpenByName(const std::string& path);
  static absl::StatusOr<std::unique_ptr<TraceReader>> FromSource(
      std::unique_ptr<ByteSource> source, const std::string& name, uint64_t opened_ns);
  absl::Status Index();
  absl::Status IndexBlock(const ScannedBlock& block);
  absl::Status IndexMetadata(const ScannedBlock& block);
  void CheckSeal();
  absl::Status SkipGap(uint64_t* position);
  struct Gap {
    uint64_t begin = 0, end = 0;
    bool unwritten = false;  // or what should be a header is none
  };
  absl::Status LookAgain();
  absl::Status RetryWhileWritten(absl::FunctionRef<absl::Status()> read) const;
  bool HasHoles() const;
  void UseRings();
  bool ReadBlockAt(uint64_t offset, uint32_t content_bytes, std::vector<uint8_t>* content);
  static void SortBlocks(std::vector<BlockRef>* blocks);
  void MakeStreams();
  void NoteCutWithinBlock();
  // False: this place is known already.
  bool NoteDamage(uint64_t offset, absl::string_view message);

  // Decoded records a trace may have: these, and so many for each byte of its file.
  static constexpr uint64_t kMetadataBytes = 4 << 20;
  static constexpr uint64_t kMetadataRatio = 32;
  // The same of the contents of memory scans, which are worth eight bytes a pointer, and of
  // faults.
  static constexpr uint64_t kScanBytes = 64 << 20;
  static constexpr uint64_t kScanRatio = 64;

  std::unique_ptr<ByteSource> source_;
  std::string name_;
  format::FileHeader header_{};
  TraceMetadata metadata_;
  ClockMap clock_;
  TraceStatistics statistics_;
  FlightSegments segments_;
  uint64_t window_begin_ns_ = 0;
  uint64_t opened_ns_ = 0;  // of a trace that is being written: CLOCK_MONOTONIC
  uint64_t live_until_ns_ = 0;
  std::vector<Gap> gaps_;  // between blocks, while indexing
  std::vector<ThreadStream> streams_;
  absl::flat_hash_map<uint32_t, std::vector<BlockRef>> by_thread_;  // while indexing
  struct KeptRing {
    uint64_t offset = 0;  // of its block
    RingRemains remains;
  };
  std::vector<KeptRing> rings_;                                     // while indexing
  // Offset -> events that no block has.
  absl::flat_hash_map<uint64_t, std::vector<uint64_t>> ring_words_;
  absl::flat_hash_map<uint64_t, uint64_t> ring_copies_;  // thread << 32 | sequence -> offset
  std::vector<ScanBlockRef> scan_blocks_;
  std::vector<FaultBlockRef> fault_blocks_;
  uint64_t scan_content_bytes_ = 0;
  uint64_t metadata_content_bytes_ = 0;
  BlockPayload payload_;
  std::vector<uint8_t> content_;
  uint64_t damage_offset_ = UINT64_MAX;
  absl::flat_hash_set<uint64_t> damages_;  // offsets of all
  std::string damage_;
  std::vector<EventDamage> event_damages_;
  bool cut_ = false;
  uint64_t blocks_ = 0;        // indexed so far
  bool last_is_seal_ = false;  // of these
  std::string cut_place_;
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_TRACE_TRACE_READER_H_
