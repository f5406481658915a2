// Clock: the time of events.
//
//   kTsc        raw TSC, where the kernel itself trusts it as its clock source: then it is
//               invariant and the same on all cores
//   kMonotonic  CLOCK_MONOTONIC, where its clock source is another that the vDSO reads: the
//               paravirtual clocks of virtual machines (kvm-clock, Hyper-V's page). Some 30 ns
//   kCoarse     CLOCK_MONOTONIC_COARSE, which the vDSO always reads: 1 to 10 ms a tick
//
// The reader converts ticks by the (ticks, CLOCK_MONOTONIC) pairs that every block carries, so
// the frequency of the TSC need not be known here.
//
// Whether the vDSO reads a paravirtual clock is the hypervisor's to say, at any moment: when it
// moves the machine to another host the same function may become a system call. So before the
// program enters a sandbox that may kill for one, kMonotonic becomes kCoarse, for ever.
//
// A program may have the reading of the TSC be a fault (PR_SET_TSC), and with it the vDSO's clocks
// but for the coarse ones. Before it does, kCoarse takes the place of either: of kTsc in its ticks,
// which go on from there. What asks for another clock then makes a system call.
//
// A fork child may be in a time namespace of its own (unshare(CLONE_NEWTIME)), where
// CLOCK_MONOTONIC stands elsewhere, before its parent's or days ahead: its clock begins anew
// (BeginInChild()). The copy that scans is such a child, but what it writes is its parent's: it has
// the time at which the parent made it, and no other (StandStill()).

#ifndef MEMTRACE_PRELOAD_CLOCK_H_
#define MEMTRACE_PRELOAD_CLOCK_H_

#include <time.h>

#include <atomic>
#include <cstdint>
#include <string_view>

#include "format/records.h"
#include "preload/allowed_calls.h"
#include "preload/arch/arch.h"

namespace memtrace {

// Reads `clock` by the vDSO's function, from Clock::Init() on: without a system call, and whatever
// the program or a library beside it (libfaketime) makes of clock_gettime(). With a clock that
// stands still a wait would never end, and time stamps that are made up order nothing.
uint64_t NowNs(clockid_t clock);

// The value at `now_ns` of a counter that had the value `ticks` at `then_ns`. A coarse clock may
// give a `now_ns` that is before `then_ns`.
constexpr uint64_t TicksOfCounter(uint64_t ticks, uint64_t then_ns, uint64_t ticks_per_ns_q32,
                                  uint64_t now_ns) {
  if (now_ns <= then_ns) return ticks;
  return ticks + static_cast<uint64_t>(
                     static_cast<unsigned __int128>(now_ns - then_ns) * ticks_per_ns_q32 >> 32);
}

class Clock {
 public:
  enum class Source : uint8_t { kTsc, kMonotonic, kCoarse, kStandsStill };

  // Decides which. Once, before the first event.
  void Init();
  // The same of a machine whose kernel has this clock source, and where
  // CLOCK_MONOTONIC is no system call.
  void Init(std::string_view clock_source, bool monotonic_without_call);

  uint64_t Now() const {
    const Source source = source_.load(std::memory_order_acquire);
    if (source == Source::kTsc) [[likely]] return arch::Ticks();
    if (source == Source::kMonotonic) return NowNs(CLOCK_MONOTONIC);
    return source == Source::kCoarse ? CoarseNow() : first_ticks();
  }

  // The time for a stamp: it is read after everything before it and before everything behind it, as
  // a plain rdtsc is not (the processor may begin it early). Where the clock is coarse no two are
  // equal, and one that is read behind another is greater, whichever threads do it.
  uint64_t OrderedNow() {
    const Source source = source_.load(std::memory_order_acquire);
    if (source == Source::kTsc) [[likely]] return arch::TicksInOrder();
    if (source == Source::kCoarse) return CoarseOrderedNow();
    if (source == Source::kStandsStill) return first_ticks();
    arch::FinishInstructions();
    const uint64_t now = NowNs(CLOCK_MONOTONIC);
    arch::FinishInstructions();
    return now;
  }

  // CLOCK_MONOTONIC, for the pairs by which the reader converts. Where it may be a system call,
  // inside a sandbox that may allow none, the coarse one stands for it.
  uint64_t MonotonicNs() const {
    const Source source = source_.load(std::memory_order_acquire);
    if (source == Source::kStandsStill) return first_ns();
    if (source != Source::kCoarse) return NowNs(CLOCK_MONOTONIC);
    if (kind_ != format::ClockKind::kMonotonicCoarseNs) return CoarseAheadNs();
    return NowNs(g_memory_calls_only.load(std::memory_order_relaxed) ? CLOCK_MONOTONIC_COARSE
                                                                     : CLOCK_MONOTONIC);
  }

  // From now on the clock makes no system calls, whatever happens to the machine.
  void ForgoCalls();
  // From now on the clock does not read the processor's counter.
  void ForgoCounter();

  // In a fork child, before its first stamp.
  void BeginInChild();
  // From now on it is this time, for a process whose only thread this is.
  void StandStill(uint64_t ticks, uint64_t monotonic_ns);

  format::ClockKind kind() const { return kind_; }
  // An estimate good enough for thresholds; never used for conversion.
  uint64_t ticks_per_us() const { return ticks_per_us_; }

 private:
  // A coarse clock that takes the place of kMonotonic or kTsc is set ahead by the
  // longest tick, so that none of its stamps is earlier than one that another thread
  // took before from the fine clock.
  static constexpr uint64_t kLongestTickNs = 10'000'000;

  static uint64_t CoarseAheadNs() { return NowNs(CLOCK_MONOTONIC_COARSE) + kLongestTickNs; }
  uint64_t CoarseNow() const {
    if (kind_ == format::ClockKind::kMonotonicCoarseNs) return NowNs(CLOCK_MONOTONIC_COARSE);
    const uint64_t ns = CoarseAheadNs();
    if (kind_ == format::ClockKind::kMonotonicNs) return ns;
    return TicksOfCounter(first_ticks(), first_ns(),
                          ticks_per_ns_q32_.load(std::memory_order_relaxed), ns);
  }
  uint64_t CoarseOrderedNow();
  void CoarseFrom(uint64_t ticks);
  void CountFrom(uint64_t ticks, uint64_t ns);
  uint64_t first_ticks() const { return first_ticks_.load(std::memory_order_relaxed); }
  uint64_t first_ns() const { return first_ns_.load(std::memory_order_relaxed); }

  std::atomic<Source> source_{Source::kCoarse};
  format::ClockKind kind_ = format::ClockKind::kMonotonicCoarseNs;
  uint64_t ticks_per_us_ = 1000;
  std::atomic<uint64_t> last_coarse_{0};
  // kTsc: when it was read first, and what it counts in a nanosecond, 32 bits behind the point:
  // 0, until it is forgone. kStandsStill: the time.
  std::atomic<uint64_t> first_ticks_{0}, first_ns_{0};
  std::atomic<uint64_t> ticks_per_ns_q32_{0};
};

extern Clock g_clock;

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_CLOCK_H_
