// Lines of maps, as the kernel writes them, and what is none.

#include "report/base/map_line.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "report/base/numbers.h"

namespace memtrace::report {
namespace {

TEST(MapLineTest, HasAllFields) {
  MapLine line;
  ASSERT_TRUE(ParseMapLine(
      "7f12a0000000-7f12a0021000 rw-s 00003000 fe:01 1134612       /a dir/x.mtr (deleted)", &line));
  EXPECT_EQ(line.begin, 0x7f12a0000000u);
  EXPECT_EQ(line.end, 0x7f12a0021000u);
  EXPECT_EQ(line.permissions, "rw-s");
  EXPECT_EQ(line.offset, 0x3000u);
  EXPECT_EQ(line.device, "fe:01");
  EXPECT_EQ(line.inode, 1134612u);
  EXPECT_EQ(line.name, "/a dir/x.mtr (deleted)");
  EXPECT_FALSE(line.anonymous());
}

TEST(MapLineTest, MayHaveNoName) {
  MapLine line;
  ASSERT_TRUE(ParseMapLine("0-ffffffffffffffff ---p 00000000 00:00 0 ", &line));
  EXPECT_EQ(line.end, UINT64_MAX);
  EXPECT_EQ(line.name, "");
  EXPECT_TRUE(line.anonymous());
}

TEST(MapLineTest, WhatIsDamagedOrAFigureIsNone) {
  MapLine line;
  for (const char* none :
       {"", " ", "Rss:                 100 kB", "1000-2000", "1000-2000 rw-p", "1000-2000 rw-p 0",
        "1000-2000 rw-p 0 00:00", "1000-2000 rw-p 0 00:00 x", "1000-2000 rw-p x 00:00 0",
        "1000-2000 rw 0 00:00 0", "2000-1000 rw-p 0 00:00 0", "-1000 rw-p 0 00:00 0",
        "1000- rw-p 0 00:00 0", "1000-1ffffffffffffffff rw-p 0 00:00 0",
        "0x1000-0x2000 rw-p 0 00:00 0"}) {
    EXPECT_FALSE(ParseMapLine(none, &line)) << none;
  }
}

TEST(MapLineTest, LinesThatAreNotUnderstoodAreSkipped) {
  const std::string text =
      "1000-2000 r--p 00000000 08:01 11 /a\n\nnone\n2000-3000 rw-p 00000000 00:00 0 [heap]";
  const std::vector<MapLine> lines = LinesOf(text);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].name, "/a");
  EXPECT_EQ(lines[1].name, "[heap]");
}

TEST(NumbersTest, AreDigitsAndNothingElse) {
  uint64_t value = 0;
  EXPECT_TRUE(ParseDigits("ffffffffffffffff", 16, &value));
  EXPECT_EQ(value, UINT64_MAX);
  EXPECT_TRUE(ParseDigits("0012", 10, &value));
  EXPECT_EQ(value, 12u);
  for (const char* none : {"", " 1", "1 ", "+1", "-1", "0x1", "1a", "18446744073709551616"}) {
    EXPECT_FALSE(ParseDigits(none, 10, &value)) << none;
  }
}

}  // namespace
}  // namespace memtrace::report
