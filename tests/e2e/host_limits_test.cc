// Limits of resources that a program sets for itself, and a standard error that nobody reads: it ends as without
// the library, and the trace loses nothing.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/e2e/host_calls.h"

namespace memtrace::e2e {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

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

// It may be nobody's any more, or nobody may read it: then there is no line.
TEST(HostCallsTest, ALineThatNobodyReadsHurtsNobody) {
  TempDir directory;
  const std::string program = Compile(directory, "calls", R"(#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
int main(int argc, char** argv) {
  int ends[2];
  if (argc != 5) return 64;
  signal(SIGPIPE, SIG_DFL);
  if (strcmp(argv[1], "socket") == 0 ? socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0 : pipe(ends) != 0) return 65;
  if (strcmp(argv[1], "full") == 0) {
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    while (write(ends[1], "x", 1) == 1) {
    }
    fcntl(ends[1], F_SETFL, 0);
  } else {
    close(ends[0]);
  }
  dup2(ends[1], 2);
  setenv("LD_PRELOAD", argv[2], 1);
  setenv("MEMTRACE_OUT", argv[3], 1);
  setenv(argv[4], "bad", 1);
  execl("/bin/echo", "echo", "hello", (char*)NULL);
  return 66;
})");
  for (const char* way : {"pipe", "full", "socket"}) {
    for (const char* setting : {"MEMTRACE_STACKS", "UNUSED"}) {
      const std::string out = setting[0] == 'U' ? directory / "not" + "/there.mtr" : directory / "t.mtr";
      const Result run =
          RunCommand({.arguments = {program, way, LibraryPath(), out, setting}, .timeout_seconds = 10});
      EXPECT_EQ(run.Outcome(), "exit 0") << way << setting;
      EXPECT_EQ(run.out, "hello\n") << way << setting;
    }
  }
}

// As sandboxes of daemons do it: no file may be opened or grow any more.
TEST(HostCallsTest, LimitsThatLeaveNoFileLoseNothing) {
  for (const char* call : {"setrlimit(RLIMIT_FSIZE, &none)", "setrlimit(RLIMIT_NOFILE, &none)",
                           "prlimit(0, RLIMIT_FSIZE, &none, NULL)", "syscall(SYS_setrlimit, RLIMIT_NOFILE, &none)",
                           "syscall(SYS_prlimit64, getpid(), RLIMIT_FSIZE, &none, NULL)"}) {
    ExpectTheSame(R"(#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(void) {
  const struct rlimit none = {0, 0};
  free(malloc(100));
  if ()" + std::string(call) + R"( != 0) return 1;
  for (int i = 0; i < 100000; ++i) free(malloc(100));
  return 0;
})", [&](const Json& report) {
      EXPECT_GE(report.at("totals").at("allocations").get<uint64_t>(), 100001u) << call;
      EXPECT_EQ(report.at("coverage").at("dropped_events"), 0) << call;
      EXPECT_EQ(report.at("process").at("end"), "exit") << call;
      EXPECT_THAT(report.at("coverage").at("notes").dump(), HasSubstr("rlimit")) << call;
    });
  }
}

// Between the least that a program needs and what the scan does, each place where it asks for memory
// is the one that gets none.
TEST(HostCallsTest, WithoutMemoryForTheScanThatIsTheReason) {
  TempDir directory;
  const std::string program = Compile(directory, "limited", R"(#include <stdlib.h>
#include <sys/resource.h>
static void* volatile lost;
int main(int argc, char** argv) {
  const rlim_t bytes = strtoul(argv[1], NULL, 0);
  const struct rlimit limit = {bytes, bytes};
  lost = malloc(31);
  return argc != 2 || setrlimit(RLIMIT_DATA, &limit) != 0;
})");
  size_t failed = 0, done = 0;
  for (uint64_t bytes = 2'600'000; bytes <= 12'000'000; bytes += bytes / 20) {
    const Result run = RunCommand(
        Traced({.arguments = {program, std::to_string(bytes)}}, directory.path()));
    ASSERT_EQ(run.Outcome(), "exit 0") << bytes << run.err;
    const Json report = Report(TraceOf(directory.path(), "limited", run.pid));
    ASSERT_EQ(report.at("leak_scans").size(), 1u) << bytes;
    const Json& scan = report.at("leak_scans").back();
    ++(scan.at("state") == "done" ? done : failed);
    if (scan.at("state") == "done") continue;
    EXPECT_THAT(scan.at("failure").get<std::string>(), StartsWith("no memory")) << bytes;
  }
  EXPECT_GT(failed, 0u);
  EXPECT_GT(done, 0u);
}

}  // namespace
}  // namespace memtrace::e2e
