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

namespace memtrace {

void* RecordedMalloc(size_t bytes);
void* RecordedCalloc(size_t count, size_t bytes);
void* RecordedRealloc(void* old, size_t bytes);
void* RecordedReallocarray(void* old, size_t count, size_t bytes);
void RecordedFree(void* block);
void RecordedFreeSized(void* block, size_t bytes);
void RecordedFreeAlignedSized(void* block, size_t alignment, size_t bytes);
int RecordedPosixMemalign(void** out, size_t alignment, size_t bytes);
void* RecordedAlignedAlloc(size_t alignment, size_t bytes);
void* RecordedMemalign(size_t alignment, size_t bytes);
void* RecordedValloc(size_t bytes);
void* RecordedPvalloc(size_t bytes);

// `bytes` were taken off ThreadSlot::until_sample, which said that they are sampled.
void* SlowMalloc(size_t bytes);
void* SlowCalloc(size_t count, size_t bytes);
void* SlowRealloc(void* old, size_t bytes);
void* SlowReallocarray(void* old, size_t count, size_t bytes);
int SlowPosixMemalign(void** out, size_t alignment, size_t bytes);
void* SlowAlignedAlloc(size_t alignment, size_t bytes);
void* SlowMemalign(size_t alignment, size_t bytes);
void* SlowValloc(size_t bytes);
void* SlowPvalloc(size_t bytes);
// The block may be a sampled one; nothing was taken yet.
void SlowFree(void* block);
void* SlowReallocOfHeld(void* old, size_t bytes);
void* SlowReallocarrayOfHeld(void* old, size_t count, size_t bytes);

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_INTERPOSE_ALLOCATION_H_
