// What is told of the heap as a whole: its totals, threads, sizes, and blocks one by one.
//
// Plain values. Times are nanoseconds since the start of the traced process, sizes are bytes.

#ifndef MEMTRACE_REPORT_FINDINGS_HEAP_FIGURES_H_
#define MEMTRACE_REPORT_FINDINGS_HEAP_FIGURES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "format/event_words.h"
#include "report/base/strong_id.h"
#include "report/findings/held_series.h"
#include "report/findings/sampling.h"

namespace memtrace::report {

struct Totals {
  uint64_t allocations = 0;  // a successful realloc counts as one allocation and one free
  uint64_t frees = 0;
  uint64_t bytes_allocated = 0;
  uint64_t live_bytes = 0;   // at the end (of the range)
  uint64_t live_blocks = 0;
  uint64_t peak_live_bytes = 0;
  uint64_t peak_live_blocks = 0;  // live blocks at the instant of peak_live_bytes
  uint64_t peak_time_ns = 0;
  uint64_t wasted_bytes = 0;      // usable minus requested, over all allocations
  uint64_t temporary_allocations = 0;
  uint64_t reallocations = 0;
  uint64_t failed_allocations = 0;
  uint64_t earlier_frees = 0;     // in the range, of blocks from before it
  SampledSum bytes_sample, live_sample;  // as in Site
};

struct ThreadSummary {
  ThreadId id;
  uint32_t tid = 0;
  // Whether this is the stream of the thread's signal handlers that interrupted the tracer.
  bool in_signal_handlers = false;
  std::string name;
  uint64_t allocations = 0, frees = 0, bytes_allocated = 0;
  uint64_t live_bytes = 0;  // allocated by this thread and live at the end
  uint64_t live_blocks = 0;
  uint64_t temporary = 0;
  uint64_t first_time_ns = 0, last_time_ns = 0;
  HeldSeries held;  // live bytes at the end of each interval of the series, and now
};

// What the trace explains of the memory map at the end.
struct MemoryMapSummary {
  bool known = false;
  uint64_t heap_bytes = 0;               // [heap] at the end
  uint64_t heap_at_start_bytes = 0;
  uint64_t heap_growth_seen_bytes = 0;   // by kHeapGrowth and kBrk
  uint64_t anonymous_bytes = 0;          // private writable anonymous mappings at the end
  uint64_t anonymous_at_start_bytes = 0;
  uint64_t mapped_blocks_bytes = 0;      // live blocks with a mapping of their own
  uint64_t arena_bytes = 0;              // heaps of other arenas
  uint64_t thread_stack_bytes = 0;
  uint64_t program_mmap_bytes = 0;       // the program's own anonymous mmaps, private and writable
  uint64_t program_other_mmap_bytes = 0;  // and those that are not, in none of these
  uint64_t program_mmap_at_start_bytes = 0;  // of the one that began the recording
  uint64_t tool_bytes = 0;
  int64_t unexplained_bytes = 0;         // growth in the map that no event explains
};

inline constexpr size_t kSizeClasses = 64;  // class k: sizes in [2^(k-1), 2^k), class 0: size 0
struct SizeHistogram {
  std::array<uint64_t, kSizeClasses> allocations{};
  std::array<uint64_t, kSizeClasses> bytes{};
  std::array<uint64_t, kSizeClasses> live_blocks{};
  std::array<uint64_t, kSizeClasses> live_bytes{};
};
// The sizes of a class; both belong to it.
constexpr uint64_t SmallestOfClass(size_t size_class) {
  return size_class == 0 ? 0 : uint64_t{1} << (size_class - 1);
}
constexpr uint64_t LargestOfClass(size_t size_class) { return (uint64_t{1} << size_class) - 1; }

// A block that is live at the end (of the range). Kept only when asked for
// (AnalyzeOptions::keep_live_blocks): there may be millions.
struct LiveBlock {
  uint64_t address = 0;
  uint64_t bytes = 0;
  StackId stack;
  format::AllocFunction function = format::AllocFunction::kMalloc;
  uint64_t time_ns = 0;
  // Never a leak, and as good as a root: memtrace_ignore_object(), memtrace_disable(); or
  // allocated while the recording was stopped, so that nothing is known of it.
  bool ignored = false;
  // Custom blocks lie in it: of a pool, or told by memtrace_block_alloc(). They take its place
  // in the graph of pointers, as in memcheck's.
  bool holds_blocks = false;
  uint32_t pool = 0;  // of a custom block: index in Analysis::pools plus 1; 0 of no pool
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_FINDINGS_HEAP_FIGURES_H_
