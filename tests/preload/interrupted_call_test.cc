#include "preload/leak_scan/interrupted_call.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

namespace memtrace {
namespace {

TEST(SeenCallTest, ReadsWhatTheKernelWrites) {
  const SeenCall call = SeenCall::Parse("232 0x5 0x7ffc10 0x1 0xffffffff 0x0 0x8 0x7ffe0010 0x7f00abcd\n");
  EXPECT_EQ(call.number, 232);
  EXPECT_EQ(call.place, (format::CallPlace{{5, 0x7ffc10, 1, 0xffffffff, 0, 8}, 0x7ffe0010, 0x7f00abcd}));
}

TEST(SeenCallTest, IsNoneWhereTheThreadIsInNoCall) {
  for (const char* text : {"running\n", "-1 0x7ffe0010 0x7f00abcd\n", "", "232", "232 0x1"}) {
    EXPECT_EQ(SeenCall::Parse(text).number, -1) << text;
    EXPECT_EQ(SeenCall::Parse(text).place, format::CallPlace()) << text;
  }
}

TEST(SeenCallTest, OfAThreadThatWaits) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  std::atomic<long> tid{0};
  std::thread waits([&] {
    char byte;
    tid = gettid();
    EXPECT_EQ(read(ends[0], &byte, 1), 1);
  });
  SeenCall call;
  for (int i = 0; i < 1000 && call.number != SYS_read; ++i) {
    usleep(1000);
    std::ifstream file("/proc/self/task/" + std::to_string(tid.load()) + "/syscall");
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    call = SeenCall::Parse(text);
  }
  EXPECT_EQ(write(ends[1], "x", 1), 1);
  waits.join();
  close(ends[0]);
  close(ends[1]);
  EXPECT_EQ(call.number, SYS_read);
  EXPECT_NE(call.place.pc, 0u);
  EXPECT_EQ(call.place.arguments[0], static_cast<uint64_t>(ends[0]));
}

}  // namespace
}  // namespace memtrace
