// The intervals of estimates, by drawing the samples of known totals again and again.

#include "report/findings/sampling.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace memtrace::report {
namespace {

constexpr uint64_t kEvery = 4096;

struct Score {
  double covered = 0;       // share of the intervals that hold the truth
  double mean = 0;          // of the estimates, over the truth
  double variance = 0;      // of the estimates, over the mean of their own estimates of it
  double deviation = 0;     // of one estimate, over the truth
};

Score Draw(const std::vector<uint64_t>& sizes, int times) {
  std::mt19937_64 random(sizes.size());
  std::uniform_real_distribution<double> uniform(0, 1);
  double truth = 0;
  for (const uint64_t size : sizes) truth += static_cast<double>(size);
  double covered = 0, sum = 0, squares = 0, variances = 0;
  for (int i = 0; i < times; ++i) {
    SampledSum estimate;
    for (const uint64_t size : sizes) {
      if (uniform(random) < SampleProbability(size, kEvery)) estimate.Add(size, kEvery);
    }
    const Interval interval = estimate.Interval95();
    covered += static_cast<double>(interval.low) <= truth + 0.5 &&
               truth <= static_cast<double>(interval.high) + 0.5;
    sum += estimate.estimate;
    squares += estimate.estimate * estimate.estimate;
    variances += estimate.variance;
  }
  const double mean = sum / times, variance = squares / times - mean * mean;
  return {covered / times, mean / truth, variance / (variances / times),
          std::sqrt(variance) / truth};
}

TEST(SamplingTest, EstimatesAreUnbiasedAndIntervalsHoldWhatTheyPromise) {
  std::mt19937_64 random(7);
  std::vector<uint64_t> mixed;
  for (int i = 0; i < 600; ++i) mixed.push_back(16ull << random() % 11);
  const struct {
    const char* what;
    std::vector<uint64_t> sizes;
  } cases[] = {
      {"many small", std::vector<uint64_t>(6000, 64)},       // 94 samples expected
      {"some small", std::vector<uint64_t>(1280, 64)},       // 20
      {"few small", std::vector<uint64_t>(320, 64)},         // 5
      {"as large as the distance", std::vector<uint64_t>(50, 4096)},
      {"large", std::vector<uint64_t>(40, 16384)},           // all but certain
      {"mixed", mixed},
  };
  constexpr int kTimes = 4000;
  for (const auto& each : cases) {
    const Score score = Draw(each.sizes, kTimes);
    EXPECT_NEAR(score.mean, 1, 4.5 * score.deviation / std::sqrt(kTimes)) << each.what;
    EXPECT_NEAR(score.variance, 1, 0.15) << each.what;
    EXPECT_GE(score.covered, 0.935) << each.what;
    EXPECT_LE(score.covered, 0.995) << each.what;
  }
}

// Where the normal approximation has its interval begin below what was seen.
TEST(SamplingTest, OneSampleSaysLittleAndAtLeastItself) {
  SampledSum sum;
  sum.Add(64, kEvery);
  const Interval interval = sum.Interval95();
  EXPECT_GE(interval.low, 64u);
  EXPECT_LT(interval.low, 600u);
  // Exactly: 5.57 times the weight of one, by the Poisson distribution (Garwood 1936).
  EXPECT_NEAR(static_cast<double>(interval.high), 5.57 * sum.estimate, 0.01 * interval.high);
}

TEST(SamplingTest, NothingIsUncertainOfATraceOfEverything) {
  SampledSum sum;
  sum.Add(64, 0);
  sum.Add(1000, 0);
  EXPECT_EQ(sum.Interval95().low, 1064u);
  EXPECT_EQ(sum.Interval95().high, 1064u);
  EXPECT_EQ(SampledSum().Interval95().high, 0u);
}

TEST(SampleWeightTest, StandsForOneOverTheProbability) {
  EXPECT_EQ(SampleWeight(100, 0).blocks, 1u);
  EXPECT_EQ(SampleWeight(100, 0).bytes, 100u);
  for (const uint64_t size : {1, 100, 4096, 100000}) {
    const SampleWeight weight(size, kEvery);
    const double p = 1 - std::exp(-static_cast<double>(size) / kEvery);
    EXPECT_NEAR(weight.blocks / 4096.0, 1 / p, 1e-3 / p);
    EXPECT_NEAR(weight.bytes / 4096.0, size / p, 1e-3 * size / p);
  }
}

TEST(SampleWeightTest, SurvivesWhatNoLibraryWrites) {
  for (const uint64_t size : {uint64_t{0}, uint64_t{1}, UINT64_MAX}) {
    for (const uint64_t every : {uint64_t{1}, UINT64_MAX}) {
      const SampleWeight weight(size, every);
      EXPECT_GE(weight.blocks, 4096u);
      SampledSum sum;
      sum.Add(size, every);
      EXPECT_LE(sum.Interval95().low, sum.Interval95().high);
    }
  }
}

}  // namespace
}  // namespace memtrace::report
