// FlightSegments: what the kStatus block of a raw trace says (format::StatusArea), and which
// blocks of a flight recorder count.
//
// A flight recorder (kFileNewest) writes its segments in turn, each over what it held before.
// So the file has remnants: blocks that are whole and void, and bytes in front of them that
// are no block at all. What the process did is known from the oldest segment that was not
// given up: from there on every thread's blocks are complete. That moment is the window's
// beginning; events before it are there by chance.
//
// Nothing in the area is trusted: it may be damaged or hostile.

#ifndef MEMTRACE_REPORT_TRACE_FLIGHT_SEGMENTS_H_
#define MEMTRACE_REPORT_TRACE_FLIGHT_SEGMENTS_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "format/trace_format.h"
#include "report/trace/block_scanner.h"
#include "report/trace/byte_source.h"

namespace memtrace::report {

// The area of a kStatus block; none when it is cut or not one.
std::optional<format::StatusArea> ReadStatusArea(const ByteSource& source,
                                                 const ScannedBlock& block);

class FlightSegments {
 public:
  // Reads the segments of the file behind `header`. A file that is no flight recorder, or whose
  // status block is damaged, has no segments.
  absl::Status Read(const ByteSource& source, const format::FileHeader& header);

  // Whether `block` is a remnant of what its segment held before.
  bool IsVoid(const ScannedBlock& block) const;

  // Where the next block may be. Behind the header of a remnant: its place was given to a block
  // that was never written, which may have been shorter, so that others begin within its bytes.
  uint64_t NextAfter(const ScannedBlock& block) const {
    return IsVoid(block) ? block.payload_offset() : block.end();
  }

  // Between blocks anything may stand here.
  bool Contains(uint64_t offset) const {
    return count_ != 0 && offset >= area_.segments_begin;
  }

  // Every block that counts, in any order.
  void Note(const ScannedBlock& block);

  // Ticks at the window's beginning, once all blocks were noted; 0: nothing was given up.
  uint64_t WindowTicks() const;

 private:
  struct First {
    uint64_t offset = UINT64_MAX;
    uint64_t ticks = 0;
  };

  // The segment of `offset`; count_ for none.
  uint64_t IndexOf(uint64_t offset) const;
  // Begun behind all that the area has times of: the process was killed in between.
  bool half_begun() const { return area_.segment_beginning > area_.segments_begun; }

  format::StatusArea area_{};
  uint32_t count_ = 0;
  First first_[format::kMaxSegments];
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_TRACE_FLIGHT_SEGMENTS_H_
