// NextFunctions: the next definitions of the functions that we export and that
// RealAllocator does not have.
//
// dlsym() takes the loader's lock, and whoever waits for us may hold it: the constructor of a
// library that is being opened, which starts a thread and waits for it. In a child of _Fork(), or
// of a fork() in a program with threads, its holder may not even be there. So nothing is looked for
// when it is called: all of them are found at once, with the allocator's (real_allocator.h), before
// there is a second thread.
//
// Only names that every glibc that we run with has: see FindRealAllocator().

#ifndef MEMTRACE_PRELOAD_NEXT_FUNCTIONS_H_
#define MEMTRACE_PRELOAD_NEXT_FUNCTIONS_H_

#include <dlfcn.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <atomic>
#include <cstdint>

namespace memtrace {

#define MEMTRACE_NEXT_FUNCTIONS(X)                                                   \
  X(execve, int(const char*, char* const[], char* const[]))                          \
  X(execv, int(const char*, char* const[]))                                          \
  X(execvp, int(const char*, char* const[]))                                         \
  X(execvpe, int(const char*, char* const[], char* const[]))                         \
  X(fexecve, int(int, char* const[], char* const[]))                                 \
  X(execveat, int(int, const char*, char* const[], char* const[], int))              \
  X(chroot, int(const char*))                                                        \
  X(pivot_root, int(const char*, const char*))                                       \
  X(unshare, int(int))                                                               \
  X(setns, int(int, int))                                                            \
  X(capset, int(void*, const void*))                                                 \
  X(mount, int(const char*, const char*, const char*, unsigned long, const void*))   \
  X(setuid, int(uid_t))                                                              \
  X(seteuid, int(uid_t))                                                             \
  X(setreuid, int(uid_t, uid_t))                                                     \
  X(setresuid, int(uid_t, uid_t, uid_t))                                             \
  X(setfsuid, int(uid_t))                                                            \
  X(setgid, int(gid_t))                                                              \
  X(setegid, int(gid_t))                                                             \
  X(setregid, int(gid_t, gid_t))                                                     \
  X(setresgid, int(gid_t, gid_t, gid_t))                                             \
  X(setfsgid, int(gid_t))                                                            \
  X(setrlimit, int(int, const struct rlimit*))                                       \
  X(setrlimit64, int(int, const struct rlimit64*))                                   \
  X(prlimit, int(pid_t, int, const struct rlimit*, struct rlimit*))                  \
  X(prlimit64, int(pid_t, int, const struct rlimit64*, struct rlimit64*))            \
  X(madvise, int(void*, size_t, int))                                                \
  X(brk, int(void*))                                                                 \
  X(sbrk, void*(intptr_t))                                                           \
  X(shmat, void*(int, const void*, int))                                             \
  X(shmdt, int(const void*))                                                         \
  X(dlopen, void*(const char*, int))                                                 \
  X(dlmopen, void*(Lmid_t, const char*, int))                                        \
  X(dlclose, int(void*))                                                             \
  X(pthread_setname_np, int(pthread_t, const char*))                                 \
  X(daemon, int(int, int))                                                           \
  X(exit, void(int))                                                                 \
  X(quick_exit, void(int))                                                           \
  X(__libc_start_main, int())  /* jumped to */

struct NextFunctions {
#define MEMTRACE_DECLARE(name, ...) std::type_identity_t<__VA_ARGS__>* name;
  MEMTRACE_NEXT_FUNCTIONS(MEMTRACE_DECLARE)
#undef MEMTRACE_DECLARE
};

extern NextFunctions g_next;
extern std::atomic<bool> g_next_found;

// The process's first call of all, if it is one of them.
void FindNextFunctions();

inline const NextFunctions& Next() {
  if (!g_next_found.load(std::memory_order_acquire)) [[unlikely]] FindNextFunctions();
  return g_next;
}

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_NEXT_FUNCTIONS_H_
