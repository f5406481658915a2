// The last words of a process in its trace: what a reader wants of the end. They may be said more
// than once, for a handler may go on after them and an exec may fail; the last ones count.

#ifndef MEMTRACE_PRELOAD_TRACE_END_H_
#define MEMTRACE_PRELOAD_TRACE_END_H_

#include "format/records.h"

namespace memtrace {

// To be called in a function of the program that ends or replaces the process. Nothing is told of a
// child by vfork(), nor where nothing is recorded; but of a trace that is full the end is.
void NoteEnd(format::EndReason reason, int status);

// The names of threads that got another one since the trace was told.
void WriteThreadNames();

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_TRACE_END_H_
