#include "preload/confinement.h"

#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "preload/allowed_calls.h"
#include "preload/append_records.h"
#include "preload/clock.h"
#include "preload/lifecycle.h"
#include "preload/memory_map_record.h"
#include "preload/own_memory.h"
#include "preload/process.h"
#include "preload/recorder.h"
#include "preload/recording_switch.h"
#include "preload/seccomp_filter.h"
#include "preload/signals_blocked.h"
#include "preload/sys.h"
#include "preload/text.h"
#include "preload/trace_end.h"
#include "preload/unwind/stack_bounds.h"
#include "preload/usage_samples.h"

namespace memtrace {
namespace {

constinit std::atomic<uint32_t> g_told{0};

constinit rusage g_usage_before_filter = {};

// How long a filter for all threads waits for the calls that they are in.
constexpr int kWaits = 1000;
constexpr long kWaitNs = 100'000;

// Only a reserve was mapped, and nothing has happened yet.
constexpr auto kNothingYet = static_cast<format::Confinement>(0);

void Tell(format::Confinement what, const char* call) {
  if (g_told.fetch_add(1, std::memory_order_relaxed) >= format::kMostConfinementsTold) return;
  AppendRecords<192>([&](format::RecordEncoder& out) {
    const TraceReserve& reserve = g_process.file.reserve();
    out.Begin(format::RecordTag::kConfined);
    out.Number(static_cast<uint64_t>(what));
    out.Number(g_clock.Now());
    out.Bytes(call);
    out.Number(reserve.mapped() ? reserve.begin() : 0);
    out.Number(reserve.end());
    out.End();
  });
}

// 0, or -errno. That there is a reserve is told even if the call is then refused.
long SetAside() {
  if (g_process.file.reserve().mapped()) return 0;
  const long made = g_process.file.MakeReserve();
  if (!sys::Failed(made)) Tell(kNothingYet, "");
  return made;
}

// Does it let the tracer do what it cannot do without?
bool LeavesAWay(const SeccompFilter& filter) {
  constexpr uint64_t kAny = uint64_t{1} << 46, kBytes = 1 << 20;
  constexpr uint64_t kReadWrite = PROT_READ | PROT_WRITE;
  if (!filter.Allows(SYS_mmap, 0, kBytes, kReadWrite, MAP_PRIVATE | MAP_ANONYMOUS, ~uint64_t{0}) ||
      !filter.Allows(SYS_munmap, kAny, kBytes) ||
      !filter.Allows(SYS_mprotect, kAny, kBytes, kReadWrite)) {
    return false;
  }
  for (const int advice : {MADV_DONTNEED, MADV_DONTFORK, MADV_DOFORK, MADV_NOHUGEPAGE}) {
    if (!filter.Allows(SYS_madvise, kAny, kBytes, static_cast<uint64_t>(advice))) return false;
  }
  // Whether a word of the stack can be read is asked by either.
  if (!filter.Allows(SYS_madvise, kAny, arch::kPageBytes, MADV_POPULATE_READ)) {
    if (!filter.Allows(SYS_rt_sigprocmask, static_cast<uint64_t>(unwind::kNoSuchHow), kAny, 0,
                       sizeof(uint64_t))) {
      return false;
    }
    g_probe_by_mask.store(true, std::memory_order_relaxed);
  }
  if (!filter.Allows(SYS_madvise, kAny, kBytes, MADV_POPULATE_WRITE)) {
    return g_process.file.MustNotPopulateReserve();
  }
  return true;
}

bool StopWithoutAWay(const void* program) {
  const SeccompFilter filter(program);
  if (!filter || LeavesAWay(filter)) return false;
  StopRecording(format::RecordingStop::kSandboxed, 0);
  return true;
}

// Asks the kernel for what it cannot be asked for later, and sets aside what is needed then. False:
// there is no way to go on, and the trace says so.
bool TakeLeave(ThreadState& state, const void* program, const SignalsBlocked& calls) {
  const OwnFaultsScope faults;
  SampleUsageWithin(state, calls);
  WriteThreadNames();
  WriteMemoryMap(format::MapReason::kGrowth);
  sys::Getrusage(RUSAGE_SELF, &g_usage_before_filter);
  if (StopWithoutAWay(program)) return false;
  const long made = SetAside();
  // Without a vDSO the clock is a system call.
  if (!sys::Failed(made) && getauxval(AT_SYSINFO_EHDR) != 0) return true;
  StopRecording(format::RecordingStop::kSandboxed, -made);
  return false;
}

// Which pid namespace the next process will be of that the thread makes whose directory this is.
enum class ChildrenGo { kHere, kElsewhere, kUnknown };

ChildrenGo WhereChildrenGo(std::string_view directory) {
  Text<64> here, there;
  here << directory << "/ns/pid";
  there << directory << "/ns/pid_for_children";
  char ours[64], childrens[64];
  const long a = sys::Readlink(here.c_str(), ours, sizeof(ours));
  if (sys::Failed(a)) return ChildrenGo::kUnknown;
  const long b = sys::Readlink(there.c_str(), childrens, sizeof(childrens));
  if (!sys::Failed(b)) {
    const bool same = a == b && memcmp(ours, childrens, static_cast<size_t>(a)) == 0;
    return same ? ChildrenGo::kHere : ChildrenGo::kElsewhere;
  }
  // A link to nothing is of a namespace that has no process yet.
  struct stat link;
  return b == -ENOENT && !sys::Failed(sys::Stat(there.c_str(), &link, AT_SYMLINK_NOFOLLOW))
             ? ChildrenGo::kElsewhere
             : ChildrenGo::kUnknown;
}

}  // namespace

void LookWhereChildrenGo() {
  const SignalsBlocked calls;
  if (calls && IsVforkChild()) return;  // its own are not its parent's
  if (!calls || WhereChildrenGo("/proc/thread-self") != ChildrenGo::kHere)
    g_process.must_not_clone.store(true, std::memory_order_relaxed);
}

void LookWhereFirstChildrenGo() {
  const OtherCalls calls;
  // The first thread, which is the only one.
  if (calls && WhereChildrenGo("/proc/self") == ChildrenGo::kElsewhere)
    g_process.must_not_clone.store(true, std::memory_order_relaxed);
}

void PrepareForPathLoss() {
  const Section section;  // first: a fork child counts its calls anew in it
  const SignalsBlocked calls;
  if (!section || !calls || IsVforkChild()) return;
  const OwnFaultsScope faults;
  SetAside();
}

void TellPathLoss(const char* call) {
  const Section section;
  const SignalsBlocked calls;
  if (section && calls && !IsVforkChild()) Tell(format::Confinement::kPathLost, call);
}

bool PrepareForFilter(const void* program) {
  if (g_memory_calls_only.load()) {  // one more, which may forbid more
    const Section section;
    if (section) StopWithoutAWay(program);
    return false;
  }
  if (!MayInstallFilters()) return false;
  {
    const Section section;
    if (!section) {
      // Nothing is recorded, or a signal handler interrupted the tracer.
      if (g_switch.recording.load(std::memory_order_relaxed) == 0) return false;
    } else {
      if (IsVforkChild()) return false;
      const SignalsBlocked no_handler;
      if (!TakeLeave(section.state(), program, no_handler)) return false;
    }
  }
  // While it may be written. What was asked for is answered by now.
  g_process.file.NoteNoScans(format::NoScans::kSeccompFilter);
  g_clock.ForgoCalls();
  g_memory_calls_only.store(true);
  // Waits for the calls of other threads. This thread's own are not waited for: a handler that
  // called us interrupted them, or jumped out of them.
  for (int i = 0; i < kWaits && g_other_calls.load() > t_other_calls; ++i) {
    const timespec pause = {0, kWaitNs};
    sys::Call(SYS_nanosleep, reinterpret_cast<long>(&pause), 0);
  }
  return true;
}

void FilterIsInstalled(const char* call) {
  const Section section;
  if (section) Tell(format::Confinement::kMemoryCallsOnly, call);
}

void FilterWasRefused() {
  g_memory_calls_only.store(false);
  g_process.file.NoteNoScans(format::NoScans::kNone);
}

void PrepareForStrictMode() {
  // It is refused where there is a filter.
  if (g_memory_calls_only.load() || sys::Call(SYS_prctl, PR_GET_SECCOMP) != 0) return;
  const Section section;
  if (!section || IsVforkChild()) return;
  const SignalsBlocked no_handler;
  SampleUsageWithin(section.state(), no_handler);
  WriteThreadNames();
  WriteMemoryMap(format::MapReason::kGrowth);
  StopRecording(format::RecordingStop::kSandboxed, 0);
}

void KeepToAddressSpaceLimit(uint64_t bytes) {
  if (g_switch.recording.load(std::memory_order_relaxed) == 0) return;
  if (const SignalsBlocked calls; calls && IsVforkChild()) return;
  g_process.file.LimitAddressSpace(bytes);
}

const rusage& UsageBeforeFilter() { return g_usage_before_filter; }

void ForgetConfinement() {
  g_told.store(0, std::memory_order_relaxed);
  g_other_calls.store(t_other_calls);
}

}  // namespace memtrace
