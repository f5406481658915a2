#include "preload/descriptor_table.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "preload/sys.h"

namespace memtrace {
namespace {

constexpr int kLimit = 32;

// All descriptors in use, the limit final.
void UseUp() {
  const rlimit limit = {kLimit, kLimit};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  while (open("/dev/null", O_RDONLY) >= 0) {
  }
  ASSERT_EQ(errno, EMFILE);
}

int Open() {
  int open = 0;
  for (int fd = 0; fd < kLimit; ++fd) open += fcntl(fd, F_GETFD) >= 0;
  return open;
}

// In a child: the limit stays.
template <typename Body>
void InChild(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    UseUp();
    body();
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(DescriptorTableTest, OpensWhereTheProgramCannot) {
  InChild([] {
    int calls = 0;
    const long opened = WithDescriptor([&calls] {
      ++calls;
      const long fd = sys::Open("/", O_RDONLY);
      if (!sys::Failed(fd)) sys::Close(fd);
      return fd;
    });
    EXPECT_EQ(opened, 0);
    EXPECT_EQ(calls, 2);
    EXPECT_EQ(Open(), kLimit);
    EXPECT_EQ(waitpid(-1, nullptr, __WALL), -1) << "nothing is left of it";
    char first[64] = {};
    EXPECT_GT(ReadFile("/proc/self/maps", first, sizeof(first)), 0);
    EXPECT_NE(strchr(first, '-'), nullptr);
  });
}

TEST(DescriptorTableTest, OtherErrorsAreNotTriedAgain) {
  int calls = 0;
  const auto fails = [&calls] {
    ++calls;
    return static_cast<long>(-ENOENT);
  };
  EXPECT_EQ(WithDescriptor(fails), -ENOENT);
  EXPECT_EQ(calls, 1);
}

TEST(DescriptorTableTest, ThisProcessInProcIsTheSameThere) {
  InChild([] {
    Text<64> path;
    path << OwnProcDirectory().view() << "/status";
    char here[64] = {}, pid[32];
    EXPECT_GT(ReadFile(path.c_str(), here, sizeof(here)), 0);
    snprintf(pid, sizeof(pid), "/proc/%d/status", getpid());
    EXPECT_STREQ(path.c_str(), pid);
  });
}

// The child of a thread that forks while another one reads a file of /proc. The numbers are those
// that ever were ours, and may be the program's by now.
TEST(DescriptorTableTest, AForkChildClosesWhatWasOpenForAMoment) {
  const long ours = sys::OpenBriefly("/proc/self/statm");
  const long directory = sys::OpenBriefly("/proc/self/task", O_DIRECTORY);
  ASSERT_GE(ours, sys::kMovedUpFrom);
  ASSERT_GE(directory, sys::kMovedUpFrom);
  const int statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  const int file = open(".", sys::kBriefFlags | O_DIRECTORY);
  // As find and du open directories.
  const int walked = open("/proc/self/task",
                          O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | O_DIRECTORY);
  for (const int fd : {statm, file, walked}) {
    ASSERT_GE(fd, 0);
    sys::g_brief_numbers.Add(fd);
  }
  const pid_t child = fork();
  if (child == 0) {
    CloseInheritedDescriptors();
    const auto is_open = [](long fd) { return fcntl(static_cast<int>(fd), F_GETFD) >= 0; };
    _exit(is_open(ours) << 0 | is_open(directory) << 1 | is_open(statm) << 2 | is_open(file) << 3 |
          is_open(walked) << 4);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, (1 << 2 | 1 << 3 | 1 << 4) << 8);
  sys::Close(ours);
  sys::Close(directory);
  close(statm);
  close(file);
  close(walked);
}

}  // namespace
}  // namespace memtrace
