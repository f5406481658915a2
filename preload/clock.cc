#include "preload/clock.h"

#include <algorithm>

#include "preload/exported_symbol.h"
#include "preload/sys.h"

namespace memtrace {
namespace {

using GetTime = int (*)(clockid_t, timespec*);

int AskKernelForTime(clockid_t clock, timespec* now) {
  return static_cast<int>(sys::Call(SYS_clock_gettime, clock, reinterpret_cast<long>(now)));
}

constinit std::atomic<GetTime> g_get_time{AskKernelForTime};
// Whether clocks that are not coarse are read by a system call only.
constinit std::atomic<bool> g_only_by_call{false};

// Whether the vDSO answers by itself: a system call takes longer than the cheapest there is,
// by the best of some tries.
bool IsMonotonicWithoutCall() {
  constexpr int kTries = 16;
  uint64_t clock = UINT64_MAX, call = UINT64_MAX;
  for (int i = 0; i < kTries; ++i) {
    const uint64_t begin = arch::TicksInOrder();
    NowNs(CLOCK_MONOTONIC);
    const uint64_t between = arch::TicksInOrder();
    sys::Call(SYS_getpid);
    const uint64_t end = arch::TicksInOrder();
    clock = std::min(clock, between - begin);
    call = std::min(call, end - between);
  }
  return clock < call;
}

// The counter and CLOCK_MONOTONIC at one instant: of some tries the one between whose reads the
// least passed. Who has to wait for a processor between the two would take the counter for many
// times as fast as it is, for ever.
struct Instant {
  uint64_t ticks, ns;

  static Instant Now() {
    constexpr int kTries = 4;
    Instant best = {};
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < kTries; ++i) {
      const uint64_t before = arch::TicksInOrder();
      const uint64_t ns = NowNs(CLOCK_MONOTONIC);
      const uint64_t took = arch::TicksInOrder() - before;
      if (took < least) {
        least = took;
        best = {before + took / 2, ns};
      }
    }
    return best;
  }
};

}  // namespace

// The one call by that pointer (event_path_test.cc).
[[gnu::noinline]] uint64_t NowNs(clockid_t clock) {
  timespec now;
  if (g_only_by_call.load(std::memory_order_relaxed) && clock != CLOCK_MONOTONIC_COARSE)
      [[unlikely]] {
    if (!g_memory_calls_only.load(std::memory_order_relaxed)) {
      AskKernelForTime(clock, &now);
      return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
    }
    clock = CLOCK_MONOTONIC_COARSE;
  }
  g_get_time.load(std::memory_order_relaxed)(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

constinit Clock g_clock;

uint64_t Clock::CoarseOrderedNow() {
  const uint64_t now = CoarseNow();
  uint64_t last = last_coarse_.load(std::memory_order_relaxed);
  uint64_t next;
  do {
    next = now > last ? now : last + 1;
  } while (!last_coarse_.compare_exchange_weak(last, next));
  return next;
}

void Clock::Init() {
  if (void* const found = FindInVdso(arch::kVdsoClockGettime); found != nullptr) {
    g_get_time.store(reinterpret_cast<GetTime>(found), std::memory_order_relaxed);
  }
  char source[32];
  const long bytes = sys::ReadFile(
      "/sys/devices/system/clocksource/clocksource0/current_clocksource", source, sizeof(source));
  const std::string_view name(source, bytes > 0 ? static_cast<size_t>(bytes) : 0);
  Init(name, !name.starts_with(arch::kClockSource) && IsMonotonicWithoutCall());
}

void Clock::Init(std::string_view clock_source, bool monotonic_without_call) {
  if (!clock_source.starts_with(arch::kClockSource)) {
    if (!monotonic_without_call) return;
    kind_ = format::ClockKind::kMonotonicNs;
    source_.store(Source::kMonotonic, std::memory_order_relaxed);
    return;
  }
  // About 20 us of waiting give the frequency to a percent.
  const Instant first = Instant::Now();
  while (NowNs(CLOCK_MONOTONIC) - first.ns < 20'000) {
  }
  const Instant now = Instant::Now();
  const uint64_t per_us = (now.ticks - first.ticks) * 1000 / (now.ns - first.ns);
  if (per_us < 10) return;
  kind_ = format::ClockKind::kTsc;
  ticks_per_us_ = per_us;
  CountFrom(first.ticks, first.ns);
  source_.store(Source::kTsc, std::memory_order_relaxed);
}

// No stamp of the coarse clock is to be earlier than `ticks`.
void Clock::CoarseFrom(uint64_t ticks) {
  uint64_t last = last_coarse_.load(std::memory_order_relaxed);
  while (last < ticks && !last_coarse_.compare_exchange_weak(last, ticks)) {
  }
}

// From where a coarse clock reckons the counter's ticks.
void Clock::CountFrom(uint64_t ticks, uint64_t ns) {
  first_ticks_.store(ticks, std::memory_order_relaxed);
  first_ns_.store(ns, std::memory_order_relaxed);
}

// Threads may do it at once, a handler in the midst of it, and the child of a fork again: nobody
// waits, and all go by the frequency that was there first.
void Clock::ForgoCounter() {
  if (source_.load(std::memory_order_relaxed) == Source::kTsc) {
    constexpr uint64_t kLongEnoughNs = 1'000'000;
    const Instant now = Instant::Now();
    uint64_t ticks = now.ticks - first_ticks(), ns = now.ns - first_ns();
    if (ns > kLongEnoughNs) {
      const uint64_t per_us = ticks / (ns / 1000);
      if (per_us < ticks_per_us_ / 2 || per_us > ticks_per_us_ * 2) {
        // It has gone to another time namespace (setns()) since: so much time has not passed.
        CountFrom(now.ticks, now.ns);
        ns = 0;
      }
    }
    if (ns <= kLongEnoughNs) {
      ticks = ticks_per_us_;
      ns = 1000;
    }
    uint64_t not_yet = 0;
    ticks_per_ns_q32_.compare_exchange_strong(
        not_yet, static_cast<uint64_t>((static_cast<unsigned __int128>(ticks) << 32) / ns));
    CoarseFrom(arch::TicksInOrder());
    g_only_by_call.store(true);
    source_.store(Source::kCoarse);
  } else {
    ForgoCalls();
    g_only_by_call.store(true);
  }
}

// Its ticks go on, for what is kept of them goes on too.
void Clock::BeginInChild() {
  if (kind_ == format::ClockKind::kTsc) {
    if (source_.load(std::memory_order_relaxed) == Source::kTsc) {
      const Instant now = Instant::Now();
      CountFrom(now.ticks, now.ns);
    } else {
      const uint64_t ns = CoarseAheadNs();
      CountFrom(std::max(CoarseNow(), last_coarse_.load(std::memory_order_relaxed)), ns);
    }
  }
  last_coarse_.store(0, std::memory_order_relaxed);
}

void Clock::StandStill(uint64_t ticks, uint64_t monotonic_ns) {
  CountFrom(ticks, monotonic_ns);
  source_.store(Source::kStandsStill);
}

void Clock::ForgoCalls() {
  if (source_.load(std::memory_order_relaxed) != Source::kMonotonic) return;
  // However late the tick is.
  CoarseFrom(NowNs(CLOCK_MONOTONIC));
  source_.store(Source::kCoarse);
}

}  // namespace memtrace
