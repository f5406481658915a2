// Segments: where the blocks of a flight recorder go (MEMTRACE_KEEP=newest).
//
// The file has a fixed part, whose blocks are never written over, and four segments that are
// written in turn, each from its start. To begin a segment is to give up the blocks it had:
// the oldest there are. The n-th segment begun has index n % 4, so at least three quarters of
// the segments' bytes hold the newest blocks.
//
//   0        page 0: FileHeader, kStatus block, the first metadata
//   ..       metadata that has to last: process, modules, first memory map
//   ..       rings
//   ..       segment 0, 1, 2, 3: event blocks, and records of what passes
//   max      end of the file
//
// Places are given out by one compare-and-swap of (segments begun, bytes used). A segment is
// not begun anew while somebody writes to it: `writers_` counts them from before they take a
// place to after the write. The block that wanted to begin it waits a tenth of a second at most
// and is refused then, and its events are counted as lost. Who counts himself into a segment
// that is not the newest any more fails in his swap; so none can come between the look at
// `writers_` and the swap that begins a segment.
//
// For the reader (format::StatusArea), in this order:
//   segment_beginning = n        by everybody who is about to try, before the swap
//   swap                         one wins
//   segment_ticks[n % 4], then segments_begun = n      by the winner
// A block is stamped after its place was taken, so a block of segment n is not older than
// segment_ticks, which the winner read before the swap. When the process is killed in between,
// the reader knows by segment_beginning that index n % 4 may be half new.
//
// Threads: Reserve() and Finished() on any thread. No lock.

#ifndef MEMTRACE_PRELOAD_SEGMENTS_H_
#define MEMTRACE_PRELOAD_SEGMENTS_H_

#include <atomic>
#include <cstdint>

#include "preload/trace_status.h"

namespace memtrace {

class Segments {
 public:
  static constexpr uint32_t kCount = 4;
  static constexpr uint64_t kSmallestFile = 1 << 20;

  // Lays out a file of `max_bytes`, at least kSmallestFile. `ring_bytes`: of a ring's block.
  void Init(uint64_t max_bytes, uint64_t ring_bytes, format::StatusArea* status, uint64_t ticks);
  void Off() { segment_bytes_ = metadata_end_ = 0; }
  bool on() const { return segment_bytes_ != 0; }

  uint64_t metadata_end() const { return metadata_end_; }
  uint64_t rings_end() const { return segments_begin_; }
  uint64_t segment_bytes() const { return segment_bytes_; }

  struct Place {
    uint64_t offset = 0;
    uint32_t index = 0;
    bool began = false;  // a segment was begun: stacks have to be told anew
  };
  // False: longer than a segment, or the oldest segment is still being written.
  bool Reserve(uint64_t bytes, TraceStatus& status, Place* place);
  void Finished(const Place& place) {
    writers_[place.index].fetch_sub(1, std::memory_order_release);
  }

  // How many were begun. A thread that knows a smaller number has definitions of stacks in
  // segments that will be written over before its next blocks are.
  uint32_t begun() const {
    return static_cast<uint32_t>(position_.load(std::memory_order_seq_cst) >> 40);
  }

 private:
  bool Begin(uint64_t position, TraceStatus& status);

  static constexpr uint64_t kUsedMask = (uint64_t{1} << 40) - 1;

  uint64_t metadata_end_ = 0;
  uint64_t segments_begin_ = 0;
  uint64_t segment_bytes_ = 0;
  std::atomic<uint64_t> position_{0};  // segments begun << 40 | bytes used of the newest
  std::atomic<uint32_t> writers_[kCount] = {};
};

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_SEGMENTS_H_
