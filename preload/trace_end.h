// The last words of a process in its trace: what a reader wants of the end. They may be said more
// than once, for a handler may go on after them and an exec may fail; the last ones count.

#ifndef MEMTRACE_PRELOAD_TRACE_END_H_
#define MEMTRACE_PRELOAD_TRACE_END_H_

#include "format/records.h"

namespace memtrace {

struct ThreadState;

// Writes what a reader wants of the end: the memory map, usage, thread names,
// counters, kEnd. May be called again; the last one counts. `current`: of the section that
// the caller has open; null: it has none.
void WriteEnd(ThreadState* current, format::EndReason reason, int status);

// The names of threads that got another one since the trace was told.
void WriteThreadNames();

// The same as WriteEnd() from a function of the program, if anything is recorded at all.
void NoteEnd(format::EndReason reason, int status);

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_TRACE_END_H_
