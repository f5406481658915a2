#include "format/leak_signal.h"

#include <gtest/gtest.h>

namespace memtrace::format {
namespace {

constexpr uint64_t kStackPointer = 0x7ffe'1234'5678, kPc = 0x7f00'1122'33ff;

TEST(LeakSignalTest, TellsTheCallAtThatPlaceAlone) {
  for (const long call : {0L, 7L, 230L, 462L}) {
    const uint64_t value = LeakSignalValue(call, kStackPointer, kPc);
    EXPECT_EQ(LeakSignalCall(value, kStackPointer, kPc), call);
    EXPECT_EQ(LeakSignalCall(value, kStackPointer + 8, kPc), -1);
    EXPECT_EQ(LeakSignalCall(value, kStackPointer, kPc - 2), -1);
  }
}

TEST(LeakSignalTest, NoCallIsNone) {
  EXPECT_EQ(LeakSignalValue(-1, kStackPointer, kPc), 0u);
  EXPECT_EQ(LeakSignalValue(0x4000'0000, kStackPointer, kPc), 0u) << "of x32";
  EXPECT_EQ(LeakSignalCall(0, kStackPointer, kPc), -1);
  EXPECT_EQ(LeakSignalCall(0, 0, 0), -1);
}

}  // namespace
}  // namespace memtrace::format
