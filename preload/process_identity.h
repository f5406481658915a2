// ProcessIdentity: what tells a process from all others on a machine that runs, also from
// one that had its pid before: the pid, the time of its start as the kernel keeps it, which
// an exec does not change, and the pid namespace that the pid is of.

#ifndef MEMTRACE_PRELOAD_PROCESS_IDENTITY_H_
#define MEMTRACE_PRELOAD_PROCESS_IDENTITY_H_

#include <cstdint>

namespace memtrace {

// When it started, in clock ticks since boot; 0 where /proc does not show it. Makes system calls
// only.
uint64_t StartTicksOfProcess(int pid);
uint64_t StartTicksOfSelf();

// The inode number of the pid namespace; 0: not known.
uint64_t PidNamespace();

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_PROCESS_IDENTITY_H_
