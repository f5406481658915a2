// A fork in a signal handler that interrupted the tracer.
//
// The child has a copy of a call that was half-way through an event of its parent's. It
// may end in the handler, execute another program, or return from the handler and finish
// that call. Its events begin in the handler, in a trace of its own; what was interrupted
// is finished into memory that nobody reads:
//   - the ring of the thread is not mapped in a child: its place gets private memory;
//   - the state of the thread is abandoned: no thread takes it over, and what it would
//     spool is dropped, for it is the parent's and in the parent's trace;
//   - the thread counts as new, and so as outside of the tracer.
// Where a handler would leave the child half of a write to the parent's file, none runs
// (signals_blocked.h).
//
// A fork by a system call of the program's own, in such a handler, is not seen: its child
// records nothing until it executes another program, and must not return.

#ifndef MEMTRACE_PRELOAD_INTERRUPTED_FORK_H_
#define MEMTRACE_PRELOAD_INTERRUPTED_FORK_H_

namespace memtrace {

// To be called in the child, before anything else.
void ForkedInside();

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_INTERRUPTED_FORK_H_
