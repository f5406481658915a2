#include "preload/clock.h"

#include <string_view>

#include "preload/sys.h"

namespace memtrace {

constinit Clock g_clock;

uint64_t Clock::CoarseOrderedNow() {
  const uint64_t now = NowNs(CLOCK_MONOTONIC_COARSE);
  uint64_t last = last_coarse_.load(std::memory_order_relaxed);
  uint64_t next;
  do {
    next = now > last ? now : last + 1;
  } while (!last_coarse_.compare_exchange_weak(last, next));
  return next;
}

void Clock::Init() {
  char source[32];
  const long bytes = sys::ReadFile(
      "/sys/devices/system/clocksource/clocksource0/current_clocksource", source, sizeof(source));
  const std::string_view name(source, bytes > 0 ? static_cast<size_t>(bytes) : 0);
  if (!name.starts_with(arch::kClockSource)) return;
  // About 20 us of waiting give the frequency to a percent.
  const uint64_t ns = NowNs(CLOCK_MONOTONIC);
  const uint64_t ticks = arch::Ticks();
  uint64_t passed;
  while ((passed = NowNs(CLOCK_MONOTONIC) - ns) < 20'000) {
  }
  const uint64_t per_us = (arch::Ticks() - ticks) * 1000 / passed;
  if (per_us < 10) return;
  kind_ = format::ClockKind::kTsc;
  ticks_per_us_ = per_us;
}

}  // namespace memtrace
