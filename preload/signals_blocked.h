// SignalsBlocked: while it lives, no handler of the program runs on this thread.
//
// For the slow parts of the tracer: writing to the trace file, beginning a trace, a new
// thread. A handler that forks there would give its child half of a write to the
// parent's file (see interrupted_fork.h). Two system calls; nests.
//
// Once only memory calls may be made (allowed_calls.h) nothing is blocked: a handler that then
// forks, jumps or ends its thread within a write may lose that block.
//
// A thread that does so over and over, as while it writes marks, would hardly ever be seen
// without by a scan that stops the threads (leak_scan/thread_stop.h): so it pauses behind
// it while there is one.
//
// What a fault or a seccomp filter raises is not blocked besides: the kernel kills a process
// that blocks such a signal, whatever handler it has. Where the program itself blocks it, it stays
// so: one may be pending, for its sigwait().

#ifndef MEMTRACE_PRELOAD_SIGNALS_BLOCKED_H_
#define MEMTRACE_PRELOAD_SIGNALS_BLOCKED_H_

#include <signal.h>

#include <atomic>
#include <cstdint>

#include "preload/allowed_calls.h"
#include "preload/sys.h"

namespace memtrace {

// A scan is about to stop the threads.
inline constinit std::atomic<bool> g_stop_under_way{false};

class SignalsBlocked {
 public:
  SignalsBlocked() {
    if (calls_) Change(SIG_BLOCK, AllButRaised(), &before_);
  }
  ~SignalsBlocked() {
    if (!calls_) return;
    Change(SIG_SETMASK, before_, nullptr);
    if (g_stop_under_way.load(std::memory_order_relaxed) && (~before_ & kRealtime) != 0)
      LetBeStopped();
  }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

  using Mask = uint64_t;  // the kernel's sigset_t
  static constexpr Mask kOfLibc = Mask{3} << 31;  // SIGCANCEL and SIGSETXID, 32 and 33
  // What is blocked: all but what a fault or a filter raises.
  static constexpr Mask AllButRaised() {
    Mask blocked = ~Mask{0};
    for (int raised : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS}) {
      blocked &= ~(Mask{1} << (raised - 1));
    }
    return blocked;
  }

  // Other calls may be made for as long: what an OtherCalls says.
  explicit operator bool() const { return static_cast<bool>(calls_); }
  // The signals that were blocked before.
  Mask before() const { return before_; }

 private:
  static constexpr Mask kRealtime = ~Mask{0} << 33;  // 34 to 64

  [[gnu::noinline]] static void LetBeStopped() {
    const long pause[2] = {0, 100'000};
    sys::Call(SYS_nanosleep, reinterpret_cast<long>(pause), 0);
  }
  static void Change(int how, Mask mask, Mask* before) {
    sys::Call(SYS_rt_sigprocmask, how, reinterpret_cast<long>(&mask),
              reinterpret_cast<long>(before), sizeof(Mask));
  }

  const OtherCalls calls_;  // for as long, so that no filter comes before the signals are back
  Mask before_ = 0;
};

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_SIGNALS_BLOCKED_H_
