// Which processes `memtrace check --run` looks at: all that the program became or made, also those
// that still run, and none of another run's.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tests/e2e/check_command.h"
#include "tests/e2e/harness.h"

namespace memtrace::e2e {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// A standard input from which nothing comes: what reads it stays as long as this is open.
class HeldInput {
 public:
  HeldInput() { EXPECT_EQ(pipe2(ends_, O_CLOEXEC), 0); }
  ~HeldInput() { Close(); }
  HeldInput(const HeldInput&) = delete;
  HeldInput& operator=(const HeldInput&) = delete;

  std::string path() const {
    return "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(ends_[0]);
  }
  void Close() {
    for (int& end : ends_) {
      if (end >= 0) close(std::exchange(end, -1));
    }
  }

 private:
  int ends_[2] = {-1, -1};
};

// The directory that the line of a run names; empty: none.
std::string SpoolIn(const std::string& line) {
  const std::string command = "memtrace run --finish ";
  const size_t at = line.find(command);
  if (at == std::string::npos) return "";
  const std::string spool = line.substr(at + command.size());
  return spool.substr(0, spool.find_last_not_of('\n') + 1);
}

TEST(CheckRunsTest, WhatAProcessBecameMustBeTracedAsWell) {
  const std::string leaks = ExamplePath("leaks");
  const Result gone = Check({"--run", "--", "sh", "-c", "/bin/true; env -i " + leaks + "; true"});
  EXPECT_EQ(gone.exit_status, 2) << gone.out;
  EXPECT_THAT(gone.out, HasSubstr("became another program (exec), which is not traced"));
  EXPECT_EQ(Check({"--missing-evidence", "report", "--run", "--", "sh", "-c",
                   "/bin/true; env -i /bin/true; true"}).exit_status, 0);
  EXPECT_EQ(Check({"--run", "--", "sh", "-c", "/bin/true; env A=1 /bin/true; true"}).exit_status, 0);
}

// A test of memtrace_add_leak_test below a memtrace check of all tests.
TEST(CheckRunsTest, WhatAnotherMemtraceRunsIsToldToBeLeftOut) {
  const Result check = Check({"--run", "--", ToolPath(), "check", "--run", "--", "/bin/true"});
  EXPECT_EQ(check.exit_status, 2) << check.out;
  EXPECT_THAT(check.out, HasSubstr("what a memtrace runs (also memtrace_add_leak_test"));
  EXPECT_THAT(check.out, HasSubstr("ctest -LE leak"));
}

TEST(CheckRunsTest, TracesOfAnotherNightAreNoEvidenceOfThisOne) {
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

TEST(CheckRunsTest, OfAProgramThatDidNotRunNoStatusIsTheProgramsOwn) {
  TempDir directory;
  const Result missing = Check({"--run", "--", directory / "no_such_program"});
  EXPECT_EQ(missing.exit_status, 127);
  EXPECT_THAT(missing.err, HasSubstr("is that of a program that was not started; the gate's alone would be 2"));
  EXPECT_THAT(missing.out, Not(HasSubstr("/memtrace-check."))) << "a directory that is gone";
  EXPECT_THAT(missing.out, HasSubstr("no_such_program: No such file")) << "the cause is the evidence";
  const Result no_directory = Check({"--run", "--traces", "/dev/null", "--", "true"});
  EXPECT_EQ(no_directory.exit_status, 2);
  EXPECT_THAT(no_directory.err, HasSubstr("--traces: /dev/null: "));
  const Result limit = Check({"--run", "--max-peak", "1", "--", ExamplePath("leaks")});
  EXPECT_THAT(limit.out, HasSubstr("limit: leaks: peak of "));
  EXPECT_THAT(limit.out, Not(HasSubstr("/memtrace-check."))) << "a directory that is gone";
}

// Debian's redis-server is a link to redis-check-rdb.
TEST(CheckRunsTest, LimitsHoldForTheNameThatAProgramWasStartedBy) {
  TempDir directory;
  const std::string server = directory / "server";
  ASSERT_EQ(symlink(ExamplePath("leaks").c_str(), server.c_str()), 0);
  const auto peak = [&](const std::string& limit) {
    return Check({"--run", "--fail-on", "none", "--max-peak", limit, "--", server});
  };
  const Result beyond = peak("server=1");
  EXPECT_EQ(beyond.exit_status, 1) << beyond.out;
  EXPECT_THAT(beyond.out, HasSubstr("limit: leaks: peak of "));
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

// A script runs what is not the project's, here as if that leaked and was killed.
TEST(CheckRunsTest, OnlyTheNamedProgramsAreJudged) {
  TempDir directory;
  const std::string traces = directory / "traces", tool = directory / "tool", clean = directory / "clean";
  ASSERT_EQ(symlink(ExamplePath("leaks").c_str(), tool.c_str()), 0);
  Compile(directory, "clean", "#include <stdlib.h>\nint main(void) { free(malloc(9)); return 0; }");
  const auto run = [&](Words words) {
    words.insert(words.begin(), {"--run", "--traces", traces});
    words.insert(words.end(), {"--", "sh", "-c", "sh -c 'kill -9 $$'; " + clean + "; " + tool + "; :"});
    return Check(words);
  };
  EXPECT_EQ(run({}).exit_status, 1);
  std::filesystem::remove_all(traces);
  const Result only = run({"--programs", "cle*"});
  EXPECT_EQ(only.exit_status, 0) << only.out << only.err;
  EXPECT_THAT(only.out, HasSubstr("memtrace check: CLEAN\n  1 process of 1 program looked at"));
  EXPECT_THAT(only.out, HasSubstr("\n  3 processes of 2 other programs not judged\n"));
  // The same of a directory, and of files.
  Words files = FilesIn(traces, ".mtr");
  ASSERT_EQ(files.size(), 4u);
  for (std::string& file : files) file.insert(0, traces + "/");
  for (const Words& given : {Words{traces}, files}) {
    const auto check = [&](Words words) {
      words.insert(words.end(), given.begin(), given.end());
      return Check(words);
    };
    EXPECT_EQ(check({"--programs", "clean"}).exit_status, 0);
    EXPECT_EQ(check({"--programs", "clean", "--programs", "tool"}).exit_status, 1) << "its other name";
    EXPECT_EQ(check({"--programs", "clean,leaks"}).exit_status, 1);
    EXPECT_EQ(check({"--programs", "sh"}).exit_status, 2) << "one was killed";
    const Result none = check({"--programs", "clean,clear"});
    EXPECT_EQ(none.exit_status, 2);
    EXPECT_THAT(none.out, HasSubstr("no evidence: --programs clear: no process of that name was looked at"));
    EXPECT_EQ(check({"--programs", "clean,clear", "--missing-evidence", "report"}).exit_status, 0);
    EXPECT_EQ(check({"--programs", "clean", "--max-peak", "8"}).exit_status, 1);
    EXPECT_EQ(check({"--programs", "clean", "--max-peak", "9"}).exit_status, 0) << "the others' is more";
    EXPECT_EQ(check({"--programs", "clean", "--max-peak", "leaks=1G"}).exit_status, 2);
  }
  // Nor is the baseline of the others.
  const std::string baseline = directory / "known";
  EXPECT_EQ(Check({"--baseline", baseline, "--update-baseline", "--programs", "leaks", traces}).exit_status, 0);
  const std::string known = ReadFile(baseline);
  EXPECT_THAT(known, HasSubstr("program=leaks"));
  EXPECT_EQ(Check({"--baseline", baseline, "--update-baseline", "--programs", "clean", traces}).exit_status, 0);
  EXPECT_EQ(ReadFile(baseline), known);
  EXPECT_THAT(Check({"--programs", "a,,b", traces}).err, HasSubstr("--programs: \"a,,b\" has an empty name"));
}

// One ends within the other.
TEST(CheckRunsTest, OfRunsAtTheSameTimeEachLooksAtItsOwn) {
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

// Its end is the first that is seen of it.
TEST(CheckRunsTest, AChildThatOnlyEndsIsLookedThroughAsWell) {
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

// Its end is not in the trace of a child that goes on when the program has ended.
TEST(CheckRunsTest, AChildThatStillRunsIsNoEvidence) {
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
  HeldInput input;
  const std::string traces = directory / "traces";
  const Result check = RunCommand({.arguments = {ToolPath(), "check", "--run", "--traces", traces, "--", program},
                                   .input = input.path()});
  EXPECT_EQ(check.exit_status, 2) << check.out;
  EXPECT_THAT(check.out, HasSubstr("no evidence: leaves_a_child ("));
  EXPECT_THAT(check.out, HasSubstr("): it still runs"));
  // So it is for who comes later, as long as nobody has finished the trace.
  const Result later = Check({traces});
  EXPECT_EQ(later.exit_status, 2) << later.out;
  EXPECT_THAT(later.out, HasSubstr("memtrace run --finish"));
  const Result passing =
      RunCommand({.arguments = {ToolPath(), "check", "--run", "--", program}, .input = input.path()});
  EXPECT_EQ(passing.exit_status, 2) << passing.out;
  EXPECT_THAT(passing.err, HasSubstr("still running: leaves_a_child ("));
  EXPECT_THAT(passing.err, Not(HasSubstr("--finish"))) << "in a directory that is gone";
  const Result others = RunCommand(
      {.arguments = {ToolPath(), "check", "--run", "--programs", "sh", "--", "sh", "-c", program + "; :"},
       .input = input.path()});
  EXPECT_EQ(others.exit_status, 0) << others.out << others.err;
  EXPECT_THAT(others.out, HasSubstr("1 process of 1 program looked at"));
}

// What it was before its exec has its trace. That there is none of what it is now has one reason.
TEST(CheckRunsTest, AChildThatRunsOnAsAnotherProgramIsMissingOnce) {
  TempDir directory;
  const std::string program = Compile(directory, "execs_a_child", R"(#include <stdlib.h>
#include <unistd.h>
int main(int argc, char** argv) {
  int told[2];
  char byte = 0;
  free(malloc(100));
  if (argc == 2) {
    if (write(3, &byte, 1) != 1) _exit(3);
    _exit(read(0, &byte, 1) < 0);  // as long as the test holds the other end
  }
  if (pipe(told) != 0) return 3;
  if (fork() == 0) {
    free(malloc(100));
    dup2(told[1], 3);
    execl("/proc/self/exe", argv[0], "again", NULL);
    _exit(3);
  }
  return read(told[0], &byte, 1) == 1 ? 0 : 3;
})");
  HeldInput input;
  const Result check = RunCommand(
      {.arguments = {ToolPath(), "check", "--run", "--", program},
       .input = input.path()});
  EXPECT_EQ(check.exit_status, 2) << check.out;
  EXPECT_THAT(check.out, HasSubstr("): it still runs"));
  EXPECT_THAT(check.out, HasSubstr("no usable evidence in 1 case"));
  EXPECT_THAT(check.out, Not(HasSubstr("(exec)")));
}

// Nothing is traced of what is statically linked: what runs on is told by its own name, and is missing where
// it is judged by that or by what it was.
TEST(CheckRunsTest, AChildThatBecameAStaticProgramIsNamedAsWhatItRuns) {
  TempDir directory;
  Compile(directory, "still_static", R"(#include <unistd.h>
int main(void) {
  char byte = 0;
  if (write(3, &byte, 1) != 1) return 3;
  return read(0, &byte, 1) < 0;  // as long as the test holds the other end
})", {"-static"});
  const std::string program = Compile(directory, "was_dynamic", R"(#include <stdlib.h>
#include <unistd.h>
int main(int argc, char** argv) {
  int told[2];
  char byte = 0;
  free(malloc(100));
  if (pipe(told) != 0) return 3;
  if (fork() == 0) {
    free(malloc(100));
    dup2(told[1], 3);
    execl(argv[1], argv[1], NULL);
    _exit(3);
  }
  close(told[1]);
  return read(told[0], &byte, 1) == 1 ? 0 : 3;
})");
  HeldInput input;
  const auto check = [&](Words words) {
    words.insert(words.begin(), {ToolPath(), "check", "--run"});
    words.insert(words.end(), {"--", "sh", "-c", program + " " + directory / "still_static" + "; :"});
    return RunCommand(
        {.arguments = words,
         .input = input.path()});
  };
  for (const Words& programs : {Words{}, Words{"--programs", "was_dynamic"},
                                Words{"--programs", "still_*,was_*"}}) {
    const Result told = check(programs);
    EXPECT_EQ(told.exit_status, 2) << told.out << told.err;
    EXPECT_THAT(told.out, HasSubstr("no evidence: was_dynamic ("));
    EXPECT_THAT(told.out, HasSubstr("): it became still_static (exec), which still runs"));
    EXPECT_THAT(told.err, HasSubstr("still running: still_static ("));
  }
  const Result by_its_name = check({"--programs", "still_static"});
  EXPECT_THAT(by_its_name.out, HasSubstr("it became still_static (exec)")) << by_its_name.err;
  const Result others = check({"--programs", "sh"});
  EXPECT_THAT(others.out, Not(HasSubstr("still_static"))) << others.err;
}

// A child that has recorded nothing yet has its parent's trace until then: the parent's leak is found all the
// same, and the child is not forgotten.
TEST(CheckRunsTest, AChildThatHasRecordedNothingHoldsNoTraceBack) {
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
  HeldInput input;
  const std::string trace = directory / "t.mtr";
  const auto run = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), ToolPath());
    return RunCommand({.arguments = arguments, .input = input.path()});
  };
  const Result check = run({"check", "--run", "--", program});
  EXPECT_EQ(check.exit_status, 1) << check.out;
  EXPECT_THAT(check.out, HasSubstr("777 bytes in 1 block definitely lost"));
  EXPECT_THAT(check.out, HasSubstr("no evidence: forks_and_ends ("));
  const Result others = run({"check", "--run", "--programs", "sh", "--", "sh", "-c", program + "; :"});
  EXPECT_EQ(others.exit_status, 0) << others.out << others.err;
  const Result recorded = run({"run", "-o", trace, "--", program});
  EXPECT_EQ(recorded.exit_status, 0);
  EXPECT_THAT(recorded.err, HasSubstr("wrote " + trace));
  EXPECT_THAT(recorded.err, HasSubstr("still running: forks_and_ends ("));
  const std::string spool = SpoolIn(recorded.err);
  ASSERT_NE(spool, "") << recorded.err;
  const Result early = run({"run", "--finish", spool});
  EXPECT_EQ(early.exit_status, 2);
  EXPECT_THAT(early.err, HasSubstr("still running: forks_and_ends ("));
  input.Close();
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

// A child that can open no file when it is to begin a trace of its own, after its parent's is over: some time
// after there is nothing more to be read. `parent`: what that does then.
std::string ForksOneThatCannotBegin(const TempDir& directory, const std::string& parent) {
  return Compile(directory, "cannot_begin", R"(#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char** argv) {
  if (argc == 2) return wait(NULL) < 0;
  free(malloc(100));
  if (fork() == 0) {
    char byte;
    const struct rlimit none = {0, 0};
    if (read(0, &byte, 1) < 0) _exit(3);
    usleep(300000);
    register long no_old __asm__("r10") = 0;
    long result = SYS_prlimit64;  // by no name: the library would begin its trace before
    __asm__ volatile("syscall" : "+a"(result)
                     : "D"(0), "S"(RLIMIT_NOFILE), "d"(&none), "r"(no_old)
                     : "rcx", "r11", "memory");
    void* volatile lost = malloc(100);
    lost = NULL;
    exit(0);
  }
  close(0);
  )" + parent + "\n}");
}

constexpr char kCannotBegin[] = "1 forked child could not create a trace: Too many open files";

TEST(CheckRunsTest, AChildThatCannotBeginATraceAfterItsParentsExecIsToldOf) {
  TempDir directory;
  const std::string program = ForksOneThatCannotBegin(
      directory, "execl(\"/proc/self/exe\", argv[0], \"again\", NULL); return 3;");
  const Result check = RunCommand({.arguments = {ToolPath(), "check", "--run", "--", program}});
  EXPECT_EQ(check.exit_status, 2) << check.out << check.err;
  EXPECT_THAT(check.out, HasSubstr(kCannotBegin));
  const std::string trace = directory / "t.mtr";
  const Result run = RunCommand({.arguments = {ToolPath(), "run", "-o", trace, "--", program}});
  EXPECT_THAT(run.err, HasSubstr("; 1 forked child could not create a trace"));
  EXPECT_EQ(FilesIn(directory.path(), ".mtr").size(), 2u);
}

// That a child which runs on cannot begin one later, nobody can write into a trace that is finished.
TEST(CheckRunsTest, AChildThatMayNotBeginATraceAfterTheRunIsNotedBefore) {
  TempDir directory;
  const std::string program = ForksOneThatCannotBegin(directory, "return 0;");
  HeldInput input;
  const std::string trace = directory / "t.mtr";
  const Result run = RunCommand(
      {.arguments = {ToolPath(), "run", "-o", trace, "--", program},
       .input = input.path()});
  EXPECT_THAT(run.err, HasSubstr("still running: cannot_begin ("));
  const Result check = RunCommand({.arguments = {ToolPath(), "check", trace}});
  EXPECT_EQ(check.exit_status, 0) << check.out;
  EXPECT_THAT(check.out, HasSubstr("1 forked child (cannot_begin "));
  EXPECT_THAT(check.out, HasSubstr("it allocated nothing or could not create one"));
}

// A child that has recorded nothing holds the trace of what its parent was before an exec; the name of the run is
// that of what the parent became.
TEST(CheckRunsTest, AnOlderTraceThatIsHeldDoesNotTakeTheNameOfTheNewest) {
  TempDir directory;
  const std::string program = Compile(directory, "held_by_a_child", R"(#include <stdlib.h>
#include <unistd.h>
int main(int argc, char** argv) {
  char byte;
  free(malloc(100));
  if (fork() == 0) _exit(read(0, &byte, 1) < 0);
  execv(argv[1], argv + 1);
  return 3;
})");
  HeldInput input;
  const std::string trace = directory / "t.mtr";
  const Result run = RunCommand(
      {.arguments = {ToolPath(), "run", "-o", trace, "--", program, ExamplePath("leaks")},
       .input = input.path()});
  EXPECT_THAT(run.err, HasSubstr("still running: held_by_a_child ("));
  const auto is_of_leaks = [&] {
    return Report(trace).at("process").at("executable").get<std::string>() == ExamplePath("leaks");
  };
  EXPECT_TRUE(is_of_leaks());
  EXPECT_EQ(FilesIn(directory.path(), ".mtr").size(), 2u);
  EXPECT_EQ(RunCommand({.arguments = {ToolPath(), "check", trace}}).exit_status, 1);
  const std::string spool = SpoolIn(run.err);
  ASSERT_NE(spool, "") << run.err;
  input.Close();
  for (int i = 0; i < 100; ++i) {
    if (RunCommand({.arguments = {ToolPath(), "run", "--finish", spool}}).exit_status == 0) break;
    usleep(50'000);
  }
  EXPECT_NE(access(spool.c_str(), F_OK), 0);
  EXPECT_TRUE(is_of_leaks());
}

// What the environment leaves out is no proof that it leaks nothing.
TEST(CheckRunsTest, ChildrenAreLookedAtWhateverTheEnvironmentSays) {
  const Result check = RunCommand(
      {.arguments = {ToolPath(), "check", "--run", "--", "/bin/sh", "-c", ExamplePath("leaks") + "; :"},
       .environment = {{"MEMTRACE_CHILDREN", "off"}}});
  EXPECT_EQ(check.exit_status, 1) << check.out;
  EXPECT_THAT(check.out, HasSubstr("[leaks]"));
}

}  // namespace
}  // namespace memtrace::e2e
