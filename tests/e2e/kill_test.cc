// Ended at any instant and in any way, a program's trace has every call that had returned to it,
// and none that it had not begun: tests/tracees/counts_its_own_calls.c counts them itself.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <thread>

#include "tests/e2e/check_command.h"
#include "tests/e2e/harness.h"
#include "tests/e2e/own_counts.h"

namespace memtrace::e2e {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kLanes = 4;

// Another seed for each run of the long set; told when something fails.
uint32_t Seed() {
  const char* text = getenv("MEMTRACE_TEST_SEED");
  return text != nullptr ? static_cast<uint32_t>(strtoul(text, nullptr, 10)) : 20260101u;
}

// Some soon after exec, within the loader and the library's own start; most among the calls.
void AwaitRandomInstant(const OwnCounts& counts, std::mt19937& random) {
  const auto upto = [&](uint32_t limit) { return random() % limit; };
  if (upto(5) == 0) {
    std::this_thread::sleep_for(std::chrono::microseconds(upto(8000)));
    return;
  }
  ASSERT_TRUE(counts.Await(upto(upto(4) == 0 ? 60'000 : 8'000)));
  std::this_thread::sleep_for(std::chrono::microseconds(upto(300)));
}

// The one trace in `directory`; empty: the process was killed before it made one.
std::string OnlyTrace(const std::string& directory) {
  const std::vector<std::string> files = FilesIn(directory, ".mtr");
  EXPECT_LE(files.size(), 1u);
  return files.empty() ? "" : directory + "/" + files.front();
}

void KillAtRandomInstants(int times, const Environment& more = {}) {
  std::mt19937 random(Seed());
  uint64_t calls = 0, killed_at_work = 0;
  for (int i = 0; i < times; ++i) {
    SCOPED_TRACE("kill " + std::to_string(i) + ", seed " + std::to_string(Seed()));
    OwnCounts counts;
    TempDir traces;
    Command command = Traced({.arguments = counts.Arguments(kLanes)}, traces.path());
    command.environment.insert(command.environment.end(), more.begin(), more.end());
    Process process(command);
    AwaitRandomInstant(counts, random);
    process.Signal(SIGKILL);
    ASSERT_EQ(process.Wait(20).Outcome(), "signal 9");
    const std::string trace = OnlyTrace(traces.path());
    if (counts.Begun() == 0) continue;
    ASSERT_NE(trace, "");
    const OwnCounts::Comparison result = counts.CompareWith(trace);
    EXPECT_EQ(result.problems, "");
    calls += result.allocations;
    ++killed_at_work;
    if (::testing::Test::HasFailure()) break;
  }
  EXPECT_GT(killed_at_work, static_cast<uint64_t>(times / 2));
  ::testing::Test::RecordProperty("calls", std::to_string(calls));
  printf("%d kills, %d of them among %d calls\n", times, static_cast<int>(killed_at_work),
         static_cast<int>(calls));
}

TEST(KillTest, NoCallIsLostOrInventedAtSixtyInstants) { KillAtRandomInstants(60); }

TEST(KillTest, DISABLED_NoCallIsLostOrInventedAtAThousandInstants) { KillAtRandomInstants(1000); }

// The ways to end that a program has itself, with the other threads at work.
TEST(KillTest, HoweverAProgramEndsNothingIsLost) {
  struct Way {
    const char* end;
    const char* outcome;
  };
  for (const Way& way : {Way{"segv", "signal 11"}, Way{"abort", "signal 6"}, Way{"_exit", "exit 3"},
                         Way{"quick_exit", "exit 4"}, Way{"exit", "exit 5"}, Way{"exec", "exit 0"},
                         Way{"vfork-kill", "signal 9"}}) {
    for (const char* calls : {"0", "1", "2900", "7001"}) {
      SCOPED_TRACE(std::string(way.end) + " after " + calls);
      OwnCounts counts;
      TempDir traces;
      const Result run = RunCommand(
          Traced({.arguments = counts.Arguments(kLanes, {way.end, calls})}, traces.path()));
      EXPECT_EQ(run.Outcome(), way.outcome) << run.err;
      EXPECT_EQ(run.err, "");
      const OwnCounts::Comparison result = counts.CompareWith(OnlyTrace(traces.path()));
      EXPECT_EQ(result.problems, "");
      EXPECT_GE(result.allocations, strtoull(calls, nullptr, 10));
    }
  }
}

// libc ends the process for the thread that finds no handler left, while another one's runs.
TEST(KillTest, TheEndIsToldThoughThreadsEndAtOnce) {
  TempDir directory;
  const std::string program = Compile(directory, "ends", R"(#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>
static const char* way;
static pthread_barrier_t barrier;
static void End(int number) {
  (void)number;
  if (strncmp(way, "exit", 4) == 0) exit(4);
  quick_exit(4);
}
static void* Run(void* none) {
  (void)none;
  pthread_barrier_wait(&barrier);
  for (int i = 0; i < 2000; ++i) { void* volatile block = malloc(i); free(block); }
  End(0);
  return NULL;
}
int main(int argc, char** argv) {
  if (argc != 2) return 2;
  way = argv[1];
  const int handler = strstr(way, "handler") != NULL, threads = handler ? 3 : 4;
  // Only this thread takes it: where it interrupts one that holds the lock of libc's list, the
  // handler's exit() waits for that for ever, without the library too.
  sigset_t alarm;
  sigemptyset(&alarm);
  sigaddset(&alarm, SIGALRM);
  pthread_sigmask(SIG_BLOCK, &alarm, NULL);
  signal(SIGALRM, End);
  pthread_barrier_init(&barrier, NULL, threads);
  pthread_t thread;
  for (int i = 0; i < threads; ++i) pthread_create(&thread, NULL, Run, NULL);
  const struct itimerval soon = {{0, 300}, {0, 300}};
  if (handler) setitimer(ITIMER_REAL, &soon, NULL);
  pthread_sigmask(SIG_UNBLOCK, &alarm, NULL);
  for (;;) pause();
}
)", {"-pthread"});
  for (const char* way : {"quick_exit", "exit", "quick_exit-handler", "exit-handler"}) {
    for (int run = 0; run < 20; ++run) {
      SCOPED_TRACE(std::string(way) + ", run " + std::to_string(run));
      TempDir traces;
      const Result result = RunCommand(Traced({.arguments = {program, way}}, traces.path()));
      ASSERT_EQ(result.Outcome(), "exit 4") << result.err;
      const Json process = BriefReport(OnlyTrace(traces.path())).at("process");
      EXPECT_EQ(process.at("end"), "exit");
      EXPECT_EQ(process.at("exit_status"), 4);
    }
  }
}

// What its child did to the memory that both have is not its own end.
TEST(KillTest, TheEndIsToldAfterAVforkChildsExit) {
  TempDir directory;
  const std::string program = Compile(directory, "vforks", R"(#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char** argv) {
  if (argc != 2) return 2;
  free(malloc(10));
  const pid_t child = vfork();
  if (child == 0) exit(127);  // as after an exec that failed
  waitpid(child, NULL, 0);
  free(malloc(20));
  if (strcmp(argv[1], "quick_exit") == 0) quick_exit(3);
  exit(3);
}
)");
  for (const char* way : {"quick_exit", "exit"}) {
    SCOPED_TRACE(way);
    TempDir traces;
    const Result result = RunCommand(Traced({.arguments = {program, way}}, traces.path()));
    ASSERT_EQ(result.Outcome(), "exit 3") << result.err;
    const Json process = BriefReport(OnlyTrace(traces.path())).at("process");
    EXPECT_EQ(process.at("end"), "exit");
    EXPECT_EQ(process.at("exit_status"), 3);
  }
}

TEST(KillTest, AFailedExecAndThenAKillLoseNothing) {
  OwnCounts counts;
  TempDir traces;
  Process process(
      Traced({.arguments = counts.Arguments(kLanes, {"exec-fails", "5000"})}, traces.path()));
  ASSERT_TRUE(counts.Await(12'000));
  process.Signal(SIGKILL);
  EXPECT_EQ(process.Wait(20).Outcome(), "signal 9");
  EXPECT_EQ(counts.CompareWith(OnlyTrace(traces.path())).problems, "");
}

// A memory cgroup of its own, with a limit; empty path: there is none to be had here.
class SmallCgroup {
 public:
  SmallCgroup() {
    const std::string path = "/sys/fs/cgroup/memtrace-test-" + std::to_string(getpid());
    for (const std::string& base : {path, "/sys/fs/cgroup/memory/memtrace-test-" +
                                              std::to_string(getpid())}) {
      if (mkdir(base.c_str(), 0700) != 0) continue;
      path_ = base;
      if (Set("memory.max", "67108864") || Set("memory.limit_in_bytes", "67108864")) {
        Set("memory.swap.max", "0");
        return;
      }
      rmdir(base.c_str());
      path_.clear();
    }
  }
  ~SmallCgroup() {
    for (int i = 0; i < 100 && !path_.empty() && rmdir(path_.c_str()) != 0; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
  const std::string& path() const { return path_; }

 private:
  bool Set(const std::string& file, const std::string& value) const {
    const int fd = open((path_ + "/" + file).c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0) return false;
    const bool written = write(fd, value.data(), value.size()) ==
                         static_cast<ssize_t>(value.size());
    close(fd);
    return written;
  }
  std::string path_;
};

TEST(KillTest, TheOutOfMemoryKillerLosesNothing) {
  const SmallCgroup cgroup;
  if (cgroup.path().empty()) GTEST_SKIP() << "no memory cgroup can be made here (needs root)";
  OwnCounts counts;
  TempDir traces;
  Words arguments = {"sh", "-c", "echo $$ > \"$0\"/cgroup.procs && exec \"$@\"",
                     cgroup.path()};
  const Words tracee = counts.Arguments(kLanes, {"fill", "4000"});
  arguments.insert(arguments.end(), tracee.begin(), tracee.end());
  const Result run = RunCommand(Traced({.arguments = arguments}, traces.path()));
  ASSERT_EQ(run.Outcome(), "signal 9") << run.err;
  EXPECT_EQ(counts.CompareWith(TraceOf(traces.path(), "counts_its_own_calls")).problems, "");
}

// Where no cgroup can be had, an address space that is used up is the nearest thing.
TEST(KillTest, AnAddressSpaceThatIsUsedUpLosesNothing) {
  OwnCounts counts;
  TempDir traces;
  Words arguments = {"sh", "-c", "ulimit -v 1000000 && exec \"$0\" \"$@\""};
  const Words tracee = counts.Arguments(kLanes, {"fill", "4000"});
  arguments.insert(arguments.end(), tracee.begin(), tracee.end());
  const Result run = RunCommand(Traced({.arguments = arguments}, traces.path()));
  EXPECT_THAT(run.Outcome(), ::testing::AnyOf("signal 6", "exit 9", "exit 7")) << run.err;
  EXPECT_EQ(counts.CompareWith(TraceOf(traces.path(), "counts_its_own_calls")).problems, "");
}

TEST(KillTest, ASampledTraceOfAKilledProgramHasItsTotals) {
  OwnCounts counts;
  TempDir traces;
  Command command = Traced({.arguments = counts.Arguments(kLanes)}, traces.path());
  command.environment.emplace_back("MEMTRACE_SAMPLE_BYTES", "32K");
  command.environment.emplace_back("MEMTRACE_SAMPLE_SEED", "7");
  Process process(command);
  ASSERT_TRUE(counts.Await(60'000));
  process.Signal(SIGKILL);
  ASSERT_EQ(process.Wait(20).Outcome(), "signal 9");
  const Json report = Report(OnlyTrace(traces.path()));
  // About one call in five is sampled: of 100,000 calls the estimate is right to some 0.6 %.
  const auto calls = static_cast<double>(counts.Returned());
  EXPECT_NEAR(report.at("totals").at("allocations").get<double>() / calls, 1.0, 0.05);
  EXPECT_EQ(report.at("coverage").at("dropped_events"), 0);
}

// --- memtrace run ---------------------------------------------------------------------------

Command UnderRun(const OwnCounts& counts, const std::string& output) {
  Words words = {ToolPath(), "run", "-o", output, "--"};
  const Words tracee = counts.Arguments(kLanes);
  words.insert(words.end(), tracee.begin(), tracee.end());
  return {.arguments = words};
}

void KillUnderRun(int times) {
  std::mt19937 random(Seed() + 1);
  for (int i = 0; i < times; ++i) {
    SCOPED_TRACE("kill " + std::to_string(i));
    OwnCounts counts;
    TempDir work;
    Process run(UnderRun(counts, work / "packed.mtr"));
    ASSERT_TRUE(counts.Await(1 + random() % 40'000));
    kill(counts.pid(), SIGKILL);
    const Result result = run.Wait(30);
    EXPECT_EQ(result.Outcome(), "exit 137") << result.err;
    EXPECT_THAT(result.err, AllOf(HasSubstr("ended by SIGKILL"), HasSubstr("; wrote ")));
    EXPECT_EQ(std::filesystem::directory_iterator(work.path())->path().filename(), "packed.mtr");
    EXPECT_EQ(counts.CompareWith(work / "packed.mtr").problems, "");
    const Json report = BriefReport(work / "packed.mtr");
    EXPECT_EQ(report.at("process").at("end"), "signal");
    if (::testing::Test::HasFailure()) break;
  }
}

TEST(KillTest, APackedTraceIsWholeWhenItsProgramWasKilled) { KillUnderRun(5); }
TEST(KillTest, DISABLED_APackedTraceIsWholeAtAHundredInstants) { KillUnderRun(100); }

// The program goes on without its parent; then it is killed as well, and --finish packs it all.
void KillRunItself(int times) {
  std::mt19937 random(Seed() + 2);
  for (int i = 0; i < times; ++i) {
    SCOPED_TRACE("kill " + std::to_string(i));
    OwnCounts counts;
    TempDir work;
    Process run(UnderRun(counts, work / "packed.mtr"));
    ASSERT_TRUE(counts.Await(1 + random() % 40'000));
    run.Signal(SIGKILL);
    EXPECT_EQ(run.Wait(20).Outcome(), "signal 9");
    const uint64_t then = counts.Returned(0);
    EXPECT_TRUE(counts.Await(then + 10'000)) << "the program did not go on";
    const pid_t pid = counts.pid();
    kill(pid, SIGKILL);
    while (kill(pid, 0) == 0) {
      // A zombie whose new parent is slow to wait for it has ended all the same.
      std::ifstream status("/proc/" + std::to_string(pid) + "/stat");
      std::string text;
      std::getline(status, text);
      if (text.empty() || text.find(") Z ") != text.npos) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    std::string spool;
    for (const auto& entry : std::filesystem::directory_iterator(work.path())) {
      if (entry.is_directory()) spool = entry.path();
    }
    ASSERT_NE(spool, "");
    const Result finish = RunCommand({.arguments = {ToolPath(), "run", "--finish", spool}});
    EXPECT_EQ(finish.Outcome(), "exit 0") << finish.err;
    EXPECT_EQ(counts.CompareWith(work / "packed.mtr").problems, "");
    if (::testing::Test::HasFailure()) break;
  }
}

TEST(KillTest, NothingIsLostWhenMemtraceRunIsKilledToo) { KillRunItself(3); }
TEST(KillTest, DISABLED_NothingIsLostWhenMemtraceRunIsKilledTooAtFiftyInstants) {
  KillRunItself(50);
}

}  // namespace
}  // namespace memtrace::e2e
