// Signal handlers that allocate, wherever they strike: in the midst of the tracer too. What
// the handlers and the interrupted code allocated is all in the trace, once, in an order
// that holds at every address. An allocator that handlers may call whatever they interrupt
// stands behind the tracer (tests/tracees/safe_allocator.c), and the counting shim between.

#include <gtest/gtest.h>

#include <string>

#include "tests/e2e/check_command.h"
#include "tests/e2e/expected_stacks.h"
#include "tests/e2e/harness.h"

namespace memtrace::e2e {
namespace {

class SignalsTest : public ::testing::Test {
 protected:
  // `most_unseen`: frees that may be missing, of a program that leaves a realloc for good.
  void Run(const std::string& tracee, const Words& arguments,
           const std::string& outcome = "exit 0", uint64_t most_unseen = 0) {
    Words words = {TraceePath(tracee)};
    words.insert(words.end(), arguments.begin(), arguments.end());
    Command command = TracedAndCounted({.arguments = words, .timeout_seconds = 600},
                                       directory_.path(), counts_.path());
    for (auto& [name, value] : command.environment) {
      if (name == "LD_PRELOAD") value += ":" + TraceePath("libsafe_allocator.so");
    }
    const Result run = RunCommand(command);
    ASSERT_EQ(run.Outcome(), outcome) << run.err;
    told_ = Parse(run.out);
    trace_ = TraceOf(directory_.path(), tracee);
    report_ = Report(trace_, {"--top", "1000000"});
    counted_ = Counts(counts_.path(), tracee);
    ExpectStacks(report_, told_.expected);
    for (const char* none : {"unordered_events", "unknown_frees", "dropped_events"}) {
      EXPECT_EQ(report_.at("coverage").at(none), 0) << none;
    }
    EXPECT_EQ(report_.at("coverage").at("marked_stacks"), InStartFiles());
    EXPECT_LE(report_.at("coverage").at("unseen_frees"), most_unseen);
    EXPECT_EQ(Counters(trace_).at("missed_events"), 0u);
  }
  // Allocations of handlers that interrupted the compiler's start files (crtbeginS.o), whose code
  // has no unwind information: their stacks have to end there.
  uint64_t InStartFiles() const {
    uint64_t allocations = 0;
    for (const Json& site : report_.at("sites")) {
      const Json& stack = site.at("stack");
      if (stack.size() < 2 || !stack.back().value("marker", false)) continue;
      const std::string last = stack[stack.size() - 2].value("function", "");
      if (last == "__do_global_dtors_aux" || last == "deregister_tm_clones") {
        allocations += site.at("allocations").get<uint64_t>();
      }
    }
    return allocations;
  }
  // Every event is there, and once.
  void ExpectAllCounted() const {
    const Json& totals = report_.at("totals");
    EXPECT_EQ(totals.at("allocations"), counted_.allocations);
    EXPECT_EQ(totals.at("frees"), counted_.frees);
    EXPECT_EQ(totals.at("bytes_allocated"), counted_.bytes);
    EXPECT_EQ(Counters(trace_).at("abandoned_events"), 0u);
  }
  // Of the streams of handlers that interrupted the tracer, or of threads' own.
  uint64_t AllocationsOf(bool in_signal_handlers) const {
    uint64_t sum = 0;
    for (const Json& thread : report_.at("threads")) {
      if (thread.at("in_signal_handlers") == in_signal_handlers) {
        sum += thread.at("allocations").get<uint64_t>();
      }
    }
    return sum;
  }

  TempDir directory_, counts_;
  Told told_;
  std::string trace_;
  Json report_;
  MemtraceCounts counted_;
};

TEST_F(SignalsTest, AStormInSeveralThreads) {
  Run("struck_by_signals", {"storm", "3000", "2"});
  ExpectAllCounted();
  EXPECT_GT(told_.numbers.at("nested"), 0);
  // Or nothing was tested: the handlers did interrupt the tracer.
  EXPECT_GT(AllocationsOf(true), 300u);
}

TEST_F(SignalsTest, HandlersThatJumpOut) {
  Run("struck_by_signals", {"jump", "300"}, "exit 0", 300);
  const uint64_t abandoned = Counters(trace_).at("abandoned_events");
  EXPECT_GT(abandoned, 10u);
  // What is missing is no more than what the handlers jumped out of: of the tracer, and of
  // the allocator below it, whose block nobody got.
  const auto recorded = report_.at("totals").at("allocations").get<uint64_t>();
  EXPECT_LE(recorded, counted_.allocations);
  EXPECT_LE(counted_.allocations - recorded, 300u);
  // The thread's own state serves again: 100,000 blocks after the last jump.
  EXPECT_GT(AllocationsOf(false), 100'000u);
  EXPECT_LT(AllocationsOf(true), 5'000u);
}

TEST_F(SignalsTest, HandlersThatGoToAnotherContext) {
  // Three are left for good in the midst of something.
  Run("struck_by_signals", {"switch", "300"}, "exit 0", 3);
  EXPECT_EQ(told_.numbers.at("context"), 3);
  EXPECT_EQ(Counters(trace_).at("abandoned_events"), 0u);
  const auto recorded = report_.at("totals").at("allocations").get<uint64_t>();
  EXPECT_LE(recorded, counted_.allocations);
  EXPECT_LE(counted_.allocations - recorded, 3u);
}

// After a jump out of the tracer, until the thread is back on its own stack. What is looked for there in vain
// took a mapping and an unwinding for each event.
TEST_F(SignalsTest, CoroutinesAreNoSlowerAfterAJump) {
  const std::string program = Compile(directory_, "program", R"(
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <ucontext.h>

enum { kPairs = 2500, kStackBytes = 1 << 20 };
static sigjmp_buf back;
static volatile int armed;
static ucontext_t thread, coroutine;
static long most_faults;

static void Jump(int number) {
  (void)number;
  if (!armed) return;
  armed = 0;
  siglongjmp(back, 1);
}

static long Faults(void) {
  struct rusage usage;
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_minflt;
}

static void Work(void) {
  const long before = Faults();
  for (int i = 0; i < kPairs; ++i) free(malloc(40));
  const long faults = Faults() - before;
  if (most_faults < faults) most_faults = faults;
}

// Of the alarms about one in four comes within the tracer: so many rounds that enough of them do on any machine.
static void* Run(void* stack) {
  sigset_t alarm_only;
  sigemptyset(&alarm_only);
  sigaddset(&alarm_only, SIGALRM);
  pthread_sigmask(SIG_UNBLOCK, &alarm_only, NULL);
  for (volatile int i = 0; i < 200; ++i) {
    struct itimerval timer = {{0, 0}, {0, 100 + i % 20 * 7}};
    if (sigsetjmp(back, 1) == 0) {
      armed = 1;
      setitimer(ITIMER_REAL, &timer, NULL);
      for (;;) munmap((void*)0x100000, 4096);
    }
    getcontext(&coroutine);
    coroutine.uc_stack.ss_sp = stack;
    coroutine.uc_stack.ss_size = kStackBytes;
    coroutine.uc_link = &thread;
    makecontext(&coroutine, Work, 0);
    swapcontext(&thread, &coroutine);
  }
  return NULL;
}

int main(void) {
  sigset_t alarm_only;
  sigemptyset(&alarm_only);
  sigaddset(&alarm_only, SIGALRM);
  pthread_sigmask(SIG_BLOCK, &alarm_only, NULL);
  signal(SIGALRM, Jump);
  // Made before the thread's own, so above it.
  void* const stack = mmap(NULL, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  pthread_t other;
  if (pthread_create(&other, NULL, Run, stack) != 0 || pthread_join(other, NULL) != 0) return 1;
  printf("faults %ld\n", most_faults);
  return 0;
}
)");
  // On a busy processor an alarm comes where the kernel lets the thread go on, which is seldom within the tracer.
  uint64_t abandoned = 0;
  for (int attempt = 0; abandoned <= 5 && attempt < 10; ++attempt) {
    const Result run = RunCommand(Traced({.arguments = {program}, .timeout_seconds = 60}, directory_.path()));
    ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
    abandoned = Counters(TraceOf(directory_.path(), "program", run.pid)).at("abandoned_events");
    long faults = -1;
    ASSERT_EQ(sscanf(run.out.c_str(), "faults %ld", &faults), 1) << run.out;
    EXPECT_LT(faults, 500) << "of 5,000 events";
  }
  EXPECT_GT(abandoned, 5u) << "nothing was tested";
}

// Each jump is one event that is not known to have happened, and what comes behind is the thread's own.
TEST_F(SignalsTest, JumpsOutOfTheTracerAreCountedEach) {
  const std::string program = Compile(directory_, "program", R"(#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
static sigjmp_buf back;
static void Jump(int signal) { siglongjmp(back, signal); }
int main(int argc, char** argv) {
  volatile int jumps = 0;
  signal(SIGSEGV, Jump);
  // The word in front of such a block is not there.
  for (volatile int i = 0; i < atoi(argv[argc - 1]); ++i) {
    if (sigsetjmp(back, 1) == 0) free((void*)4096);
    else ++jumps;
  }
  for (int i = 0; i < 100; ++i) free(malloc(50));
  return jumps == atoi(argv[argc - 1]) ? 0 : 1;
}
)");
  for (const int jumps : {1, 2, 5, 100}) {
    SCOPED_TRACE(jumps);
    const Result run = RunCommand(Traced({.arguments = {program, std::to_string(jumps)}}, directory_.path()));
    ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
    const std::string trace = TraceOf(directory_.path(), "program", run.pid);
    EXPECT_EQ(Counters(trace).at("abandoned_events"), jumps);
    EXPECT_EQ(BriefReport(trace).at("threads").size(), 1u) << "a row of handlers";
  }
}

TEST_F(SignalsTest, ExitInAHandler) {
  Run("struck_by_signals", {"exit", "100"}, "exit 42");
  EXPECT_EQ(report_.at("process").at("end"), "exit");
  EXPECT_EQ(report_.at("process").at("exit_status"), 42);
}

class SignalAtTheEndTest : public ::testing::Test {
 protected:
  // How a child ended, as signalled_as_it_ends says, and the report of it.
  void Run(const std::string& way) {
    TempDir traces;
    const Result run = RunCommand(
        Traced({.arguments = {TraceePath("signalled_as_it_ends"), way}, .timeout_seconds = 120},
               traces.path()));
    if (run.exit_status == 77) GTEST_SKIP() << "the process that scans is not found in time here";
    ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
    const size_t space = run.out.find(' ');
    ASSERT_NE(space, std::string::npos) << run.out;
    outcome_ = run.out.substr(space + 1);
    report_ = BriefReport(
        TraceOf(traces.path(), "signalled_as_it_ends", std::stoi(run.out.substr(0, space))));
  }

  std::string outcome_;
  Json report_;
};

// Without us there is no process any more that it could end.
TEST_F(SignalAtTheEndTest, DoesNotChangeHowAProcessEndsThatIsBeingScanned) {
  for (const std::string way : {"exit", "_exit", "thread"}) {
    SCOPED_TRACE(way);
    Run(way);
    if (HasFatalFailure() || IsSkipped()) return;
    EXPECT_EQ(outcome_, "exit 0\n");
    EXPECT_EQ(report_.at("process").at("end"), "exit");
    EXPECT_EQ(report_.at("process").at("exit_status"), 0);
  }
}

// And what goes on to be there it ends: later.
TEST_F(SignalAtTheEndTest, EndsAProcessThatHangsBehindItsLastHandler) {
  Run("hangs");
  if (HasFatalFailure() || IsSkipped()) return;
  EXPECT_EQ(outcome_, "signal 15\n");
  EXPECT_EQ(report_.at("process").at("end"), "exit");
}

TEST_F(SignalAtTheEndTest, EndsAProcessWhoseScanTakesLong) {
  Run("long");
  if (HasFatalFailure() || IsSkipped()) return;
  EXPECT_EQ(outcome_, "signal 15\n");
  EXPECT_EQ(report_.at("process").at("end"), "cut");
}

TEST_F(SignalsTest, ThreadsThatEndInAHandler) {
  Run("struck_by_signals", {"thread_exit", "100"}, "exit 0", 100);
  // One thread at a time, with states for it and its handlers: those of the dead serve again.
  EXPECT_LE(Counters(trace_).at("tool_memory_bytes"), uint64_t{4} << 20);
}

#ifdef __x86_64__

class EveryInstructionTest : public SignalsTest {
 protected:
  // Twenty to forty microseconds an instruction.
  void Strike(const char* call, int stride, long at_least) {
    Run("struck_at_every_instruction", {call, std::to_string(stride)});
    ExpectAllCounted();
    EXPECT_GE(told_.numbers.at("instructions"), at_least);
    EXPECT_GE(told_.numbers.at("handled"), at_least / stride / 2);
  }
};

TEST_F(EveryInstructionTest, ManyOfMalloc) { Strike("malloc", 13, 300); }
TEST_F(EveryInstructionTest, ManyOfRealloc) { Strike("realloc", 29, 300); }
TEST_F(EveryInstructionTest, ManyOfMallocFromElsewhere) { Strike("elsewhere", 53, 400); }
TEST_F(EveryInstructionTest, ManyOfMappings) { Strike("map", 101, 400); }

// Some minutes each on a virtual machine: ctest -L long.
TEST_F(EveryInstructionTest, DISABLED_AllOfMalloc) { Strike("malloc", 1, 300); }
TEST_F(EveryInstructionTest, DISABLED_AllOfCalloc) { Strike("calloc", 1, 300); }
TEST_F(EveryInstructionTest, DISABLED_AllOfRealloc) { Strike("realloc", 1, 300); }
TEST_F(EveryInstructionTest, DISABLED_AllOfPosixMemalign) { Strike("align", 1, 300); }
TEST_F(EveryInstructionTest, DISABLED_AllOfMappings) { Strike("map", 1, 400); }
TEST_F(EveryInstructionTest, DISABLED_AllOfMallocFromElsewhere) { Strike("elsewhere", 1, 400); }

#endif  // __x86_64__

TEST_F(SignalsTest, DISABLED_AStormOfAMillion) {
  Run("struck_by_signals", {"storm", "1000000", "4"});
  ExpectAllCounted();
  EXPECT_GT(AllocationsOf(true), 10'000u);
}

}  // namespace
}  // namespace memtrace::e2e
