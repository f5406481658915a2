// Calls by which a program has children, in namespaces of their own or in its own memory: it and they end as
// without the library, and each trace is its own process's.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "tests/e2e/host_calls.h"

namespace memtrace::e2e {
namespace {

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

// As above, but it keeps all of them.
TEST(HostCallsTest, WithoutADescriptorForItTheScanSaysWhatWouldHelp) {
  ExpectTheSame(R"(#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>
int main(void) {
  free(malloc(100));
  if (unshare(CLONE_NEWPID) != 0) return 77;
  while (open("/dev/null", O_RDONLY) >= 0) {
  }
  return 0;
})", [](const Json& report) {
    const Json& scan = report.at("leak_scans").back();
    EXPECT_EQ(scan.at("state"), "failed");
    EXPECT_EQ(scan.at("failure"),
              "/proc/self/maps cannot be read: Too many open files (raise RLIMIT_NOFILE)");
  });
}

// unshare --pid without --fork: the program that it executes has never made such a call itself.
TEST(HostCallsTest, SoItIsWhereAProgramBeforeTheExecMadeTheNamespace) {
  TempDir directory;
  const std::string program = Compile(directory, "calls", R"(#include <memtrace.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
  free(malloc(100));
  memtrace_leak_check("no process may be made for it", 0, 1);
  const pid_t child = fork();
  if (child == 0) _exit(getpid());
  int status = 0;
  printf("%d %d\n", child > 0, waitpid(child, &status, 0) == child ? WEXITSTATUS(status) : -1);
  return 0;
})", {"-I" + SourcePath("include")});
  Words words = {"unshare", "--user", "--map-root-user", "--pid", program};
  const Result plain = RunCommand({.arguments = words});
  if (plain.Outcome() != "exit 0") GTEST_SKIP() << "no namespaces here";
  ASSERT_EQ(plain.out, "1 1\n");
  const Result traced = RunCommand(Traced({.arguments = words}, directory.path()));
  EXPECT_EQ(traced.Outcome(), "exit 0") << traced.err;
  EXPECT_EQ(traced.out, plain.out) << "the first process of the namespace was not the program's";
  const Json report = Report(TraceOf(directory.path(), "calls", traced.pid));
  EXPECT_EQ(report.at("leak_scans").back().at("state"), "done");
  EXPECT_EQ(report.at("leak_scans").back().at("cost").at("in_process"), true);
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

// Modules of character sets allocate themselves, and libc unloads them past any dlclose: the child tells of
// modules again, and must not look into memory that is gone.
TEST(HostCallsTest, AForkChildReadsNoModuleThatLibcHasUnloaded) {
  ExpectTheSame(R"(#include <iconv.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
  const char* sets[] = {"UTF-16", "ISO-8859-15", "CP1252", "ISO-8859-2", "KOI8-R", "UTF-7"};
  void* volatile block = malloc(1);
  int opened = 0;
  for (int i = 0; i < 6; ++i) {
    const iconv_t set = iconv_open("UTF-8", sets[i]);
    if (set == (iconv_t)-1) continue;
    ++opened;
    iconv_close(set);
  }
  if (opened < 6) return 77;
  const pid_t child = fork();
  if (child == 0) {
    free(malloc(3));
    _exit(5);
  }
  int status = 0;
  waitpid(child, &status, 0);
  printf("%x\n", status);
  free(block);
  return 0;
})", nullptr, "all");
}

// A child that opens a library before it allocates notices what libc unloaded, too: not in its parent's trace.
TEST(HostCallsTest, AForkChildWritesNothingIntoItsParentsTrace) {
  const std::string plugin = MEMTRACE_BUILD_DIR "/tests/tracees/plugins/libplugin_small.so";
  const std::string code = R"(#include <dlfcn.h>
#include <iconv.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
  void* volatile block = malloc(1);
  const iconv_t set = iconv_open("UTF-8", "UTF-16");
  if (set == (iconv_t)-1) return 77;
  iconv_close(set);
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0) _exit(dlopen(")" + plugin + R"(", RTLD_NOW) == NULL);
    int status = 0;
    waitpid(child, &status, 0);
    if (status != 0) return 1;
    for (int n = 0; n < 1000; ++n) free(malloc(100));
  }
  free(block);
  return 0;
})";
  for (const char* children : {"off", "all"}) {
    TempDir directory;
    const std::string program = Compile(directory, "calls", code, {"-ldl"});
    Command command = Traced({.arguments = {program}}, directory.path());
    command.environment.emplace_back("MEMTRACE_CHILDREN", children);
    const Result run = RunCommand(command);
    if (run.exit_status == 77) GTEST_SKIP() << "no character sets here";
    ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
    for (const std::string& trace : FilesIn(directory.path(), ".mtr")) {
      const Json coverage = Report(directory / trace).at("coverage");
      EXPECT_EQ(coverage.at("truncated"), false) << trace << coverage;
      EXPECT_EQ(coverage.at("lost_blocks"), 0) << trace;
      EXPECT_EQ(coverage.at("dropped_events"), 0) << trace;
    }
  }
}

// After its path was lost the trace is written into memory that was mapped before. What was written is
// given back to nobody: a mapping of the program there would be kept from its children with it.
TEST(HostCallsTest, MemoryBesideTheTraceIsInheritedByChildren) {
  if (geteuid() != 0) GTEST_SKIP() << "for root";
  ExpectTheSame(R"(#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "memtrace.h"
int main(void) {
  if (chroot("/") != 0) return 77;
  static void* blocks[1000];
  unsigned random = 1;
  for (int round = 0; round < 900; ++round) {
    for (int i = 0; i < 1000; ++i) {
      random = random * 1103515245 + 12345;
      blocks[i] = malloc(16 + (random >> 20));
    }
    for (int i = 0; i < 1000; ++i) free(blocks[i]);
  }
  enum { kMappings = 6, kBytes = 512 << 10 };
  char* mapped[kMappings];
  for (int i = 0; i < kMappings; ++i) {
    mapped[i] = mmap(NULL, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(mapped[i], i + 1, kBytes);
  }
  memtrace_leak_check("now", MEMTRACE_LEAKS_ANY, 1);
  const pid_t child = fork();
  if (child == 0) {
    int sum = 0;
    for (int i = 0; i < kMappings; ++i) sum += mapped[i][1000];
    _exit(sum);
  }
  int status = 0;
  waitpid(child, &status, 0);
  printf("%x\n", status);
  return 0;
})");
}

// It runs in its parent's memory: what it has used so far is not what its parent has.
TEST(HostCallsTest, AVforkChildsUsageIsNotItsParents) {
  TempDir directory;
  const std::string program = Compile(directory, "vforks", R"(#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
  char* const large = malloc(20 << 20);
  memset(large, 1, 20 << 20);
  for (int i = 0; i < 3; ++i) {
    usleep(3000);
    const pid_t child = vfork();
    if (child == 0) {
      void* volatile block = malloc(10);
      block = malloc(11);
      (void)block;
      _exit(0);
    }
    waitpid(child, NULL, 0);
    usleep(3000);
    free(malloc(77));
  }
  free(large);
  return 0;
})");
  ASSERT_EQ(RunCommand(Traced({.arguments = {program}}, directory.path())).Outcome(), "exit 0");
  const Result dump = RunCommand({.arguments = {ToolPath(), "dump", TraceOf(directory.path(), "vforks")}});
  ASSERT_EQ(dump.Outcome(), "exit 0") << dump.err;
  const std::regex sample("usage - minor=([0-9]+)");
  uint64_t last = 0;
  int samples = 0;
  for (std::sregex_iterator at(dump.out.begin(), dump.out.end(), sample), end; at != end; ++at, ++samples) {
    const uint64_t minor = std::stoull((*at)[1]);
    EXPECT_GE(minor, last);
    last = minor;
  }
  EXPECT_GE(samples, 3);
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

// What it gives up, its parent has.
TEST(HostCallsTest, AVforkChildsNamespaceIsNotItsParents) {
  ExpectTheSame(R"(#include <sched.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
  const struct rlimit little = {1 << 30, 1 << 30};
  free(malloc(100));
  const pid_t child = vfork();
  if (child == 0) {
    if (unshare(CLONE_NEWPID) != 0) _exit(77);
    setrlimit(RLIMIT_AS, &little);
    execl("/bin/true", "true", (char*)NULL);
    _exit(1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WEXITSTATUS(status);
})", [](const Json& report) { EXPECT_EQ(report.at("leak_scans").back().at("cost").at("in_process"), false); });
}

// The kernel ends them in the midst of the exec, behind its last words. The program becomes a copy of
// itself without the library, whose exit is not the end that the trace is of.
TEST(HostCallsTest, AnExecWhileOtherThreadsAreAtWorkIsTheEnd) {
  ExpectTheSame(R"(#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static void* Work(void* unused) {
  for (;;) free(malloc(100));
  return unused;
}
int main(int argc, char** argv) {
  if (argc > 1) return 5;
  pthread_t thread;
  for (int i = 0; i < 3; ++i) pthread_create(&thread, NULL, Work, NULL);
  usleep(20000);
  char* no[] = {"no", NULL}, *words[] = {argv[0], "again", NULL}, *none[] = {NULL};
  for (int i = 0; i < 3; ++i) {
    errno = 0;
    printf("%d", execv("/no/such/program", no));
    printf(" %d\n", errno == ENOENT);
  }
  fflush(stdout);
  usleep(20000);
  execve("/proc/self/exe", words, none);
  return 1;
})", [](const Json& report) {
    EXPECT_EQ(report.at("process").at("end"), "exec");
    EXPECT_EQ(report.at("process").at("exit_status"), nullptr);
  });
}

TEST(HostCallsTest, AnExecThatFailsIsNone) {
  ExpectTheSame(R"(#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
int main(void) {
  char* no[] = {"no", NULL};
  free(malloc(100));
  execv("/no/such/program", no);
  raise(SIGKILL);
  return 0;
})", [](const Json& report) { EXPECT_EQ(report.at("process").at("end"), "cut"); });
}

}  // namespace
}  // namespace memtrace::e2e
