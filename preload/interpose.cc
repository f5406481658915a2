// What the exported functions that allocate and free do: the real call and its event, nothing
// else. They are reached by a jump from interpose_allocation.cc.
//
// Runs on any thread of the program in any state: before main, in signal
// handlers, in TLS destructors, after exit handlers. Order of writing: a free
// before the real free, an allocation after the real one, a realloc in two halves
// around it, so that the events of one address alternate across threads.
//
// Each function has a frame pointer (see CMakeLists.txt): CALL_SITE() reads the
// caller's return address, stack pointer and frame pointer from its own frame.

#include <cstddef>
#include <cstdint>

#include "preload/arch/arch.h"
#include "preload/bootstrap_arena.h"
#include "preload/call_site.h"
#include "preload/interpose_allocation.h"
#include "preload/process.h"
#include "preload/real_allocator.h"
#include "preload/recorder.h"
#include "preload/sampler.h"

using memtrace::AllocFunction;
using memtrace::EventKind;
using memtrace::g_bootstrap_arena;
using memtrace::g_real;

namespace memtrace {

[[gnu::noinline]] void* RecordedMalloc(size_t bytes) {
  PrepareStack(CALL_SITE());
  void* block = g_real.malloc(bytes);
  RecordAlloc(EventKind::kMalloc, AllocFunction::kMalloc, block, bytes, CALL_SITE());
  return block;
}

[[gnu::noinline]] void* RecordedCalloc(size_t count, size_t bytes) {
  PrepareStack(CALL_SITE());
  void* block = g_real.calloc(count, bytes);
  size_t total;
  if (__builtin_mul_overflow(count, bytes, &total)) total = SIZE_MAX;
  RecordAlloc(EventKind::kCalloc, AllocFunction::kCalloc, block, total, CALL_SITE());
  return block;
}

namespace {

// What becomes of a block of the bootstrap arena, which is not the real allocator's to move. Always
// inlined: only what is jumped to calls the next definitions (event_path_test.cc).
[[gnu::always_inline]] inline void* CopyOfBootstrapBlock(const void* old, size_t bytes) {
  void* const block = g_real.malloc(bytes);
  if (block != nullptr) {
    const size_t size = BootstrapArena::Size(old);
    __builtin_memcpy(block, old, size < bytes ? size : bytes);
  }
  return block;
}

// The short form of an event has the function in its kind, and there is none for reallocarray.
// Always inlined: `function` is a constant then, and realloc pays nothing for it.
[[gnu::always_inline]] inline void RecordReallocResult(AllocFunction function, void* block,
                                                       size_t bytes, const CallSite& site) {
  if (function == AllocFunction::kReallocarray) {
    RecordAlignedAlloc(function, block, bytes, /*alignment=*/0, site);
  } else {
    RecordAlloc(EventKind::kRealloc, function, block, bytes, site);
  }
}

[[gnu::always_inline]] inline void RecordReallocResultInAnyMode(AllocFunction function, void* block,
                                                                size_t bytes,
                                                                const CallSite& site) {
  if (function == AllocFunction::kReallocarray) {
    RecordAlignedAllocInAnyMode(function, block, bytes, /*alignment=*/0, site);
  } else {
    RecordAllocInAnyMode(EventKind::kRealloc, function, block, bytes, site);
  }
}

// Always inlined: CALL_SITE() is that of the function that the program has called.
[[gnu::always_inline]] inline void* DoRecordedRealloc(AllocFunction function, void* old,
                                                      size_t bytes) {
  if (g_bootstrap_arena.Owns(old)) [[unlikely]] {
    void* const block = CopyOfBootstrapBlock(old, bytes);
    RecordReallocResult(function, block, bytes, CALL_SITE());
    return block;
  }
  if (old != nullptr) RecordReallocIntent(old);
  PrepareStack(CALL_SITE());
  void* block = g_real.realloc(old, bytes);
  RecordReallocResult(function, block, bytes, CALL_SITE());
  return block;
}

}  // namespace

[[gnu::noinline]] void* RecordedRealloc(void* old, size_t bytes) {
  return DoRecordedRealloc(AllocFunction::kRealloc, old, bytes);
}

[[gnu::noinline]] void* RecordedReallocarray(void* old, size_t count, size_t bytes) {
  size_t total;
  // realloc fails for so much, and says so as for any other failure.
  if (__builtin_mul_overflow(count, bytes, &total)) [[unlikely]] total = SIZE_MAX;
  // Not the real reallocarray: glibc's calls realloc by its exported name, which is ours, and
  // the one call would be two events.
  return DoRecordedRealloc(AllocFunction::kReallocarray, old, total);
}

// Jumped to, so that the caller is still the caller. Of a block that is ours to record.
[[gnu::noinline]] static void RecordedFreeWithStack(void* block) {
  RecordFreeInAnyMode(block, CALL_SITE());
  g_real.free(block);
  NoticeTrim();
}

[[gnu::noinline]] void RecordedFree(void* block) {
  if (block == nullptr || g_bootstrap_arena.Owns(block)) [[unlikely]] return;
  if (g_process.config.free_stacks) [[unlikely]] return RecordedFreeWithStack(block);
  RecordFree(block);
  g_real.free(block);
  NoticeTrim();
}

[[gnu::noinline]] void RecordedFreeSized(void* block, size_t bytes) {
  if (block == nullptr || g_bootstrap_arena.Owns(block)) [[unlikely]] return;
  if (g_process.config.free_stacks) [[unlikely]] return RecordedFreeWithStack(block);
  RecordFree(block);
  g_real.free_sized(block, bytes);
  NoticeTrim();
}

[[gnu::noinline]] void RecordedFreeAlignedSized(void* block, size_t alignment, size_t bytes) {
  if (block == nullptr || g_bootstrap_arena.Owns(block)) [[unlikely]] return;
  if (g_process.config.free_stacks) [[unlikely]] return RecordedFreeWithStack(block);
  RecordFree(block);
  g_real.free_aligned_sized(block, alignment, bytes);
  NoticeTrim();
}

[[gnu::noinline]] int RecordedPosixMemalign(void** out, size_t alignment, size_t bytes) {
  const int error = g_real.posix_memalign(out, alignment, bytes);
  RecordAlignedAlloc(AllocFunction::kPosixMemalign, error == 0 ? *out : nullptr, bytes, alignment,
                     CALL_SITE());
  return error;
}

[[gnu::noinline]] void* RecordedAlignedAlloc(size_t alignment, size_t bytes) {
  void* block = g_real.aligned_alloc(alignment, bytes);
  RecordAlignedAlloc(AllocFunction::kAlignedAlloc, block, bytes, alignment, CALL_SITE());
  return block;
}

[[gnu::noinline]] void* RecordedMemalign(size_t alignment, size_t bytes) {
  void* block = g_real.memalign(alignment, bytes);
  RecordAlignedAlloc(AllocFunction::kMemalign, block, bytes, alignment, CALL_SITE());
  return block;
}

[[gnu::noinline]] void* RecordedValloc(size_t bytes) {
  void* block = g_real.valloc(bytes);
  RecordAlignedAlloc(AllocFunction::kValloc, block, bytes, arch::kPageBytes, CALL_SITE());
  return block;
}

[[gnu::noinline]] void* RecordedPvalloc(size_t bytes) {
  void* block = g_real.pvalloc(bytes);
  RecordAlignedAlloc(AllocFunction::kPvalloc, block, bytes, arch::kPageBytes, CALL_SITE());
  return block;
}

// --- The same of a thread that samples, or is new, or inside ---

namespace {

// `record`: the result is sampled. A block that is not in the trace may become one that
// is, and the other way round: what the trace has of the old block ends here.
[[gnu::always_inline]] inline void* DoRealloc(AllocFunction function, void* old, size_t bytes,
                                              bool record, const CallSite& site) {
  if (g_bootstrap_arena.Owns(old)) [[unlikely]] {
    void* const block = CopyOfBootstrapBlock(old, bytes);
    if (record) RecordReallocResultInAnyMode(function, block, bytes, site);
    return block;
  }
  const bool known = old != nullptr && PrepareFree(old, site);
  if (known) RecordReallocIntentInAnyMode(old);
  void* block = g_real.realloc(old, bytes);
  const bool failed = block == nullptr && bytes != 0;
  if (record || (known && failed)) {
    RecordReallocResultInAnyMode(function, block, bytes, site);
  } else if (known) {  // as if it had been realloc(old, 0)
    RecordReallocResultInAnyMode(function, nullptr, 0, site);
  }
  if (known && failed) KeepReallocated(old);
  return block;
}

bool TakeAndPrepare(size_t bytes, const CallSite& site) {
  if (t_slot.mode == ThreadMode::kSampling && !TakeBytes(t_slot.until_sample, bytes)) return false;
  return PrepareAlloc(bytes, site);
}

}  // namespace

[[gnu::noinline]] void* SlowMalloc(size_t bytes) {
  const bool record = PrepareAlloc(bytes, CALL_SITE());
  void* block = g_real.malloc(bytes);
  if (record) {
    RecordAllocInAnyMode(EventKind::kMalloc, AllocFunction::kMalloc, block, bytes, CALL_SITE());
  }
  return block;
}

[[gnu::noinline]] void* SlowCalloc(size_t count, size_t bytes) {
  size_t total;
  if (__builtin_mul_overflow(count, bytes, &total)) total = SIZE_MAX;
  const bool record = PrepareAlloc(total, CALL_SITE());
  void* block = g_real.calloc(count, bytes);
  if (record) {
    RecordAllocInAnyMode(EventKind::kCalloc, AllocFunction::kCalloc, block, total, CALL_SITE());
  }
  return block;
}

[[gnu::noinline]] void* SlowRealloc(void* old, size_t bytes) {
  const CallSite site = CALL_SITE();
  return DoRealloc(AllocFunction::kRealloc, old, bytes, PrepareAlloc(bytes, site), site);
}

[[gnu::noinline]] void* SlowReallocOfHeld(void* old, size_t bytes) {
  const CallSite site = CALL_SITE();
  return DoRealloc(AllocFunction::kRealloc, old, bytes, TakeAndPrepare(bytes, site), site);
}

[[gnu::noinline]] void* SlowReallocarray(void* old, size_t count, size_t bytes) {
  const size_t total = count * bytes;
  const CallSite site = CALL_SITE();
  return DoRealloc(AllocFunction::kReallocarray, old, total, PrepareAlloc(total, site), site);
}

[[gnu::noinline]] void* SlowReallocarrayOfHeld(void* old, size_t count, size_t bytes) {
  const size_t total = count * bytes;
  const CallSite site = CALL_SITE();
  return DoRealloc(AllocFunction::kReallocarray, old, total, TakeAndPrepare(total, site), site);
}

[[gnu::noinline]] void SlowFree(void* block) {
  if (block == nullptr || g_bootstrap_arena.Owns(block)) return;
  if (PrepareFree(block, CALL_SITE())) RecordFreeInAnyMode(block, CALL_SITE());
  g_real.free(block);
}

[[gnu::noinline]] int SlowPosixMemalign(void** out, size_t alignment, size_t bytes) {
  const bool record = PrepareAlloc(bytes, CALL_SITE());
  const int error = g_real.posix_memalign(out, alignment, bytes);
  if (record) {
    RecordAlignedAllocInAnyMode(AllocFunction::kPosixMemalign, error == 0 ? *out : nullptr, bytes,
                                alignment, CALL_SITE());
  }
  return error;
}

[[gnu::noinline]] void* SlowAlignedAlloc(size_t alignment, size_t bytes) {
  const bool record = PrepareAlloc(bytes, CALL_SITE());
  void* block = g_real.aligned_alloc(alignment, bytes);
  if (record) {
    RecordAlignedAllocInAnyMode(AllocFunction::kAlignedAlloc, block, bytes, alignment,
                                CALL_SITE());
  }
  return block;
}

[[gnu::noinline]] void* SlowMemalign(size_t alignment, size_t bytes) {
  const bool record = PrepareAlloc(bytes, CALL_SITE());
  void* block = g_real.memalign(alignment, bytes);
  if (record) {
    RecordAlignedAllocInAnyMode(AllocFunction::kMemalign, block, bytes, alignment, CALL_SITE());
  }
  return block;
}

[[gnu::noinline]] void* SlowValloc(size_t bytes) {
  const bool record = PrepareAlloc(bytes, CALL_SITE());
  void* block = g_real.valloc(bytes);
  if (record) {
    RecordAlignedAllocInAnyMode(AllocFunction::kValloc, block, bytes, arch::kPageBytes,
                                CALL_SITE());
  }
  return block;
}

[[gnu::noinline]] void* SlowPvalloc(size_t bytes) {
  const bool record = PrepareAlloc(bytes, CALL_SITE());
  void* block = g_real.pvalloc(bytes);
  if (record) {
    RecordAlignedAllocInAnyMode(AllocFunction::kPvalloc, block, bytes, arch::kPageBytes,
                                CALL_SITE());
  }
  return block;
}

}  // namespace memtrace
