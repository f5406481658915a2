// Clock: the time of events.
//
// Raw TSC where the kernel itself trusts it as its clock source (then it is
// invariant and the same on all cores), else CLOCK_MONOTONIC_COARSE through the
// vDSO. The reader converts ticks by the (ticks, CLOCK_MONOTONIC) pairs that
// every block carries, so the frequency need not be known here.

#ifndef MEMTRACE_PRELOAD_CLOCK_H_
#define MEMTRACE_PRELOAD_CLOCK_H_

#include <time.h>

#include <atomic>
#include <cstdint>

#include "format/records.h"
#include "preload/allowed_calls.h"
#include "preload/arch/arch.h"

namespace memtrace {

inline uint64_t NowNs(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);  // vDSO: no system call, no errno on success
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

class Clock {
 public:
  // Decides between the two clocks. Once, before the first event.
  void Init();

  uint64_t Now() const {
    if (kind_ == format::ClockKind::kTsc) [[likely]] return arch::Ticks();
    return NowNs(CLOCK_MONOTONIC_COARSE);
  }

  // For stamps: read after everything before it and before everything behind it, as a plain
  // rdtsc is not (the processor may begin it early). Where the clock is coarse no two are
  // equal, and one that is read behind another is greater, whichever threads do it.
  uint64_t OrderedNow() {
    if (kind_ == format::ClockKind::kTsc) [[likely]] return arch::TicksInOrder();
    return CoarseOrderedNow();
  }

  // CLOCK_MONOTONIC, for the pairs by which the reader converts. Where the kernel's clock
  // source is none that the vDSO reads, CLOCK_MONOTONIC is a system call: inside a sandbox
  // that may allow none, the coarse one stands for it.
  uint64_t MonotonicNs() const {
    const bool call_free = kind_ == format::ClockKind::kTsc ||
                           !g_memory_calls_only.load(std::memory_order_relaxed);
    return NowNs(call_free ? CLOCK_MONOTONIC : CLOCK_MONOTONIC_COARSE);
  }

  format::ClockKind kind() const { return kind_; }
  // An estimate good enough for thresholds; never used for conversion.
  uint64_t ticks_per_us() const { return ticks_per_us_; }

 private:
  uint64_t CoarseOrderedNow();

  format::ClockKind kind_ = format::ClockKind::kMonotonicCoarseNs;
  uint64_t ticks_per_us_ = 1000;
  std::atomic<uint64_t> last_coarse_{0};
};

extern Clock g_clock;

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_CLOCK_H_
