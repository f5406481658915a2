// `memtrace run` with processes that come, go, stop, change and outlive each other.

#include <chrono>
#include <thread>

#include "tests/report/run/run_e2e.h"
#include "tests/report/run/run_terminal.h"

namespace memtrace::report {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

std::vector<std::string> Spools(const TempDir& directory) {
  std::vector<std::string> spools;
  for (const auto& entry : std::filesystem::directory_iterator(directory.path())) {
    if (entry.is_directory()) spools.push_back(entry.path());
  }
  return spools;
}

TEST_F(RunTest, PassesOnWhatIsSentToItAlone) {
  Running run(Command({tracee_, "wait", "7"}), directory_.path());
  run.WaitFor("ready");
  kill(run.pid(), SIGTERM);
  const Outcome outcome = run.Wait();
  EXPECT_EQ(outcome.status, 7);
  EXPECT_THAT(outcome.err, HasSubstr("memtrace: wrote "));
}

// A service's watchdog sends it.
TEST_F(RunTest, PassesOnAnAbortThatIsSentToIt) {
  Running run(Command({"/bin/sh", "-c", "trap 'exit 6' ABRT; echo ready; while :; do sleep 0.02; done"}),
              directory_.path());
  run.WaitFor("ready");
  kill(run.pid(), SIGABRT);
  const Outcome outcome = run.Wait();
  EXPECT_EQ(outcome.status, 6) << outcome.err;
  EXPECT_TRUE(PackedTrace::Read(directory_ / "out.mtr").packed);
}

// The last event of a process that is killed is not its end.
TEST_F(RunTest, KnowsUntilWhenAKilledProgramRan) {
  EXPECT_EQ(Running(Command({"/bin/sh", "-c", "sleep 1; kill -9 $$"}), directory_.path()).Wait().status,
            128 + SIGKILL);
  const Outcome report =
      Running({RUN_MEMTRACE, "report", directory_ / "out.mtr", "--table", "summary"}, directory_.path())
          .Wait();
  EXPECT_THAT(report.out, testing::ContainsRegex("killed by SIGKILL.*, after 1\\.[0-9]+ s")) << report.out;
}

TEST_F(RunTest, WritesTheTraceWhenTheWholeGroupIsInterrupted) {
  Running run(Command({"/bin/sh", "-c", "echo ready; read line"}), directory_.path(), "",
              [] { setpgid(0, 0); });
  run.WaitFor("ready");
  kill(-run.pid(), SIGINT);
  const Outcome outcome = run.Wait();
  EXPECT_THAT(outcome.status, ::testing::AnyOf(128 + SIGINT, 1)) << "1: standard input had ended";
  EXPECT_TRUE(PackedTrace::Read(directory_ / "out.mtr").packed);
}

TEST_F(TerminalTest, LeavesControlCToTheProgram) {
  // The program counts: it must be told once, not once by the terminal and once by us.
  Start({"/bin/sh", "-c", "trap 'echo interrupted; n=1$n; sleep 0.3; exit 4$n' INT; echo ready; "
                          "while :; do sleep 0.05; done"});
  ReadUntil("ready");
  Type('\x03');
  ReadUntil("memtrace: wrote");
  EXPECT_EQ(WaitForShell(), 41);
}

TEST_F(TerminalTest, StopsAndContinuesWithTheProgram) {
  Start({"/bin/sh", "-c", "echo ready; read line; echo got $line; exit 9"});
  ReadUntil("ready");
  Type('\x1a');
  char state = 0;
  ASSERT_EQ(read(states_[0], &state, 1), 1);
  EXPECT_EQ(state, 's') << "the shell must see its job stop, by SIGTSTP";
  kill(shell_, SIGUSR1);
  Type('x');
  Type('\n');
  ReadUntil("got x");
  EXPECT_EQ(WaitForShell(), 9);
}

TEST_F(RunTest, TracesChildrenIntoFilesOfTheirOwn) {
  const Outcome outcome =
      Run({"/bin/sh", "-c", tracee_ + " allocate 10; " + tracee_ + " allocate 20; exit 3"});
  EXPECT_EQ(outcome.status, 3);
  EXPECT_THAT(FilesIn(directory_),
              UnorderedElementsAre("out.mtr", MatchesRegex("out\\.run_dynamic\\.[0-9]+\\.mtr"),
                                   MatchesRegex("out\\.run_dynamic\\.[0-9]+\\.mtr")));
  EXPECT_THAT(outcome.err, HasSubstr(" and 2 more"));
  std::vector<uint64_t> counts;
  for (const std::string& file : FilesIn(directory_)) {
    const PackedTrace trace = PackedTrace::Read(directory_ / file);
    EXPECT_EQ(trace.gaps, 0u);
    EXPECT_THAT(trace.observed_end, SizeIs(file == "out.mtr" ? 6 : 0));
    if (file != "out.mtr") counts.push_back(Allocations(trace));
  }
  std::sort(counts.begin(), counts.end());
  ASSERT_THAT(counts, SizeIs(2));
  EXPECT_EQ(counts[1] - counts[0], 10u);
}

TEST_F(RunTest, LeavesChildrenAloneWhenAsked) {
  const Outcome outcome =
      Run({"/bin/sh", "-c", tracee_ + " allocate 10; exit 3"}, {"--children", "off"});
  EXPECT_EQ(outcome.status, 3);
  ExpectNothingLeft({"out.mtr"});
}

TEST_F(RunTest, ALinkStaysOne) {
  std::filesystem::create_directory(directory_ / "kept");
  std::filesystem::create_symlink("kept/real.mtr", directory_ / "out.mtr");
  const Outcome outcome = Run({"/bin/sh", "-c", tracee_ + " allocate 10; :"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_TRUE(std::filesystem::is_symlink(directory_ / "out.mtr"));
  EXPECT_GE(Allocations(PackedTrace::Read(directory_ / "kept/real.mtr")), 1u);
  const std::filesystem::directory_iterator kept(directory_ / "kept"), end;
  EXPECT_EQ(std::distance(kept, end), 2) << "its child's is beside it, and nothing else";
}

TEST_F(RunTest, FollowsAnExec) {
  const Outcome outcome = Run({"/bin/sh", "-c", "exec " + tracee_ + " allocate 500"});
  EXPECT_EQ(outcome.status, 0);
  ASSERT_THAT(FilesIn(directory_),
              UnorderedElementsAre("out.mtr", MatchesRegex("out\\.[a-z]+\\.[0-9]+\\.mtr")));
  std::string name;
  for (const std::string& file : FilesIn(directory_)) {
    if (file != "out.mtr") name = file;
  }
  const PackedTrace shell = PackedTrace::Read(directory_ / name);
  const PackedTrace program = PackedTrace::Read(directory_ / "out.mtr");
  EXPECT_EQ(program.pid, shell.pid);
  EXPECT_GE(Allocations(program), 501u);
  EXPECT_THAT(shell.observed_end, SizeIs(0)) << "it did not end, it became another";
  EXPECT_THAT(program.observed_end, SizeIs(6));
}

TEST_F(RunTest, SaysThatTheProgramBecameOneThatIsNotTraced) {
  const Outcome outcome =
      Run({"/bin/sh", "-c", std::string("exec ") + RUN_STATIC_PROGRAM + " exit 8"});
  EXPECT_EQ(outcome.status, 8);
  EXPECT_THAT(outcome.err, HasSubstr("it then became a program that is not traced"));
}

TEST_F(RunTest, LeavesADaemonToFinishLater) {
  const std::string script = tracee_ + " wait 0 < /dev/null > pid.out 2>&1 & echo $! > pid; "
                             "while ! grep -q ready pid.out; do sleep 0.01; done";
  const auto start = std::chrono::steady_clock::now();
  const Outcome outcome = Run({"/bin/sh", "-c", script});
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(8)) << "no waiting";
  EXPECT_EQ(outcome.status, 0);
  EXPECT_THAT(outcome.err, HasSubstr("still running: run_dynamic ("));
  EXPECT_THAT(outcome.err, HasSubstr("memtrace run --finish "));
  ASSERT_THAT(Spools(directory_), SizeIs(1));
  const std::string spool = Spools(directory_)[0];
  const std::vector<std::string> finish = {RUN_MEMTRACE, "run", "--finish", spool};

  const Outcome early = Running(finish, "/").Wait();
  EXPECT_EQ(early.status, 2);
  EXPECT_THAT(early.err, HasSubstr("still running"));

  const auto pid_file = FileSource::Open(directory_ / "pid");
  char text[16] = {};
  ASSERT_TRUE((*pid_file)->ReadAt(0, {reinterpret_cast<uint8_t*>(text), 15}).ok());
  const pid_t daemon = atoi(text);
  kill(daemon, SIGTERM);
  while (kill(daemon, 0) == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));

  const Outcome finished = Running(finish, "/").Wait();
  EXPECT_EQ(finished.status, 0) << finished.err;
  EXPECT_THAT(Spools(directory_), SizeIs(0));
  const std::string name = "out.run_dynamic." + std::to_string(daemon) + ".mtr";
  EXPECT_THAT(finished.err, HasSubstr(name));
  EXPECT_EQ(PackedTrace::Read(directory_ / name).pid, static_cast<uint32_t>(daemon));
}

TEST_F(RunTest, NamesTheDirectoryInWhichSomethingIsLeft) {
  const Outcome outcome = Run({"/bin/sh", "-c", "echo x > \"${MEMTRACE_OUT%/*}/other\""});
  EXPECT_EQ(outcome.status, 0);
  ASSERT_THAT(Spools(directory_), SizeIs(1));
  EXPECT_THAT(outcome.err, HasSubstr("; files are left in " + Spools(directory_)[0]));
}

TEST_F(RunTest, LosesNothingWhenItIsKilledItself) {
  const std::string script = tracee_ + " allocate 100000; echo ready; read line";
  std::string spool;
  {
    Running run(Command({"/bin/sh", "-c", script}), directory_.path(), std::string(1 << 20, 'x'));
    run.WaitFor("ready");
    ASSERT_THAT(Spools(directory_), SizeIs(1));
    spool = Spools(directory_)[0];
    const Outcome busy = Running({RUN_MEMTRACE, "run", "--finish", spool}, "/").Wait();
    EXPECT_EQ(busy.status, 2);
    EXPECT_THAT(busy.err, HasSubstr("in use"));
    kill(run.pid(), SIGKILL);
    run.Wait();
  }
  // Without its reader the shell ends, and nobody packs its trace.
  Outcome finished;
  for (int i = 0; i < 500 && finished.status != 0; ++i) {
    finished = Running({RUN_MEMTRACE, "run", "--finish", spool}, "/").Wait();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(finished.status, 0) << finished.err;
  EXPECT_THAT(Spools(directory_), SizeIs(0));
  uint64_t most = 0;
  for (const std::string& file : FilesIn(directory_)) {
    most = std::max(most, Allocations(PackedTrace::Read(directory_ / file)));
  }
  EXPECT_THAT(FilesIn(directory_), ::testing::Contains("out.mtr"));
  EXPECT_GE(most, 100'001u);
}

}  // namespace
}  // namespace memtrace::report
