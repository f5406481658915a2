// Calls by which a program changes the world that the library works in: they end as without it, and
// the trace is whole.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>

#include "tests/e2e/check_command.h"
#include "tests/e2e/harness.h"

namespace memtrace::e2e {
namespace {

using ::testing::HasSubstr;

// `code` prints what its calls gave; the same with the library. The report of its trace.
void ExpectTheSame(const std::string& code, const std::function<void(const Json&)>& look = nullptr) {
  TempDir directory;
  const std::string program = Compile(directory, "calls", "#define _GNU_SOURCE\n" + code, {"-pthread"});
  const Result plain = RunCommand({.arguments = {program}, .timeout_seconds = 60});
  if (plain.exit_status == 77) GTEST_SKIP() << "not permitted here";
  const Result traced = RunCommand([&] {
    Command command = Traced({.arguments = {program}}, directory.path());
    command.timeout_seconds = 60;
    command.environment.emplace_back("MEMTRACE_CHILDREN", "off");
    return command;
  }());
  EXPECT_EQ(traced.Outcome(), plain.Outcome()) << traced.err;
  EXPECT_EQ(traced.out, plain.out) << traced.err;
  if (look) look(Report(TraceOf(directory.path(), "calls")));
}

TEST(HostCallsTest, LimitsAtBadAddressesAreErrors) {
  ExpectTheSame(R"(#include <errno.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(void) {
  const void* volatile nowhere = (void*)1;
  printf("%d %d\n", setrlimit(RLIMIT_AS, nowhere), errno);
  printf("%d %d\n", prlimit(0, RLIMIT_AS, nowhere, NULL), errno);
  printf("%ld %d\n", syscall(SYS_setrlimit, RLIMIT_AS, nowhere), errno);
  printf("%ld %d\n", syscall(SYS_prlimit64, 0, RLIMIT_AS, nowhere, NULL), errno);
  struct rlimit limit = {1L << 40, 1L << 40};
  printf("%d\n", setrlimit(RLIMIT_AS, &limit));
  return 0;
})");
}

TEST(HostCallsTest, AnExitStatusHasEightBits) {
  ExpectTheSame("#include <stdlib.h>\nint main(void) { exit(256 + 3); }\n", [](const Json& report) {
    EXPECT_EQ(report.at("process").at("exit_status"), 3);
  });
}

// The first process of the namespace that we made would leave it without one.
TEST(HostCallsTest, TheFirstChildOfAPidNamespaceIsTheProgramsOwn) {
  ExpectTheSame(R"(#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
  if (unshare(CLONE_NEWPID) != 0) return 77;
  int last = 0;
  for (int fd; (fd = open("/dev/null", O_RDONLY)) >= 0;) last = fd;  // the library needs one, and has none
  for (int i = 0; i < 200000; ++i) free(malloc(100));
  close(last);
  const pid_t child = fork();
  if (child == 0) _exit(getpid());
  int status = 0;
  printf("%d %d\n", child > 0, waitpid(child, &status, 0) == child ? WEXITSTATUS(status) : -1);
  return 0;
})", [](const Json& report) {
    EXPECT_GE(report.at("totals").at("allocations").get<uint64_t>(), 200000u);
    EXPECT_EQ(report.at("leak_scans").back().at("state"), "done");
  });
}

// A fork is told to whoever reads the descriptor: here nobody does.
TEST(HostCallsTest, AUserfaultfdThatIsToldOfForksEndsNoExit) {
  ExpectTheSame(R"(#include <linux/userfaultfd.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(void) {
  const int fd = (int)syscall(SYS_userfaultfd, 0);
  struct uffdio_api api = {.api = UFFD_API, .features = UFFD_FEATURE_EVENT_FORK};
  if (fd < 0 || ioctl(fd, UFFDIO_API, &api) != 0) return 77;
  void* const at = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  struct uffdio_register range = {.range = {(unsigned long)at, 1 << 16}, .mode = UFFDIO_REGISTER_MODE_MISSING};
  if (ioctl(fd, UFFDIO_REGISTER, &range) != 0) return 77;
  void* volatile lost = malloc(100);
  lost = NULL;
  puts("registered");
  return 0;
})", [](const Json& report) { EXPECT_EQ(report.at("leak_scans").back().at("state"), "done"); });
}

// A container's first process has its root prepared by mounts, with no call that the library knew.
TEST(HostCallsTest, AMountMayCoverTheTrace) {
  if (geteuid() != 0) GTEST_SKIP() << "for root";
  TempDir directory;
  const std::string program = Compile(directory, "mounts", R"(#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char** argv) {
  const long child = syscall(SYS_clone, CLONE_NEWNS | SIGCHLD, 0, 0, 0, 0);
  if (child < 0) return 77;
  if (child == 0) {
    if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) _exit(77);
    if (mount("tmpfs", argv[1], "tmpfs", 0, NULL) != 0) _exit(77);
    for (int i = 0; i < 100000; ++i) free(malloc(100));
    exit(5);
  }
  int status = 0;
  waitpid((pid_t)child, &status, 0);
  return WEXITSTATUS(status);
})");
  const Result run = RunCommand(Traced({.arguments = {program, directory.path()}}, directory.path()));
  if (run.exit_status == 77) GTEST_SKIP() << "not permitted here";
  EXPECT_EQ(run.exit_status, 5) << run.err;
  bool found = false;
  for (const std::string& trace : FilesIn(directory.path(), ".mtr")) {
    const Json report = Report(directory / trace);
    if (report.at("totals").at("allocations") < 100000) continue;
    found = true;
    EXPECT_EQ(report.at("totals").at("frees"), report.at("totals").at("allocations"));
    EXPECT_EQ(report.at("process").at("exit_status"), 5);
  }
  EXPECT_TRUE(found) << "the child's events are not there";
}

// Its own children are of another namespace, so that it can have no thread.
TEST(HostCallsTest, MemtraceRunsWhereItCanHaveNoThread) {
  if (geteuid() != 0) GTEST_SKIP() << "for root";
  TempDir directory;
  const Result run = RunCommand({.arguments = {"unshare", "-p", ToolPath(), "run", "-q", "--library", LibraryPath(), "-o",
                                               directory / "t.mtr", "--", "/bin/sh", "-c", "exit 7"}});
  EXPECT_EQ(run.Outcome(), "exit 7") << run.err;
  EXPECT_EQ(FilesIn(directory.path(), ".mtr").size(), 1u);
}

// Its handler would return to the fault for ever.
TEST(HostCallsTest, NoScanIsAskedForByASignalOfAFault) {
  TempDir directory;
  Command command = Traced({.arguments = {"/bin/true"}}, directory.path());
  command.environment.emplace_back("MEMTRACE_LEAK_SIGNAL", "11");
  const Result run = RunCommand(command);
  EXPECT_EQ(run.Outcome(), "exit 0");
  EXPECT_THAT(run.err, HasSubstr("MEMTRACE_LEAK_SIGNAL=11"));
}

}  // namespace
}  // namespace memtrace::e2e
