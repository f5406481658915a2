#include "preload/own_proc.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
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

// The first process of the namespace exits with what it finds in a /proc that nobody has mounted
// anew for it.
int FoundByFirstProcess() {
  if (unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) return 77;
  const pid_t first = fork();
  if (first == 0) _exit(static_cast<int>(WhoseNumbersInProc()));
  int status = 0;
  return first > 0 && waitpid(first, &status, 0) == first ? WEXITSTATUS(status) : 77;
}

TEST(OwnProcTest, ProcMayHaveTheNumbersOfAnOuterNamespace) {
  EXPECT_EQ(WhoseNumbersInProc(), ProcNumbers::kOurs);
  const pid_t child = fork();
  if (child == 0) _exit(FoundByFirstProcess());
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "no namespaces here";
  EXPECT_EQ(static_cast<ProcNumbers>(WEXITSTATUS(status)), ProcNumbers::kOfOuterNamespace);
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
