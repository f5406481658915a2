// May perf_event_open be called at all? A seccomp filter that somebody installed before the
// program began (a service manager, a container) may kill for it. Where there is a filter, a
// child process tries first: if it dies of it, nobody else does. Under Valgrind nobody tries.

#ifndef MEMTRACE_PRELOAD_FAULTS_FAULT_PROBE_H_
#define MEMTRACE_PRELOAD_FAULTS_FAULT_PROBE_H_

namespace memtrace {

// To be called with signals blocked. Makes one system call where there is no filter.
bool FaultEventsAreHarmless();

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_FAULTS_FAULT_PROBE_H_
