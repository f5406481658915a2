// The end of the process, on whichever way: exit(), _exit(), quick_exit(). The last scan and the
// last words; recording goes on, for a handler may still allocate.

#ifndef MEMTRACE_PRELOAD_PROCESS_END_H_
#define MEMTRACE_PRELOAD_PROCESS_END_H_

#include <cstdint>

namespace memtrace {

struct ScanCaller;

// To be called before main: has libc call us at exit() and quick_exit().
void PrepareEnd();

// quick_exit() is about to run its handlers, of which ours is the last.
void QuickExitIsCalled(int status, uintptr_t stack_pointer);

// exit() is about to run the handlers.
void ExitIsCalled(int status, const ScanCaller& caller);

// The process ends and no destructor runs any more: what is live now is what is live at the end.
// `now`: right behind this, and it cannot fail.
void EndAtOnce(int status, uintptr_t stack_pointer, bool now = true);

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_PROCESS_END_H_
