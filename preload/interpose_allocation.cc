// The exported allocation functions: which way a call goes, and nothing else.
//
//   the thread records every call     a comparison and a jump to Recorded...
//   it samples, and not this call     a subtraction (an allocation) or one look into a
//                                     filter (a free), and a jump to the real function
//   anything else                     a jump to Slow...: a sampled call, one of a new
//                                     thread, of a handler that interrupted the tracer
//
// Compiled without frame pointers: every way out is a jump, that leaves the stack as the
// caller made it. What a program pays for sampling is what stands here.

#include <errno.h>

#include <cstddef>
#include <cstdint>

#include "preload/interpose_allocation.h"
#include "preload/real_allocator.h"
#include "preload/sampled_set.h"
#include "preload/sampler.h"
#include "preload/thread_state.h"

// Not aligned: they jump to what is.
#define EXPORTED_JUMP extern "C" __attribute__((visibility("default"), noinline))

namespace memtrace {
namespace {

[[gnu::always_inline]] inline bool Recording() { return t_slot.mode == ThreadMode::kRecording; }
// Neither is it recording every call. One comparison answers both.
[[gnu::always_inline]] inline bool Sampling() { return t_slot.mode <= ThreadMode::kRecording; }
[[gnu::always_inline]] inline bool Take(size_t bytes) {
  return !Sampling() || TakeBytes(t_slot.until_sample, bytes);
}

size_t Product(size_t count, size_t bytes) {
  size_t total;
  return __builtin_mul_overflow(count, bytes, &total) ? SIZE_MAX : total;
}

}  // namespace
}  // namespace memtrace

using memtrace::g_real;
using memtrace::g_sampled;
using memtrace::Take;

EXPORTED_JUMP void* malloc(size_t bytes) {
  if (memtrace::Recording()) [[likely]] return memtrace::RecordedMalloc(bytes);
  if (Take(bytes)) [[unlikely]] return memtrace::SlowMalloc(bytes);
  return g_real.malloc(bytes);
}

EXPORTED_JUMP void* calloc(size_t count, size_t bytes) {
  if (memtrace::Recording()) [[likely]] return memtrace::RecordedCalloc(count, bytes);
  if (Take(memtrace::Product(count, bytes))) [[unlikely]] return memtrace::SlowCalloc(count, bytes);
  return g_real.calloc(count, bytes);
}

EXPORTED_JUMP void* realloc(void* old, size_t bytes) {
  if (memtrace::Recording()) [[likely]] return memtrace::RecordedRealloc(old, bytes);
  if (g_sampled.MayHold(old)) [[unlikely]] return memtrace::SlowReallocOfHeld(old, bytes);
  if (Take(bytes)) [[unlikely]] return memtrace::SlowRealloc(old, bytes);
  return g_real.realloc(old, bytes);
}

EXPORTED_JUMP void* reallocarray(void* old, size_t count, size_t bytes) {
  if (g_real.program_realloc != nullptr) [[unlikely]] {
    size_t product;
    if (!__builtin_mul_overflow(count, bytes, &product)) {
      return g_real.program_realloc(old, product);  // as glibc's does, which calls it by name
    }
    errno = ENOMEM;
    return nullptr;
  }
  if (memtrace::Recording()) [[likely]] return memtrace::RecordedReallocarray(old, count, bytes);
  size_t total;
  if (__builtin_mul_overflow(count, bytes, &total)) [[unlikely]] {
    errno = ENOMEM;
    return nullptr;
  }
  if (g_sampled.MayHold(old)) [[unlikely]] {
    return memtrace::SlowReallocarrayOfHeld(old, count, bytes);
  }
  if (Take(total)) [[unlikely]] return memtrace::SlowReallocarray(old, count, bytes);
  return g_real.realloc(old, total);  // not reallocarray, see RecordedReallocarray()
}

EXPORTED_JUMP void free(void* block) {
  if (memtrace::Recording()) [[likely]] return memtrace::RecordedFree(block);
  if (g_sampled.MayHold(block)) [[unlikely]] return memtrace::SlowFree(block);
  return g_real.free(block);
}

EXPORTED_JUMP void free_sized(void* block, size_t bytes) {
  if (g_real.program_free != nullptr) [[unlikely]] return g_real.program_free(block);
  if (memtrace::Recording()) [[likely]] return memtrace::RecordedFreeSized(block, bytes);
  if (g_sampled.MayHold(block)) [[unlikely]] return memtrace::SlowFree(block);
  return g_real.free_sized(block, bytes);
}

EXPORTED_JUMP void free_aligned_sized(void* block, size_t alignment, size_t bytes) {
  if (g_real.program_free != nullptr) [[unlikely]] return g_real.program_free(block);
  if (memtrace::Recording()) [[likely]]
    return memtrace::RecordedFreeAlignedSized(block, alignment, bytes);
  if (g_sampled.MayHold(block)) [[unlikely]] return memtrace::SlowFree(block);
  return g_real.free_aligned_sized(block, alignment, bytes);
}

EXPORTED_JUMP int posix_memalign(void** out, size_t alignment, size_t bytes) {
  if (memtrace::Recording()) [[likely]]
    return memtrace::RecordedPosixMemalign(out, alignment, bytes);
  if (Take(bytes)) [[unlikely]] return memtrace::SlowPosixMemalign(out, alignment, bytes);
  return g_real.posix_memalign(out, alignment, bytes);
}

EXPORTED_JUMP void* aligned_alloc(size_t alignment, size_t bytes) {
  if (memtrace::Recording()) [[likely]] return memtrace::RecordedAlignedAlloc(alignment, bytes);
  if (Take(bytes)) [[unlikely]] return memtrace::SlowAlignedAlloc(alignment, bytes);
  return g_real.aligned_alloc(alignment, bytes);
}

EXPORTED_JUMP void* memalign(size_t alignment, size_t bytes) {
  if (memtrace::Recording()) [[likely]] return memtrace::RecordedMemalign(alignment, bytes);
  if (Take(bytes)) [[unlikely]] return memtrace::SlowMemalign(alignment, bytes);
  return g_real.memalign(alignment, bytes);
}

EXPORTED_JUMP void* valloc(size_t bytes) {
  if (memtrace::Recording()) [[likely]] return memtrace::RecordedValloc(bytes);
  if (Take(bytes)) [[unlikely]] return memtrace::SlowValloc(bytes);
  return g_real.valloc(bytes);
}

EXPORTED_JUMP void* pvalloc(size_t bytes) {
  if (memtrace::Recording()) [[likely]] return memtrace::RecordedPvalloc(bytes);
  if (Take(bytes)) [[unlikely]] return memtrace::SlowPvalloc(bytes);
  return g_real.pvalloc(bytes);
}

// No event, but called twice for each block by programs that count their memory,
// as redis-server does.
EXPORTED_JUMP size_t malloc_usable_size(void* block) {
  std::atomic<bool>& asked = memtrace::g_usable_sizes_asked;
  if (!asked.load(std::memory_order_relaxed)) [[unlikely]]
    asked.store(true, std::memory_order_relaxed);
  return g_real.malloc_usable_size(block);
}
