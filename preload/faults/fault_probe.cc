#include "preload/faults/fault_probe.h"

#include <cerrno>
#include <linux/perf_event.h>
#include <sched.h>
#include <sys/wait.h>

#include "preload/process.h"
#include "preload/sys.h"

namespace memtrace {

bool FaultEventsAreHarmless() {
  if (sys::Call(SYS_prctl, PR_GET_SECCOMP) == 0) return true;
  if (g_process.must_not_clone.load(std::memory_order_relaxed)) return false;
  // This is a fork without an exit signal: the program's wait() and SIGCHLD know nothing of it.
  const long child = sys::Call(SYS_clone, CLONE_UNTRACED, 0, 0, 0, 0);
  if (child == 0) {
    const uint64_t no_core[2] = {0, 0};
    sys::Call(SYS_prlimit64, 0, RLIMIT_CORE, reinterpret_cast<long>(no_core), 0);
    perf_event_attr attr = {};
    attr.type = PERF_TYPE_SOFTWARE;
    attr.size = sizeof(attr);
    attr.config = PERF_COUNT_SW_DUMMY;
    attr.exclude_kernel = 1;
    sys::Call(SYS_perf_event_open, reinterpret_cast<long>(&attr), 0, -1, -1, 0);
    for (;;) sys::Call(SYS_exit_group, 0);
  }
  if (sys::Failed(child)) return false;
  int status = 0;
  long reaped;
  do {
    reaped = sys::Call(SYS_wait4, child, reinterpret_cast<long>(&status), __WALL, 0);
  } while (reaped == -EINTR);
  return reaped == child && WIFEXITED(status);
}

}  // namespace memtrace
