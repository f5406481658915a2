// What the exported syscall() and prctl() (interpose_syscall.cc) jump to.

#ifndef MEMTRACE_PRELOAD_INTERPOSE_SYSCALL_H_
#define MEMTRACE_PRELOAD_INTERPOSE_SYSCALL_H_

#include <sys/syscall.h>

#ifndef SYS_landlock_restrict_self
#define SYS_landlock_restrict_self 446
#endif

namespace memtrace {

// prctl(PR_SET_SECCOMP).
int ConfiningPrctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d);

// Before prctl(arch::kSetCounterFaults, how).
void PrepareForCounter(unsigned long how);

// The calls that interpose_syscall.cc lists.
long ConfiningSyscall(long number, long a, long b, long c, long d, long e, long f);

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_INTERPOSE_SYSCALL_H_
