#include "report/render/plot.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "report/words/escape.h"

namespace memtrace::report::render {
namespace {

TEST(ResampleTest, TheHighestColumnIsTheHighestPoint) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    const size_t points = 1 + random() % 400;
    const TimeAxis axis{random() % 1000, 1000 + random() % 1000000, 1 + random() % 190};
    std::vector<Sample> samples;
    for (size_t i = 0; i < points; ++i) {
      samples.push_back({axis.from_ns + (axis.to_ns - axis.from_ns) * (i + 1) / points,
                         static_cast<double>(random() % 1000000)});
    }
    const std::vector<double> columns = ResampleMax(samples, axis);
    ASSERT_EQ(columns.size(), axis.columns);
    const auto highest = std::max_element(samples.begin(), samples.end(),
                                          [](auto& a, auto& b) { return a.value < b.value; });
    EXPECT_EQ(*std::max_element(columns.begin(), columns.end()), highest->value);
  }
}

TEST(ResampleTest, SumsAreKept) {
  std::mt19937 random(2);
  for (int round = 0; round < 200; ++round) {
    const size_t points = 1 + random() % 400;
    const TimeAxis axis{random() % 1000, 1000 + random() % 1000000, 1 + random() % 190};
    std::vector<Sample> samples;
    double sum = 0;
    for (size_t i = 0; i < points; ++i) {
      samples.push_back({axis.from_ns + (axis.to_ns - axis.from_ns) * (i + 1) / points,
                         static_cast<double>(random() % 1000)});
      sum += samples.back().value;
    }
    const std::vector<double> columns = ResampleSum(samples, axis);
    EXPECT_NEAR(std::accumulate(columns.begin(), columns.end(), 0.0), sum, sum * 1e-9 + 1e-6);
    EXPECT_GE(*std::min_element(columns.begin(), columns.end()), 0);
  }
}

TEST(ResampleTest, ABurstStaysAtItsMoment) {
  const TimeAxis axis{0, 1000, 10};
  const std::vector<Sample> samples = {{100, 0}, {200, 0}, {300, 256}, {1000, 0}};
  const std::vector<double> columns = ResampleSum(samples, axis);
  EXPECT_EQ(columns[2], 256);
  EXPECT_EQ(std::accumulate(columns.begin(), columns.end(), 0.0), 256);
}

TEST(ResampleTest, ALevelHoldsSinceThePointBefore) {
  const TimeAxis axis{0, 1000, 10};
  const std::vector<Sample> samples = {{500, 1}, {1000, 7}};
  EXPECT_EQ(ResampleMax(samples, axis), (std::vector<double>{1, 1, 1, 1, 1, 7, 7, 7, 7, 7}));
}

TEST(ResampleTest, DegenerateAxesDoNotBreakIt) {
  const std::vector<Sample> samples = {{5, 1}, {5, 2}, {3, 4}, {UINT64_MAX, 1}};
  EXPECT_EQ(ResampleMax(samples, {0, 0, 0}).size(), 0u);
  EXPECT_EQ(ResampleMax(samples, {5, 5, 3}).size(), 3u);
  EXPECT_EQ(ResampleSum(samples, {5, 5, 3}).size(), 3u);
  EXPECT_EQ(ResampleSum(samples, {0, 0, 0}).size(), 0u);
}

size_t InkOf(const std::vector<std::string>& lines, size_t column) {
  size_t rows = 0;
  for (const std::string& line : lines) rows += line[column] != ' ';
  return rows;
}

TEST(BarsTest, TheMaximumFillsTheHeightAndNothingIsLost) {
  Style ascii;
  const std::vector<double> values = {0, 1, 250, 500, 1000};
  const std::vector<std::string> lines = Bars(values, 1000, 8, ascii);
  ASSERT_EQ(lines.size(), 8u);
  EXPECT_EQ(InkOf(lines, 0), 0u);
  EXPECT_EQ(InkOf(lines, 1), 1u) << "what is not 0 is seen";
  EXPECT_EQ(InkOf(lines, 2), 2u);
  EXPECT_EQ(InkOf(lines, 3), 4u);
  EXPECT_EQ(InkOf(lines, 4), 8u);
}

TEST(BarsTest, EveryLineIsAsWideAsTheValues) {
  Style utf8;
  utf8.utf8 = true;
  const std::vector<double> values = {0, 1, 3, 7, 20, 100, 0.001, 55};
  for (const std::string& line : Bars(values, 100, 5, utf8)) {
    EXPECT_EQ(words::DisplayWidth(line), values.size());
  }
  for (double value = 0; value <= 100; value += 0.7) {
    EXPECT_LE(words::DisplayWidth(HorizontalBar(value, 100, 20, utf8)), 20u);
    EXPECT_EQ(HorizontalBar(value, 100, 20, utf8).empty(), value == 0);
  }
}

TEST(TimeAxisTest, TicksAreRoundAndLabelsDoNotTouch) {
  Style style;
  for (const size_t columns : {45u, 65u, 185u}) {
    for (const uint64_t span : {uint64_t{900}, uint64_t{3'000'000}, uint64_t{1'870'000'000},
                                uint64_t{100'000'000'000}, uint64_t{90'000'000'000'000}}) {
      const std::vector<std::string> lines = TimeAxisLines({0, span, columns}, style);
      ASSERT_EQ(lines.size(), 2u);
      EXPECT_EQ(lines[0].size(), columns);
      EXPECT_EQ(lines[1].size(), columns);
      EXPECT_GE(std::count(lines[0].begin(), lines[0].end(), '+'), 2) << span;
      EXPECT_EQ(lines[1][0], '0');
    }
  }
  const std::vector<std::string> lines = TimeAxisLines({0, 2'000'000'000, 60}, style);
  EXPECT_NE(lines[1].find("0.5 s"), std::string::npos) << lines[1];
}

// What the axis says, blanks as one.
std::string Labels(uint64_t from_ns, uint64_t to_ns) {
  const std::string line = TimeAxisLines({from_ns, to_ns, 60}, Style())[1];
  const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
  return absl::StrJoin(words, " ");
}

TEST(TimeAxisTest, LabelsAreInOneUnit) {
  EXPECT_EQ(Labels(9'980'000'000, 10'020'000'000), "9.98 s 9.99 s 10 s 10.01 s");
  EXPECT_EQ(Labels(9'940'000'000, 9'980'000'000), "9940 ms 9950 ms 9960 ms 9970 ms");
  EXPECT_EQ(Labels(0, 3'600'000'000'000), "0 20 min 40 min");
  EXPECT_EQ(Labels(0, 90'000'000'000'000), "0 6 h 12 h 18 h");
}

TEST(TimeAxisTest, LabelsHaveTheDigitsOfTheStep) {
  EXPECT_EQ(Labels(10'500'010'000, 10'500'040'000), "10.50001 s 10.50002 s 10.50003 s");
  EXPECT_EQ(Labels(10'500'100'000, 10'500'300'000),
            "10.5001 s 10.50015 s 10.5002 s 10.50025 s");
  EXPECT_EQ(Labels(1'000'000'000'000'000, 1'000'000'000'000'200),
            "1000000 s 1000000.00000005 s");
}

}  // namespace
}  // namespace memtrace::report::render
