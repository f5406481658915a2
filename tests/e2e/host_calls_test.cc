// Calls by which a program changes the world that the library works in: they end as without it, and
// the trace is whole.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/e2e/host_calls.h"

namespace memtrace::e2e {
namespace {

using ::testing::HasSubstr;

TEST(HostCallsTest, AnExitStatusHasEightBits) {
  ExpectTheSame("#include <stdlib.h>\nint main(void) { exit(256 + 3); }\n", [](const Json& report) {
    EXPECT_EQ(report.at("process").at("exit_status"), 3);
  });
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

// A child has another CLOCK_MONOTONIC there, whether it or its parent before gave up reading the counter; so has who
// goes there itself (setns). Its time goes on, and so it ends.
TEST(HostCallsTest, AnotherTimeNamespaceDoesNotStopTheClock) {
  for (const char* seconds : {"86400000", "-1000"}) {
    for (const char* way : {"FORK, then prctl", "prctl, then FORK", "SETNS, then prctl", "prctl, then SETNS"}) {
      SCOPED_TRACE(std::string(seconds) + " " + way);
      const bool prctl_first = way[0] == 'p';
      const bool forks = std::string(way).find("FORK") != std::string::npos;
      ExpectTheSame(R"(#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static void Work(void) {
  for (int i = 0; i < 2000; ++i) free(malloc(100));
}
static void ForgoCounter(int when) {
  if (when && prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0) != 0) _exit(77);
}
int main(void) {
  Work();
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  if (now.tv_sec < 1100) return 77;
  ForgoCounter()" + std::string(prctl_first ? "1" : "0") + R"();
  if (unshare(CLONE_NEWTIME) != 0) return 77;
  const int offsets = open("/proc/self/timens_offsets", O_WRONLY);
  const char offset[] = "monotonic )" + std::string(seconds) + R"( 0\n";
  if (write(offsets, offset, strlen(offset)) < 0) return 77;
  close(offsets);
  if ()" + (forks ? "0" : "1") + R"() {
    const int space = open("/proc/self/ns/time_for_children", O_RDONLY);
    if (setns(space, CLONE_NEWTIME) != 0) return 77;
    close(space);
    ForgoCounter()" + (prctl_first ? "0" : "1") + R"();
    Work();
    return 0;
  }
  const pid_t child = fork();
  if (child == 0) {
    ForgoCounter()" + (prctl_first ? "0" : "1") + R"();
    Work();
    exit(5);
  }
  int status = 0;
  for (int i = 0; i < 1000 && waitpid(child, &status, WNOHANG) == 0; ++i) usleep(10000);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 5) kill(child, SIGKILL);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
})", nullptr, "follow");
      if (testing::Test::IsSkipped()) return;
    }
  }
}

// The copy that scans is a child, and in the namespace of children: the times of the trace are its parent's.
TEST(HostCallsTest, ATimeNamespaceForItsChildrenIsNotTheProgramsOwn) {
  ExpectTheSame(R"(#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(void) {
  free(malloc(100));
  if (unshare(CLONE_NEWTIME) != 0) return 77;
  const int offsets = open("/proc/self/timens_offsets", O_WRONLY);
  const char offset[] = "monotonic 1000000 0\n";
  if (write(offsets, offset, strlen(offset)) < 0) return 77;
  close(offsets);
  usleep(20000);
  return 0;
})", [](const Json& report) {
    EXPECT_EQ(report.at("leak_scans").back().at("state"), "done");
    EXPECT_LT(report.at("process").at("duration_s").get<double>(), 100);
  });
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

}  // namespace
}  // namespace memtrace::e2e
