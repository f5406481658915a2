// The memory map of the process in the trace: /proc/self/maps at the start, at
// the end and after growth, so that a report can set what it saw against what is.

#ifndef MEMTRACE_PRELOAD_MEMORY_MAP_RECORD_H_
#define MEMTRACE_PRELOAD_MEMORY_MAP_RECORD_H_

#include "format/records.h"

namespace memtrace {

// Slow: reads /proc and appends a block.
void WriteMemoryMap(format::MapReason reason);

// Slow, called when a ring was spooled: writes the map if the peak of the
// resident memory has doubled since it was written last.
void WriteMemoryMapIfGrown();

// To be called in a fork child: its memory has not grown yet.
void ForgetMemoryMaps();

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_MEMORY_MAP_RECORD_H_
