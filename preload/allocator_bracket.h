// The allocator's bracket: what another allocator than glibc's calls by name is no event.
//
// Its calloc may call malloc, its realloc malloc and free, by the names that it exports. The
// library comes first, so such calls arrive here like the program's: a block would be told twice,
// and freed twice. So where the next definitions are not glibc's, each of them is replaced, once,
// by a function that marks the thread before it calls the real one and takes the mark off behind
// it. Where they are glibc's, whose functions call none by name, nothing is replaced and nothing
// is asked.
//
// The mark is ThreadMode::kInAllocator, with which a call comes by the way of those that may be no
// event (SlowMalloc() and its kin), so that the others pay nothing; and ThreadSlot::bracket_frame,
// which a thread that is inside the tracer already has alone. A marked thread's call is the
// allocator's own when
//
//   - it is made from deeper on the stack than the bracket, and
//   - it returns into the module of one of the real functions, or into this library: there it
//     has been jumped to by such a function, as a last call.
//
// It goes to the real function unrecorded, but for the free of a block that is neither the one
// which the bracketed call ends nor of the last few which it took so (ThreadState::own_blocks): that
// was taken elsewhere, by libc on the allocator's behalf or outside of a bracket, and is in the
// trace. All others are events as ever:
//   - a signal handler's, which interrupted the allocator: it returns into the program;
//   - those of libc and ld.so on the allocator's behalf, as of thread-local variables;
//   - the allocator's, made outside of brackets, as by its own operator new.
//
// What it took so and gives back outside of a bracket is in the trace with its free alone. Counter
// kAllocatorCallsItself tells readers that there may be such blocks.
//
// A handler may never come back into the bracket (siglongjmp()). The mark is then left, and taken
// off by the first call that is made from no deeper than the bracket, unless that is a handler's on
// an alternate stack above it: the allocator may go on then. Until then calls are told apart as
// above, on the slower way. Behind a seccomp filter it is not asked which stack it is.
//
// Threads: the calling one, in any state.

#ifndef MEMTRACE_PRELOAD_ALLOCATOR_BRACKET_H_
#define MEMTRACE_PRELOAD_ALLOCATOR_BRACKET_H_

#include "preload/unwind/stack_unwinder.h"

namespace memtrace {

// To be called once the real functions are found, and are not glibc's; before there is a second
// thread.
void BracketRealAllocator();

// Of a thread that is in ThreadMode::kInAllocator or inside the tracer: whether the call from
// `site` is the allocator's own, and no event. Where the mark is one that was left, and ends here,
// the thread's mode is kNew afterwards.
bool IsAllocatorsOwnAlloc(const unwind::CallSite& site);
bool IsAllocatorsOwnFree(const void* block, const unwind::CallSite& site);

// Fork child: for its own trace.
void TellAllocatorCallsItselfAgain();

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_ALLOCATOR_BRACKET_H_
