// Nested sections: events of signal handlers that interrupt the tracer.
//
// A thread inside the tracer has its ThreadState half-way through an event: the words of
// the ring, the memo, the join. A handler that interrupts it there cannot use it, and
// must not wait. It records as if it were another thread: with a state of its own, that
// has its own serial, ring, tag and stacks (ThreadState::for_handlers). To a reader it is one more
// event stream, told by kThread to be of the handlers of that thread. A handler that
// interrupts the tracer in such a section uses the next state, and so on:
//
//   t_slot.state -> for_handlers -> for_handlers -> ...   kMostNested of them
//   in use: mode     in_use          in_use
//
// The first that is not in use is taken. When all are, the event is counted as missed.
// A section ends by giving back its own state and nothing else. So a handler may go to
// another context and not come back: one state less is left. What is not supported is to come
// back to a context that was left inside the tracer, after another one was left there too:
// that is to switch contexts preemptively within malloc, which libc's does not bear either.
//
// The order between these streams is that of threads: docs/event-order.md.
//
// A handler may also never come back: longjmp(), an exception. The interrupted section
// stays open, and the thread goes on; its events are recorded as if they were a handler's.
// That a section is gone is concluded only from proof, never from time:
//
//   - its frame lies below the caller of the present call, on the thread's primary stack,
//   - where the present call is made, not in a handler: its stack was unwound to the
//     thread's first frame, through no signal trampoline and no frame of the tracer.
//
// What lies below there on the same stack nobody can return to. The section's event may be
// missing or its call not have happened: counted as abandoned_events. Until there is
// proof, for a program whose stack is deeper from now on, the events go on to be recorded, slower.
// On a stack that is not the thread's own no proof is sought. A section that was left on an
// alternate stack is not taken back: there is one less for handlers that interrupt each other.
//
// Threads: the calling one, in any state. All of it is off the event path of a thread that
// no signal interrupts.

#ifndef MEMTRACE_PRELOAD_NESTED_SECTION_H_
#define MEMTRACE_PRELOAD_NESTED_SECTION_H_

#include <cstdint>

#include "preload/thread_state.h"

namespace memtrace {

// Handlers that interrupt each other inside the tracer, on one thread.
inline constexpr int kMostNested = 4;

// Opens a section for a thread that is in ThreadMode::kInside or kOwnCalls. `top`: the caller's
// stack pointer, or any address between it and the frame of this call. Null: the call is no event,
// or was counted as missed. Where the open section proves to be gone this one is the thread's own, as
// if none had been: `*before` is the mode that it is to be left with.
ThreadState* OpenNestedSection(uintptr_t top, ThreadMode* before);
void CloseNestedSection(ThreadState& state);

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_NESTED_SECTION_H_
