// Lifecycle: every change of state of the process, as the trace sees it.
//
//   not started -> recording   first interposed call, or our constructor
//   recording -> recording     a fork child, with a trace of its own
//   recording -> off           MEMTRACE_MAX_BYTES, no trace file, CHILDREN=off, no memory, a filter of system calls
//   the end                    exit, _exit, exec: the last words; recording goes on,
//                              for a handler may still allocate and an exec may fail
//
// docs/lifecycle.md has the whole table.

#ifndef MEMTRACE_PRELOAD_LIFECYCLE_H_
#define MEMTRACE_PRELOAD_LIFECYCLE_H_

#include <cstdint>

namespace memtrace {

// To be called in a fork child, before anything else: see TraceFile::CloseInherited().
void CloseParentsFile();

// quick_exit() is about to run its handlers, of which ours is the last.
void WillQuickExit(int status);

struct ScanCaller;

// exit() is about to run the handlers.
void ExitIsCalled(int status, const ScanCaller& caller);

// The process ends and no destructor runs any more: what is live now is what is live at the end.
// `now`: right behind this, and it cannot fail.
void EndAtOnce(int status, uintptr_t stack_pointer, bool now = true);

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_LIFECYCLE_H_
