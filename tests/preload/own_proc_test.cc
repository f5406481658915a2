#include "preload/own_proc.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <vector>

namespace memtrace {
namespace {

// What a reader is asked for that says `first` of /proc/self.
std::vector<std::string> AskedFor(long first) {
  std::vector<std::string> paths;
  ReadOwnProc("maps", [&](const char* path) {
    paths.push_back(path);
    return paths.size() == 1 ? first : 7;
  });
  return paths;
}

// No thread's files may be looked at where a sandbox allows the process's alone.
TEST(OwnProcTest, TheThreadsIsAskedForOnlyWhereTheProcessesTellsNothing) {
  EXPECT_EQ(AskedFor(1), std::vector<std::string>{"/proc/self/maps"});
  const std::vector<std::string> both = {"/proc/self/maps", "/proc/thread-self/maps"};
  EXPECT_EQ(AskedFor(0), both) << "the first thread has ended";
  EXPECT_EQ(AskedFor(-ENOENT), both);
  EXPECT_EQ(ReadOwnProc("maps", [](const char*) { return long{-EACCES}; }), -EACCES);
}

TEST(OwnProcTest, ThePageMapIsOpen) {
  const long fd = OpenOwnPagemap();
  if (fd < 0) GTEST_SKIP() << "no page map here";
  uint64_t entry;
  EXPECT_EQ(pread(static_cast<int>(fd), &entry, sizeof(entry), 0), ssize_t{sizeof(entry)});
  close(static_cast<int>(fd));
}

}  // namespace
}  // namespace memtrace
