// One grammar of sizes, which `check`, `report`, `diff`, `trend` and `run` all take.

#include "report/base/byte_size.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "report/analysis/block_ranges.h"
#include "report/diff/run_diff.h"
#include "report/gate/policy.h"

namespace memtrace::report {
namespace {

TEST(ByteSizeTest, UnitsAreBinary) {
  EXPECT_EQ(*ParseByteSize("4096"), 4096u);
  EXPECT_EQ(*ParseByteSize("0"), 0u);
  EXPECT_EQ(*ParseByteSize("4B"), 4u);
  EXPECT_EQ(*ParseByteSize("512K"), 512u << 10);
  EXPECT_EQ(*ParseByteSize("64KB"), 64u << 10);
  EXPECT_EQ(*ParseByteSize("1.5M"), 3u << 19);
  EXPECT_EQ(*ParseByteSize("2GiB"), uint64_t{2} << 30);
  EXPECT_EQ(*ParseByteSize("2 gb"), uint64_t{2} << 30);
  EXPECT_EQ(*ParseByteSize("1T"), uint64_t{1} << 40);
  // Whole numbers are exact: no double holds this one.
  EXPECT_EQ(*ParseByteSize("9007199254740993K"), 9007199254740993u << 10);
  EXPECT_EQ(*ParseByteSize("18446744073709551615"), UINT64_MAX);
}

TEST(ByteSizeTest, SaysWhatIsWrong) {
  for (const char* wrong : {"", "K", "-1", "1.5", "1.5B", "4X", "4KiBs", "1MK", "1e3", "1..2M",
                            "0x10", "inf", "nanM"}) {
    const auto size = ParseByteSize(wrong);
    ASSERT_FALSE(size.ok()) << wrong;
    EXPECT_EQ(size.status().message(),
              "\"" + std::string(wrong) + "\" is not a size such as 4096, 512K, 1.5M or 2G");
  }
  for (const char* large : {"18446744073709551616", "16777216T", "8388608.5T",
                            "99999999999999999999G"}) {
    const auto size = ParseByteSize(large);
    ASSERT_FALSE(size.ok()) << large;
    EXPECT_TRUE(absl::IsOutOfRange(size.status()));
    EXPECT_EQ(size.status().message(), "\"" + std::string(large) + "\" is too large");
  }
}

TEST(ByteSizeTest, CountsAreDecimal) {
  EXPECT_EQ(*ParseCount("1000"), 1000u);
  EXPECT_EQ(*ParseCount("5k"), 5000u);
  EXPECT_EQ(*ParseCount("1.5M"), 1'500'000u);
  for (const char* wrong : {"5KiB", "5KB", "5B", "", "1.5"}) {
    EXPECT_FALSE(ParseCount(wrong).ok()) << wrong;
  }
}

// Of --max-peak, --tolerance, --size and --min; run_command_test.cc has those of `run`.
TEST(ByteSizeTest, EveryOptionTakesTheSame) {
  for (const auto& [text, bytes] : {std::pair<std::string, uint64_t>{"100", 100},
                                    {"64KB", 65536}, {"64kib", 65536}, {"64 K", 65536},
                                    {"1.5M", 3 << 19}, {"1T", uint64_t{1} << 40}}) {
    EXPECT_EQ(gate::ParseLimit("--max-peak", text, false)->most, bytes) << text;
    EXPECT_EQ(gate::ParseTolerance(text)->bytes, bytes) << text;
    EXPECT_EQ(*ParseSizeRange("--size", text), (ValueRange{bytes, bytes})) << text;
    EXPECT_EQ(*ParseSizeRange("--size", text + ".."), (ValueRange{bytes, UINT64_MAX})) << text;
    EXPECT_EQ(ParseLeast(text)->amount, static_cast<double>(bytes)) << text;
  }
  for (const std::string wrong : {"1MK", "64KX", "1e3", "-5"}) {
    EXPECT_FALSE(gate::ParseLimit("--max-peak", wrong, false).ok()) << wrong;
    EXPECT_FALSE(ParseSizeRange("--size", wrong).ok()) << wrong;
    EXPECT_FALSE(ParseLeast(wrong).ok()) << wrong;
  }
}

TEST(ByteSizeTest, EveryOptionSaysWhatIsTooLarge) {
  for (const std::string large : {"99999999999999999999G", "16777216T"}) {
    const std::string says = ": \"" + large + "\" is too large";
    EXPECT_EQ(gate::ParseLimit("--max-peak", large, false).status().message(), "--max-peak" + says);
    EXPECT_EQ(gate::ParseTolerance(large).status().message(), "--tolerance" + says);
    for (const std::string& range : {large, large + "..", "1.." + large}) {
      EXPECT_EQ(ParseSizeRange("--size", range).status().message(), "--size" + says) << range;
    }
    EXPECT_EQ(ParseLeast(large).status().message(), "--min" + says);
  }
  for (const char* unit : {"", "%"}) {  // as a double it would be infinite
    const std::string digits = std::string(400, '9') + unit;
    EXPECT_EQ(ParseLeast(digits).status().message(), "--min: \"" + digits + "\" is too large");
  }
}

}  // namespace
}  // namespace memtrace::report
