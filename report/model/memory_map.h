// What the text of /proc/self/maps says, summed up by what the memory is for.

#ifndef MEMTRACE_REPORT_MODEL_MEMORY_MAP_H_
#define MEMTRACE_REPORT_MODEL_MEMORY_MAP_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "report/base/map_line.h"
#include "report/findings/heap_figures.h"
#include "report/trace/trace_metadata.h"

namespace memtrace::report {

// A heap of one of glibc's other arenas has at most so many bytes, and begins at a multiple of it.
inline constexpr uint64_t kArenaBytes = uint64_t{64} << 20;

struct MapSums {
  uint64_t heap_bytes = 0;          // [heap]
  uint64_t anonymous_bytes = 0;     // private, writable, of no file; without [stack]
  uint64_t thread_stack_bytes = 0;  // of these: behind a guard page, as pthreads maps them
  uint64_t trace_bytes = 0;         // mappings of the trace file: the tracer's rings
};

// Whether the line is a ring of the tracer's.
bool IsTraceMapping(const MapLine& line);
// Whether the mapping lines[at] is behind a guard page, as pthreads maps stacks.
bool IsGuarded(const std::vector<MapLine>& lines, size_t at);

// Lines that are not understood are skipped.
MapSums SumUpMap(std::string_view text);

// The parts of a memory map that are neither a file nor private writable memory: reserved address
// space, code of a JIT, memory that is shared with children.
class OtherParts {
 public:
  explicit OtherParts(std::string_view map);
  // How many bytes of [begin, end) are such.
  uint64_t BytesIn(uint64_t begin, uint64_t end) const;

 private:
  std::vector<std::pair<uint64_t, uint64_t>> parts_;  // ascending
};

// How many bytes of [begin, end) MapSums has among its anonymous ones.
uint64_t AnonymousBytesIn(std::string_view text, uint64_t begin, uint64_t end);

// Whether a mapping that is private, of no file, and neither heap nor stack has so many bytes. What
// glibc reserves for a heap of an arena does not count.
bool HasPrivateMemoryOf(std::string_view text, uint64_t bytes);

// Fills in what the maps at the start and at the end say; what the events explain
// must be there already.
void ExplainMemoryMap(const TraceMetadata& metadata, MemoryMapSummary* summary);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_MODEL_MEMORY_MAP_H_
