// What the text of /proc/self/maps says, summed up by what the memory is for.

#ifndef MEMTRACE_REPORT_MEMORY_MAP_H_
#define MEMTRACE_REPORT_MEMORY_MAP_H_

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "report/analysis.h"
#include "report/trace_metadata.h"

namespace memtrace::report {

struct MapSums {
  uint64_t heap_bytes = 0;          // [heap]
  uint64_t anonymous_bytes = 0;     // private, writable, of no file; without [stack]
  uint64_t thread_stack_bytes = 0;  // of these: behind a guard page, as pthreads maps them
  uint64_t trace_bytes = 0;         // mappings of the trace file: the tracer's rings
};

struct MapLine {
  uint64_t begin = 0, end = 0;
  std::string_view permissions;  // "rw-p"
  bool anonymous = false;        // inode 0
  std::string_view name;         // path, "[heap]", "[anon:...]" or empty
};

// "7f12a000-7f12b000 rw-p 00000000 00:00 0    [anon:name]". False: it is not understood.
bool ParseMapLine(std::string_view text, MapLine* line);

// Calls visit(line) for each line that is understood.
template <typename Visit>
void ForEachMapLine(std::string_view text, Visit visit) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    MapLine line;
    if (ParseMapLine(text.substr(0, end), &line)) visit(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

// Whether the line is a ring of the tracer's.
bool IsTraceMapping(const MapLine& line);
// Whether the mapping is behind a guard page, as pthreads maps stacks; `before`
// is the line before it.
bool IsGuarded(const MapLine& before, const MapLine& line);

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

// Whether the range lies in one anonymous mapping.
bool MapHasAnonymous(std::string_view text, uint64_t begin, uint64_t end);

// Fills in what the maps at the start and at the end say; what the events explain
// must be there already.
void ExplainMemoryMap(const TraceMetadata& metadata, MemoryMapSummary* summary);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_MEMORY_MAP_H_
