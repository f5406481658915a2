// The memtrace trace file, version 1. preload/ writes it, report/ reads it, and
// this directory is all they share. docs/trace-format.md tells it in prose.
//
//   file    = FileHeader (gap? block)*
//   block   = BlockHeader payload          payload_bytes of payload
//   payload = record*                      in a kMetadata block, see records.h
//           | word*                        in a kEvents block, see event_words.h
//           | ring area                    in a kRing block, see RingHeader
//           | StatusArea                   in a kStatus block
//           | scan record*                 in a kMemoryScan block, see memory_scan.h
//
// What every version keeps:
//   - fixed-width integers are little-endian; varints are unsigned LEB128
//   - a reader skips a block kind, a record tag and an extended event type it
//     does not know; a record body and an extended event grow only at their end
//   - blocks start at multiples of kBlockAlignment. Between two blocks there may
//     be a gap: space that a thread had reserved when the process was killed, or
//     that a full disk refused. A reader looks for the next header that is valid.
//   - the file may end anywhere, for the process may have been killed: what was
//     complete before the end is read. That is no error.
// kFormatVersion changes only when an old reader would misread a new file.

#ifndef MEMTRACE_FORMAT_TRACE_FORMAT_H_
#define MEMTRACE_FORMAT_TRACE_FORMAT_H_

#include <cstddef>
#include <cstdint>

namespace memtrace::format {

inline constexpr uint32_t kFormatVersion = 1;
inline constexpr size_t kBlockAlignment = 64;

// 0x89 catches 7-bit transfers, CR LF and ^Z catch text-mode ones (as in PNG).
inline constexpr uint8_t kFileMagic[8] = {0x89, 'M', 'T', 'R', '\r', '\n', 0x1a, '\n'};
inline constexpr uint32_t kBlockMagic = 0x4b42544d;  // "MTBK" in the file
inline constexpr uint32_t kRingMagic = 0x4752544d;   // "MTRG" in the file

enum FileFlags : uint32_t {
  kFileForked = 1,  // a fork child's trace: blocks of the parent are live already
  kFilePacked = 2,  // written by the packer: no kRing blocks
  kFileNewest = 4,  // a flight recorder: older events were written over (StatusArea), and
                    // the first blocks of a thread may be gone without being lost
  kFileSealed = 8,  // packed; the last block says that it is the last (RecordTag::kSeal)
};

// Checksums are XXH3_64bits with seed 0. `header_checksum` covers the bytes
// before it in the same header.
struct FileHeader {
  uint8_t magic[8];
  uint32_t version;
  uint32_t header_bytes;  // sizeof(FileHeader); blocks start at the next multiple of 64
  uint64_t trace_id;      // tells this trace from every other
  uint64_t parent_trace_id;  // kFileForked: the trace of the process that forked; else 0
  uint32_t pid;
  uint32_t flags;         // FileFlags
  uint64_t reserved[2];
  uint64_t header_checksum;
};
static_assert(sizeof(FileHeader) == 64);

enum class BlockKind : uint16_t {
  kMetadata = 1,  // records about the process; `thread` is 0
  kEvents = 2,    // events of `thread`, number `sequence` of that thread
  kRing = 3,      // a live ring; the payload changes, payload_checksum is 0
  kStatus = 4,    // the first block of a raw file: StatusArea; payload_checksum is 0
  kMemoryScan = 5,  // records of memory_scan.h; `thread` is the number of the scan
  kFaults = 6,    // records of faults.h: page faults and resident pages; `thread` is 0
};

enum class Codec : uint16_t {
  kRaw = 0,
  kZstd = 1,  // one zstd frame that expands to content_bytes
  kColumns = 2,  // kEvents only: columns, zstd each (docs/trace-format.md, section 8)
  kWords = 3,    // kEvents only: what the library writes, see word_codec.h
};

struct BlockHeader {
  uint32_t magic;          // kBlockMagic
  BlockKind kind;
  Codec codec;
  uint32_t payload_bytes;  // in the file, after this header
  uint32_t content_bytes;  // after decoding; equal to payload_bytes for kRaw
  uint32_t thread;         // thread serial: 1, 2, ... in order of first event
  uint32_t sequence;       // kEvents: 1, 2, ... without holes for each thread
  uint64_t clock_ticks;    // both clocks read together when the block was written:
  uint64_t monotonic_ns;   //   ticks of the event clock, and CLOCK_MONOTONIC
  uint32_t dropped_events; // events of `thread` lost since its previous block
  uint32_t flags;          // BlockFlags
  uint64_t payload_checksum;
  uint64_t header_checksum;
};
static_assert(sizeof(BlockHeader) == 64);

enum BlockFlags : uint32_t {
  kBlockRecovered = 1,  // taken from a ring after its process had died; the clocks of
                        // the header are those of the ring's: before its first event
  kBlockEarly = 2,      // of a thread that went on: it may write more of it under the same
                        // number, of which this is the beginning
};

// A packer merges blocks of a thread. Bits 16..31 of `flags` are the number of
// blocks before `sequence` that a kEvents block also holds, 0 for an unmerged one:
// it stands for the blocks sequence - MergedBefore(flags) .. sequence. Where two
// were joined there is a kTime word with the `clock_ticks` of the first.
constexpr uint32_t MergedBefore(uint32_t flags) { return flags >> 16; }
constexpr uint32_t MergedFlags(uint32_t merged_before) { return merged_before << 16; }

inline constexpr uint32_t kMaxPayloadBytes = 64u << 20;  // a reader refuses more

// The payload of a kRing block holds, at the first multiple of 4096 in the
// file, a RingHeader and behind it the event words of a thread that were
// not yet written as a kEvents block. It outlives the process: the kernel keeps
// the pages of a shared mapping whatever ends it.
//
// The events [0, committed_bytes) belong to block `sequence` of `thread`. When
// the file has that block already, they are a copy of it and are ignored.
struct RingHeader {
  uint32_t magic;            // kRingMagic; 0: never used
  uint32_t thread;           // serial of the owner
  uint32_t sequence;         // of the kEvents block this will become
  uint32_t committed_bytes;  // whole events only
  uint32_t capacity_bytes;   // of the words behind this header
  uint32_t dropped_events;
  uint64_t clock_ticks;      // when the ring was begun, or begun anew
  uint64_t monotonic_ns;
  uint64_t reserved[11];
};
static_assert(sizeof(RingHeader) == 128);
inline constexpr size_t kRingAlignment = 4096;

// The payload of the kStatus block, which is the first of a raw file: what its writer has to
// say when it can append nothing, because the disk is full for instance. It is changed in
// place while the process runs. All numbers are of the whole process and only grow.
inline constexpr uint32_t kStatusMagic = 0x5353544d;  // "MTSS" in the file
inline constexpr uint32_t kMaxSegments = 8;
// Memory scans of which a block could not be written. They are lost as a whole: one that lacks a
// block concludes nothing.
struct LostScans {
  uint32_t first;  // numbers of scans; 0: none was lost
  uint32_t last;
  uint32_t why;   // RecordingStop, of the last
  int32_t error;  // errno
};
// The records of the end (kEnd) could not be written. A later end may be in the file all the same:
// an exec failed, and the process went on.
struct LostEnd {
  uint32_t why;   // RecordingStop; 0: they were written, or there is no end yet
  int32_t error;  // errno
};
// Children by fork() that could not create a trace, and so are in none. They count themselves, in
// the area of the nearest process above them that has one.
struct UntracedChildren {
  uint32_t count;
  int32_t error;  // errno, of the last
};
struct StatusArea {
  uint32_t magic;         // kStatusMagic
  uint32_t bytes;         // sizeof(StatusArea) of the writer
  // Events whose block could not be written. first_loss_ticks 0: none.
  uint64_t lost_events;
  uint64_t first_loss_ticks;
  uint64_t last_loss_ticks;
  uint32_t loss_why;      // RecordingStop, of the last
  int32_t loss_errno;
  uint64_t missed_events;  // never came into a ring
  // Recording ended for good. 0: it did not.
  uint64_t stop_ticks;
  uint32_t stop_why;      // RecordingStop
  int32_t stop_errno;
  // kFileNewest: the file has `segments` stretches of segment_bytes each, one behind the
  // other, that are written in turn. They are numbered as they are begun, the first has the
  // number `segments`; number n is the stretch with index n % segments. A block in it whose
  // clock_ticks are below its segment_ticks is a remnant of what was there before, and void.
  uint64_t segments_begin;
  uint64_t segment_bytes;
  uint32_t segments;      // at most kMaxSegments
  uint32_t reserved;
  uint64_t segments_begun;  // its segment_ticks are set
  uint64_t segment_beginning;  // above segments_begun: this one may have been begun as well
  uint64_t segment_ticks[kMaxSegments];
  // A memory scan that another program asks for (`memtrace leaks`), which alone writes the first
  // of these three while the process runs; the process writes the others.
  uint64_t scan_request;  // counts up in the low half; high half: ScanShow of memory_scan.h
  uint64_t scan_answer;   // the request that was taken, low half; high half: the scan's number
  uint64_t scan_finished;  // number of the latest scan that is over, for whatever reason
  // MEMTRACE_LEAK_SIGNAL, as it was when the process began: a title of the process may be written
  // over its environment. 0: none.
  uint64_t leak_signal;
  uint32_t no_scans;  // NoScans of memory_scan.h: a request is not answered any more
  uint32_t reserved_2;
  // Blocks without events that could not be written. Of others nothing is told: records of modules
  // and threads are written again when there is room, and count as missing where they are needed.
  LostScans lost_scans;
  LostEnd lost_end;
  UntracedChildren untraced_children;
};
static_assert(sizeof(StatusArea) == 240);

// A module instance: a file mapped from its load to its unload, numbered 1, 2, ...
// by its kModule record. A stack node names the instance its pc lies in; 0 there
// is short for "the permanent module that covers this pc": one that was loaded
// before the program began and is never unloaded.
inline constexpr uint32_t kPermanentInstance = 0;
inline constexpr uint32_t kNoModule = 0xffff;  // the node's pc is a StackMarker

// Why a stack does not go on to the first frame of its thread. Such a marker is
// the outermost node of the stack; a stack without one is complete.
enum class StackMarker : uint64_t {
  kNone = 0,
  kNoUnwindInfo = 1,   // no FDE covers this address (JIT, assembly without CFI)
  kTruncated = 2,      // deeper than the limit
  kUnreadable = 3,     // a stack word that CFI asked for was not readable
  kInconsistent = 4,   // CFI did not move outwards: wrong CFI or a damaged stack
  kUnsupported = 5,    // CFI used something this version cannot evaluate
  kNotCaptured = 6,    // stacks are off, or the event came from inside the tracer
  kContextEnd = 7,     // the first frame of a context, or fiber: complete
  kLost = 8,           // made by readers only: its definition was in a lost part of the trace
  kOtherStack = 9,     // called on another stack, by code that is of no module
};

}  // namespace memtrace::format

#endif  // MEMTRACE_FORMAT_TRACE_FORMAT_H_
