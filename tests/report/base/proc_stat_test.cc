// The line of a process, whatever its name, and of one that has ended.

#include "report/base/proc_stat.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

namespace memtrace::report {
namespace {

TEST(ProcStatTest, TheNameMayHoldAnything) {
  const char line[] = "12 (a) Z 1 (b) S 4 5 0\n";
  EXPECT_EQ(ProcStatField(line, 3), "S");
  EXPECT_EQ(ProcStatField(line, 4), "4");
  EXPECT_EQ(ProcStatField(line, 6), "0") << "without the end of the line";
  EXPECT_EQ(ProcStatField(line, 7), "");
  EXPECT_FALSE(IsZombieStat(line));
  EXPECT_TRUE(IsZombieStat("12 (a b) Z 1\n"));
  for (const char* none : {"", "12 (a", "12 (a)", "12 (a) "}) {
    EXPECT_EQ(ProcStatField(none, 3), "") << none;
    EXPECT_FALSE(IsZombieStat(none)) << none;
  }
}

TEST(ProcStatTest, IsOfAProcess) {
  const auto own = ReadProcStat(getpid());
  ASSERT_TRUE(own.has_value());
  EXPECT_EQ(ProcStatField(*own, 4), std::to_string(getppid()));
  EXPECT_FALSE(IsZombieStat(*own));
  const pid_t child = fork();
  if (child == 0) _exit(0);
  siginfo_t info;
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  const auto ended = ReadProcStat(child);
  ASSERT_TRUE(ended.has_value());
  EXPECT_TRUE(IsZombieStat(*ended));
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_FALSE(ReadProcStat(child).has_value());
}

}  // namespace
}  // namespace memtrace::report
