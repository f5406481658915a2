// What is told of the program by allocating stack: sites of blocks, of mappings, of pools.
//
// Plain values. Times are nanoseconds since the start of the traced process, sizes are bytes.

#ifndef MEMTRACE_REPORT_FINDINGS_SITE_H_
#define MEMTRACE_REPORT_FINDINGS_SITE_H_

#include <cstdint>
#include <string>

#include "format/event_words.h"
#include "report/base/on_demand.h"
#include "report/base/strong_id.h"
#include "report/findings/growth.h"
#include "report/findings/lifetime_histogram.h"
#include "report/findings/sampling.h"
#include "report/findings/series_point.h"
#include "report/findings/usage.h"

namespace memtrace::report {

// A distinct allocating stack together with the function that was called.
struct Site {
  StackId stack;
  format::AllocFunction function = format::AllocFunction::kMalloc;
  uint64_t allocations = 0;
  uint64_t frees = 0;
  uint64_t bytes_allocated = 0;
  uint64_t live_bytes = 0;
  uint64_t live_blocks = 0;
  uint64_t peak_bytes = 0;          // the most this site ever held
  uint64_t blocks_at_own_peak = 0;  // when it held peak_bytes for the first time
  uint64_t bytes_at_peak = 0;       // held at the peak of the whole program
  uint64_t blocks_at_peak = 0;
  uint64_t wasted_bytes = 0;        // over all allocations
  uint64_t live_wasted_bytes = 0;   // of the live blocks; at most 65535 of each
  uint64_t temporary = 0;
  uint64_t freed_by_other_thread = 0;
  uint64_t largest_bytes = 0;
  uint64_t first_time_ns = 0;       // of any allocation here
  uint64_t last_time_ns = 0;
  uint64_t live_first_time_ns = 0;  // of the blocks that are live at the end
  uint64_t live_last_time_ns = 0;
  double freed_lifetime_ns = 0;     // from allocation to free, over all blocks that were freed
  double live_time_sum_ns = 0;      // of the allocations of those that are live at the end
  Growth growth;
  SiteLifetimes lifetimes;          // of the blocks that were freed; of a sample not weighted
  SiteSizes sizes;                  // its allocations by size; of a sample not weighted
  OnDemand<SiteMoves> moves;
  SeriesPoints series;  // in order; intervals in which nothing changed are left out
  // Where the trace is of a sample (ProcessInfo::sample_bytes): the sums behind bytes_allocated and
  // live_bytes, for the intervals of confidence.
  OnDemand<SampledSum> bytes_sample, live_sample;
};

// Memory the program or its allocator got from the kernel, by stack.
struct MappingSite {
  enum class Kind { kMmap, kBrk, kShm, kHeapGrowth, kArenaGrowth, kMappedBlock };
  Kind kind = Kind::kMmap;
  StackId stack;
  std::string file;  // kMmap of a file
  uint64_t calls = 0;
  uint64_t bytes = 0;       // over all calls
  uint64_t live_bytes = 0;  // still mapped at the end
};

// From here on an mmap of private memory of no file is told in Analysis::large_mappers: mimalloc
// gets no less than this, a segment of its, for blocks.
inline constexpr uint64_t kLargeMmapBytes = uint64_t{32} << 20;
// An arena of CPython's pymalloc: since 3.10, and before. An mmap of just that, of private memory
// of no file, is told in Analysis::arena_mappers.
inline constexpr uint64_t kPymallocArenaBytes = uint64_t{1} << 20;
inline constexpr uint64_t kOldPymallocArenaBytes = uint64_t{256} << 10;

// The pools (memtrace_pool_create) that have one name and one creating stack, together; one whose
// creation is not in the trace by itself, named after its address. Their blocks are those of sites
// whose function is kPoolAlloc.
struct Pool {
  std::string name;
  StackId stack;              // of their creation; none if that is not in the trace
  uint64_t created = 0, destroyed = 0;
  uint64_t first_created_ns = 0;
  uint64_t allocations = 0, frees = 0;  // of blocks; frees with those of destroyed pools
  uint64_t bytes_allocated = 0;
  uint64_t live_bytes = 0, live_blocks = 0;  // at the end (of the range)
  uint64_t peak_bytes = 0;    // the most they ever held together
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_FINDINGS_SITE_H_
