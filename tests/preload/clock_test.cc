// Clock: which of its sources it takes, and that stamps are in order whichever it is, across
// the change to the one without system calls too.

#include "preload/clock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace memtrace {
namespace {

using format::ClockKind;

TEST(ClockTest, TakesTheFinestThatTheKernelTrusts) {
  const auto kind = [](std::string_view source, bool without_call) {
    Clock clock;
    clock.Init(source, without_call);
    return clock.kind();
  };
  EXPECT_EQ(kind("tsc\n", true), ClockKind::kTsc);
  EXPECT_EQ(kind("tsc\n", false), ClockKind::kTsc);
  EXPECT_EQ(kind("kvm-clock\n", true), ClockKind::kMonotonicNs);
  EXPECT_EQ(kind("hyperv_clocksource_tsc_page\n", true), ClockKind::kMonotonicNs);
  EXPECT_EQ(kind("kvm-clock\n", false), ClockKind::kMonotonicCoarseNs) << "the host does not vouch for it";
  EXPECT_EQ(kind("hpet\n", false), ClockKind::kMonotonicCoarseNs);
  EXPECT_EQ(kind("", false), ClockKind::kMonotonicCoarseNs);
}

TEST(ClockTest, IsThatOfThisMachine) {
  Clock clock;
  clock.Init();
  const uint64_t coarse_ns = NowNs(CLOCK_MONOTONIC_COARSE);
  const uint64_t earlier = clock.MonotonicNs(), ticks = clock.Now(), later = clock.MonotonicNs();
  EXPECT_GE(earlier, coarse_ns);
  if (clock.kind() == ClockKind::kTsc) return;
  // Nanoseconds already: of the coarse clock too, which is as far behind as its tick is late.
  EXPECT_LE(ticks, later);
  EXPECT_GE(ticks, clock.kind() == ClockKind::kMonotonicNs ? earlier : coarse_ns);
}

// Threads hand a turn around; each stamp has to be later than the one before it, of another thread.
// In the midst of it the clock forgoes system calls.
void ExpectOrder(std::string_view source, void (Clock::*forgo)() = &Clock::ForgoCalls) {
  constexpr int kThreads = 3, kTurns = 1500;
  Clock clock;
  clock.Init(source, true);
  const ClockKind kind = clock.kind();
  std::atomic<int> turn{0};
  uint64_t last = 0;
  int backwards = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (int n = i; n < kTurns; n += kThreads) {
        while (turn.load(std::memory_order_acquire) != n) std::this_thread::yield();
        if (n == kTurns / 2) (clock.*forgo)();
        const uint64_t now = clock.OrderedNow();
        backwards += now <= last;
        last = now;
        turn.store(n + 1, std::memory_order_release);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(backwards, 0);
  EXPECT_EQ(clock.kind(), kind) << "it is in the trace already";
}

TEST(ClockTest, StampsAreInOrderOfTheTsc) {
  Clock here;
  here.Init();
  if (here.kind() != ClockKind::kTsc) GTEST_SKIP() << "the kernel does not trust it here";
  ExpectOrder("tsc\n");
}
TEST(ClockTest, StampsAreInOrderWhenTheTscMayNotBeReadAnyMore) {
  Clock here;
  here.Init();
  if (here.kind() != ClockKind::kTsc) GTEST_SKIP() << "the kernel does not trust it here";
  ExpectOrder("tsc\n", &Clock::ForgoCounter);
}
TEST(ClockTest, NorAParavirtualClock) { ExpectOrder("kvm-clock\n", &Clock::ForgoCounter); }
TEST(ClockTest, StampsAreInOrderOfAParavirtualClock) { ExpectOrder("kvm-clock\n"); }
TEST(ClockTest, StampsAreInOrderOfTheCoarseClock) {
  Clock clock;  // not even initialised
  uint64_t last = 0;
  for (int i = 0; i < 100'000; ++i) {
    const uint64_t now = clock.OrderedNow();
    ASSERT_GT(now, last);
    last = now;
  }
}

// The counter is gone on with, in its ticks: seconds of one are seconds of the other. Whatever the thread waits
// for a processor, what is read lies between what is read before and behind.
TEST(ClockTest, WithoutTheCounterItIsNotBehindAndNotFarAhead) {
  for (int i = 0; i < 20; ++i) {
    Clock clock;
    clock.Init("tsc\n", true);
    if (clock.kind() != ClockKind::kTsc) GTEST_SKIP() << "it is too slow here";
    const uint64_t begin_ns = NowNs(CLOCK_MONOTONIC);
    while (NowNs(CLOCK_MONOTONIC) - begin_ns < 2'000'000) {
    }
    const uint64_t earlier_ns = clock.MonotonicNs(), before = clock.OrderedNow(), before_ns = clock.MonotonicNs();
    clock.ForgoCounter();
    EXPECT_GT(clock.OrderedNow(), before);
    const uint64_t coarse_ns = NowNs(CLOCK_MONOTONIC_COARSE);
    const uint64_t now_ns = clock.MonotonicNs(), now = clock.Now(), later_ns = clock.MonotonicNs();
    // Ahead by the longest tick, so that it is not behind what was read before.
    EXPECT_GE(now_ns, coarse_ns + 10'000'000);
    EXPECT_LE(now_ns, NowNs(CLOCK_MONOTONIC) + 10'000'000);
    const auto between = [](uint64_t from, uint64_t to) { return static_cast<double>(static_cast<int64_t>(to - from)); };
    const double us = between(before, now) / static_cast<double>(clock.ticks_per_us());
    EXPECT_GE(us, between(before_ns, now_ns) / 1000 - 2'000);
    EXPECT_LE(us, between(earlier_ns, later_ns) / 1000 + 2'000);
  }
}

// The tick may be later than any that is known of.
TEST(ClockTest, ACoarseClockThatIsFarBehindTheCounterStandsStill) {
  EXPECT_EQ(TicksOfCounter(5'000, 4'000, 3ull << 32, 3'000), 5'000u);
  EXPECT_EQ(TicksOfCounter(5'000, 4'000, 3ull << 32, 4'000), 5'000u);
  EXPECT_EQ(TicksOfCounter(5'000, 4'000, 3ull << 32, 4'010), 5'030u);
}

// Its parent's copy has the time at which it was made, whatever its own clocks say.
TEST(ClockTest, WhereItStandsStillItSaysWhatItWasTold) {
  for (const bool coarse : {false, true}) {
    Clock clock;
    if (!coarse) clock.Init();
    clock.StandStill(1'234, 5'678);
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(clock.Now(), 1'234u);
      EXPECT_EQ(clock.OrderedNow(), 1'234u);
      EXPECT_EQ(clock.MonotonicNs(), 5'678u);
    }
  }
}

// Of a fork.
TEST(ClockTest, AChildGoesOnInTheTicksOfTheCounter) {
  for (const bool forgone : {false, true}) {
    Clock clock;
    clock.Init("tsc\n", true);
    if (clock.kind() != ClockKind::kTsc) GTEST_SKIP() << "it is too slow here";
    if (forgone) clock.ForgoCounter();
    const uint64_t before = clock.OrderedNow();
    clock.BeginInChild();
    if (!forgone) clock.ForgoCounter();
    const uint64_t now = clock.OrderedNow();
    EXPECT_GE(now, before);
    EXPECT_LT(now - before, clock.ticks_per_us() * 1'000'000) << "a second";
  }
}

// As after a fork in the midst of it, or in a handler that interrupted it.
TEST(ClockTest, TheCounterIsForgoneAsOftenAsOneLikes) {
  for (int i = 0; i < 200; ++i) {
    Clock clock;
    clock.Init("tsc\n", true);
    if (clock.kind() != ClockKind::kTsc) GTEST_SKIP() << "it is too slow here";
    std::vector<std::thread> threads;
    std::atomic<int> backwards{0};
    for (int n = 0; n < 4; ++n) {
      threads.emplace_back([&] {
        uint64_t last = clock.OrderedNow();
        clock.ForgoCounter();
        for (int k = 0; k < 10; ++k) {
          const uint64_t now = clock.OrderedNow();
          if (now <= last) backwards.fetch_add(1);
          last = now;
          clock.ForgoCounter();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(backwards.load(), 0);
  }
}

TEST(ClockTest, WithoutCallsItIsNotBehindWhatWasTakenBefore) {
  for (int i = 0; i < 1000; ++i) {
    Clock clock;
    clock.Init("kvm-clock\n", true);
    const uint64_t before = clock.OrderedNow();
    clock.ForgoCalls();
    ASSERT_GT(clock.OrderedNow(), before);
    // Ahead by the longest tick. A pair has both of one clock, so the reader's conversion has no jump.
    const uint64_t coarse_ns = NowNs(CLOCK_MONOTONIC_COARSE);
    const uint64_t earlier_ns = clock.MonotonicNs(), now = clock.Now(), later_ns = clock.MonotonicNs();
    ASSERT_GE(earlier_ns, coarse_ns + 10'000'000);
    ASSERT_GE(now, earlier_ns);
    ASSERT_LE(now, later_ns);
  }
}

}  // namespace
}  // namespace memtrace
