// What `memtrace check` writes, and when: nothing over what it reads, and no verdict of another run
// is left where there is none of this one.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "tests/e2e/check_command.h"
#include "tests/e2e/harness.h"

namespace memtrace::e2e {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(CheckOutputsTest, WithoutATraceTheReportsSaySo) {
  TempDir directory;
  const std::string junit = directory / "j.xml", sarif = directory / "s.json";
  const std::string program = Compile(directory, "static", "int main(void) { return 0; }", {"-static"});
  for (const std::string& what : {program, std::string("/no/such/program")}) {
    WriteFile(junit, "yesterday's");
    const Result check = Check({"--run", "-o", "junit=" + junit, "-o", "sarif=" + sarif, "--", what});
    EXPECT_EQ(check.exit_status, what == program ? 2 : 127) << check.out << check.err;
    EXPECT_THAT(check.out, StartsWith("memtrace check: NO EVIDENCE"));
    EXPECT_THAT(ReadFile(junit), HasSubstr("<error"));
    EXPECT_THAT(ReadFile(junit), HasSubstr(what == program ? "it is statically linked"
                                                           : "no/such/program: No such file"));
    EXPECT_FALSE(Json::parse(ReadFile(sarif))["runs"][0]["invocations"][0]["executionSuccessful"]);
  }
}

// The leak is known, and what the child lost is not.
TEST(CheckOutputsTest, ABaselineThatIsNotUpdatedTakesNothingFromTheVerdict) {
  TempDir directory;
  const std::string program = Compile(directory, "k", R"(
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static void* volatile block;
int main(void) {
  if (fork() == 0) {
    block = malloc(10);
    raise(SIGKILL);
  }
  wait(NULL);
  block = malloc(77);
  block = NULL;
  return 0;
})");
  const std::string baseline = directory / "kb", junit = directory / "k.xml", json = directory / "k.json";
  const auto update = [&](Words words) {
    words.insert(words.begin(), {"--baseline", baseline, "--update-baseline", "-o", "junit=" + junit, "-o",
                                 "json=" + json});
    words.insert(words.end(), {"--run", "--", program});
    return Check(words);
  };
  const Result refused = update({});
  EXPECT_EQ(refused.exit_status, 2) << refused.out << refused.err;
  EXPECT_FALSE(Exists(baseline));
  EXPECT_THAT(refused.err, HasSubstr("kb was not written: no usable evidence: k."));
  EXPECT_THAT(refused.err, HasSubstr("--missing-evidence report updates it by what was looked at"));
  EXPECT_THAT(refused.err, HasSubstr("--traces D keeps the traces"));
  EXPECT_THAT(refused.out, StartsWith("memtrace check: FAILED: 1 leak that the baseline does not allow"));
  EXPECT_THAT(refused.out, HasSubstr("77 bytes in 1 block definitely lost"));
  EXPECT_THAT(refused.out, HasSubstr("Baseline " + baseline + ": not written: no usable evidence"));
  EXPECT_THAT(ReadFile(junit), HasSubstr("<failure message=\"definitely lost: 77 bytes"));
  EXPECT_EQ(Json::parse(ReadFile(json)).at("gated_leaks"), 1);
  const Result updated = update({"--missing-evidence", "report"});
  EXPECT_EQ(updated.exit_status, 0) << updated.out << updated.err;
  EXPECT_THAT(ReadFile(baseline), HasSubstr("bytes=77 blocks=1 program=k "));
  EXPECT_THAT(update({}).err, HasSubstr("kb is as it was: no usable evidence: k."));
}

TEST(CheckOutputsTest, WhereNothingCanBeWrittenTheProgramDoesNotRun) {
  TempDir directory;
  const std::string ran = directory / "ran";
  const Result check =
      Check({"--run", "-o", "junit=" + (directory / "no/such/j.xml"), "--", "touch", ran});
  EXPECT_EQ(check.exit_status, 2);
  EXPECT_THAT(check.err, HasSubstr("--output: "));
  EXPECT_NE(access(ran.c_str(), F_OK), 0);
}

TEST(CheckOutputsTest, NothingIsWrittenOverTheTrace) {
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

TEST(CheckOutputsTest, WhatIsReadIsNotWrittenOver) {
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

TEST(CheckOutputsTest, SuppressionsMayStandBehindTheText) {
  const Result check = Check({"--run", "-q", "--gen-suppressions", "-", "--", "/bin/true"});
  EXPECT_EQ(check.exit_status, 0) << check.err;
  EXPECT_THAT(check.out, HasSubstr("memtrace check: clean"));
}

// A server would take last night's for this one's.
TEST(CheckOutputsTest, WhereThereIsNoVerdictThatOfAnotherNightIsRemoved) {
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
TEST(CheckOutputsTest, WhileTheProgramRunsThereIsNoVerdictOfAnotherNight) {
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

TEST(CheckOutputsTest, AWrongOptionLeavesNoVerdictOfAnotherNight) {
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

TEST(CheckOutputsTest, AnOutputThatCannotBeWrittenTakesNothingFromTheOthers) {
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
TEST(CheckOutputsTest, AnOutputWithoutADirectoryFailsBeforeTheProgramRuns) {
  TempDir directory;
  WriteFile(directory / "a.xml", "<testsuites/>");
  const Result check = Check({"--run", "-o", "junit=a.xml", "-o", "sarif=gone/x.sarif", "--", "touch",
                              "ran"}, directory.path());
  EXPECT_EQ(check.exit_status, 2) << check.out;
  EXPECT_THAT(check.err, HasSubstr("--output: gone/x.sarif: No such file or directory"));
  EXPECT_NE(access((directory / "ran").c_str(), F_OK), 0);
  EXPECT_NE(access((directory / "a.xml").c_str(), F_OK), 0);
}

}  // namespace
}  // namespace memtrace::e2e
