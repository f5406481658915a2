// AllocatedRanges: which memory a process has had allocated at any time up to an instant, by the
// events of its trace.
//
// A fork child does not know its parent's blocks. But what the allocator gave out to the child was
// in no block of the parent's by then, nor can it be in one later: there it is known which memory
// is free.
//
//   AllocationHistory history(&reader, stop);
//   for each scan, in the order of their instants:
//     const AllocatedRanges* ranges = history.UpTo(ticks of the instant)
//
// Custom blocks are no ranges, for they may lie in a block of the parent's. Nor are blocks with a
// mapping of their own: that is gone with them.
//
// A union needs no order: the events of each thread are read for themselves, up to the instant.
// Memory grows with the heap and not with the events: up to 170 bytes a page, and less for pages of
// large blocks. One thread.

#ifndef MEMTRACE_REPORT_LEAK_ALLOCATED_RANGES_H_
#define MEMTRACE_REPORT_LEAK_ALLOCATED_RANGES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "report/trace/block_payload.h"
#include "report/trace/event_block.h"

namespace memtrace::report {
class TraceReader;
}

namespace memtrace::report::leak {

class AllocatedRanges {
 public:
  void Add(uint64_t address, uint64_t bytes);

  // Whether one of the ranges had all of the word at `address`, a multiple of 8.
  bool HasWord(uint64_t address) const;

 private:
  static constexpr unsigned kWordBits = 3;
  static constexpr unsigned kPageBits = 12;
  static constexpr uint64_t kPage = uint64_t{1} << kPageBits;
  using PageWords = std::array<uint64_t, (kPage >> kWordBits) / 64>;  // a bit each

  void AddWords(uint64_t begin, uint64_t end);
  void AddPages(uint64_t first, uint64_t end);

  absl::flat_hash_map<uint64_t, PageWords> words_;  // by number of the page
  // Pages that were in one block from begin to end: number of the first -> behind the last.
  absl::btree_map<uint64_t, uint64_t> pages_;
};

class AllocationHistory {
 public:
  // `stop` as in AnalyzeOptions, may be empty. Both must outlive it.
  AllocationHistory(const TraceReader* reader, const std::function<bool()>& stop);

  // Of the events of spans that begin at or before `ticks` (format/memory_scan.h), which never are
  // less than those of the call before. Null: the reading was stopped, or not all of it could be
  // read.
  const AllocatedRanges* UpTo(uint64_t ticks);
  bool stopped() const { return stopped_; }

 private:
  // How far a stream has been read.
  struct Place {
    size_t block = 0, span = 0;  // the next one
    uint64_t low_ticks = 0;      // when that begins
  };

  bool Read(size_t stream, uint64_t ticks);
  void Take(size_t begin, size_t end);

  const TraceReader* const reader_;
  const std::function<bool()>& stop_;
  std::vector<Place> places_;  // by stream
  bool complete_ = true, stopped_ = false;
  BlockPayload payload_;
  EventBlock events_;
  AllocatedRanges ranges_;
};

}  // namespace memtrace::report::leak

#endif  // MEMTRACE_REPORT_LEAK_ALLOCATED_RANGES_H_
