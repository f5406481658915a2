// The exported functions: the real call and its event, nothing else.
//
// Runs on any thread of the program in any state: before main, in signal
// handlers, in TLS destructors, after exit handlers. Order of writing: a free
// before the real free, an allocation after the real one, a realloc in two halves
// around it, so that the events of one address alternate across threads.
//
// Each function has a frame pointer (see CMakeLists.txt): CALL_SITE() reads the
// caller's return address, stack pointer and frame pointer from its own frame.

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

#include "preload/bootstrap_arena.h"
#include "preload/lifecycle.h"
#include "preload/module_map.h"
#include "preload/real_allocator.h"
#include "preload/recorder.h"
#include "preload/sys.h"

#define EXPORTED extern "C" __attribute__((visibility("default"), noinline))

// Only as the direct expression of an exported function: the frame is that one's.
#define CALL_SITE()                                                           \
  ::memtrace::CallSite {                                                      \
    reinterpret_cast<uintptr_t>(__builtin_return_address(0)),                 \
        reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) + 16,         \
        *static_cast<const uintptr_t*>(__builtin_frame_address(0))            \
  }

using memtrace::AllocFunction;
using memtrace::EventKind;
using memtrace::g_bootstrap_arena;
using memtrace::g_real;

// --- Allocation -------------------------------------------------------------

EXPORTED void* malloc(size_t bytes) {
  void* block = g_real.malloc(bytes);
  memtrace::RecordAlloc(EventKind::kMalloc, AllocFunction::kMalloc, block, bytes, CALL_SITE());
  return block;
}

EXPORTED void* calloc(size_t count, size_t bytes) {
  void* block = g_real.calloc(count, bytes);
  size_t total;
  if (__builtin_mul_overflow(count, bytes, &total)) total = SIZE_MAX;
  memtrace::RecordAlloc(EventKind::kCalloc, AllocFunction::kCalloc, block, total, CALL_SITE());
  return block;
}

EXPORTED void* realloc(void* old, size_t bytes) {
  if (g_bootstrap_arena.Owns(old)) [[unlikely]] {
    void* block = g_real.malloc(bytes);
    if (block != nullptr) {
      const size_t size = memtrace::BootstrapArena::Size(old);
      __builtin_memcpy(block, old, size < bytes ? size : bytes);
    }
    memtrace::RecordAlloc(EventKind::kRealloc, AllocFunction::kRealloc, block, bytes, CALL_SITE());
    return block;
  }
  if (old != nullptr) memtrace::RecordReallocIntent(old);
  void* block = g_real.realloc(old, bytes);
  memtrace::RecordAlloc(EventKind::kRealloc, AllocFunction::kRealloc, block, bytes, CALL_SITE());
  return block;
}

EXPORTED void* reallocarray(void* old, size_t count, size_t bytes) {
  size_t total;
  if (__builtin_mul_overflow(count, bytes, &total)) {
    errno = ENOMEM;
    return nullptr;
  }
  if (g_bootstrap_arena.Owns(old)) [[unlikely]] return realloc(old, total);
  if (old != nullptr) memtrace::RecordReallocIntent(old);
  // Not the real reallocarray: glibc's calls realloc by its exported name, which is ours, and
  // the one call would be two events.
  void* block = g_real.realloc(old, total);
  memtrace::RecordAlloc(EventKind::kRealloc, AllocFunction::kReallocarray, block, total,
                        CALL_SITE());
  return block;
}

EXPORTED void free(void* block) {
  if (block == nullptr || g_bootstrap_arena.Owns(block)) [[unlikely]] return;
  memtrace::RecordFree(block);
  g_real.free(block);
  memtrace::NoticeTrim();
}

EXPORTED void free_sized(void* block, size_t bytes) {
  if (block == nullptr || g_bootstrap_arena.Owns(block)) [[unlikely]] return;
  memtrace::RecordFree(block);
  g_real.free_sized(block, bytes);
  memtrace::NoticeTrim();
}

EXPORTED void free_aligned_sized(void* block, size_t alignment, size_t bytes) {
  if (block == nullptr || g_bootstrap_arena.Owns(block)) [[unlikely]] return;
  memtrace::RecordFree(block);
  g_real.free_aligned_sized(block, alignment, bytes);
  memtrace::NoticeTrim();
}

EXPORTED int posix_memalign(void** out, size_t alignment, size_t bytes) {
  const int error = g_real.posix_memalign(out, alignment, bytes);
  memtrace::RecordAlignedAlloc(AllocFunction::kPosixMemalign, error == 0 ? *out : nullptr, bytes,
                               alignment, CALL_SITE());
  return error;
}

EXPORTED void* aligned_alloc(size_t alignment, size_t bytes) {
  void* block = g_real.aligned_alloc(alignment, bytes);
  memtrace::RecordAlignedAlloc(AllocFunction::kAlignedAlloc, block, bytes, alignment, CALL_SITE());
  return block;
}

EXPORTED void* memalign(size_t alignment, size_t bytes) {
  void* block = g_real.memalign(alignment, bytes);
  memtrace::RecordAlignedAlloc(AllocFunction::kMemalign, block, bytes, alignment, CALL_SITE());
  return block;
}

EXPORTED void* valloc(size_t bytes) {
  void* block = g_real.valloc(bytes);
  memtrace::RecordAlignedAlloc(AllocFunction::kValloc, block, bytes, 4096, CALL_SITE());
  return block;
}

EXPORTED void* pvalloc(size_t bytes) {
  void* block = g_real.pvalloc(bytes);
  memtrace::RecordAlignedAlloc(AllocFunction::kPvalloc, block, bytes, 4096, CALL_SITE());
  return block;
}

EXPORTED size_t malloc_usable_size(void* block) {
  if (g_bootstrap_arena.Owns(block)) [[unlikely]] return memtrace::BootstrapArena::Size(block);
  return g_real.malloc_usable_size(block);
}

// --- Mappings ---------------------------------------------------------------

EXPORTED void* mmap(void* hint, size_t length, int prot, int flags, int fd, off_t offset) {
  void* address = g_real.mmap(hint, length, prot, flags, fd, offset);
  if (address != MAP_FAILED) {
    memtrace::RecordMmap(address, length, prot, flags, fd, static_cast<uint64_t>(offset),
                         CALL_SITE());
  }
  return address;
}

EXPORTED void* mmap64(void* hint, size_t length, int prot, int flags, int fd, off_t offset) {
  void* address = g_real.mmap(hint, length, prot, flags, fd, offset);
  if (address != MAP_FAILED) {
    memtrace::RecordMmap(address, length, prot, flags, fd, static_cast<uint64_t>(offset),
                         CALL_SITE());
  }
  return address;
}

EXPORTED int munmap(void* address, size_t length) {
  memtrace::RecordMunmap(address, length, CALL_SITE());
  const int result = g_real.munmap(address, length);
  if (result != 0) memtrace::RecordMunmapFailed(address, length);
  return result;
}

EXPORTED void* mremap(void* old, size_t old_length, size_t length, int flags, ...) {
  void* wanted = nullptr;
  if (flags & (MREMAP_FIXED | 4 /* MREMAP_DONTUNMAP */)) {
    va_list more;
    va_start(more, flags);
    wanted = va_arg(more, void*);
    va_end(more);
  }
  void* address = g_real.mremap(old, old_length, length, flags, wanted);
  if (address != MAP_FAILED) {
    memtrace::RecordMremap(old, old_length, address, length, flags, CALL_SITE());
  }
  return address;
}

namespace {

template <typename F>
F* Next(const char* name) {
  return reinterpret_cast<F*>(memtrace::FindNext(name));
}

// 0 in libc until it moves the break for the first time.
uintptr_t Break() {
  const auto known = reinterpret_cast<uintptr_t>(memtrace::__curbrk);
  return known != 0 ? known : static_cast<uintptr_t>(memtrace::sys::Call(SYS_brk));
}

}  // namespace

EXPORTED int brk(void* wanted) {
  static int (*const real)(void*) = Next<int(void*)>("brk");
  const uintptr_t before = Break();
  const int result = real(wanted);
  if (result == 0 && Break() != before) memtrace::RecordBreak(before, Break(), CALL_SITE());
  return result;
}

EXPORTED void* sbrk(intptr_t change) {
  static void* (*const real)(intptr_t) = Next<void*(intptr_t)>("sbrk");
  const uintptr_t before = Break();
  void* result = real(change);
  if (result != reinterpret_cast<void*>(-1) && change != 0) {
    memtrace::RecordBreak(before, Break(), CALL_SITE());
  }
  return result;
}

EXPORTED void* shmat(int id, const void* wanted, int flags) {
  static void* (*const real)(int, const void*, int) = Next<void*(int, const void*, int)>("shmat");
  void* address = real(id, wanted, flags);
  if (address != reinterpret_cast<void*>(-1)) {
    shmid_ds segment = {};
    const bool known = !memtrace::sys::Failed(
        memtrace::sys::Call(SYS_shmctl, id, IPC_STAT, reinterpret_cast<long>(&segment)));
    memtrace::RecordShmat(address, known ? segment.shm_segsz : 0, id, flags, CALL_SITE());
  }
  return address;
}

EXPORTED int shmdt(const void* address) {
  static int (*const real)(const void*) = Next<int(const void*)>("shmdt");
  const int result = real(address);
  if (result == 0) memtrace::RecordShmdt(address, CALL_SITE());
  return result;
}

// --- State of the process ---------------------------------------------------

EXPORTED int dlclose(void* handle) {
  static int (*const real)(void*) = Next<int(void*)>("dlclose");
  return memtrace::CloseModule(real, handle);
}

EXPORTED void _exit(int status) {
  memtrace::NoteEnd(memtrace::format::EndReason::kUnderscoreExit, status);
  for (;;) memtrace::sys::Call(SYS_exit_group, status);
}

EXPORTED void _Exit(int status) {
  memtrace::NoteEnd(memtrace::format::EndReason::kUnderscoreExit, status);
  for (;;) memtrace::sys::Call(SYS_exit_group, status);
}

EXPORTED void quick_exit(int status) {
  memtrace::NoteEnd(memtrace::format::EndReason::kUnderscoreExit, status);
  Next<void(int)>("quick_exit")(status);
  __builtin_unreachable();
}
