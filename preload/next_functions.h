// NextFunctions: the next definitions of functions that a program may call where dlsym() must not
// be: exec and its kin, and those by which it gives up rights. They are async-signal-safe, and in a
// child of _Fork(), or of a fork() in a program with threads, the loader's lock may be held by a
// thread that is not there: dlsym() would wait for it for ever. So they are found at once, with the
// allocator's (real_allocator.h).
//
// Only names that every glibc that we run with has: see FindRealAllocator().

#ifndef MEMTRACE_PRELOAD_NEXT_FUNCTIONS_H_
#define MEMTRACE_PRELOAD_NEXT_FUNCTIONS_H_

#include <sys/resource.h>
#include <sys/types.h>

#include <type_traits>

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
  X(prlimit64, int(pid_t, int, const struct rlimit64*, struct rlimit64*))

struct NextFunctions {
#define MEMTRACE_DECLARE(name, ...) std::type_identity_t<__VA_ARGS__>* name;
  MEMTRACE_NEXT_FUNCTIONS(MEMTRACE_DECLARE)
#undef MEMTRACE_DECLARE
};

// Finds them, where that was not done yet.
const NextFunctions& Next();

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_NEXT_FUNCTIONS_H_
