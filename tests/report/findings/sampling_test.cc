// The intervals of estimates, by drawing the samples of known totals again and again.

#include "report/findings/sampling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
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
    // Of large blocks that are all but certain less is unseen than has to be allowed for.
    EXPECT_LE(score.covered, 0.998) << each.what;
  }
}

// Blocks of some sizes, so many of each, of which samples are drawn.
class MadeHeap {
 public:
  void Add(double size, double blocks) {
    groups_.push_back(
        {static_cast<uint64_t>(std::max(1.0, size)), std::max<uint64_t>(1, std::llround(blocks))});
    bytes_ += static_cast<double>(groups_.back().size * groups_.back().blocks);
  }

  SampledSum Sample(std::mt19937_64* random) const {
    SampledSum sum{.sample_bytes = kEvery};
    for (const Group& group : groups_) {
      std::binomial_distribution<uint64_t> samples(group.blocks,
                                                   SampleProbability(group.size, kEvery));
      for (uint64_t left = samples(*random); left > 0; --left) sum.Add(group.size, kEvery);
    }
    return sum;
  }
  // The share of intervals that hold the truth. None may be wider than its kind: than that of so
  // many samples, and what is allowed for where there is none.
  double Covered(int times, std::mt19937_64* random) const {
    int covered = 0;
    for (int i = 0; i < times; ++i) {
      const SampledSum sum = Sample(random);
      const Interval interval = sum.Interval95();
      const auto low = static_cast<double>(interval.low), high = static_cast<double>(interval.high);
      covered += low <= bytes_ + 0.5 && bytes_ <= high + 0.5;
      EXPECT_GE(low + 0.5, sum.seen);
      EXPECT_LE(low, sum.estimate + 0.5);
      EXPECT_GE(high, sum.seen + 3.6 * kEvery);
      EXPECT_LE(high - low, 2 * SampledSum::kNormal95 * std::sqrt(sum.variance) + 3.75 * kEvery);
    }
    return static_cast<double>(covered) / times;
  }

 private:
  struct Group {
    uint64_t size, blocks;
  };
  std::vector<Group> groups_;
  double bytes_ = 0;
};

// Each heap by itself, not on average over heaps: also those whose small blocks have no sample.
TEST(SamplingTest, AnIntervalHoldsTheTruthWhateverTheSizesAre) {
  std::mt19937_64 random(11);
  std::uniform_real_distribution<double> uniform(0, 1);
  // Between the two, as often below their geometric mean as above it.
  const auto between = [&](double low, double high) {
    return low * std::pow(high / low, uniform(random));
  };
  const auto small = [&](MadeHeap* heap, double least_bytes, double most_bytes) {
    const double size = between(1, kEvery / 16);
    heap->Add(size, between(least_bytes, most_bytes) * kEvery / size);
  };
  const auto any = [&](MadeHeap* heap, double most) {
    heap->Add(between(0.02, 12) * kEvery, between(1, most));
  };
  const struct {
    const char* what;
    std::function<void(MadeHeap*)> fill;
  } kinds[] = {
      {"only small", [&](MadeHeap* heap) { small(heap, 0.05, 100); }},
      {"only large", [&](MadeHeap* heap) { heap->Add(between(1, 30) * kEvery, between(1, 60)); }},
      {"one large and many small",
       [&](MadeHeap* heap) {
         heap->Add(between(3, 100) * kEvery, 1);
         small(heap, 0.1, 20);
       }},
      {"few of all",
       [&](MadeHeap* heap) {
         for (int i = 0; i < 3; ++i) any(heap, 2);
       }},
      {"many of all",
       [&](MadeHeap* heap) {
         for (int i = 0; i < 5; ++i) any(heap, 50);
         small(heap, 0.1, 50);
       }},
  };
  constexpr int kHeaps = 60, kTimes = 1000;
  for (const auto& kind : kinds) {
    double sum = 0, least = 1;
    for (int i = 0; i < kHeaps; ++i) {
      MadeHeap heap;
      kind.fill(&heap);
      const double covered = heap.Covered(kTimes, &random);
      sum += covered;
      least = std::min(least, covered);
    }
    EXPECT_GE(sum / kHeaps, 0.95) << kind.what;
    EXPECT_GE(least, 0.93) << kind.what;
  }
}

// A block of 10 MiB and 400 of 1000 bytes, of which nearly half of all samples have none.
TEST(SamplingTest, BehindALargeBlockThereMayBeSmallOnes) {
  MadeHeap heap;
  heap.Add(20.0 * kEvery, 1);
  heap.Add(kEvery / 500.0, 381);
  std::mt19937_64 random(3);
  EXPECT_GE(heap.Covered(2000, &random), 0.95);
  SampledSum sum;
  sum.Add(20 * kEvery, kEvery);
  EXPECT_EQ(sum.Interval95().low, 20 * kEvery) << "which was seen";
  EXPECT_NEAR(static_cast<double>(sum.Interval95().high), (20 + 3.69) * kEvery, 0.03 * kEvery);
}

// What has no sample is less than 3.69 N, by the Poisson distribution. So says a sum of none.
TEST(SamplingTest, NoSampleIsNotNothing) {
  SampledSum none{.sample_bytes = kEvery};
  EXPECT_EQ(none.Interval95().low, 0u);
  EXPECT_NEAR(static_cast<double>(none.Interval95().high), 3.69 * kEvery, 0.03 * kEvery);
  none.exact = 100;  // of a process of which there is everything
  EXPECT_EQ(none.Interval95().low, 100u);
  SampledSum all;
  all.exact = 100;
  all.Add(none);
  EXPECT_EQ(all.Interval95().low, 200u);
  EXPECT_GT(all.Interval95().high, 3 * kEvery) << "of which traces the sum is, it knows";
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
