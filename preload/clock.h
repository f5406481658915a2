// Clock: the time of events.
//
// Raw TSC where the kernel itself trusts it as its clock source (then it is
// invariant and the same on all cores), else CLOCK_MONOTONIC_COARSE through the
// vDSO. The reader converts ticks by the (ticks, CLOCK_MONOTONIC) pairs that
// every block carries, so the frequency need not be known here.

#ifndef MEMTRACE_PRELOAD_CLOCK_H_
#define MEMTRACE_PRELOAD_CLOCK_H_

#include <time.h>

#include <cstdint>

#include "format/records.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

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
#if defined(__x86_64__)
    if (kind_ == format::ClockKind::kTsc) [[likely]] return __rdtsc();
#endif
    return NowNs(CLOCK_MONOTONIC_COARSE);
  }

  format::ClockKind kind() const { return kind_; }
  // An estimate good enough for thresholds; never used for conversion.
  uint64_t ticks_per_us() const { return ticks_per_us_; }

 private:
  format::ClockKind kind_ = format::ClockKind::kMonotonicCoarseNs;
  uint64_t ticks_per_us_ = 1000;
};

extern Clock g_clock;

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_CLOCK_H_
