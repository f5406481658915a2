// EventColumns: the words of a block of events <-> columns of bytes, each of one kind
// of thing, which compress to a quarter of what the words do. docs/trace-format.md,
// section 8, tells each column.
//
// Most of what an event says can be foretold from those before it in the block: the
// stack from the stack before, the size from the stack, the address from what was
// freed last (allocators hand out the latest free block of a size), the block that is
// freed from how long ago it was allocated. Coder and decoder keep the same tables and
// make the same guesses; an event is one byte that says which guesses were right, and
// a number in a column for each that was not.
//
// Any words can be coded: what is not an event as it should be is kept as it is. A block
// needs nothing of other blocks. Decoding takes any bytes and checks every length.
//
// One object is used for many blocks and keeps its tables and buffers.

#ifndef MEMTRACE_REPORT_TRACE_EVENT_COLUMNS_H_
#define MEMTRACE_REPORT_TRACE_EVENT_COLUMNS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace memtrace::report {

class EventColumns {
 public:
  // The columns, in the order of the file.
  enum Column : size_t {
    kKinds,      // a byte an event: EventKind, and which guesses were right
    kSlots,      // of stacks
    kSizes,      // requested
    kDetails,    // of allocations: waste, arena
    kAddresses,  // of allocations
    kAges,       // of blocks that are freed: allocations since
    kFreed,      // addresses of freed blocks that are not of this block
    kNodeParents,
    kNodeSlots,
    kNodePcs,  // numbers of pcs that were there before
    kNewPcs,
    kTimes,
    kWords,  // everything else
    kColumns
  };

  EventColumns();
  ~EventColumns();
  EventColumns(const EventColumns&) = delete;
  EventColumns& operator=(const EventColumns&) = delete;

  // Fills the columns.
  void Encode(std::span<const uint64_t> words);

  // Where the decoded words hold a time stamp, and the events before it, since the one before,
  // that take time (event_block.h).
  struct Stamp {
    uint32_t word;
    uint32_t events;
  };

  // Fills `words` from the columns. False: they do not make up these many words.
  bool Decode(std::span<uint64_t> words);
  // The time stamps in what was decoded last, and an entry behind all words that is no stamp.
  // Empty: some of the words are no events, and the caller has to look through them.
  std::vector<Stamp>& stamps() { return stamps_; }

  std::vector<uint8_t>& column(size_t i) { return columns_[i]; }

 private:
  struct Tables;  // what both sides guess from
  class Coder;
  bool DecodeMarked(std::span<uint64_t> words);

  std::array<std::vector<uint8_t>, kColumns> columns_;
  std::vector<Stamp> stamps_;
  std::unique_ptr<Tables> tables_;
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_TRACE_EVENT_COLUMNS_H_
