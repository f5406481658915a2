// TimedWait: the rest of a wait that a scan's signal interrupted.
//
// poll, epoll_wait, sleeps and others, made again, would wait as long as the first time, and where
// scans come more often than that without end. So the handler waits, until all of the call's time
// has passed since; how long it had waited before is not known. A signal of the program's ends it
// with EINTR; of semtimedop and FUTEX_WAIT, for which the kernel takes no mask, one that comes in
// the very instant between two scans does not.

#ifndef MEMTRACE_PRELOAD_LEAK_SCAN_TIMED_WAIT_H_
#define MEMTRACE_PRELOAD_LEAK_SCAN_TIMED_WAIT_H_

namespace memtrace {

// With the ucontext of a handler that interrupted the call with this number, which failed with
// EINTR. `with_mask`: one that the kernel can wait for with the program's mask; or else, and no
// signal of the program's is pending. False: it is no such wait, or one without a time, or may not
// be gone on with here; nothing was done.
bool GoOnWaiting(void* context, long call, bool with_mask);

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_LEAK_SCAN_TIMED_WAIT_H_
