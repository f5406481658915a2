// MEMTRACE_KEEP=newest: the file never grows beyond MEMTRACE_MAX_BYTES, and has the newest
// events whenever and however the program ends: without a gap, up to the last call.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <random>
#include <string>
#include <thread>

#include "tests/e2e/expected_stacks.h"
#include "tests/e2e/harness.h"
#include "tests/e2e/own_counts.h"

namespace memtrace::e2e {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

constexpr int kLanes = 4;
constexpr uint64_t kLimit = 6 << 20;
// Calls of the lanes that fit; each comes with a free and the half of a stamp.
constexpr uint64_t kAtLeast = 70'000;

Command Recorded(const OwnCounts& counts, const std::string& traces, const Words& more = {}) {
  Command command = Traced({.arguments = counts.Arguments(kLanes, more)}, traces);
  command.environment.emplace_back("MEMTRACE_MAX_BYTES", "6M");
  command.environment.emplace_back("MEMTRACE_KEEP", "newest");
  return command;
}

void KillAtRandomInstants(int times) {
  std::mt19937 random(99);
  uint64_t least = UINT64_MAX, most = 0;
  for (int i = 0; i < times; ++i) {
    SCOPED_TRACE("kill " + std::to_string(i));
    OwnCounts counts;
    TempDir traces;
    Process process(Recorded(counts, traces.path()));
    ASSERT_TRUE(counts.Await(250'000 + random() % 150'000));
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
    process.Signal(SIGKILL);
    ASSERT_EQ(process.Wait(20).Outcome(), "signal 9");
    const std::string trace = TraceOf(traces.path(), "counts_its_own_calls");
    EXPECT_LE(std::filesystem::file_size(trace), kLimit);
    const OwnCounts::Comparison result = counts.CompareEndWith(trace);
    EXPECT_EQ(result.problems, "") << ReportText(trace).substr(0, 3000);
    EXPECT_GT(result.allocations, kAtLeast);
    EXPECT_LT(result.allocations, counts.Returned());
    least = std::min(least, result.allocations);
    most = std::max(most, result.allocations);
    if (::testing::Test::HasFailure()) break;
  }
  printf("%d kills, between %d and %d calls kept\n", times, static_cast<int>(least),
         static_cast<int>(most));
}

TEST(FlightRecorderTest, HasTheNewestCallsWheneverItIsKilled) { KillAtRandomInstants(8); }
TEST(FlightRecorderTest, DISABLED_HasTheNewestCallsAtTwoHundredInstants) {
  KillAtRandomInstants(200);
}

TEST(FlightRecorderTest, IsAWholeTraceWhileThereIsRoom) {
  OwnCounts counts;
  TempDir traces;
  const Result run = RunCommand(Recorded(counts, traces.path(), {"_exit", "3000"}));
  ASSERT_EQ(run.Outcome(), "exit 3") << run.err;
  const std::string trace = TraceOf(traces.path(), "counts_its_own_calls");
  EXPECT_EQ(counts.CompareWith(trace).problems, "");
  const Json report = BriefReport(trace);
  EXPECT_TRUE(report.at("coverage").at("window_begin_s").is_null());
  EXPECT_FALSE(report.at("coverage").at("truncated"));
  EXPECT_EQ(report.at("process").at("end"), "exit");
}

TEST(FlightRecorderTest, SaysThatItsBeginningIsMissing) {
  OwnCounts counts;
  TempDir traces;
  const Result run = RunCommand(Recorded(counts, traces.path(), {"exit", "300000"}));
  ASSERT_EQ(run.Outcome(), "exit 5") << run.err;
  const std::string trace = TraceOf(traces.path(), "counts_its_own_calls");
  const Json report = Report(trace);
  EXPECT_EQ(counts.CompareEndWith(trace).problems, "");
  const Json& coverage = report.at("coverage");
  EXPECT_GT(coverage.at("window_begin_s").get<double>(), 0.0);
  EXPECT_EQ(report.at("range").at("from_s"), coverage.at("window_begin_s"));
  EXPECT_THAT(coverage.at("notes"), Contains(HasSubstr("kept the newest events only")));
  EXPECT_EQ(coverage.at("lost_blocks"), 0);
  EXPECT_EQ(coverage.at("dropped_events"), 0);
  EXPECT_EQ(coverage.at("unknown_frees"), 0) << "they are of blocks from before the window";
  EXPECT_EQ(coverage.at("unseen_frees"), 0);
  EXPECT_EQ(coverage.at("unordered_events"), 0);
  EXPECT_FALSE(coverage.at("truncated"));
  // The program keeps a few blocks in each lane, whatever it did before.
  EXPECT_LE(report.at("totals").at("live_blocks"), 200);
  // A stack may be told in a block that was given up: not more than one for each thread.
  EXPECT_LE(coverage.at("marked_stacks"), 20);
  EXPECT_TRUE(NamesFunction(report, "Obtain"));
  EXPECT_EQ(report.at("process").at("command").size(), 5u);
  EXPECT_THAT(ReportText(trace), HasSubstr("kept the newest events only"));
  const Result info = RunCommand({.arguments = {ToolPath(), "info", trace}});
  EXPECT_THAT(info.out, HasSubstr("kept the newest events only"));
  EXPECT_FALSE(coverage.at("all_recorded"));
  const Result folded =
      RunCommand({.arguments = {ToolPath(), "report", trace, "--format", "folded"}});
  EXPECT_THAT(folded.err, HasSubstr("the trace keeps the newest events only, from "));
  // What it needed less is no progress.
  const Result diff = RunCommand({.arguments = {ToolPath(), "diff", trace, trace, "--exit-code"}});
  EXPECT_EQ(diff.Outcome(), "exit 2") << diff.out << diff.err;
  EXPECT_THAT(diff.out, HasSubstr("newest"));  // a line may end anywhere
  const Result night = RunCommand({.arguments = {ToolPath(), "trend", "--add", trace, traces / "history"}});
  EXPECT_NE(night.exit_status, 0);
  EXPECT_THAT(night.err, HasSubstr("the trace keeps the newest events only"));
}

// The records of modules are written where nothing is given up, until there is no more room there.
TEST(FlightRecorderTest, AModuleHasItsNameHoweverManyWereLoadedBefore) {
  TempDir directory;
  WriteFile(directory / "plugin.c", "#include <stdlib.h>\n"
                                    "void* NAME(int n) { void* volatile p = malloc(n); return p; }\n");
  WriteFile(directory / "program.c", R"(
#include <dlfcn.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  for (int i = 0; i < 400; ++i) {
    void* const handle = dlopen(argv[1], RTLD_NOW);
    if (handle == NULL) return 3;
    void* (*const first)(int) = (void* (*)(int))dlsym(handle, "First");
    free(first(10));
    dlclose(handle);
  }
  void* (*const second)(int) = (void* (*)(int))dlsym(dlopen(argv[2], RTLD_NOW), "Second");
  free(second(20));
  for (int i = 0; i < 1000000; ++i) {
    void* volatile block = malloc(i % 1000 + 1);
    free(block);
  }
  for (int i = 0; i < 7; ++i) second(777);
  return 0;
}
)");
  const auto build = [&](const Words& more) {
    Words words = {"gcc", "-g", "-O1", "-fno-builtin", "-w"};
    words.insert(words.end(), more.begin(), more.end());
    const Result built = RunCommand({.arguments = words});
    EXPECT_EQ(built.Outcome(), "exit 0") << built.err;
  };
  const std::string source = directory / "plugin.c";
  const std::string first = directory / "first.so", second = directory / "second.so";
  build({"-shared", "-fPIC", "-DNAME=First", source, "-o", first});
  build({"-shared", "-fPIC", "-DNAME=Second", source, "-o", second});
  build({directory / "program.c", "-o", directory / "program", "-ldl"});
  TempDir traces;
  Command command = Traced({.arguments = {directory / "program", first, second}}, traces.path());
  command.environment.emplace_back("MEMTRACE_MAX_BYTES", "1M");
  command.environment.emplace_back("MEMTRACE_KEEP", "newest");
  const Result run = RunCommand(command);
  ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
  const Json report = Report(TraceOf(traces.path(), "program", run.pid));
  uint64_t live_blocks = 0;
  for (const Json& site : report.at("sites")) {
    for (const Json& frame : site.at("stack")) {
      if (IsFunction(frame, "Second")) live_blocks += site.at("live_blocks").get<uint64_t>();
    }
  }
  EXPECT_EQ(live_blocks, 7u);
}

TEST(FlightRecorderTest, PackedByMemtraceRunItIsTheSame) {
  OwnCounts counts;
  TempDir work;
  Words words = {ToolPath(), "run", "--max-bytes", "6M", "--keep", "newest", "-o",
                 work / "t.mtr", "--"};
  const Words tracee = counts.Arguments(kLanes);
  words.insert(words.end(), tracee.begin(), tracee.end());
  Process run({.arguments = words});
  ASSERT_TRUE(counts.Await(300'000));
  kill(counts.pid(), SIGKILL);
  const Result result = run.Wait(30);
  EXPECT_EQ(result.Outcome(), "exit 137") << result.err;
  const OwnCounts::Comparison compared = counts.CompareEndWith(work / "t.mtr");
  EXPECT_EQ(compared.problems, "");
  EXPECT_GT(compared.allocations, kAtLeast);
  const Json report = BriefReport(work / "t.mtr");
  EXPECT_GT(report.at("coverage").at("window_begin_s").get<double>(), 0.0);
  EXPECT_EQ(report.at("coverage").at("lost_blocks"), 0);
  EXPECT_EQ(report.at("coverage").at("unknown_frees"), 0);
}

TEST(FlightRecorderTest, NothingIsLostWhenMemtraceRunIsKilledToo) {
  OwnCounts counts;
  TempDir work;
  Words words = {ToolPath(), "run", "--max-bytes", "6M", "--keep", "newest", "-o",
                 work / "t.mtr", "--"};
  const Words tracee = counts.Arguments(kLanes, {"_exit", "300000"});
  words.insert(words.end(), tracee.begin(), tracee.end());
  Process run({.arguments = words});
  ASSERT_TRUE(counts.Await(50'000));
  run.Signal(SIGKILL);
  run.Wait(10);
  ASSERT_TRUE(counts.Await(300'000));
  std::string spool;
  for (const auto& entry : std::filesystem::directory_iterator(work.path())) {
    if (entry.is_directory()) spool = entry.path();
  }
  Result finish;
  for (int i = 0; i < 100; ++i) {
    finish = RunCommand({.arguments = {ToolPath(), "run", "--finish", spool}});
    if (finish.exit_status == 0) break;  // 2: the process has not gone yet
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_EQ(finish.Outcome(), "exit 0") << finish.err;
  const OwnCounts::Comparison compared = counts.CompareEndWith(work / "t.mtr");
  EXPECT_EQ(compared.problems, "");
  EXPECT_GT(compared.allocations, kAtLeast);
}

// `memtrace run` looks at the size, and the library takes it: by one grammar.
TEST(FlightRecorderTest, TheSizeInTheVariableIsOneForBoth) {
  TempDir work;
  const Result run = RunCommand({.arguments = {ToolPath(), "run", "-o", work / "t.mtr", "--keep",
                                               "newest", "--", "/bin/echo", "told"},
                                 .environment = {{"MEMTRACE_MAX_BYTES", "1.5MiB"}}});
  EXPECT_EQ(run.Outcome(), "exit 0") << run.err;
  EXPECT_THAT(run.err, ::testing::Not(HasSubstr("ignored")));
  const Result info = RunCommand({.arguments = {ToolPath(), "info", work / "t.mtr"}});
  EXPECT_THAT(info.out, HasSubstr("(MEMTRACE_KEEP=newest)")) << info.err;
}

TEST(FlightRecorderTest, TooSmallASizeIsRefused) {
  TempDir work;
  for (const char* size : {"", "0", "1000K"}) {
    const Result bare = RunCommand({.arguments = {"/bin/true"},
                                    .environment = {{"LD_PRELOAD", LibraryPath()},
                                                    {"MEMTRACE_OUT", work / "bare.mtr"},
                                                    {"MEMTRACE_KEEP", "newest"},
                                                    {"MEMTRACE_MAX_BYTES", size}}});
    EXPECT_EQ(bare.Outcome(), "exit 0");
    EXPECT_THAT(bare.err, HasSubstr("MEMTRACE_KEEP=newest is ignored: it needs "
                                    "MEMTRACE_MAX_BYTES of 1M or more"));
    Words words = {ToolPath(), "run", "-o", work / "t.mtr", "--keep", "newest"};
    if (*size != '\0') words.insert(words.end(), {"--max-bytes", size});
    words.insert(words.end(), {"--", "/bin/true"});
    const Result run = RunCommand({.arguments = words});
    EXPECT_EQ(run.Outcome(), "exit 2");
    EXPECT_THAT(run.err, ::testing::MatchesRegex("memtrace: --keep newest needs --max-bytes of 1M "
                                                 "or more[^\n]*\n"));
    EXPECT_FALSE(Exists(work / "t.mtr"));
  }
}

}  // namespace
}  // namespace memtrace::e2e
