// The exported functions that map and unmap: the real call and its event, nothing else. An
// unmapping is told before the real call and a mapping after it, so that the events of one address
// alternate across threads. An mremap that may give up old memory is told in both halves.
//
// Each function has a frame pointer (see CMakeLists.txt): CALL_SITE() reads the caller's return
// address, stack pointer and frame pointer from its own frame.

#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

#include "preload/call_site.h"
#include "preload/exported.h"
#include "preload/leak_scan/kept_from_forks.h"
#include "preload/leak_scan/program_mappings.h"
#include "preload/next_functions.h"
#include "preload/real_allocator.h"
#include "preload/recorder.h"
#include "preload/signals_blocked.h"
#include "preload/sys.h"

using memtrace::g_real;

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

namespace {

constexpr int kDontUnmap = 4;  // MREMAP_DONTUNMAP

// Whether some of the old range may be another thread's before the call has returned.
bool GivesUpOldRange(size_t old_length, size_t length, int flags) {
  if (old_length == 0 || (flags & kDontUnmap) != 0) return false;
  return (flags & MREMAP_MAYMOVE) != 0 || length < old_length;
}

}  // namespace

EXPORTED void* mremap(void* old, size_t old_length, size_t length, int flags, ...) {
  void* wanted = nullptr;
  if (flags & (MREMAP_FIXED | kDontUnmap)) {
    va_list more;
    va_start(more, flags);
    wanted = va_arg(more, void*);
    va_end(more);
  }
  // Where it is to become smaller the rest may be gone, also if the call fails then.
  const memtrace::KnownRange known(old, old_length < length ? old_length : length);
  const bool told = GivesUpOldRange(old_length, length, flags) &&
                    memtrace::RecordMunmap(old, old_length, CALL_SITE());
  void* address = g_real.mremap(old, old_length, length, flags, wanted);
  if (address != MAP_FAILED) {
    memtrace::RecordMremap(old, old_length, told, address, length, flags, CALL_SITE());
  } else {
    known.NoteAgain();
    if (told) memtrace::RecordMunmapFailed(old, old_length);
  }
  return address;
}

// No event: only what a scan has to ask for is noted. By a system call, as libc's, until the next
// definition is known.
EXPORTED int madvise(void* address, size_t length, int advice) noexcept {
  if (advice == MADV_DONTFORK) {
    memtrace::g_keeps_from_forks.store(true, std::memory_order_relaxed);
  }
  if (memtrace::g_next_found.load(std::memory_order_acquire)) [[likely]] {
    return memtrace::g_next.madvise(address, length, advice);
  }
  const long result = memtrace::sys::Madvise(address, length, advice);
  if (!memtrace::sys::Failed(result)) return 0;
  errno = static_cast<int>(-result);
  return -1;
}

namespace {

// 0 in glibc until it moves the break for the first time; absent in others (glibc_only.h).
uintptr_t Break() {
  const auto known =
      &memtrace::__curbrk != nullptr ? reinterpret_cast<uintptr_t>(memtrace::__curbrk) : 0;
  return known != 0 ? known : static_cast<uintptr_t>(memtrace::sys::Call(SYS_brk));
}

// 0: not known.
size_t SegmentBytes(int id) {
  shmid_ds segment = {};
  const memtrace::SignalsBlocked calls;
  const bool known = calls && !memtrace::sys::Failed(memtrace::sys::Call(
                                  SYS_shmctl, id, IPC_STAT, reinterpret_cast<long>(&segment)));
  return known ? segment.shm_segsz : 0;
}

}  // namespace

EXPORTED int brk(void* wanted) {
  const uintptr_t before = Break();
  const int result = memtrace::Next().brk(wanted);
  if (result == 0 && Break() != before) memtrace::RecordBreak(before, Break(), CALL_SITE());
  return result;
}

EXPORTED void* sbrk(intptr_t change) {
  const uintptr_t before = Break();
  void* result = memtrace::Next().sbrk(change);
  if (result != reinterpret_cast<void*>(-1) && change != 0) {
    memtrace::RecordBreak(before, Break(), CALL_SITE());
  }
  return result;
}

EXPORTED void* shmat(int id, const void* wanted, int flags) {
  void* address = memtrace::Next().shmat(id, wanted, flags);
  if (address != reinterpret_cast<void*>(-1)) {
    memtrace::RecordShmat(address, SegmentBytes(id), id, flags, CALL_SITE());
  }
  return address;
}

EXPORTED int shmdt(const void* address) {
  // Before, as munmap: what another thread maps there is not what ended.
  memtrace::RecordShmdt(address, CALL_SITE());
  const int result = memtrace::Next().shmdt(address);
  if (result != 0) memtrace::RecordMunmapFailed(const_cast<void*>(address), 0);
  return result;
}
