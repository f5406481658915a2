#include "preload/text.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace memtrace {
namespace {

TEST(TextTest, AnErrorHasWordsOrElseANumber) {
  EXPECT_EQ(ErrorText(-ENOSPC).view(), "No space left on device");
  EXPECT_EQ(ErrorText(ENOSPC).view(), "No space left on device");
  EXPECT_EQ(ErrorText(-EMEDIUMTYPE).view(), "Not a regular file");
  EXPECT_EQ(ErrorText(-EXDEV).view(), "unexpected error 18");
  EXPECT_EQ(ErrorText(-4095).view(), "unexpected error 4095");
  Text<64> sentence;
  sentence << "it said: " << ErrorText(-EPERM);
  EXPECT_EQ(sentence.view(), "it said: Operation not permitted");
}

// A name that is too long is refused (TraceName); the next one in the same object may have room.
TEST(TextTest, WhatIsClearedIsNotCutAnyMore) {
  Text<8> text;
  text << "0123456789";
  EXPECT_TRUE(text.cut());
  EXPECT_EQ(text.view(), "0123456");
  text.Clear();
  EXPECT_FALSE(text.cut());
  text << "short";
  EXPECT_FALSE(text.cut());
  EXPECT_EQ(text.view(), "short");
}

TEST(TextTest, LinesAreTakenWithoutTheirEnds) {
  std::string_view text = "one\n\nlast", line;
  EXPECT_TRUE(TakeLine(text, &line));
  EXPECT_EQ(line, "one");
  EXPECT_TRUE(TakeLine(text, &line));
  EXPECT_EQ(line, "");
  EXPECT_TRUE(TakeLine(text, &line));
  EXPECT_EQ(line, "last");
  EXPECT_FALSE(TakeLine(text, &line));
}

TEST(TextTest, NumbersEndAtWhatIsNoDigit) {
  std::string_view text = "7ffa-1g";
  EXPECT_EQ(TakeNumber(text, 16), 0x7ffau);
  EXPECT_EQ(text, "-1g");
  EXPECT_EQ(TakeNumber(text, 16), 0u);
  EXPECT_EQ(text, "-1g");
}

TEST(TextTest, AHexadecimalNumberIsFoundBehindItsLabel) {
  const std::string_view status = "SigPnd:\t0000000000000000\nSigBlk:\tfffffffe7ffbfeff\n";
  EXPECT_EQ(HexAfter(status, "SigBlk:"), 0xfffffffe7ffbfeffu);
  EXPECT_EQ(HexAfter(status, "SigPnd:"), 0u);
  EXPECT_EQ(HexAfter(status, "SigIgn:"), 0u);
  EXPECT_EQ(HexAfter("35 0x7 0x7ffd1c 0x7f00", " 0x7 "), 0x7ffd1cu);
}

}  // namespace
}  // namespace memtrace
