// The draws of the sampler against what mathematics says of them. Seeds are fixed: the
// bounds are those of a test that would fail once in a hundred thousand seeds.

#include "preload/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace memtrace {
namespace {

TEST(SamplerTest, LogarithmsAreExactToTheLastDigitsButFew) {
  uint64_t state = 1;
  std::vector<uint64_t> values = {1, 2, 3, 4, 5, 7, 1000, uint64_t{1} << 32, uint64_t{1} << 63,
                                  UINT64_MAX, UINT64_MAX - 1, UINT64_MAX / 2};
  for (int i = 0; i < 20000; ++i) values.push_back(NextRandom(&state) >> i % 64 | 1);
  for (const uint64_t u : values) {
    const long double expected = 64 - std::log2(static_cast<long double>(u));
    EXPECT_NEAR(static_cast<double>(std::ldexp(static_cast<long double>(NegativeLog2(u)), -52)),
                static_cast<double>(expected), 1e-14) << u;
  }
}

TEST(SamplerTest, DistancesAreExponential) {
  constexpr int kDraws = 400000;
  for (const uint64_t mean : {1000ull, 524288ull, 1ull << 40}) {
    uint64_t state = mean;
    std::vector<double> draws(kDraws);
    for (double& each : draws) {
      // A whole number stands for its middle: floor(x) + 1.
      each = (static_cast<double>(DrawDistance(&state, mean)) - 0.5) / static_cast<double>(mean);
    }
    std::sort(draws.begin(), draws.end());
    double sum = 0, squares = 0, farthest = 0;
    for (int i = 0; i < kDraws; ++i) {
      sum += draws[i];
      squares += draws[i] * draws[i];
      const double expected = 1 - std::exp(-draws[i]);
      farthest = std::max({farthest, std::abs(expected - i / double{kDraws}),
                           std::abs(expected - (i + 1) / double{kDraws})});
    }
    EXPECT_NEAR(sum / kDraws, 1, 4.5 / std::sqrt(kDraws)) << mean;
    // The fourth moment is 24: the squares' mean has a deviation of sqrt(20 / n).
    EXPECT_NEAR(squares / kDraws, 2, 4.5 * std::sqrt(20.0 / kDraws)) << mean;
    // Kolmogorov and Smirnov; 2.5 is passed by once in 270,000. Half a step of the whole
    // numbers comes on top.
    EXPECT_LT(farthest * std::sqrt(kDraws), 2.5 + 0.5 / static_cast<double>(mean) *
                                                      std::sqrt(kDraws)) << mean;
  }
}

TEST(SamplerTest, SamplesEachSizeWithItsProbability) {
  constexpr uint64_t kMean = 4096;
  for (const uint64_t size : {1ull, 16ull, 100ull, 4096ull, 20000ull}) {
    uint64_t state = size, until = DrawDistance(&state, kMean), sampled = 0;
    constexpr int kTimes = 400000;
    for (int i = 0; i < kTimes; ++i) {
      if (!TakeBytes(until, size)) continue;
      ++sampled;
      until = DrawDistance(&state, kMean);
    }
    const double p = -std::expm1(-static_cast<double>(size) / kMean);
    EXPECT_NEAR(static_cast<double>(sampled), kTimes * p, 4.5 * std::sqrt(kTimes * p * (1 - p)))
        << size;
  }
}

// The neighbours of a sampled allocation are as likely to be sampled as any.
TEST(SamplerTest, NeighboursAreIndependent) {
  constexpr uint64_t kMean = 1000, kSize = 700;
  const double p = -std::expm1(-0.7);
  uint64_t state = 9, until = DrawDistance(&state, kMean);
  constexpr int kTimes = 400000;
  int both = 0;
  bool before = false;
  for (int i = 0; i < kTimes; ++i) {
    const bool sampled = TakeBytes(until, kSize);
    if (sampled) until = DrawDistance(&state, kMean);
    both += sampled && before;
    before = sampled;
  }
  EXPECT_NEAR(both, kTimes * p * p, 6 * std::sqrt(kTimes * p * p));
}

TEST(SamplerTest, TakesBytesAsDefined) {
  uint64_t until = 10;
  EXPECT_FALSE(TakeBytes(until, 0));
  EXPECT_FALSE(TakeBytes(until, 9));
  EXPECT_EQ(until, 1u);
  EXPECT_FALSE(TakeBytes(until, 0));  // 0 bytes are never sampled
  EXPECT_TRUE(TakeBytes(until, 1));
  EXPECT_TRUE(TakeBytes(until, 1)) << "it was not drawn anew";
  until = 5;
  EXPECT_TRUE(TakeBytes(until, SIZE_MAX / 2));
  until = 5;
  EXPECT_FALSE(TakeBytes(until, SIZE_MAX));
  until = 0;  // of a thread that is not sampling: everything is looked at
  EXPECT_TRUE(TakeBytes(until, 0));
}

}  // namespace
}  // namespace memtrace
