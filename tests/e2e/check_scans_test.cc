// Which scans are evidence: a scan on request says nothing of what came behind it, and the last one
// that was finished counts, in every command.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/e2e/check_command.h"
#include "tests/e2e/harness.h"

namespace memtrace::e2e {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Has itself scanned, loses a block, and ends as it is told.
constexpr char kAsksAndLoses[] = R"(#define _GNU_SOURCE
#include <memtrace.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
static void* volatile kept;
int main(int argc, char** argv) {
  kept = malloc(5);
  memtrace_leak_check("asked", MEMTRACE_LEAKS_ANY, 1);
  kept = malloc(20000);
  kept = NULL;
  memset(&argc, 0, sizeof(argc));
  if (argv[1] != NULL) syscall(SYS_exit_group, 0);
  return 0;
}
)";

class CheckScansTest : public testing::Test {
 protected:
  std::string CompileWithHeader(const std::string& name, const std::string& code) {
    return Compile(directory_, name, code, {"-I" + SourcePath("include")});
  }
  // `memtrace check --run`, with this in the environment.
  static Result CheckRun(const Words& program, const std::string& leak_check = "") {
    Command command = {.arguments = {ToolPath(), "check", "--run", "--"}};
    command.arguments.insert(command.arguments.end(), program.begin(), program.end());
    if (!leak_check.empty()) command.environment = {{"MEMTRACE_LEAK_CHECK", leak_check}};
    return RunCommand(command);
  }

  TempDir directory_;
};

TEST_F(CheckScansTest, AScanOnRequestIsNoneOfTheEnd) {
  const std::string program = CompileWithHeader("asks", kAsksAndLoses);
  const Result whole = CheckRun({program});
  EXPECT_EQ(whole.exit_status, 1) << whole.out << whole.err;
  for (const auto& [words, leak_check] :
       {std::pair<Words, std::string>{{program, "unseen"}, ""}, std::pair<Words, std::string>{{program}, "off"}}) {
    const Result result = CheckRun(words, leak_check);
    EXPECT_EQ(result.exit_status, 2) << leak_check << result.out << result.err;
    EXPECT_THAT(result.out, HasSubstr("what it lost after its last leak scan"));
    EXPECT_THAT(result.out, Not(HasSubstr("CLEAN")));
    const bool unseen = words.size() > 1;
    EXPECT_THAT(result.out, HasSubstr(unseen ? "raw exit_group" : "MEMTRACE_LEAK_CHECK=off"));
  }
  const Result driven =
      RunCommand({.arguments = {ToolPath() + "-valgrind", "-q", "--error-exitcode=9", program, "unseen"}});
  EXPECT_EQ(driven.exit_status, 2) << driven.err;
  // JSON says it, as the text does.
  TempDir traces;
  RunCommand(Traced({.arguments = {program, "unseen"}}, traces.path()));
  const std::string trace = TraceOf(traces.path(), "asks");
  EXPECT_THAT(ReportText(trace), HasSubstr("the end of the program was not scanned"));
  const Result json = RunCommand({.arguments = {ToolPath(), "report", trace, "--format", "json"}});
  EXPECT_THAT(json.out, HasSubstr("the end of the program was not scanned"));
}

TEST_F(CheckScansTest, WhatAnExitHandlerLosesBehindAnEarlyScanIsTold) {
  const std::string program = Compile(directory_, "late", R"(#include <stdlib.h>
static void* volatile kept;
static void* volatile lost;
static void AtExit(void) { lost = malloc(5555); lost = NULL; }
int main(void) { kept = malloc(10); atexit(AtExit); return 0; }
)");
  const Result early = CheckRun({program}, "exit-early");
  EXPECT_EQ(early.exit_status, 0) << early.out << early.err;
  EXPECT_THAT(early.out, HasSubstr("1 block allocated after that was not freed at its end"));
  const Result late = CheckRun({program});
  EXPECT_EQ(late.exit_status, 1) << late.out << late.err;
  // It frees as much as it loses.
  const std::string even = Compile(directory_, "even", R"(#include <stdlib.h>
static void* volatile kept;
static void* volatile lost;
static void AtExit(void) { lost = malloc(5555); lost = NULL; free(kept); }
int main(void) { kept = malloc(10); atexit(AtExit); return 0; }
)");
  EXPECT_THAT(CheckRun({even}, "exit-early").out,
              HasSubstr("1 block allocated after that was not freed at its end"));
}

// Its handler lost the block, and had the memory scanned behind the scan at the exit.
TEST_F(CheckScansTest, AScanInAnExitHandlerCountsInEveryCommand) {
  const std::string program = CompileWithHeader("handler", R"(#include <memtrace.h>
#include <stdlib.h>
static void* volatile kept;
static void AtExit(void) {
  kept = NULL;
  memtrace_leak_check("in atexit", MEMTRACE_LEAKS_ANY, 1);
}
int main(void) { kept = malloc(5000); atexit(AtExit); return 0; }
)");
  TempDir traces;
  Command traced = Traced({.arguments = {program}}, traces.path());
  traced.environment.emplace_back("MEMTRACE_LEAK_CHECK", "exit-early");
  ASSERT_EQ(RunCommand(traced).Outcome(), "exit 0");
  const std::string trace = TraceOf(traces.path(), "handler");
  const auto output = [&](Words words) {
    words.insert(words.begin(), ToolPath());
    words.push_back(trace);
    return RunCommand({.arguments = words}).out;
  };
  EXPECT_THAT(ReportText(trace), HasSubstr("5,000 bytes in 1 block is definitely lost"));
  EXPECT_THAT(ReportText(trace), Not(HasSubstr("the end of the program was not scanned")));
  EXPECT_EQ(Report(trace).at("leak_scan"), 2);
  EXPECT_THAT(output({"report", "--format", "valgrind"}),
              HasSubstr("definitely lost: 5,000 bytes in 1 blocks"));
  EXPECT_THAT(output({"check"}), HasSubstr("5,000 bytes in 1 block definitely lost"));
  const Json diff = Json::parse(output({"diff", "--format", "json", trace}));
  EXPECT_EQ(diff.at("new").at("leaks_known"), true);
  EXPECT_EQ(diff.at("new").at("totals").at("definite_bytes"), 5000);
  EXPECT_THAT(ReportText(traces.path()), HasSubstr("4.88 KiB in 1 block definitely lost"));
}

// With PYTHONMALLOC=malloc there is nothing to say.
TEST_F(CheckScansTest, ThatPythonsArenasHideLeaksIsSaid) {
  for (const std::string allocator : {"pymalloc", "malloc"}) {
    const Result run = RunCommand(
        {.arguments = {ToolPath(), "check", "--run", "--", "/usr/bin/python3", "-S", "-B", "-c",
                       "rows = [str(i) for i in range(20000)]"},
         .environment = {{"PYTHONMALLOC", allocator}}});
    if (run.exit_status == 127) GTEST_SKIP() << "there is no python3";
    const auto is_said = HasSubstr("PYTHONMALLOC=malloc");
    if (allocator == "malloc") {
      EXPECT_THAT(run.out, Not(is_said)) << run.err;
    } else {
      EXPECT_THAT(run.out, is_said) << run.err;
    }
  }
}

}  // namespace
}  // namespace memtrace::e2e
