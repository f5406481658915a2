// What `memtrace check` takes for evidence: what was not looked at never reads as no leaks.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/e2e/check_command.h"
#include "tests/e2e/harness.h"

namespace memtrace::e2e {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(CheckEvidenceTest, NoScanIsNotNoLeaks) {
  TempDir traces;
  TraceWithoutScan(traces.path(), {"/bin/true"});
  const Result check = Check({traces.path()});
  EXPECT_EQ(check.exit_status, 2) << check.out;
  EXPECT_THAT(check.out, StartsWith("memtrace check: NO EVIDENCE"));
  EXPECT_THAT(check.out, HasSubstr("MEMTRACE_LEAK_CHECK=off"));
  EXPECT_EQ(Check({"--fail-on", "unfreed", traces.path()}).exit_status, 0);
  EXPECT_EQ(Check({"--fail-on", "none", "--max-peak", "1G", traces.path()}).exit_status, 0);
}

TEST(CheckEvidenceTest, WhatCannotBeReadIsNoEvidence) {
  TempDir traces;
  Trace(traces.path(), {"/bin/true"});
  WriteFile(traces / "other.mtr", "not a trace");
  EXPECT_EQ(Check({traces.path()}).exit_status, 2);
  EXPECT_EQ(Check({"--missing-evidence", "report", traces.path()}).exit_status, 0);
  // Half of a trace.
  const std::string whole = ReadFile(TraceOf(traces.path(), "true"));
  TempDir cut;
  WriteFile(cut / "cut.mtr", whole.substr(0, whole.size() / 2));
  const Result damaged = Check({cut.path()});
  EXPECT_EQ(damaged.exit_status, 2) << damaged.out;
  EXPECT_EQ(Check({traces / "absent.mtr"}).exit_status, 2);
  EXPECT_EQ(Check({}).exit_status, 2);
}

TEST(CheckEvidenceTest, AProcessThatWasKilledProvesNothing) {
  TempDir traces;
  RunCommand(Traced({.arguments = {"sh", "-c", "kill -9 $$"}}, traces.path()));
  ASSERT_FALSE(FilesIn(traces.path(), ".mtr").empty());
  EXPECT_EQ(Check({traces.path()}).exit_status, 2);
  EXPECT_EQ(Check({"--fail-on", "unfreed", traces.path()}).exit_status, 2);
}

// Who has given up rights writes into what was set aside before. That nothing follows there is no damage: what the
// process did counts as of any other that was killed.
TEST(CheckEvidenceTest, AKilledProcessThatGaveUpRightsIsNotDamaged) {
  TempDir directory;
  const std::string program = Compile(directory, "app", R"(#define _GNU_SOURCE
#include <sched.h>
#include <stdlib.h>
int main(void) {
  if (unshare(CLONE_NEWUSER) != 0) return 77;
  void* volatile block = malloc(100);
  free(block);
  free(block);
  return 0;
})", {"-w"});
  TempDir traces;
  const Result run = RunCommand(Traced({.arguments = {program}}, traces.path()));
  if (run.exit_status == 77) GTEST_SKIP() << "no user namespaces here";
  ASSERT_EQ(run.signal, SIGABRT) << run.Outcome();
  const std::string trace = TraceOf(traces.path(), "app", run.pid);
  ASSERT_GT(std::filesystem::file_size(trace), 64u << 20) << "what was set aside";
  const std::string packed = directory / "packed.mtr";
  ASSERT_EQ(RunCommand({.arguments = {ToolPath(), "pack", trace, "-o", packed}}).exit_status, 0);
  for (const std::string& file : {trace, packed}) {
    const Result check = Check({"--fail-on", "none", file});
    EXPECT_EQ(check.exit_status, 1) << check.out;
    EXPECT_THAT(check.out, HasSubstr("app: 1 invalid free, at most 0"));
    EXPECT_THAT(ReportText(file), Not(HasSubstr("incomplete")));
  }
}

// A leak is told by its functions: where a night's build lies in the place of the one that ran, they have names
// only by an earlier report.
TEST(CheckEvidenceTest, ABaselineIsNotMadeOfAProgramThatWasBuiltAnew) {
  TempDir directory;
  const std::string source = "#include <stdlib.h>\nstatic void *volatile p;\n"
                             "__attribute__((noinline)) void lose(void) { p = malloc(40); p = 0; }\n"
                             "int main(void) { lose(); return 0; }\n";
  const std::string program = Compile(directory, "lose", source);
  TempDir traces, home;
  Trace(traces.path(), {program});
  // Where earlier reports left names.
  const auto check = [&](Words words) {
    words.insert(words.begin(), {ToolPath(), "check"});
    words.push_back(traces.path());
    return RunCommand({.arguments = words, .environment = {{"HOME", home.path()}}});
  };
  const Words update = {"--baseline", directory / "known", "--update-baseline"};
  Compile(directory, "lose", "\n\nint again;\n" + source);
  const Result unnamed = check(update);
  EXPECT_EQ(unnamed.exit_status, 2) << unnamed.out;
  EXPECT_THAT(unnamed.err, HasSubstr("is gone or another build now"));
  EXPECT_THAT(unnamed.out, HasSubstr("40 bytes in 1 block definitely lost"));
  EXPECT_FALSE(Exists(directory / "known"));
  EXPECT_THAT(check({}).out, HasSubstr("build-id"));
  // Nor a night of a history, whose sites would be others than those of the nights before.
  const Result night = RunCommand({.arguments = {ToolPath(), "trend", "--add", traces.path(), directory / "history"},
                                   .environment = {{"HOME", home.path()}}});
  EXPECT_EQ(night.exit_status, 2);
  EXPECT_THAT(night.err, HasSubstr("is gone or another build now"));
  EXPECT_FALSE(Exists(directory / "history"));
  // Names that were found in time are there still.
  Compile(directory, "lose", source);
  EXPECT_THAT(check({}).out, HasSubstr("lose.c:3"));
  Compile(directory, "lose", "\n\nint again;\n" + source);
  const Result named = check(update);
  EXPECT_EQ(named.exit_status, 0) << named.out << named.err;
  EXPECT_THAT(ReadFile(directory / "known"), HasSubstr("caller=lose"));
}

// What it lost until then counts; what it lost later nobody has seen.
TEST(CheckEvidenceTest, AScanOnRequestIsNoneOfTheTimeBehindIt) {
  TempDir directory;
  const std::string program = Compile(directory, "late", R"(
#include <memtrace.h>
#include <signal.h>
#include <stdlib.h>
int main(int argc, char** argv) {
  void* volatile block = argv[1][0] == 'l' ? malloc(64) : NULL;
  block = NULL;
  memtrace_leak_check("early", MEMTRACE_LEAKS_ANY, 1);
  for (int i = 0; i < 9; ++i) block = malloc(1000);
  block = NULL;
  if (argc > 2) raise(SIGKILL);
  return 0;
}
)", {"-I", std::string(MEMTRACE_SOURCE_DIR) + "/include"});
  const auto check = [&](const Words& words) {
    TempDir traces;
    Words run = {program};
    run.insert(run.end(), words.begin(), words.end());
    RunCommand(Traced({.arguments = run}, traces.path()));
    return Check({traces.path()});
  };
  const Result killed = check({"clean", "killed"});
  EXPECT_EQ(killed.exit_status, 2) << killed.out;
  EXPECT_THAT(killed.out, HasSubstr("what it lost after its last leak scan"));
  EXPECT_EQ(check({"leak", "killed"}).exit_status, 1);
  EXPECT_EQ(check({"clean"}).exit_status, 1) << "the scan at the end has the nine";
}

// They were looked at: that none of them is a leak is what the program says.
TEST(CheckEvidenceTest, BlocksThatAreDeclaredNoLeaksAreJudged) {
  TempDir directory;
  const std::string program = Compile(directory, "declares", R"(
#include <memtrace.h>
#include <stdlib.h>
int main(int argc, char** argv) {
  (void)argc;
  if (argv[1][0] == 'd') memtrace_disable();
  void* volatile block = malloc(100);
  if (argv[1][0] == 'i') memtrace_ignore_object(block);
  block = NULL;
  return 0;
}
)", {"-I", std::string(MEMTRACE_SOURCE_DIR) + "/include"});
  for (const std::string how : {"ignored", "disabled"}) {
    TempDir traces;
    RunCommand(Traced({.arguments = {program, how}}, traces.path()));
    const Result check = Check({traces.path()});
    EXPECT_EQ(check.exit_status, 0) << how << ": " << check.out;
    const Result text = RunCommand({.arguments = {ToolPath(), "report", "--table", "leaks",
                                                  TraceOf(traces.path(), "declares")}});
    EXPECT_THAT(text.out, HasSubstr("none: the program declared all that was live to be no leaks, "
                                    "100 bytes in 1 block"));
    const Json scan = Report(TraceOf(traces.path(), "declares"), {}).at("leak_scans").at(0);
    EXPECT_EQ(scan.at("ignored").at("blocks"), 1);
  }
  TempDir traces;
  RunCommand(Traced({.arguments = {program, "lost"}}, traces.path()));
  EXPECT_EQ(Check({traces.path()}).exit_status, 1);
}

TEST(CheckEvidenceTest, WhatWasGivenAndNotLookedAtIsNamed) {
  TempDir directory;
  const std::string trace = directory / "t.mtr", copy = directory / "copy.mtr";
  ASSERT_EQ(RunCommand({.arguments = {ToolPath(), "run", "-q", "--library", LibraryPath(), "-o", trace, "--",
                                      ExamplePath("leaks")}}).Outcome(), "exit 0");
  WriteFile(copy, ReadFile(trace));
  const Result check = Check({trace, copy, "--fail-on", "none"});
  EXPECT_EQ(check.exit_status, 0);
  EXPECT_THAT(check.out, HasSubstr("copy.mtr was not looked at: the same trace as " + trace));
}

TEST(CheckEvidenceTest, ALimitThatHoldsForNoProcessIsMissed) {
  TempDir traces;
  TraceWithoutScan(traces.path(), {ExamplePath("leaks")});
  const auto check = [&](const char* limit, const char* missing) {
    return Check({traces.path(), "--fail-on", "none", "--max-peak", limit, "--missing-evidence", missing});
  };
  EXPECT_EQ(check("leaks=1G", "fail").exit_status, 0);
  const Result missed = check("leek=1G", "fail");
  EXPECT_EQ(missed.exit_status, 2) << missed.out;
  const std::string why = "no evidence: --max-peak leek=...: no process of that name was looked at\n";
  EXPECT_THAT(missed.out, HasSubstr(why));
  const Result told = check("leek=1G", "report");
  EXPECT_EQ(told.exit_status, 0) << told.out;
  EXPECT_THAT(told.out, HasSubstr(why + "(--missing-evidence report: this does not fail)"));
}

TEST(CheckEvidenceTest, OfTwoFilesOfOneTraceTheWholeOneCounts) {
  TempDir directory;
  const std::string trace = directory / "t.mtr", begin = directory / "a.mtr";
  ASSERT_EQ(RunCommand({.arguments = {ToolPath(), "run", "-q", "--library", LibraryPath(), "-o", trace, "--",
                                      ExamplePath("leaks")}}).Outcome(), "exit 0");
  const std::string content = ReadFile(trace);
  WriteFile(begin, content.substr(0, content.size() / 2));
  const Result alone = Check({trace, "--fail-on", "none"}), both = Check({directory.path(), "--fail-on", "none"});
  EXPECT_EQ(alone.exit_status, 0) << alone.out;
  EXPECT_EQ(both.exit_status, 0) << both.out;
  EXPECT_THAT(both.out, HasSubstr("a.mtr was not looked at: the same trace as " + trace));
}

// A packed trace that lost its last blocks is no evidence, nor does it become some by being packed.
TEST(CheckEvidenceTest, WhatIsCutIsNoEvidence) {
  TempDir directory;
  const std::string program = Compile(directory, "leaks", kThreeLeaks);
  const std::string whole = directory / "whole.mtr", cut = directory / "cut.mtr",
                    packed = directory / "packed.mtr";
  ASSERT_EQ(RunCommand({.arguments = {ToolPath(), "run", "-q", "--library", LibraryPath(), "-o",
                                      whole, "--", program}}).Outcome(), "exit 0");
  const std::string bytes = ReadFile(whole);
  size_t cuts = 0;
  for (size_t at = 4096; at < bytes.size() - 128; at += 64) {
    WriteFile(cut, bytes.substr(0, at));
    const Result check = Check({cut});
    EXPECT_EQ(check.exit_status, 2) << at << check.out << check.err;
    if (++cuts % 16 != 0) continue;
    RunCommand({.arguments = {ToolPath(), "pack", cut, "-o", packed}});
    EXPECT_EQ(Check({packed}).exit_status, 2) << at;
  }
  EXPECT_GT(cuts, 20u);
  EXPECT_EQ(Check({whole}).exit_status, 1);
}

TEST(CheckEvidenceTest, WhatTheRecordingDidNotGetToIsNamed) {
  TempDir directory;
  const std::string program = Compile(directory, "busy", R"(#include <stdlib.h>
int main(int argc, char** argv) {
  for (int i = 0; i < (argc > 1 ? 1 : 300000); ++i) {
    void* volatile block = malloc(100 + i);
    free(block);
  }
  return 0;
})");
  const auto check = [&](const char* limit, std::vector<std::string> words) {
    TempDir traces;
    words.insert(words.begin(), program);
    Command command = Traced({.arguments = words}, traces.path());
    command.environment.emplace_back("MEMTRACE_MAX_BYTES", limit);
    RunCommand(command);
    const Result result = Check({traces.path()});
    EXPECT_EQ(result.exit_status, 2) << result.out;
    return result.out;
  };
  EXPECT_THAT(check("200K", {}), HasSubstr("the recording stopped after "));
  // All events were in the rings, and no room for what the scan found.
  EXPECT_THAT(check("1", {"once"}), HasSubstr("could not be written to the trace: the size limit "
                                              "was reached (raise MEMTRACE_MAX_BYTES"));
}

TEST(CheckEvidenceTest, AWrongArgumentHidesNoLeakOfTheOthers) {
  TempDir traces, empty;
  Trace(traces.path(), {ExamplePath("leaks")});
  const Result check = Check({empty.path(), traces.path(), traces / "absent.mtr"});
  EXPECT_EQ(check.exit_status, 1) << check.out;
  EXPECT_THAT(check.out, StartsWith("memtrace check: FAILED: 2 leaks, no usable evidence in 2 cases\n"));
  EXPECT_THAT(check.out, HasSubstr(empty.path() + " is a directory without a trace"));
  EXPECT_THAT(check.out, HasSubstr("absent.mtr: No such file"));
}

TEST(CheckEvidenceTest, WhatIsGivenTwiceIsToldOnce) {
  TempDir traces;
  Trace(traces.path(), {"/bin/true"});
  const std::string empty = traces / "empty.mtr", absent = traces / "absent.mtr";
  WriteFile(empty, "");
  const Result check = Check({traces.path(), "./empty.mtr", absent, traces.path() + "/", absent}, traces.path());
  EXPECT_EQ(check.exit_status, 2) << check.out;
  EXPECT_THAT(check.out, HasSubstr("no usable evidence in 2 cases"));
  EXPECT_THAT(check.out, HasSubstr("no evidence: " + empty + ": is empty: no trace"));
  EXPECT_THAT(check.out, Not(HasSubstr("was not looked at"))) << "a copy of itself";
}

TEST(CheckEvidenceTest, WhereTheRecordingWasStoppedIsTold) {
  TempDir directory;
  const std::string program = Compile(directory, "stops", R"(#include <stdlib.h>
#include "memtrace.h"
int main(void) {
  memtrace_stop();
  void* volatile lost = malloc(100);
  lost = NULL;
  memtrace_start();
  return 0;
})", {"-I" MEMTRACE_SOURCE_DIR "/include"});
  const Result check = Check({"--run", "--", program});
  EXPECT_EQ(check.exit_status, 0) << check.out;
  EXPECT_THAT(check.out, HasSubstr("stopped the recording 1 time: 1 allocation then are not looked at"));
}

// There is room for the name of the first process, and none for the number that the name of a child
// has behind it.
TEST(CheckEvidenceTest, AForkedChildThatCouldNotCreateATraceIsNotClean) {
  TempDir directory;
  const std::string program = Compile(directory, "forks", R"(#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
  for (int i = 0; i < 2; ++i) {
    if (fork() == 0) {
      void* volatile lost = malloc(100);
      lost = NULL;
      return 0;
    }
    wait(NULL);
  }
  return 0;
})");
  const auto trace = [&](const TempDir& traces, const char* children) {
    const std::string file = traces / (std::string(251, 'n') + ".mtr");
    Command command = Traced({.arguments = {program}}, traces.path());
    command.environment.back() = {"MEMTRACE_OUT", file};
    command.environment.emplace_back("MEMTRACE_CHILDREN", children);
    const Result run = RunCommand(command);
    EXPECT_EQ(run.Outcome(), "exit 0");
    EXPECT_EQ(run.err, "");
    return file;
  };
  TempDir traces;
  const std::string raw = trace(traces, "follow"), packed = directory / "packed.mtr";
  ASSERT_EQ(FilesIn(traces.path(), ".mtr").size(), 1u);
  ASSERT_EQ(RunCommand({.arguments = {ToolPath(), "pack", raw, "-o", packed}}).exit_status, 0);
  const std::string why = "2 forked children could not create a trace: File name too long";
  for (const std::string& file : {raw, packed}) {
    const Result check = Check({file});
    EXPECT_EQ(check.exit_status, 2) << check.out;
    EXPECT_THAT(check.out, StartsWith("memtrace check: NO EVIDENCE"));
    EXPECT_THAT(check.out, HasSubstr(why));
    EXPECT_EQ(Check({"--fail-on", "none", "--max-peak", "1G", file}).exit_status, 2);
    EXPECT_EQ(Check({"--missing-evidence", "report", file}).exit_status, 0);
    const Json coverage = Report(file).at("coverage");
    EXPECT_EQ(coverage.at("untraced_children"), 2);
    EXPECT_EQ(coverage.at("all_recorded"), false);
    EXPECT_EQ(coverage.at("dropped_events"), 0);
    EXPECT_THAT(coverage.at("notes").dump(), HasSubstr(why));
  }
  TempDir alone;
  const std::string without = trace(alone, "off");
  EXPECT_EQ(Report(without).at("coverage").at("untraced_children"), 0) << "nobody asked for them";
  EXPECT_EQ(Check({without}).exit_status, 0);
}

}  // namespace
}  // namespace memtrace::e2e
