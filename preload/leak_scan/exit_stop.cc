#include "preload/leak_scan/exit_stop.h"

#include <ctime>

#include "preload/clock.h"
#include "preload/leak_scan/beginning.h"
#include "preload/leak_scan/interrupted_call.h"
#include "preload/leak_scan/scan_copy.h"

namespace memtrace {
namespace {

// Of a scan while other threads stand: it may need one of them, of a file system of the program's
// own.
constexpr uint64_t kLongestHoldNs = 1'000'000'000;

}  // namespace

bool ExitStop::IsAsked() const {
  if (!no_handler_.has_value() || !*no_handler_) return false;  // or the kernel may not be asked
  uint64_t taken = ~no_handler_->before();
  if (threads_.has_value()) taken |= threads_->Unblocked();
  return IsSignalPending(taken);
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
