// What the process is, as its trace has it: the file of the program, its name, its directory,
// its arguments, the machine, the clock (format::RecordTag::kProcess).

#ifndef MEMTRACE_PRELOAD_PROCESS_RECORD_H_
#define MEMTRACE_PRELOAD_PROCESS_RECORD_H_

#include <cstdint>

#include "preload/text.h"

namespace memtrace {

// Reads the file of the program and the working directory into g_process: at the start, for both
// may change.
void ReadProgram();

// For the name of the trace: of the file of the program, also where it was removed or never had a
// name. A mount that is gone leaves none at all: then it is what the kernel calls the first thread.
void NameProgram(Text<256>& program);

// Writes the record. The times are those of the trace's begin. `forked`: the program did not begin
// with it.
void WriteProcess(uint64_t start_realtime_ns, uint64_t start_ns, uint64_t start_ticks, bool forked);

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_PROCESS_RECORD_H_
