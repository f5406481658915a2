#include "format/leak_signal.h"

#include <gtest/gtest.h>

namespace memtrace::format {
namespace {

constexpr CallPlace kPlace = {{5, 0x7ffc'0010, 1, 0xffff'ffff, 0, 8}, 0x7ffe'1234'5678, 0x7f00'1122'33ff};

TEST(LeakSignalTest, TellsTheCallAtThatPlaceAlone) {
  for (const long call : {0L, 7L, 230L, 462L}) {
    const uint64_t value = LeakSignalValue(call, kPlace);
    EXPECT_EQ(LeakSignalCall(value, kPlace), call);
    CallPlace other = kPlace;
    other.stack_pointer += 8;
    EXPECT_EQ(LeakSignalCall(value, other), -1);
    other = kPlace;
    other.pc -= 2;
    EXPECT_EQ(LeakSignalCall(value, other), -1);
  }
}

// One instruction may make many calls, and a function two from one depth of the stack.
TEST(LeakSignalTest, OtherArgumentsAreOfAnotherCall) {
  const uint64_t value = LeakSignalValue(7, kPlace);
  for (int i = 0; i < kCallArguments; ++i) {
    CallPlace other = kPlace;
    ++other.arguments[i];
    EXPECT_EQ(LeakSignalCall(value, other), -1) << i;
    other.arguments[i] = 0;
    if (kPlace.arguments[i] != 0) {
      EXPECT_EQ(LeakSignalCall(value, other), -1) << i;
    }
  }
}

TEST(LeakSignalTest, NoCallIsNone) {
  EXPECT_EQ(LeakSignalValue(-1, kPlace), 0u);
  EXPECT_EQ(LeakSignalValue(0x4000'0000, kPlace), 0u) << "of x32";
  EXPECT_EQ(LeakSignalCall(0, kPlace), -1);
  EXPECT_EQ(LeakSignalCall(0, CallPlace()), -1);
}

}  // namespace
}  // namespace memtrace::format
