// The functions by which a program gives up rights: chroot and its kin, and, by a jump from
// interpose_syscall.cc, prctl and syscall where they do the same. The tracer prepares, the
// real call is made, and the trace is told.
//
// None of these calls returns twice.

#include <errno.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <unistd.h>

#include "preload/arch/arch.h"
#include "preload/clock.h"
#include "preload/confinement.h"
#include "preload/exported.h"
#include "preload/interpose_syscall.h"
#include "preload/next_functions.h"
#include "preload/process.h"
#include "preload/recorder.h"
#include "preload/real_allocator.h"
#include "preload/signals_blocked.h"
#include "preload/sys.h"
#include "preload/unwind/stack_bounds.h"

namespace memtrace {
namespace {

template <typename F, typename... Arguments>
auto LosePath(const char* name, F* real, Arguments... arguments) {
  PrepareForPathLoss();
  const auto result = real(arguments...);
  if (result != -1) TellPathLoss(name);
  return result;
}

// Does the process get another effective id by this? Files are opened by that one.
bool Changes(long id, long call_for_current) {
  if (static_cast<uint32_t>(id) == UINT32_MAX) return false;
  const SignalsBlocked calls;
  return calls && static_cast<uint32_t>(sys::Call(call_for_current)) != static_cast<uint32_t>(id);
}
bool ChangesUser(long id) { return Changes(id, SYS_geteuid); }
bool ChangesGroup(long id) { return Changes(id, SYS_getegid); }

bool LeavesNamespace(long flags) { return (flags & (CLONE_NEWNS | CLONE_NEWUSER)) != 0; }

template <typename Real>
auto InstallFilter(const char* name, const void* program, Real real) {
  const bool prepared = PrepareForFilter(program);
  const auto result = real();
  if (prepared) {
    // With TSYNC a positive result is the thread that could not be given the filter; it may
    // also be a descriptor, and then there is a filter.
    if (result == -1) {
      FilterWasRefused();
    } else {
      FilterIsInstalled(name);
    }
  }
  return result;
}

// Asks whether a flag is known when it passes no program, and installs nothing.
bool IsFilter(long operation, long program) {
  return operation == SECCOMP_SET_MODE_FILTER && program != 0;
}

// Behind a call that the kernel carried out: before, the address may be one that is an
// error of the call. Not inlined: the declarations promise that there are limits, and not
// every program keeps it.
template <typename Limits>
[[gnu::noinline]] void NoticeLimit(long result, int resource, const Limits* limits) {
  if (result == 0 && resource == RLIMIT_AS && limits != nullptr)
    KeepToAddressSpaceLimit(limits->rlim_cur);
}

// Not every program passes an address of limits.
bool CanBeRead(const void* limits) {
  const auto address = reinterpret_cast<uintptr_t>(limits);
  static_assert(sizeof(rlimit) == 2 * sizeof(uint64_t));
  return unwind::ProbeWord(address) && unwind::ProbeWord(address + sizeof(uint64_t));
}

// No file may be opened any more, by a process of our own neither (descriptor_table.h); or none may
// become longer than the trace is already. Limits that leave room are kept to.
template <typename Limits>
bool LosesFile(int resource, const Limits* limits) {
  if (resource != RLIMIT_FSIZE && resource != RLIMIT_NOFILE) return false;
  if (limits == nullptr || !CanBeRead(limits)) return false;
  return resource == RLIMIT_NOFILE ? limits->rlim_max == 0
                                   : limits->rlim_cur <= g_process.file.written_bytes();
}

template <typename Limits, typename Real>
auto Limit(const char* name, bool is_ours, int resource, const Limits* limits, Real real) {
  const bool loses = is_ours && LosesFile(resource, limits);
  if (loses) PrepareForPathLoss();
  const auto result = real();
  if (loses && result == 0) TellPathLoss(name);
  if (is_ours) NoticeLimit(result, resource, limits);
  return result;
}

// Without processes of its own the library cannot have descriptors where the
// program has used up all.
void PrepareForChildren(long flags) {
  if ((flags & CLONE_NEWPID) != 0) PrepareForPathLoss();
}

int Unshare(int flags, int (*real)(int)) {
  PrepareForChildren(flags);
  const int result = LeavesNamespace(flags) ? LosePath("unshare", real, flags) : real(flags);
  if (result == 0 && (flags & CLONE_NEWPID) != 0) LookWhereChildrenGo();
  return result;
}

// Whether a prlimit() with this pid limits this process: it may limit another one.
bool MeansUs(long pid) {
  if (static_cast<pid_t>(pid) == 0) return true;
  const SignalsBlocked calls;
  return calls && static_cast<pid_t>(pid) == sys::Getpid();
}

}  // namespace

int ConfiningPrctl(int option, unsigned long a, unsigned long b, unsigned long c,
                   unsigned long d) {
  if (a == SECCOMP_MODE_FILTER && b != 0) {
    return InstallFilter("prctl", reinterpret_cast<const void*>(b),
                         [&] { return g_real.prctl(option, a, b, c, d); });
  }
  if (a == SECCOMP_MODE_STRICT) PrepareForStrictMode();
  return g_real.prctl(option, a, b, c, d);
}

// A vfork child's events are its parent's, in the same memory by the same clock: the parent's
// stamps are coarse from then on too, for good, though it may read the counter. Were they not, the
// child's next one would be a fault.
void PrepareForCounter(unsigned long how) {
  if (how != arch::kCounterFaults) return;
  { const Section section; }  // which may begin a trace, with a clock of its own
  g_clock.ForgoCounter();
}

long ConfiningSyscall(long number, long a, long b, long c, long d, long e, long f) {
  const auto real = [&] { return memtrace_real_syscall(number, a, b, c, d, e, f); };
  bool loses_path = false;
  const char* name = "syscall";
  switch (number) {
    case SYS_seccomp:
      if (IsFilter(a, c)) return InstallFilter("seccomp", reinterpret_cast<const void*>(c), real);
      // libseccomp asks in this way whether there is such a call, with flags that none has.
      if (a == SECCOMP_SET_MODE_STRICT && b == 0 && c == 0) PrepareForStrictMode();
      break;
    case SYS_prctl:
      if (static_cast<int>(a) == arch::kSetCounterFaults)
        PrepareForCounter(static_cast<unsigned long>(b));
      if (a != PR_SET_SECCOMP) break;
      if (b == SECCOMP_MODE_FILTER && c != 0) {
        return InstallFilter("prctl", reinterpret_cast<const void*>(c), real);
      }
      if (b == SECCOMP_MODE_STRICT) PrepareForStrictMode();
      break;
    case SYS_setrlimit:
      return Limit("setrlimit", true, static_cast<int>(a), reinterpret_cast<const rlimit*>(b),
                   real);
    case SYS_prlimit64:
      return Limit("prlimit", c != 0 && MeansUs(a), static_cast<int>(b),
                   reinterpret_cast<const rlimit*>(c), real);
    case SYS_mount:
    case SYS_move_mount:
      PrepareForPathLoss();
      break;
    case SYS_userfaultfd:  // it may tell the program of a fork, which waits for that
      { const Section section; }  // in a fork child it would be forgotten when its trace begins
      g_process.must_not_clone.store(true, std::memory_order_relaxed);
      break;
#define LOSES_PATH_IF(call, condition) \
  case SYS_##call:                     \
    loses_path = condition;            \
    name = #call;                      \
    break
    LOSES_PATH_IF(unshare, LeavesNamespace(a));
    LOSES_PATH_IF(setuid, ChangesUser(a));
    LOSES_PATH_IF(setfsuid, ChangesUser(a));
    LOSES_PATH_IF(setreuid, ChangesUser(b));
    LOSES_PATH_IF(setresuid, ChangesUser(b));
    LOSES_PATH_IF(setgid, ChangesGroup(a));
    LOSES_PATH_IF(setfsgid, ChangesGroup(a));
    LOSES_PATH_IF(setregid, ChangesGroup(b));
    LOSES_PATH_IF(setresgid, ChangesGroup(b));
    LOSES_PATH_IF(chroot, true);
    LOSES_PATH_IF(pivot_root, true);
    LOSES_PATH_IF(landlock_restrict_self, true);
    LOSES_PATH_IF(setns, true);
    LOSES_PATH_IF(capset, true);
#undef LOSES_PATH_IF
    default:  // one of interpose_syscall.cc's list that has no name here
      loses_path = true;
  }
  if (!loses_path && number != SYS_unshare) return real();
  if (number == SYS_unshare) PrepareForChildren(a);
  const long result =
      loses_path ? LosePath(name, memtrace_real_syscall, number, a, b, c, d, e, f) : real();
  if (result == 0 && (number == SYS_setns || (number == SYS_unshare && (a & CLONE_NEWPID) != 0))) {
    LookWhereChildrenGo();
  }
  return result;
}

}  // namespace memtrace

using memtrace::ChangesGroup;
using memtrace::ChangesUser;
using memtrace::Limit;
using memtrace::LosePath;
using memtrace::Next;

EXPORTED int chroot(const char* path) {
  auto* const real = Next().chroot;
  return LosePath("chroot", real, path);
}

EXPORTED int pivot_root(const char* root, const char* old) {
  auto* const real = Next().pivot_root;
  return LosePath("pivot_root", real, root, old);
}

EXPORTED int unshare(int flags) {
  return memtrace::Unshare(flags, Next().unshare);
}

EXPORTED int setns(int fd, int type) {
  auto* const real = Next().setns;
  const int result = LosePath("setns", real, fd, type);
  if (result == 0) memtrace::LookWhereChildrenGo();
  return result;
}

// It may cover the directory of the trace.
EXPORTED int mount(const char* source, const char* target, const char* type, unsigned long flags,
                   const void* data) {
  memtrace::PrepareForPathLoss();
  return Next().mount(source, target, type, flags, data);
}

EXPORTED int capset(void* header, const void* data) {
  auto* const real = Next().capset;
  return LosePath("capset", real, header, data);
}

EXPORTED int setuid(uid_t id) {
  auto* const real = Next().setuid;
  return ChangesUser(id) ? LosePath("setuid", real, id) : real(id);
}

EXPORTED int seteuid(uid_t id) {
  auto* const real = Next().seteuid;
  return ChangesUser(id) ? LosePath("seteuid", real, id) : real(id);
}

EXPORTED int setreuid(uid_t id, uid_t effective) {
  auto* const real = Next().setreuid;
  return ChangesUser(effective) ? LosePath("setreuid", real, id, effective) : real(id, effective);
}

EXPORTED int setresuid(uid_t id, uid_t effective, uid_t saved) {
  auto* const real = Next().setresuid;
  return ChangesUser(effective) ? LosePath("setresuid", real, id, effective, saved)
                                : real(id, effective, saved);
}

EXPORTED int setfsuid(uid_t id) {
  auto* const real = Next().setfsuid;
  return ChangesUser(id) ? LosePath("setfsuid", real, id) : real(id);
}

EXPORTED int setgid(gid_t id) {
  auto* const real = Next().setgid;
  return ChangesGroup(id) ? LosePath("setgid", real, id) : real(id);
}

EXPORTED int setegid(gid_t id) {
  auto* const real = Next().setegid;
  return ChangesGroup(id) ? LosePath("setegid", real, id) : real(id);
}

EXPORTED int setregid(gid_t id, gid_t effective) {
  auto* const real = Next().setregid;
  return ChangesGroup(effective) ? LosePath("setregid", real, id, effective)
                                 : real(id, effective);
}

EXPORTED int setresgid(gid_t id, gid_t effective, gid_t saved) {
  auto* const real = Next().setresgid;
  return ChangesGroup(effective) ? LosePath("setresgid", real, id, effective, saved)
                                 : real(id, effective, saved);
}

EXPORTED int setfsgid(gid_t id) {
  auto* const real = Next().setfsgid;
  return ChangesGroup(id) ? LosePath("setfsgid", real, id) : real(id);
}

EXPORTED int setrlimit(__rlimit_resource_t resource, const struct rlimit* limits) {
  return Limit("setrlimit", true, resource, limits,
               [&] { return Next().setrlimit(resource, limits); });
}

EXPORTED int setrlimit64(__rlimit_resource_t resource, const struct rlimit64* limits) {
  return Limit("setrlimit", true, resource, limits,
               [&] { return Next().setrlimit64(resource, limits); });
}

EXPORTED int prlimit(pid_t pid, __rlimit_resource resource, const struct rlimit* limits,
                     struct rlimit* old) {
  return Limit("prlimit", limits != nullptr && memtrace::MeansUs(pid), resource, limits,
               [&] { return Next().prlimit(pid, resource, limits, old); });
}

EXPORTED int prlimit64(pid_t pid, __rlimit_resource resource, const struct rlimit64* limits,
                       struct rlimit64* old) {
  return Limit("prlimit", limits != nullptr && memtrace::MeansUs(pid), resource, limits,
               [&] { return Next().prlimit64(pid, resource, limits, old); });
}
