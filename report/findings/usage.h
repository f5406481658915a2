// What the tables of a report say of sites and threads besides sums: how blocks move and change
// hands.

#ifndef MEMTRACE_REPORT_FINDINGS_USAGE_H_
#define MEMTRACE_REPORT_FINDINGS_USAGE_H_

#include <cstddef>
#include <cstdint>

#include "format/event_words.h"
#include "report/base/strong_id.h"
#include "report/findings/class_counts.h"

namespace memtrace::report {

struct ValueRange {
  uint64_t low = 0, high = UINT64_MAX;  // both belong to it
  // "0.." of ages was asked for, which no freed block has.
  bool asked = false;
  bool all() const { return !asked && low == 0 && high == UINT64_MAX; }
  bool Contains(uint64_t value) const { return value - low <= high - low; }
  bool operator==(const ValueRange&) const = default;
};

// Which blocks an analysis is of, besides its range and threads: see block_filter.h.
struct BlockSelection {
  ValueRange sizes, lifetimes, ages;
  bool sites = false;  // of some sites only
  bool needs_lifetimes() const { return !lifetimes.all() || !ages.all(); }
  bool all() const { return sizes.all() && !needs_lifetimes() && !sites; }
};

// How a site's blocks came to be larger or smaller: by realloc, or replaced by others as
// containers do. Of a sample not weighted.
struct SiteMoves {
  uint64_t reallocations = 0;  // whose result is of this site
  uint64_t grown = 0;          // of these, to a larger size
  uint64_t moved = 0;          //   to another address: what was in it was copied
  uint64_t copied_bytes = 0;
  uint32_t longest_chain = 0;      // reallocs of one block
  uint64_t container_growths = 0;  // a larger block allocated, this one freed directly behind
  uint64_t container_copied_bytes = 0;
};

// Allocations of a site by size. Class k is that of SizeHistogram; the last has all above.
inline constexpr size_t kSiteSizeClasses = 26;
using SiteSizes = ClassCounts<kSiteSizeClasses>;

// Blocks that one thread allocated and another freed.
struct ThreadExchange {
  ThreadId from, to;
  uint64_t blocks = 0, bytes = 0;
};

struct ExchangeSum {
  uint64_t blocks = 0, bytes = 0;
};

// Where blocks of a site ended: a realloc of another site took them over; or they were freed, in a
// trace that has the stacks of frees.
struct BlockEnds {
  enum class By : uint8_t { kRealloc, kFree };
  StackId from, to;
  format::AllocFunction from_function = format::AllocFunction::kMalloc;
  By by = By::kRealloc;
  uint64_t times = 0;
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_FINDINGS_USAGE_H_
