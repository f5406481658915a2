#include "preload/pace.h"

#include <gtest/gtest.h>

namespace memtrace {
namespace {

TEST(PaceTest, WhatTakesLongIsDueSeldom) {
  Pace pace;
  EXPECT_TRUE(pace.IsDue(1000));
  pace.Took(500, 520, 100'000);
  pace.Took(1000, 1010, 100'000);
  EXPECT_FALSE(pace.IsDue(1010));
  EXPECT_FALSE(pace.IsDue(1010 + 50 * 10 - 1));
  EXPECT_TRUE(pace.IsDue(1010 + 50 * 10));
  pace.Took(2000, 2000, 100'000);  // by a clock that is too coarse to tell
  EXPECT_TRUE(pace.IsDue(2000));
}

TEST(PaceTest, WhoReadTheClockBeforeAnotherWasDoneIsNotDue) {
  Pace pace;
  pace.Took(5000, 5001, 100'000);
  pace.Took(5000, 5001, 100'000);
  EXPECT_FALSE(pace.IsDue(4000));
}

TEST(PaceTest, WhoWasStoppedMeanwhileOnceWaitsAsBefore) {
  Pace pace;
  pace.Took(1000, 1001, 100'000);
  pace.Took(2000, 9000, 100'000);
  EXPECT_TRUE(pace.IsDue(9050));
  pace.Took(9050, 9051, 100'000);
  EXPECT_TRUE(pace.IsDue(9101));
}

TEST(PaceTest, WhoWasStoppedAgainWaitsNoLongerThanTheMost) {
  Pace pace;
  pace.Took(100'000, 900'000, 100'000);
  pace.Took(1'000'000, 9'000'000, 100'000);
  EXPECT_FALSE(pace.IsDue(9'000'000 + 99'999));
  EXPECT_TRUE(pace.IsDue(9'000'000 + 100'000));
}

}  // namespace
}  // namespace memtrace
