// AlternateStacks: whether signals of ours may be taken on the alternate signal
// stacks of the program.
//
// Not where a stack is too small for what the kernel puts there (AT_MINSIGSTKSZ: more than the 2048
// bytes that MINSIGSTKSZ once was, with AVX-512) and our handler: who never gets a signal does not
// notice. Nor where threads share one.
//
// To share one works for a program whose handlers run in one thread at a time, or never (Varnish:
// all its workers, for the handler of SIGSEGV). A scan stops all threads at once: on a shared
// stack the frames of their signals would lie over each other, and each thread come back as
// another. So the stop signal is taken on the threads' own stacks where one is shared or too
// small, and on the alternate ones else: those who need theirs, for their own stacks are small
// (Go), have one for each thread.
//
// Known are the stacks that are set through libc's sigaltstack(). One table of the process: what
// a place of it had before is forgotten: with hundreds of stacks a shared one may be missed. One
// that a thread gave up and another took counts as shared as long as the first one lives.
//
// Any thread, also in a signal handler. No lock, no memory.

#ifndef MEMTRACE_PRELOAD_ALTERNATE_STACKS_H_
#define MEMTRACE_PRELOAD_ALTERNATE_STACKS_H_

#include <cstddef>
#include <cstdint>

namespace memtrace {

bool AlternateStacksAreOfUse();

// Stack of the kernel's frame and our handlers.
uintptr_t SignalFrameBytes();

// The calling thread has set its own. True: they are of no use from now on.
bool NoteAlternateStack(uintptr_t begin, size_t bytes);

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_ALTERNATE_STACKS_H_
