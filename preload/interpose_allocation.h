// What the exported allocation functions jump to, so that their caller is still the
// caller there. All are in interpose.cc, each with a frame pointer of its own.
//
//   Recorded...  the thread is in ThreadMode::kRecording: the call is an event
//   Slow...      it is in another mode, and the call may be an event: it is sampled; or
//                the first of the thread; or comes from inside the tracer
//
// A sampling thread's calls that are no event lead to neither of them.

#ifndef MEMTRACE_PRELOAD_INTERPOSE_ALLOCATION_H_
#define MEMTRACE_PRELOAD_INTERPOSE_ALLOCATION_H_

#include <cstddef>

#include "preload/exported.h"

namespace memtrace {

ENTERED void* RecordedMalloc(size_t bytes);
ENTERED void* RecordedCalloc(size_t count, size_t bytes);
ENTERED void* RecordedRealloc(void* old, size_t bytes);
ENTERED void* RecordedReallocarray(void* old, size_t count, size_t bytes);
ENTERED void RecordedFree(void* block);
ENTERED void RecordedFreeSized(void* block, size_t bytes);
ENTERED void RecordedFreeAlignedSized(void* block, size_t alignment, size_t bytes);
ENTERED int RecordedPosixMemalign(void** out, size_t alignment, size_t bytes);
ENTERED void* RecordedAlignedAlloc(size_t alignment, size_t bytes);
ENTERED void* RecordedMemalign(size_t alignment, size_t bytes);
ENTERED void* RecordedValloc(size_t bytes);
ENTERED void* RecordedPvalloc(size_t bytes);

// `bytes` were taken off ThreadSlot::until_sample, which said that they are sampled.
ENTERED void* SlowMalloc(size_t bytes);
ENTERED void* SlowCalloc(size_t count, size_t bytes);
ENTERED void* SlowRealloc(void* old, size_t bytes);
ENTERED void* SlowReallocarray(void* old, size_t count, size_t bytes);
ENTERED int SlowPosixMemalign(void** out, size_t alignment, size_t bytes);
ENTERED void* SlowAlignedAlloc(size_t alignment, size_t bytes);
ENTERED void* SlowMemalign(size_t alignment, size_t bytes);
ENTERED void* SlowValloc(size_t bytes);
ENTERED void* SlowPvalloc(size_t bytes);
// The block may be a sampled one; nothing was taken yet.
ENTERED void SlowFree(void* block);
ENTERED void* SlowReallocOfHeld(void* old, size_t bytes);
ENTERED void* SlowReallocarrayOfHeld(void* old, size_t count, size_t bytes);

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_INTERPOSE_ALLOCATION_H_
