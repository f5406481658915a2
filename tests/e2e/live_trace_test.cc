// The trace of a process that is at work, read while it is being written.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <time.h>

#include <csignal>
#include <string>

#include "tests/e2e/check_command.h"
#include "tests/e2e/harness.h"

namespace memtrace::e2e {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

void Pause(long ms) {
  const timespec pause = {ms / 1000, ms % 1000 * 1'000'000};
  nanosleep(&pause, nullptr);
}

// Correct, and not so fast that there would be ever more to read. Threads come and go, and blocks change hands.
constexpr char kHandsOver[] = R"(#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>
static _Atomic(void*) slots[64];
static void* Run(void* seed) {
  unsigned random = (unsigned)(long)seed;
  for (int round = 0; round < 20; ++round, usleep(1000)) {
    for (int i = 0; i < 150; ++i) free(atomic_exchange(&slots[rand_r(&random) % 64], malloc(rand_r(&random) % 2000)));
  }
  return seed;
}
int main(void) {
  for (long i = 0; i < 100000; i += 4) {
    pthread_t threads[4];
    for (int k = 0; k < 4; ++k) pthread_create(&threads[k], NULL, Run, (void*)(i + k));
    for (int k = 0; k < 4; ++k) pthread_join(threads[k], NULL);
  }
  return 0;
}
)";

class LiveTraceTest : public testing::Test {
 protected:
  LiveTraceTest()
      : process_(Traced({.arguments = {Compile(directory_, "hands_over", kHandsOver, {"-pthread"})}}, traces_.path())) {
    for (int i = 0; i < 500 && trace_.empty(); ++i, Pause(10)) {
      const auto files = FilesIn(traces_.path(), ".mtr");
      if (!files.empty()) trace_ = traces_ / files.front();
    }
    Pause(300);
  }

  TempDir directory_, traces_;
  Process process_;
  std::string trace_;
};

TEST_F(LiveTraceTest, AReportIsOfWhatWasBeforeItsTraceWasOpened) {
  double before = 0;
  for (int i = 0; i < 8; ++i) {
    const Json report = Report(trace_);
    const Json& coverage = report["coverage"];
    // What one thread has of a later time would be without what another did to it.
    EXPECT_EQ(report["invalid_frees"]["stories"], Json::array()) << report["invalid_frees"].dump();
    EXPECT_EQ(coverage["unknown_frees"], 0);
    EXPECT_EQ(coverage["unseen_frees"], 0);
    EXPECT_EQ(coverage["lost_blocks"], 0);
    EXPECT_EQ(coverage["truncated"], false);
    ASSERT_TRUE(coverage["live_until_s"].is_number());
    EXPECT_GT(double{coverage["live_until_s"]}, before);
    before = coverage["live_until_s"];
  }
  const std::string text = ReportText(trace_);
  EXPECT_THAT(text, HasSubstr("not yet: it is at work"));
  const auto told = [](Words words) {
    words.insert(words.begin(), ToolPath());
    return RunCommand({.arguments = words}).out;
  };
  EXPECT_THAT(told({"info", trace_}), HasSubstr("not yet: it is at work"));
  EXPECT_THAT(told({"diff", trace_, trace_}), HasSubstr(", at work after "));
  const std::string of_all = told({"report", traces_.path()});
  EXPECT_THAT(of_all, HasSubstr(" 1 not yet: it is at work\n"));
  EXPECT_THAT(of_all, HasSubstr(", the last was at work still "));
  // As a night it would look like one that needed less, and stand in the way of the whole run's.
  const Result added = RunCommand({.arguments = {ToolPath(), "trend", "--add", trace_, traces_ / "history"}});
  EXPECT_EQ(added.exit_status, 2);
  EXPECT_THAT(added.err, HasSubstr("its process was at work still"));
  EXPECT_THAT(text, HasSubstr("memtrace leaks " + std::to_string(process_.pid())));
  const Result check = RunCommand({.arguments = {ToolPath(), "check", trace_}});
  EXPECT_EQ(check.exit_status, 2);
  EXPECT_THAT(check.out, HasSubstr("it is at work still"));
  process_.Signal(SIGKILL);
  process_.Wait(10);
  const std::string after = ReportText(trace_);
  EXPECT_THAT(after, Not(HasSubstr("at work")));
}

// What others were writing while the trace was copied was missing in the copy: the trace was told to be damaged.
TEST_F(LiveTraceTest, EachScanThatIsAskedForIsTold) {
  for (int i = 0; i < 12; ++i) {
    const Result leaks = RunCommand({.arguments = {ToolPath(), "leaks", std::to_string(process_.pid()), "--top", "1"}});
    EXPECT_THAT(leaks.exit_status, AnyOf(0, 1)) << leaks.err;
    EXPECT_THAT(leaks.out, HasSubstr("LEAK SUMMARY  scan " + std::to_string(i + 1))) << leaks.err;
    EXPECT_THAT(leaks.out, Not(HasSubstr("damage")));
  }
}

// A server that does nothing for a while: that time is of its run as well.
TEST(IdleProcessTest, ItsRunGoesOnUntilTheReportIsMade) {
  TempDir directory, traces;
  const std::string program = Compile(directory, "idle", R"(#include <stdlib.h>
#include <unistd.h>
__attribute__((noinline)) static void* Keep(void) { return malloc(1000); }
int main(void) {
  for (int i = 0; i < 300; ++i, usleep(1000)) if (Keep() == NULL) return 1;
  return write(1, "filled", 6) != 6 || pause();
})");
  Process process(Traced({.arguments = {program}}, traces.path()));
  ASSERT_TRUE(process.AwaitOutput("filled"));
  Pause(1500);
  const std::string trace = TraceOf(traces.path(), "idle", process.pid());
  const Json all = Report(trace);
  const double until = all["coverage"]["live_until_s"];
  EXPECT_EQ(double{all["process"]["duration_s"]}, until);
  EXPECT_EQ(double{all["range"]["to_s"]}, until);
  EXPECT_EQ(Report(trace, {"--age", "1.2s.."})["totals"]["live_blocks"], 300);
  EXPECT_EQ(Report(trace, {"--age", "..1.2s"})["totals"]["live_blocks"], 0);
  EXPECT_EQ(Report(trace, {"--from", "90%"})["totals"]["allocations"], 0);
  // Names are looked up between two readings, of which the second is of the same instant.
  const Json named = Report(trace, {"--match", "Keep"});
  EXPECT_EQ(double{named["range"]["to_s"]}, double{named["coverage"]["live_until_s"]});
  EXPECT_EQ(named["totals"]["live_blocks"], 300);
  process.Signal(SIGKILL);
  process.Wait(10);
}

// A child of it has a part of its file mapped for as long as it lives.
TEST(KilledParentTest, IsNotAtWorkWhileItsChildLives) {
  TempDir directory, traces;
  const std::string program = Compile(directory, "parent", R"(#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(void) {
  const pid_t child = fork();
  if (child == 0) { close(1); close(2); sleep(30); _exit(0); }
  printf("%d\n", (int)child);
  fflush(stdout);
  raise(SIGKILL);
}
)");
  const Result run = RunCommand(Traced({.arguments = {program}}, traces.path()));
  ASSERT_EQ(run.Outcome(), "signal 9");
  const pid_t child = std::stoi(run.out);
  ASSERT_EQ(kill(child, 0), 0);
  EXPECT_THAT(ReportText(TraceOf(traces.path(), "parent", run.pid)), Not(HasSubstr("at work")));
  kill(child, SIGKILL);
}

}  // namespace
}  // namespace memtrace::e2e
