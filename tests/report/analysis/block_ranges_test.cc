// Ranges of sizes and times as users write them.

#include "report/analysis/block_ranges.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "absl/strings/string_view.h"

namespace memtrace::report {
namespace {

TEST(BlockRangesTest, OfSizesAndTimes) {
  EXPECT_EQ(*ParseSizeRange("--size", "64"), (ValueRange{64, 64}));
  EXPECT_EQ(*ParseSizeRange("--size", "1K..64KiB"), (ValueRange{1024, 65536}));
  EXPECT_EQ(*ParseSizeRange("--size", "..100"), (ValueRange{0, 100}));
  EXPECT_EQ(*ParseSizeRange("--size", "2M.."), (ValueRange{2 << 20, UINT64_MAX}));
  EXPECT_EQ(*ParseTimeRange("--age", "1ms..2s"), (ValueRange{1'000'000, 2'000'000'000}));
  EXPECT_EQ(*ParseTimeRange("--age", "1h.."), (ValueRange{3'600'000'000'000, UINT64_MAX}));
  for (const char* bad : {"", "..", "x", "-1..", "1..2..3", "5..1", "1K..x", "99999999999G.."}) {
    const auto range = ParseSizeRange("--size", bad);
    EXPECT_FALSE(range.ok()) << bad;
    EXPECT_NE(range.status().message().find("--size"), absl::string_view::npos);
  }
  for (const char* bad : {"1ms", "90%..", "phase:x..", "2s..1s", "1 apple.."}) {
    EXPECT_FALSE(ParseTimeRange("--lifetime", bad).ok()) << bad;
  }
}

}  // namespace
}  // namespace memtrace::report
