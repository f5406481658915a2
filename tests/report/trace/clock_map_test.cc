// Ticks to nanoseconds, with clocks that drift, jump and lie.

#include "report/trace/clock_map.h"

#include <gtest/gtest.h>

#include <random>

namespace memtrace::report {
namespace {

constexpr uint64_t kMs = 1'000'000;

TEST(ClockMapTest, RunsLinearlyBetweenPairs) {
  ClockMap clock;
  clock.Add(1000, 5000 * kMs);
  clock.Add(1000 + 3'000'000, 6000 * kMs);  // 3 ticks a us
  clock.Add(1000 + 9'000'000, 7000 * kMs);  // then 6
  clock.Build(5000 * kMs, 0);
  EXPECT_EQ(clock.ToNs(1000), 0u);
  EXPECT_EQ(clock.ToNs(1000 + 1'500'000), 500 * kMs);
  EXPECT_EQ(clock.ToNs(1000 + 3'000'000), 1000 * kMs);
  EXPECT_EQ(clock.ToNs(1000 + 6'000'000), 1500 * kMs);
}

TEST(ClockMapTest, WhatNothingGuardsIsBelievedWithinBounds) {
  ClockBounds bounds;
  EXPECT_TRUE(bounds.Allows(1, uint64_t{1} << 50, 0)) << "nothing is known";
  bounds.Add(1'000'000'000, 5'000'000'000);
  EXPECT_TRUE(bounds.Allows(9, uint64_t{1} << 50, 0)) << "nor is the pace";
  EXPECT_FALSE(bounds.Allows(2'000'000'000, uint64_t{1} << 50, 1'000'000'000));
  bounds.Add(3'000'000'000, 7'000'000'000);
  EXPECT_TRUE(bounds.Allows(2'000'000'000, 6'000'000'000, 0));
  EXPECT_TRUE(bounds.Allows(9'000'000'000, 13'000'000'000, 0));
  EXPECT_TRUE(bounds.Allows(500'000'000, 4'500'000'000, 0));
  EXPECT_FALSE(bounds.Allows(9'000'000'000, 33'000'000'000, 0));
  EXPECT_FALSE(bounds.Allows(90'000'000'000, 13'000'000'000, 0));
  EXPECT_FALSE(bounds.Allows(2'000'000'000, 60'000'000'000, 0));
  EXPECT_FALSE(bounds.Allows(500'000'000, 500'000'000, 0));
  ClockMap clock;
  clock.Add(1'000'000'000, 5'000'000'000);
  clock.AddUnguarded(2'000'000'000, 6'500'000'000);
  clock.AddUnguarded(2'500'000'000, uint64_t{1} << 50);
  clock.Add(3'000'000'000, 7'000'000'000);
  clock.Build(5'000'000'000, 0);
  EXPECT_EQ(clock.pairs(), 3u);
  EXPECT_EQ(clock.ToNs(2'000'000'000), 1'500'000'000u);
}

TEST(ClockMapTest, GoesOnAtTheMeanPace) {
  ClockMap clock;
  clock.Add(1'000'000, 1000 * kMs);
  clock.Add(2'000'000, 2000 * kMs);
  clock.Build(1000 * kMs, 0);
  EXPECT_EQ(clock.ToNs(3'000'000), 2000 * kMs);
  EXPECT_EQ(clock.ToNs(500'000), 0u) << "before the start";
}

TEST(ClockMapTest, OnePairNeedsTheFrequency) {
  ClockMap clock;
  clock.Add(1'000'000, 1000 * kMs);
  clock.Build(1000 * kMs, 2'000'000'000);
  EXPECT_EQ(clock.ToNs(1'000'000 + 2'000'000), 1 * kMs);
}

TEST(ClockMapTest, NoPairsAreNoCrash) {
  ClockMap clock;
  clock.Build(0, 0);
  EXPECT_EQ(clock.ToNs(1), 0u);
  clock.ToNs(UINT64_MAX);
  EXPECT_EQ(clock.pairs(), 1u);
}

TEST(ClockMapTest, ALatePairDoesNotTurnTimeBack) {
  ClockMap clock;
  clock.Add(1'000'000'000, 1000 * kMs);
  clock.Add(1'100'000'000, 1900 * kMs);  // preempted for 800 ms between its two reads
  clock.Add(1'200'000'000, 1200 * kMs);
  clock.Add(3'000'000'000, 3000 * kMs);
  clock.Build(1000 * kMs, 0);
  uint64_t last = 0;
  for (uint64_t ticks = 900'000'000; ticks < 3'500'000'000; ticks += 7'777'777) {
    const uint64_t now = clock.ToNs(ticks);
    EXPECT_GE(now, last);
    last = now;
  }
}

TEST(ClockMapTest, PairsCloseTogetherDoNotBendTime) {
  ClockMap clock;
  clock.Add(1'000'000'000, 1000 * kMs);
  for (int i = 1; i < 1000; ++i) {
    // Every read of the second clock is late by up to 50 us.
    clock.Add(1'000'000'000 + i * 1'000'000, 1000 * kMs + i * kMs + i % 50 * 1000);
  }
  clock.Build(1000 * kMs, 0);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_NEAR(static_cast<double>(clock.ToNs(1'000'000'000 + i * 1'000'000)), i * 1e6, 60'000);
  }
}

TEST(ClockMapTest, NeverDecreasesWhateverThePairs) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 200; ++round) {
    ClockMap clock;
    const unsigned shift = round % 60;
    for (int i = 0; i < 20; ++i) clock.Add(random() >> shift, random() >> shift);
    clock.Build(random() >> shift, random() >> shift);
    uint64_t last = 0;
    size_t hint = 0;
    for (int i = 0; i <= 1000; ++i) {
      const uint64_t ticks = (UINT64_MAX >> shift) / 1000 * i;
      EXPECT_GE(clock.ToNs(ticks), last);
      last = clock.ToNs(ticks);
      EXPECT_EQ(clock.ToNs(ticks, &hint), last) << "a hint changes nothing";
    }
  }
}

}  // namespace
}  // namespace memtrace::report
