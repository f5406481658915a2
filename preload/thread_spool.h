// A thread's ring on its way to the trace: where it lies, what is written of it when it is full,
// and what has to be told anew when that did not succeed.
//
// All is called by the thread that has the state, but where it says otherwise;
// none of it allocates.

#ifndef MEMTRACE_PRELOAD_THREAD_SPOOL_H_
#define MEMTRACE_PRELOAD_THREAD_SPOOL_H_

#include <cstdint>

#include "format/record_encoder.h"
#include "preload/thread_state.h"

namespace memtrace {

// Gives `state` a ring in the trace file, or else in private memory, which a note tells. False:
// there is no memory for either.
bool GiveRing(ThreadState& state);

// Writes the ring to the trace file and empties it. What cannot be written is
// counted in dropped_events, and every stack is defined anew. The same when a flight
// recorder has given up its oldest blocks.
void SpoolThread(ThreadState& state);

// What is known of the trace and of the stack is known no more: all is defined with its next use.
void ForgetStacks(ThreadState& state);

// The thread's record. `tid` is 0 where nobody could be asked; `start` in ticks, 0
// if it was told before.
void EncodeThread(const ThreadState& state, int tid, uint64_t start, format::RecordEncoder& out);

// The process ends: rings in private memory are written to the trace, those of other threads
// as they are now, for nobody will find them afterwards. `current` is the one in use.
void WritePrivateRings(const ThreadState* current);

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_THREAD_SPOOL_H_
