// What the text of /proc/self/maps says, summed up by what the memory is for.

#ifndef MEMTRACE_REPORT_MEMORY_MAP_H_
#define MEMTRACE_REPORT_MEMORY_MAP_H_

#include <cstdint>
#include <string_view>

#include "report/analysis.h"
#include "report/trace_metadata.h"

namespace memtrace::report {

struct MapSums {
  uint64_t heap_bytes = 0;          // [heap]
  uint64_t anonymous_bytes = 0;     // private, writable, of no file; without [stack]
  uint64_t thread_stack_bytes = 0;  // of these: behind a guard page, as pthreads maps them
  uint64_t trace_bytes = 0;         // mappings of the trace file: the tracer's rings
};

// Lines that are not understood are skipped.
MapSums SumUpMap(std::string_view text);

// Whether the range lies in one anonymous mapping.
bool MapHasAnonymous(std::string_view text, uint64_t begin, uint64_t end);

// Fills in what the maps at the start and at the end say; what the events explain
// must be there already.
void ExplainMemoryMap(const TraceMetadata& metadata, MemoryMapSummary* summary);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_MEMORY_MAP_H_
