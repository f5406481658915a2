#include "preload/text.h"

#include <gtest/gtest.h>

namespace memtrace {
namespace {

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

}  // namespace
}  // namespace memtrace
