// The last words of a process in its trace: what a reader wants of the end. They may be said more
// than once, for a handler may go on after them and an exec may fail; the last ones count.

#ifndef MEMTRACE_PRELOAD_TRACE_END_H_
#define MEMTRACE_PRELOAD_TRACE_END_H_

#include <cstdint>

#include "format/records.h"

namespace memtrace {

// To be called in a function of the program that ends or replaces the process. Nothing is told of a
// child by vfork(), nor where nothing is recorded; but of a trace that is full the end is. Returns
// the ticks of what was written; 0: nothing.
uint64_t NoteEnd(format::EndReason reason, int status);

// The exec failed of which NoteEnd() returned these.
void NoteExecFailed(uint64_t end_ticks);

// The names of threads that got another one since the trace was told.
void WriteThreadNames();

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_TRACE_END_H_
