// What `memtrace check` takes for evidence: what was not looked at never reads as no leaks, and where
// there is no verdict none is written.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>

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
    EXPECT_THAT(check.out, HasSubstr("app 1 invalid free, at most 0"));
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

TEST(CheckEvidenceTest, WhatAProcessBecameMustBeTracedAsWell) {
  const std::string leaks = ExamplePath("leaks");
  const Result gone = Check({"--run", "--", "sh", "-c", "/bin/true; env -i " + leaks + "; true"});
  EXPECT_EQ(gone.exit_status, 2) << gone.out;
  EXPECT_THAT(gone.out, HasSubstr("became another program (exec), which is not traced"));
  EXPECT_EQ(Check({"--missing-evidence", "report", "--run", "--", "sh", "-c",
                   "/bin/true; env -i /bin/true; true"}).exit_status, 0);
  EXPECT_EQ(Check({"--run", "--", "sh", "-c", "/bin/true; env A=1 /bin/true; true"}).exit_status, 0);
}

// A test of memtrace_add_leak_test below a memtrace check of all tests.
TEST(CheckEvidenceTest, WhatAnotherMemtraceRunsIsToldToBeLeftOut) {
  const Result check = Check({"--run", "--", ToolPath(), "check", "--run", "--", "/bin/true"});
  EXPECT_EQ(check.exit_status, 2) << check.out;
  EXPECT_THAT(check.out, HasSubstr("what a memtrace runs (also memtrace_add_leak_test"));
  EXPECT_THAT(check.out, HasSubstr("ctest -LE leak"));
}

TEST(CheckEvidenceTest, TracesOfAnotherNightAreNoEvidenceOfThisOne) {
  TempDir traces;
  const Words into = {"--run", "--traces", traces.path(), "--"};
  const auto check = [&](Words words) {
    words.insert(words.begin(), into.begin(), into.end());
    return Check(words);
  };
  EXPECT_EQ(check({ExamplePath("leaks")}).exit_status, 1);
  EXPECT_EQ(check({"/bin/true"}).exit_status, 0) << "the leaks are yesterday's";
  const Result none = check({"env", "-i", "/bin/true"});
  EXPECT_EQ(none.exit_status, 2) << none.out;
  EXPECT_EQ(FilesIn(traces.path(), ".mtr").size(), 3u) << "all are kept";
}

TEST(CheckEvidenceTest, WithoutATraceTheReportsSaySo) {
  TempDir directory;
  const std::string junit = directory / "j.xml", sarif = directory / "s.json";
  const std::string program = Compile(directory, "static", "int main(void) { return 0; }", {"-static"});
  for (const std::string& what : {program, std::string("/no/such/program")}) {
    WriteFile(junit, "yesterday's");
    const Result check = Check({"--run", "-o", "junit=" + junit, "-o", "sarif=" + sarif, "--", what});
    EXPECT_EQ(check.exit_status, what == program ? 2 : 127) << check.out << check.err;
    EXPECT_THAT(check.out, StartsWith("memtrace check: NO EVIDENCE"));
    EXPECT_THAT(ReadFile(junit), HasSubstr("<error"));
    EXPECT_THAT(ReadFile(junit), HasSubstr("cannot be traced"));
    EXPECT_FALSE(Json::parse(ReadFile(sarif))["runs"][0]["invocations"][0]["executionSuccessful"]);
  }
}

TEST(CheckEvidenceTest, WhereNothingCanBeWrittenTheProgramDoesNotRun) {
  TempDir directory;
  const std::string ran = directory / "ran";
  const Result check =
      Check({"--run", "-o", "junit=" + (directory / "no/such/j.xml"), "--", "touch", ran});
  EXPECT_EQ(check.exit_status, 2);
  EXPECT_THAT(check.err, HasSubstr("--output: "));
  EXPECT_NE(access(ran.c_str(), F_OK), 0);
}

TEST(CheckEvidenceTest, OfAProgramThatDidNotRunNoStatusIsTheProgramsOwn) {
  TempDir directory;
  const Result missing = Check({"--run", "--", directory / "no_such_program"});
  EXPECT_EQ(missing.exit_status, 127);
  EXPECT_THAT(missing.err, HasSubstr("is that of a program that was not traced; the gate's alone would be 2"));
  EXPECT_THAT(missing.out, Not(HasSubstr("/memtrace-check."))) << "a directory that is gone";
  const Result no_directory = Check({"--run", "--traces", "/dev/null", "--", "true"});
  EXPECT_EQ(no_directory.exit_status, 2);
  EXPECT_THAT(no_directory.err, HasSubstr("--traces: /dev/null: "));
  const Result limit = Check({"--run", "--max-peak", "1", "--", ExamplePath("leaks")});
  EXPECT_THAT(limit.out, HasSubstr("limit: leaks peak of "));
  EXPECT_THAT(limit.out, Not(HasSubstr("/memtrace-check."))) << "a directory that is gone";
}

TEST(CheckEvidenceTest, WhatWasGivenAndNotLookedAtIsNamed) {
  TempDir directory;
  const std::string trace = directory / "t.mtr", copy = directory / "copy.mtr";
  ASSERT_EQ(RunCommand({.arguments = {ToolPath(), "run", "-q", "--library", LibraryPath(), "-o", trace, "--",
                                      ExamplePath("leaks")}}).Outcome(), "exit 0");
  WriteFile(copy, ReadFile(trace));
  const Result check = Check({trace, copy, "--fail-on", "none", "--max-peak", "leek=1"});
  EXPECT_EQ(check.exit_status, 0);
  EXPECT_THAT(check.out, HasSubstr("copy.mtr was not looked at: the same trace as " + trace));
  EXPECT_THAT(check.out, HasSubstr("--max-peak leek=...: no process of that name was looked at"));
}

// Debian's redis-server is a link to redis-check-rdb.
TEST(CheckEvidenceTest, LimitsHoldForTheNameThatAProgramWasStartedBy) {
  TempDir directory;
  const std::string server = directory / "server";
  ASSERT_EQ(symlink(ExamplePath("leaks").c_str(), server.c_str()), 0);
  const auto peak = [&](const std::string& limit) {
    return Check({"--run", "--fail-on", "none", "--max-peak", limit, "--", server});
  };
  const Result beyond = peak("server=1");
  EXPECT_EQ(beyond.exit_status, 1) << beyond.out;
  EXPECT_THAT(beyond.out, HasSubstr("limit: leaks peak of "));
  EXPECT_EQ(peak("leaks=1").exit_status, 1);
  const Result within = peak("server=1G");
  EXPECT_EQ(within.exit_status, 0) << within.out;
  EXPECT_THAT(within.out, Not(HasSubstr("no process of that name")));
  // Only the sum counts then, by either name.
  for (const char* name : {"server", "leaks"}) {
    const auto leaked = [&](const std::string& most) {
      return Check({"--run", "--max-leaked", name + ("=" + most), "--", server});
    };
    EXPECT_EQ(leaked("1G").exit_status, 0) << leaked("1G").out;
    EXPECT_EQ(leaked("1").exit_status, 1);
  }
}

// One ends within the other.
TEST(CheckEvidenceTest, OfRunsAtTheSameTimeEachLooksAtItsOwn) {
  TempDir directory;
  const std::string traces = directory / "traces", go = directory / "go", clean = directory / "clean";
  const std::string check = ToolPath() + " check -q --run --traces " + traces + " -- ";
  const Result run = RunCommand({.arguments = {"sh", "-c",
      "(" + check + "sh -c 'touch " + directory / "begun" + "; while [ ! -e " + go + " ]; do sleep 0.02; done; exec " +
      TraceePath("leaks_of_each_kind") + " none'; echo $? > " + clean + ") & while [ ! -e " + directory / "begun" +
      " ]; do sleep 0.02; done; " + check + TraceePath("leaks_of_each_kind") + "; echo $?; touch " + go + "; wait"}});
  EXPECT_THAT(run.out, HasSubstr("1\n")) << run.err;
  EXPECT_EQ(ReadFile(clean), "0\n") << run.out << run.err;
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

// Its end is the first that is seen of it.
TEST(CheckEvidenceTest, AChildThatOnlyEndsIsLookedThroughAsWell) {
  TempDir directory;
  const std::string program = Compile(directory, "forks", R"(
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char** argv) {
  void* const block = argc > 2 ? malloc(34) : NULL;
  const pid_t child = fork();
  if (child == 0 && argv[1][0] == 'e') exit(0);
  if (child == 0) _exit(0);
  waitpid(child, NULL, 0);
  free(block);
  return 0;
}
)");
  for (const Words& how : {Words{"_"}, Words{"e"}, Words{"_", "block"}, Words{"e", "block"}}) {
    Words words = {"--run", "--", program};
    words.insert(words.end(), how.begin(), how.end());
    const Result check = Check(words, directory.path());
    EXPECT_EQ(check.Outcome(), "exit 0") << how[0] << check.out << check.err;
  }
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

TEST(CheckEvidenceTest, NothingIsWrittenOverTheTrace) {
  TempDir directory;
  const std::string program = Compile(directory, "leaks", kThreeLeaks), trace = directory / "t.mtr";
  ASSERT_EQ(RunCommand({.arguments = {ToolPath(), "run", "-q", "--library", LibraryPath(), "-o",
                                      trace, "--", program}}).Outcome(), "exit 0");
  const std::string before = ReadFile(trace);
  EXPECT_EQ(Check({trace, "--gen-suppressions", trace}).exit_status, 2);
  EXPECT_EQ(Check({trace, "-o", trace}).exit_status, 2);
  EXPECT_EQ(RunCommand({.arguments = {ToolPath(), "pages", trace, "-o", trace}}).exit_status, 2);
  EXPECT_EQ(ReadFile(trace), before);
  const Result mistyped = Check({trace, "-o", "juint=" + (directory / "leaks.xml")});
  EXPECT_EQ(mistyped.exit_status, 2);
  EXPECT_THAT(mistyped.err, HasSubstr("\"juint\" is no format"));
}

// Its end is not in the trace of a child that goes on when the program has ended.
TEST(CheckEvidenceTest, AChildThatStillRunsIsNoEvidence) {
  TempDir directory;
  const std::string program = Compile(directory, "leaves_a_child", R"(#include <stdlib.h>
#include <unistd.h>
int main(int argc, char** argv) {
  int told[2];
  char byte = 0;
  if (pipe(told) != 0) return 3;
  if (fork() == 0) {
    void* volatile lost = malloc(1234567);
    lost = NULL;
    if (write(told[1], &byte, 1) != 1) _exit(3);
    _exit(read(0, &byte, 1) < 0);  // as long as the test holds the other end
  }
  return read(told[0], &byte, 1) == 1 ? 0 : 3;  // when it has allocated
})");
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const std::string traces = directory / "traces";
  const std::string input = "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(ends[0]);
  const Result check = RunCommand({.arguments = {ToolPath(), "check", "--run", "--traces", traces, "--", program},
                                   .input = input});
  EXPECT_EQ(check.exit_status, 2) << check.out;
  EXPECT_THAT(check.out, HasSubstr("no evidence: leaves_a_child ("));
  EXPECT_THAT(check.out, HasSubstr("): it still runs"));
  // So it is for who comes later, as long as nobody has finished the trace.
  const Result later = Check({traces});
  EXPECT_EQ(later.exit_status, 2) << later.out;
  EXPECT_THAT(later.out, HasSubstr("memtrace run --finish"));
  const Result passing =
      RunCommand({.arguments = {ToolPath(), "check", "--run", "--", program}, .input = input});
  EXPECT_EQ(passing.exit_status, 2) << passing.out;
  EXPECT_THAT(passing.err, HasSubstr("still running: leaves_a_child ("));
  EXPECT_THAT(passing.err, Not(HasSubstr("--finish"))) << "in a directory that is gone";
  close(ends[0]);
  close(ends[1]);
}

// A child that has recorded nothing yet has its parent's trace until then: the parent's leak is found all the
// same, and the child is not forgotten.
TEST(CheckEvidenceTest, AChildThatHasRecordedNothingHoldsNoTraceBack) {
  TempDir directory;
  const std::string program = Compile(directory, "forks_and_ends", R"(#include <stdlib.h>
#include <unistd.h>
int main(int argc, char** argv) {
  void* volatile lost = malloc(777);
  lost = NULL;
  char byte;
  if (fork() == 0) _exit(read(0, &byte, 1) < 0);
  return 0;
})");
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const std::string trace = directory / "t.mtr";
  const std::string input = "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(ends[0]);
  const auto run = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), ToolPath());
    return RunCommand({.arguments = arguments, .input = input});
  };
  const Result check = run({"check", "--run", "--", program});
  EXPECT_EQ(check.exit_status, 1) << check.out;
  EXPECT_THAT(check.out, HasSubstr("777 bytes in 1 block definitely lost"));
  EXPECT_THAT(check.out, HasSubstr("no evidence: forks_and_ends ("));
  const Result recorded = run({"run", "-o", trace, "--", program});
  EXPECT_EQ(recorded.exit_status, 0);
  EXPECT_THAT(recorded.err, HasSubstr("wrote " + trace));
  EXPECT_THAT(recorded.err, HasSubstr("still running: forks_and_ends ("));
  const std::string command = "memtrace run --finish ";
  const size_t at = recorded.err.find(command);
  ASSERT_NE(at, std::string::npos) << recorded.err;
  std::string spool = recorded.err.substr(at + command.size());
  spool.erase(spool.find_last_not_of('\n') + 1);
  const Result early = run({"run", "--finish", spool});
  EXPECT_EQ(early.exit_status, 2);
  EXPECT_THAT(early.err, HasSubstr("still running: forks_and_ends ("));
  close(ends[0]);
  close(ends[1]);
  Result late;
  for (int i = 0; i < 100; ++i) {
    late = RunCommand({.arguments = {ToolPath(), "run", "--finish", spool}});
    if (late.exit_status == 0) break;
    usleep(50'000);
  }
  EXPECT_EQ(late.exit_status, 0) << late.err;
  EXPECT_THAT(late.err, HasSubstr("forks_and_ends"));
  EXPECT_NE(access(spool.c_str(), F_OK), 0);
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
  EXPECT_THAT(check("1", {"once"}), HasSubstr("or MEMTRACE_MAX_BYTES left no room for it"));
}

// What the environment leaves out is no proof that it leaks nothing.
TEST(CheckEvidenceTest, ChildrenAreLookedAtWhateverTheEnvironmentSays) {
  const Result check = RunCommand(
      {.arguments = {ToolPath(), "check", "--run", "--", "/bin/sh", "-c", ExamplePath("leaks") + "; :"},
       .environment = {{"MEMTRACE_CHILDREN", "off"}}});
  EXPECT_EQ(check.exit_status, 1) << check.out;
  EXPECT_THAT(check.out, HasSubstr("[leaks]"));
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

TEST(CheckEvidenceTest, WhatIsReadIsNotWrittenOver) {
  TempDir directory;
  const std::string baseline = directory / "baseline", suppressions = directory / "s.supp";
  WriteFile(baseline, "# none\n");
  WriteFile(suppressions, "leak:nobody\n");
  for (const Words& words : std::vector<Words>{
           {"--baseline", baseline, "-o", "json=" + baseline},
           {"--baseline", baseline, "--gen-suppressions", baseline},
           {"--suppressions", suppressions, "--gen-suppressions", suppressions},
           {"--suppressions", suppressions, "-o", "sarif=" + suppressions},
           {"-o", "json=" + (directory / "x"), "-o", "junit=" + (directory / "./x")},
           {"-f", "json", "--gen-suppressions", "-"},
           {"--tolerance", "10%"},  // of no baseline
           {"-o", "json=-", "-o", "junit=-"},
           {"-o", "json=" + directory.path()}}) {
    Words all = {"--run"};
    all.insert(all.end(), words.begin(), words.end());
    all.insert(all.end(), {"--", "touch", directory / "ran"});
    const Result check = Check(all);
    EXPECT_EQ(check.exit_status, 2) << check.out;
    EXPECT_NE(access((directory / "ran").c_str(), F_OK), 0) << "the program need not run for that";
  }
  EXPECT_EQ(ReadFile(baseline), "# none\n");
  EXPECT_EQ(ReadFile(suppressions), "leak:nobody\n");
}

TEST(CheckEvidenceTest, SuppressionsMayStandBehindTheText) {
  const Result check = Check({"--run", "-q", "--gen-suppressions", "-", "--", "/bin/true"});
  EXPECT_EQ(check.exit_status, 0) << check.err;
  EXPECT_THAT(check.out, HasSubstr("memtrace check: clean"));
}

// A server would take last night's for this one's.
TEST(CheckEvidenceTest, WhereThereIsNoVerdictThatOfAnotherNightIsRemoved) {
  TempDir directory;
  const std::string junit = directory / "j.xml", notes = directory / "notes.txt";
  ASSERT_EQ(Check({"--run", "-o", "junit=" + junit, "--", "/bin/true"}).exit_status, 0);
  WriteFile(notes, "mine");
  const Result check = Check({"--run", "--baseline", directory / "absent", "-o", "junit=" + junit, "-o", notes,
                              "--", "/bin/true"});
  EXPECT_EQ(check.exit_status, 2);
  EXPECT_THAT(check.err, HasSubstr("j.xml was of an earlier run, and is removed"));
  EXPECT_NE(access(junit.c_str(), F_OK), 0);
  EXPECT_EQ(ReadFile(notes), "mine");
}

// The tool sees nothing of a SIGKILL, as of ctest at a TIMEOUT: what is there while the program runs is
// what would be left.
TEST(CheckEvidenceTest, WhileTheProgramRunsThereIsNoVerdictOfAnotherNight) {
  TempDir directory;
  const std::string junit = directory / "j.xml", notes = directory / "notes.txt";
  WriteFile(junit, "<testsuites/>");
  WriteFile(notes, "mine");
  const Result check = Check({"--run", "-o", "junit=" + junit, "-o", notes, "--", "sh", "-c",
                              "test ! -e j.xml && test -e notes.txt"}, directory.path());
  EXPECT_EQ(check.exit_status, 0) << check.out << check.err;
  EXPECT_THAT(check.err, Not(HasSubstr("removed"))) << "there is a new one";
  EXPECT_THAT(ReadFile(junit), HasSubstr("<testcase"));
}

TEST(CheckEvidenceTest, AWrongOptionLeavesNoVerdictOfAnotherNight) {
  for (const Words& wrong : std::vector<Words>{
           {"--bogus"}, {"--bogus", "3"}, {"--top", "many"}, {"--fail-on="}, {"-o", "juint=b.xml"},
           {"--format", "yaml"}, {"--missing-evidence", "perhaps"}, {"--traces", "notes.txt"}}) {
    TempDir directory;
    WriteFile(directory / "a.json", "[]");
    WriteFile(directory / "j.xml", "<testsuites/>");
    WriteFile(directory / "notes.txt", "mine");
    WriteFile(directory / "of_the_program.json", "{}");
    Words words = {"--run", "-oa.json"};
    words.insert(words.end(), wrong.begin(), wrong.end());
    words.insert(words.end(), {"--output", "junit=j.xml", "--", "true", "-o", "of_the_program.json"});
    const Result check = Check(words, directory.path());
    EXPECT_EQ(check.exit_status, 2) << wrong.front() << check.err;
    EXPECT_THAT(check.err, HasSubstr("j.xml was of an earlier run, and is removed")) << wrong.front();
    EXPECT_NE(access((directory / "a.json").c_str(), F_OK), 0) << wrong.front();
    EXPECT_NE(access((directory / "j.xml").c_str(), F_OK), 0) << wrong.front();
    EXPECT_EQ(ReadFile(directory / "notes.txt"), "mine");
    EXPECT_EQ(ReadFile(directory / "of_the_program.json"), "{}");
  }
}

TEST(CheckEvidenceTest, AnOutputThatCannotBeWrittenTakesNothingFromTheOthers) {
  TempDir traces, directory;
  Trace(traces.path(), {ExamplePath("leaks")});
  const Result check = Check({"-o", "junit=/dev/full", "-o", "json=" + (directory / "a.json"),
                              "--gen-suppressions", directory / "a.supp", traces.path()});
  EXPECT_EQ(check.exit_status, 2) << check.out;
  EXPECT_THAT(check.err, HasSubstr("cannot write /dev/full"));
  EXPECT_THAT(check.out, StartsWith("memtrace check: FAILED: 2 leaks\n"));
  EXPECT_EQ(Json::parse(ReadFile(directory / "a.json")).at("exit_code"), 1);
  EXPECT_THAT(ReadFile(directory / "a.supp"), HasSubstr("Memcheck:Leak"));
}

// Not when the night is over.
TEST(CheckEvidenceTest, AnOutputWithoutADirectoryFailsBeforeTheProgramRuns) {
  TempDir directory;
  WriteFile(directory / "a.xml", "<testsuites/>");
  const Result check = Check({"--run", "-o", "junit=a.xml", "-o", "sarif=gone/x.sarif", "--", "touch",
                              "ran"}, directory.path());
  EXPECT_EQ(check.exit_status, 2) << check.out;
  EXPECT_THAT(check.err, HasSubstr("--output: gone/x.sarif: No such file or directory"));
  EXPECT_NE(access((directory / "ran").c_str(), F_OK), 0);
  EXPECT_NE(access((directory / "a.xml").c_str(), F_OK), 0);
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

}  // namespace
}  // namespace memtrace::e2e
