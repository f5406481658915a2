// Calls by which a program changes the world that the library works in: they end as without it, and
// the trace is whole.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>
#include <regex>

#include "tests/e2e/check_command.h"
#include "tests/e2e/harness.h"

namespace memtrace::e2e {
namespace {

using ::testing::HasSubstr;

// `code` prints what its calls gave; the same with the library. The report of its trace.
void ExpectTheSame(const std::string& code, const std::function<void(const Json&)>& look = nullptr,
                   const std::string& children = "off") {
  TempDir directory;
  const std::string program = Compile(directory, "calls", "#define _GNU_SOURCE\n" + code,
                                      {"-pthread", "-I" + SourcePath("include")});
  const Result plain = RunCommand({.arguments = {program}, .timeout_seconds = 60});
  if (plain.exit_status == 77) GTEST_SKIP() << "not permitted here";
  const Result traced = RunCommand([&] {
    Command command = Traced({.arguments = {program}}, directory.path());
    command.timeout_seconds = 60;
    command.environment.emplace_back("MEMTRACE_CHILDREN", children);
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

// As tests have it, and libfaketime.
TEST(HostCallsTest, AClockThatTheProgramHoldsIsNotOurs) {
  ExpectTheSame(R"(#include <stdio.h>
#include <stdlib.h>
#include <time.h>
int clock_gettime(clockid_t clock, struct timespec* now) {
  (void)clock;
  now->tv_sec = 1000;
  now->tv_nsec = 0;
  return 0;
}
int main(void) {
  struct timespec now;
  for (int i = 0; i < 1000; ++i) free(malloc(10));
  clock_gettime(CLOCK_REALTIME, &now);
  printf("%ld\n", (long)now.tv_sec);
  return 0;
})", [](const Json& report) {
    EXPECT_EQ(report.at("totals").at("allocations"), 1001);  // and the buffer of stdout
    EXPECT_GT(report.at("process").at("duration_s").get<double>(), 0);
  });
}

// Of 2048 bytes, the MINSIGSTKSZ of old, where a signal takes more with AVX-512: who is sent none does not
// notice, and a scan stops it all the same.
TEST(HostCallsTest, AnAlternateStackThatIsTooSmallIsNotUsed) {
  ExpectTheSame(R"(#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "memtrace.h"
static char memory[64 << 10] __attribute__((aligned(4096)));
static sem_t ready;
static void* Wait(void* argument) {
  stack_t stack = {.ss_sp = memory + (32 << 10), .ss_size = 2048};
  printf("%d\n", sigaltstack(&stack, &stack));
  printf("%d\n", stack.ss_flags & SS_DISABLE);
  sem_post(&ready);
  for (;;) pause();
  return argument;
}
int main(void) {
  memset(memory, 0x55, sizeof(memory));
  sem_init(&ready, 0, 0);
  pthread_t thread;
  pthread_create(&thread, NULL, Wait, NULL);
  sem_wait(&ready);
  free(malloc(3));
  memtrace_leak_check("now", MEMTRACE_LEAKS_ANY, 1);
  int overwritten = 0;
  for (int i = 0; i < (32 << 10); ++i) overwritten += memory[i] != 0x55;
  printf("%d\n", overwritten);
  return 0;
})", [](const Json& report) {
    ASSERT_GE(report.at("leak_scans").size(), 1u);
    EXPECT_EQ(report.at("leak_scans").front().at("notes").size(), 0u) << report.at("leak_scans");
  });
}

// The frames of a plugin, which is met there for the first time, on a stack of 8 KiB.
TEST(HostCallsTest, AModuleIsMetOnASmallStack) {
  const std::string plugin = MEMTRACE_BUILD_DIR "/tests/tracees/plugins/libplugin_small.so";
  ExpectTheSame(R"(#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
static void* (*allocate)(size_t);
static ucontext_t outer, inner;
static void Run(void) { free(allocate(24)); }
int main(void) {
  void* const plugin = dlopen(")" + plugin + R"(", RTLD_NOW);
  if (plugin == NULL) return puts(dlerror());
  allocate = (void* (*)(size_t))dlsym(plugin, "Allocate");
  enum { kBelow = 32 << 10, kStack = 8 << 10 };
  char* const memory = aligned_alloc(4096, kBelow + kStack);
  memset(memory, 0x55, kBelow + kStack);
  getcontext(&inner);
  inner.uc_stack.ss_sp = memory + kBelow;
  inner.uc_stack.ss_size = kStack;
  inner.uc_link = &outer;
  makecontext(&inner, Run, 0);
  swapcontext(&outer, &inner);
  int overwritten = 0;
  for (int i = 0; i < kBelow; ++i) overwritten += memory[i] != 0x55;
  printf("%d\n", overwritten);
  return 0;
})");
}

// More than there is room for are told of; the time does not grow with how many there have been.
TEST(HostCallsTest, APluginThatIsLoadedAgainAndAgainIsTold) {
  const std::string plugin = MEMTRACE_BUILD_DIR "/tests/tracees/plugins/libplugin_small.so";
  ExpectTheSame(R"(#include <dlfcn.h>
#include <stdlib.h>
int main(void) {
  for (int i = 0; i < 16500; ++i) {
    void* const plugin = dlopen(")" + plugin + R"(", RTLD_NOW);
    if (plugin == NULL) return 1;
    free(((void* (*)(size_t))dlsym(plugin, "Allocate"))(24));
    dlclose(plugin);
  }
  return 0;
})", [](const Json& report) {
    EXPECT_THAT(report.at("coverage").at("notes").dump(), HasSubstr("16,384 modules were loaded after the start"));
    uint64_t named = 0;
    for (const Json& site : report.at("sites")) {
      if (site.at("stack").at(0).value("function", "") == "Allocate") named += site.at("allocations").get<uint64_t>();
    }
    EXPECT_EQ(named, 16384u);
  });
}

// Code that was made at the begin of a page, behind one that may not be read: a scan looks at whether the kernel
// was called there.
TEST(HostCallsTest, AScanReadsNothingBeforeTheCodeItInterrupts) {
  ExpectTheSame(R"(#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
static void* code;
static void* Spin(void* argument) {
  __asm__ volatile("mov $-4, %%rax; jmp *%0" : : "r"(code) : "rax");
  return argument;
}
int main(void) {
  char* const pages = mmap(NULL, 3 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  code = pages + 4096;
  if (mprotect(code, 4096, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) return 77;
  memcpy(code, "\xeb\xfe", 2);
  pthread_t thread;
  pthread_create(&thread, NULL, Spin, NULL);
  usleep(50000);
  free(malloc(1));
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

// Its handler would return to the fault for ever.
TEST(HostCallsTest, NoScanIsAskedForByASignalOfAFault) {
  TempDir directory;
  Command command = Traced({.arguments = {"/bin/true"}}, directory.path());
  command.environment.emplace_back("MEMTRACE_LEAK_SIGNAL", "11");
  const Result run = RunCommand(command);
  EXPECT_EQ(run.Outcome(), "exit 0");
  EXPECT_THAT(run.err, HasSubstr("MEMTRACE_LEAK_SIGNAL=11"));
}

// prctl(PR_SET_TSC): what a thread reads of the processor's counter is a signal then, by us as by anybody.
TEST(HostCallsTest, ACounterThatMayNotBeReadIsNotRead) {
  for (const char* call : {"prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0)",
                           "(int)syscall(SYS_prctl, PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0)"}) {
    ExpectTheSame(R"(#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static void* Work(void* unused) {
  for (int i = 0; i < 50000; ++i) free(malloc(100));
  munmap(mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 1 << 20);
  return unused;
}
int main(void) {
  Work(NULL);
  if ()" + std::string(call) + R"( != 0) return 77;
  Work(NULL);
  pthread_t thread;
  if (pthread_create(&thread, NULL, Work, NULL) != 0 || pthread_join(thread, NULL) != 0) return 1;
  const pid_t child = fork();
  if (child == 0) {
    Work(NULL);
    _exit(5);
  }
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 5 ? 0 : 2;
})", [](const Json& report) {
      EXPECT_GE(report.at("totals").at("allocations").get<uint64_t>(), 150000u);
      EXPECT_EQ(report.at("coverage").at("unordered_events"), 0);
      EXPECT_EQ(report.at("process").at("end"), "exit");
    });
  }
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

constexpr char kHowJumpsGo[] = R"(#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
static sigjmp_buf back;
static volatile sig_atomic_t armed;
static void Jump(int signal) {
  (void)signal;
  if (!armed) return;
  armed = 0;
  siglongjmp(back, 1);
}
static double Now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}
static void Every(int microseconds) {
  const struct itimerval every = {{0, microseconds}, {0, microseconds}};
  signal(SIGALRM, Jump);
  setitimer(ITIMER_REAL, &every, NULL);
}
)";

// Calls that are events, and that a handler may jump out of as far as libc is concerned.
TEST(HostCallsTest, AHandlerThatJumpsLeavesNoFileOpen) {
  ExpectTheSame(std::string(kHowJumpsGo) + R"(
int main(void) {
  const double end = Now() + 4;
  free(malloc(100));
  Every(150);
  sigsetjmp(back, 1);
  while (Now() < end) {
    armed = 1;
    for (int i = 0; i < 2000; ++i) munmap((void*)0x100000, 4096);
    armed = 0;
  }
  armed = 0;
  Every(0);
  int open = 0;
  DIR* const all = opendir("/proc/self/fd");
  while (all != NULL && readdir(all) != NULL) ++open;
  printf("%d\n", open);
  return 0;
})");
}

TEST(HostCallsTest, AHandlerThatJumpsOutOfAScanEndsNoOther) {
  ExpectTheSame(std::string(kHowJumpsGo) + R"(
#include "memtrace.h"
int main(void) {
  const size_t bytes = 50000000;
  char* volatile block = malloc(bytes);
  memset(block, 1, bytes);
  for (volatile int delay = 300; delay < 6000; delay += 300) {
    if (sigsetjmp(back, 1) == 0) {
      Every(delay);
      armed = 1;
      for (;;) memtrace_leak_check("jumped out of", 0, 0);
    }
    Every(0);
  }
  const long last = memtrace_leak_check("whole", 0, 1);
  puts(last >= 0 || last == MEMTRACE_NOT_ACTIVE ? "scanned" : "not scanned");
  block = NULL;
  return 0;
})", [](const Json& report) {
    EXPECT_EQ(report.at("leak_scans").back().at("state"), "done");
    EXPECT_EQ(report.at("leak_scans").back().at("reason"), "exit-late");
  });
}

// A failure is less than 0 for who asks.
TEST(HostCallsTest, AScanThatCannotBeSaysSo) {
  TempDir directory;
  const std::string program = Compile(directory, "calls", R"(#include "memtrace.h"
#include <stdlib.h>
int main(void) {
  free(malloc(1));
  return memtrace_leak_check("none", 0, 1) == MEMTRACE_NOT_AVAILABLE ? 0 : 1;
})", {"-I" + SourcePath("include")});
  Command command = Traced({.arguments = {program}}, directory.path());
  command.environment.emplace_back("MEMTRACE_SAMPLE_BYTES", "1");
  EXPECT_EQ(RunCommand(command).Outcome(), "exit 0");
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

}  // namespace
}  // namespace memtrace::e2e
