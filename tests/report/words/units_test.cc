#include "report/words/units.h"

#include <gtest/gtest.h>

namespace memtrace::report::words {
namespace {

TEST(UnitsTest, BytesAreBinaryWithThreeDigits) {
  EXPECT_EQ(HumanBytes(0), "0 B");
  EXPECT_EQ(HumanBytes(1023), "1023 B");
  EXPECT_EQ(HumanBytes(1024), "1.00 KiB");
  EXPECT_EQ(HumanBytes(10239), "10.0 KiB");
  EXPECT_EQ(HumanBytes(1 << 20), "1.00 MiB");
  EXPECT_EQ(HumanBytes((1 << 20) - 1), "1.00 MiB") << "not 1024 KiB";
  EXPECT_EQ(HumanBytes(uint64_t{1} << 40), "1.00 TiB");
  EXPECT_EQ(HumanBytes(UINT64_MAX), "16384 PiB");
  EXPECT_EQ(ShortBytes(47 * 1024 + 100), "47.1K");
  EXPECT_EQ(ExactBytes(1), "1 byte");
  EXPECT_EQ(ExactBytes(1234567), "1,234,567 bytes");
  EXPECT_EQ(ExactOrHumanBytes(200), "200 bytes");
  EXPECT_EQ(ExactOrHumanBytes(2048), "2.00 KiB");
}

TEST(UnitsTest, CountsHaveSeparators) {
  EXPECT_EQ(Count(0), "0");
  EXPECT_EQ(Count(999), "999");
  EXPECT_EQ(Count(1000), "1,000");
  EXPECT_EQ(Count(1234567890), "1,234,567,890");
  EXPECT_EQ(Count(UINT64_MAX), "18,446,744,073,709,551,615");
  EXPECT_EQ(ShortCount(999), "999");
  EXPECT_EQ(ShortCount(1000), "1.00k");
  EXPECT_EQ(ShortCount(999950), "1.00M") << "not 1000k";
  EXPECT_EQ(Plural(1, "block"), "1 block");
  EXPECT_EQ(Plural(0, "block"), "0 blocks");
}

TEST(UnitsTest, DurationsHaveTheUnitThatFits) {
  EXPECT_EQ(Duration(0), "0 s");
  EXPECT_EQ(Duration(999), "999 ns");
  EXPECT_EQ(Duration(250'000), "250 us");
  EXPECT_EQ(Duration(999'600), "1.00 ms") << "not 1000 us";
  EXPECT_EQ(Duration(1'870'000'000), "1.87 s");
  EXPECT_EQ(Duration(119'000'000'000), "119 s");
  EXPECT_EQ(Duration(125'000'000'000), "2 min 5 s");
  EXPECT_EQ(Duration(11'520'000'000'000), "3 h 12 min");
}

TEST(UnitsTest, PercentSaysNeitherNothingOfSomethingNorAllOfMost) {
  EXPECT_EQ(Percent(719, 1000), "71.9 %");
  EXPECT_EQ(Percent(0, 1000), "0.0 %");
  EXPECT_EQ(Percent(1, 1000000), "<0.1 %");
  EXPECT_EQ(Percent(999999, 1000000), ">99.9 %");
  EXPECT_EQ(Percent(5, 5), "100 %");
  EXPECT_EQ(Percent(0, 0), "-");
}

TEST(UnitsTest, TimesAreUtc) {
  EXPECT_EQ(DateTime(1763712603000000000), "2025-11-21 08:10:03 UTC");
  EXPECT_EQ(DateTimeIso(1763712603000000042), "2025-11-21T08:10:03.000000042Z");
}

}  // namespace
}  // namespace memtrace::report::words
