#include "preload/leak_scan/exit_stop.h"

#include <signal.h>

#include "preload/arch/arch.h"
#include "preload/clock.h"
#include "preload/leak_scan/beginning.h"
#include "preload/leak_scan/scan_copy.h"
#include "preload/sys.h"

namespace memtrace {
namespace {

// Of a scan while other threads stand: it may need one of them, of a file system of the program's
// own.
constexpr uint64_t kLongestHoldNs = 1'000'000'000;

// A signal that is blocked is pending though it would be ignored.
bool IsIgnored(int signal) {
  arch::KernelAction action = {};
  if (sys::Failed(sys::Call(SYS_rt_sigaction, signal, 0, reinterpret_cast<long>(&action),
                            sizeof(uint64_t)))) {
    return false;
  }
  if (action.handler == reinterpret_cast<void*>(SIG_IGN)) return true;
  return action.handler == nullptr && (signal == SIGCHLD || signal == SIGURG ||
                                       signal == SIGWINCH || signal == SIGCONT);
}

}  // namespace

bool ExitStop::IsAsked() const {
  if (!no_handler_.has_value()) return false;
  uint64_t taken = ~no_handler_->before();
  if (threads_.has_value()) taken |= threads_->Unblocked();
  uint64_t pending = 0;
  sys::Call(SYS_rt_sigpending, reinterpret_cast<long>(&pending), sizeof(pending));
  for (pending &= taken; pending != 0; pending &= pending - 1) {
    if (!IsIgnored(__builtin_ctzll(pending) + 1)) return true;
  }
  return false;
}

void ExitStop::AwaitScanCopy() {
  const uint64_t deadline = NowNs(CLOCK_MONOTONIC) + kLongestHoldNs;
  while (!IsScanCopyDone()) {
    if (NowNs(CLOCK_MONOTONIC) >= deadline || IsAsked()) return Release();
    PauseForScanCopy(1'000'000);
  }
}

void ExitStop::ReleaseIfAsked() {
  if (IsAsked()) Release();
}

void ExitStop::End() {
  if (threads_.has_value()) threads_->LeaveStanding();
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
