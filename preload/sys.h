// sys: system calls without libc.
//
// libc's wrappers set errno, are cancellation points and may be interposed by
// somebody else; inside the traced program we want none of the three. Each
// function returns the kernel's answer: a result, or -errno.
//
// Async-signal-safe.

#ifndef MEMTRACE_PRELOAD_SYS_H_
#define MEMTRACE_PRELOAD_SYS_H_

#include <fcntl.h>
#include <linux/prctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "preload/allowed_calls.h"
#include "preload/arch/arch.h"
#include "preload/open_numbers.h"

// Of Linux 5.14: older headers have none.
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

namespace memtrace::sys {

inline long Call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0,
                 long f = 0) {
  return arch::RawSystemCall(number, a, b, c, d, e, f);
}

inline bool Failed(long result) { return result < 0 && result >= -4095; }

inline long Open(const char* path, int flags, int mode = 0) {
  return Call(SYS_openat, AT_FDCWD, reinterpret_cast<long>(path), flags | O_CLOEXEC, mode);
}
inline long Close(long fd) { return Call(SYS_close, fd); }
inline long Read(long fd, void* buffer, size_t bytes) {
  return Call(SYS_read, fd, reinterpret_cast<long>(buffer), static_cast<long>(bytes));
}
inline long Write(long fd, const void* buffer, size_t bytes) {
  return Call(SYS_write, fd, reinterpret_cast<long>(buffer), static_cast<long>(bytes));
}
inline long Pread(long fd, void* buffer, size_t bytes, uint64_t offset) {
  return Call(SYS_pread64, fd, reinterpret_cast<long>(buffer), static_cast<long>(bytes),
              static_cast<long>(offset));
}
inline long Pwritev(long fd, const iovec* parts, int count, uint64_t offset) {
  return Call(SYS_pwritev, fd, reinterpret_cast<long>(parts), count, static_cast<long>(offset), 0);
}
inline long Fstat(long fd, struct stat* out) {
  return Call(SYS_fstat, fd, reinterpret_cast<long>(out));
}
inline long Stat(const char* path, struct stat* out, int flags = 0) {
  return Call(SYS_newfstatat, AT_FDCWD, reinterpret_cast<long>(path), reinterpret_cast<long>(out),
              flags);
}
inline long Readlink(const char* path, char* buffer, size_t bytes) {
  return Call(SYS_readlinkat, AT_FDCWD, reinterpret_cast<long>(path),
              reinterpret_cast<long>(buffer), static_cast<long>(bytes));
}
inline long Unlink(const char* path) {
  return Call(SYS_unlinkat, AT_FDCWD, reinterpret_cast<long>(path), 0);
}
inline long Fallocate(long fd, uint64_t offset, uint64_t bytes) {
  return Call(SYS_fallocate, fd, 0, static_cast<long>(offset), static_cast<long>(bytes));
}
inline long Ftruncate(long fd, uint64_t bytes) {
  return Call(SYS_ftruncate, fd, static_cast<long>(bytes));
}
inline void* Mmap(void* hint, size_t bytes, int prot, int flags, long fd = -1,
                  uint64_t offset = 0) {
  return reinterpret_cast<void*>(Call(SYS_mmap, reinterpret_cast<long>(hint),
                                      static_cast<long>(bytes), prot, flags, fd,
                                      static_cast<long>(offset)));
}
inline bool MmapFailed(const void* result) { return Failed(reinterpret_cast<long>(result)); }
inline long Munmap(void* address, size_t bytes) {
  return Call(SYS_munmap, reinterpret_cast<long>(address), static_cast<long>(bytes));
}
inline long Mprotect(void* address, size_t bytes, int prot) {
  return Call(SYS_mprotect, reinterpret_cast<long>(address), static_cast<long>(bytes), prot);
}
inline long Madvise(void* address, size_t bytes, int advice) {
  return Call(SYS_madvise, reinterpret_cast<long>(address), static_cast<long>(bytes), advice);
}
// A kernel without CONFIG_ANON_VMA_NAME says EINVAL, once: it is not asked again.
inline constinit std::atomic<bool> g_kernel_names_mappings{true};
inline void NameMapping(void* address, size_t bytes, const char* name) {
#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif
  if (!g_kernel_names_mappings.load(std::memory_order_relaxed)) return;
  const OtherCalls calls;
  if (!calls) return;
  const long result = Call(SYS_prctl, PR_SET_VMA, PR_SET_VMA_ANON_NAME,
                           reinterpret_cast<long>(address), static_cast<long>(bytes),
                           reinterpret_cast<long>(name));
  if (result == -EINVAL) g_kernel_names_mappings.store(false, std::memory_order_relaxed);
}
inline int Getpid() { return static_cast<int>(Call(SYS_getpid)); }
inline int Getppid() { return static_cast<int>(Call(SYS_getppid)); }
inline int Gettid() { return static_cast<int>(Call(SYS_gettid)); }
inline long Tgkill(int pid, int tid, int signal) { return Call(SYS_tgkill, pid, tid, signal); }
inline long Getrusage(int who, rusage* out) {
  return Call(SYS_getrusage, who, reinterpret_cast<long>(out));
}
inline long GetThreadName(char name[16]) {
  return Call(SYS_prctl, PR_GET_NAME, reinterpret_cast<long>(name));
}
inline uint64_t Limit(int resource) {
  uint64_t limit[2];
  if (Failed(Call(SYS_prlimit64, 0, resource, 0, reinterpret_cast<long>(limit)))) {
    return UINT64_MAX;
  }
  return limit[0];
}
inline uint64_t FileSizeLimit() { return Limit(RLIMIT_FSIZE); }
inline uint64_t AddressSpaceLimit() { return Limit(RLIMIT_AS); }

// A number is the program's to choose: by dup2() onto one that it has not opened, or because
// what it opens next has the lowest. So what is open for more than a moment goes to where
// hardly anybody chooses, though not so far that the kernel's table would become large. `fd`
// where there is no room.
inline constexpr long kMovedUpFrom = 1000;  // below the usual limit of 1024
inline long MoveUp(long fd) {
  if (Failed(fd)) return fd;
  const long up = Call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, kMovedUpFrom);
  if (Failed(up)) return fd;
  Close(fd);
  return up;
}

// Opens for reading what the kernel tells in a file system of its own, for as long as one piece of
// work lasts. A fork child that another thread makes meanwhile has a copy, which nobody there would
// close; it knows it by the number and by these flags. The number may be the program's by then, and
// programs that walk directories have all of these flags but O_DSYNC, which means nothing where
// nothing is written.
inline constexpr int kBriefFlags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_DSYNC;
inline constinit OpenNumbers g_brief_numbers;
inline long OpenBriefly(const char* path, int more_flags = 0) {
  const OpenNumbers::Opening opening(&g_brief_numbers);
  const long first = Open(path, kBriefFlags | more_flags);
  g_brief_numbers.Add(first);
  const long fd = MoveUp(first);
  g_brief_numbers.Add(fd);
  return fd;
}

// Reads a whole small file; for /proc, whose files have no size. Returns the bytes read, at most
// `capacity`, or -errno where there are none. What was read before an error counts.
//
// A page of the buffer that is not there yet is touched here first: by an instruction of ours the
// fault is known to be ours, by the kernel on our behalf it would look like the program's.
inline long ReadFile(const char* path, char* buffer, size_t capacity) {
  constexpr size_t kMostAtOnce = 4096;  // as much as /proc gives
  const long fd = OpenBriefly(path);
  if (Failed(fd)) return fd;
  size_t used = 0;
  long error = 0;
  while (used < capacity) {
    const size_t bytes = capacity - used < kMostAtOnce ? capacity - used : kMostAtOnce;
    auto* const at = static_cast<volatile char*>(buffer + used);
    at[0] = 0;
    at[bytes - 1] = 0;
    const long got = Read(fd, buffer + used, bytes);
    if (got == -EINTR) continue;
    if (Failed(got)) error = got;
    if (got <= 0) break;
    used += static_cast<size_t>(got);
  }
  Close(fd);
  return used == 0 ? error : static_cast<long>(used);
}

}  // namespace memtrace::sys

#endif  // MEMTRACE_PRELOAD_SYS_H_
