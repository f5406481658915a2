// Confinement: the program gives up rights, and the tracer has the same ones.
//
//   the path is lost       chroot, setuid, unshare, ...: the trace cannot be opened by its
//                          name any more. A part of it is mapped before (trace_reserve.h).
//   memory calls only      a seccomp filter: every other call could be the one that kills.
//                          The same, and allowed_calls.h: no usage samples, no names, no /proc.
//   nothing at all         seccomp's strict mode, and filters that forbid memory calls as well
//                          (seccomp_filter.h): recording ends before, and the trace says so.
//
// Seen are the calls that go through libc (interpose_sandbox.cc, interpose_syscall.cc). A
// program that makes them by an instruction of its own is not seen.
//
// Runs on the thread that makes the call, outside of the tracer. No errno. A vfork child
// shares this memory but confines only itself: it prepares nothing.

#ifndef MEMTRACE_PRELOAD_CONFINEMENT_H_
#define MEMTRACE_PRELOAD_CONFINEMENT_H_

#include <sys/resource.h>

#include <cstdint>

namespace memtrace {

// To be called before a call by which the path may be lost: makes sure that the trace of this
// process exists and can be written without its name.
void PrepareForPathLoss();
// To be called after it, if it succeeded.
void TellPathLoss(const char* call);

// Where the next process of this one is to be the first of a namespace, none may be made for our
// own purposes (Process::must_not_clone): with its end the program could make none either.
//
// To be called after unshare() and setns(). Where it cannot be told, none is made.
void LookWhereChildrenGo();
// To be called when a program begins, for it may have been executed by one that made such a call.
// Where it cannot be told, as without /proc, nobody has made one.
void LookWhereFirstChildrenGo();

// To be called before the call that installs a filter, with its struct sock_fprog. True: from now
// on there are memory calls only, because of this call.
bool PrepareForFilter(const void* program);
// One of these is to be called after it, when PrepareForFilter() said true.
void FilterIsInstalled(const char* call);
void FilterWasRefused();

// To be called before the call that enters seccomp's strict mode.
void PrepareForStrictMode();

// To be called after setrlimit(RLIMIT_AS): the reserve must not take what the program may map.
void KeepToAddressSpaceLimit(uint64_t bytes);

// The last figures that getrusage gave, before the filter left memory calls only.
const rusage& UsageBeforeFilter();

// To be called in a fork child, before its trace begins.
void ForgetConfinement();

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_CONFINEMENT_H_
