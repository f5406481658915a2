#include "preload/leak_scan/exit_stop.h"

#include <signal.h>

#include <ctime>

#include "preload/clock.h"
#include "preload/leak_scan/beginning.h"
#include "preload/leak_scan/interrupted_call.h"
#include "preload/leak_scan/scan_copy.h"
#include "preload/sys.h"

namespace memtrace {
namespace {

// Of a scan while other threads stand: it may need one of them, of a file system of the program's
// own. And while no signal comes: whoever wants the process to end waits no longer.
constexpr uint64_t kLongestHoldNs = 1'000'000'000;

// A process that is still there so long after End() hangs: libc writes out what its streams hold
// then, to a pipe perhaps that nobody reads.
constexpr time_t kPutOffSeconds = 1;

// Of one kind more may be queued, and a timer of the program's sends further ones meanwhile.
constexpr int kMostSignals = 1 << 16;

void SendLater(int signal) {
  sigevent event = {};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = signal;
  int timer = 0;
  itimerspec when = {};
  when.it_value.tv_sec = kPutOffSeconds;
  const bool made =
      !sys::Failed(sys::Call(SYS_timer_create, CLOCK_MONOTONIC, reinterpret_cast<long>(&event),
                             reinterpret_cast<long>(&timer)));
  if (!made || sys::Failed(sys::Call(SYS_timer_settime, timer, 0, reinterpret_cast<long>(&when)))) {
    sys::Call(SYS_kill, sys::Getpid(), signal);
  }
}

}  // namespace

SignalsBlocked::Mask ExitStop::Taken() const {
  if (!no_handler_.has_value() || !*no_handler_) return 0;  // or the kernel may not be asked
  return ~no_handler_->before() | (threads_.has_value() ? threads_->Unblocked() : 0);
}

bool ExitStop::IsAsked() const {
  const SignalsBlocked::Mask taken = Taken();
  return taken != 0 && IsSignalPending(taken);
}

void ExitStop::PutOffSignals() const {
  // A thread that sets the ids of all waits for libc's.
  const SignalsBlocked::Mask taken = Taken() & ~SignalsBlocked::kOfLibc;
  if (taken == 0 || !IsSignalPending(taken)) return;
  const timespec none = {};
  SignalsBlocked::Mask put_off = 0;
  for (int i = 0; i < kMostSignals; ++i) {
    const long signal = sys::Call(SYS_rt_sigtimedwait, reinterpret_cast<long>(&taken), 0,
                                  reinterpret_cast<long>(&none), sizeof(taken));
    if (signal <= 0) break;
    put_off |= SignalsBlocked::Mask{1} << (signal - 1);
  }
  for (; put_off != 0; put_off &= put_off - 1) SendLater(__builtin_ctzll(put_off) + 1);
}

void ExitStop::AwaitScanCopy() {
  const uint64_t deadline = NowNs(CLOCK_MONOTONIC) + kLongestHoldNs;
  while (!IsScanCopyDone()) {
    if (NowNs(CLOCK_MONOTONIC) >= deadline || (!now_ && IsAsked())) return Release();
    PauseForScanCopy(1'000'000);
  }
}

void ExitStop::ReleaseIfAsked() {
  if (IsAsked()) Release();
}

void ExitStop::End() {
  if (threads_.has_value()) threads_->LeaveStanding();
  PutOffSignals();
  Release();
}

void ExitStop::Release() {
  if (threads_.has_value()) {
    threads_.reset();
    g_beginning.store(false, std::memory_order_release);
  }
  no_handler_.reset();
}

}  // namespace memtrace
