// `memtrace run` in a terminal, in a pipeline and among other processes' signals: it behaves
// as the program alone would.

#include <fstream>

#include "tests/report/run/run_terminal.h"

namespace memtrace::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(TerminalTest, LeavesControlBackslashToTheProgram) {
  Start({"/bin/sh", "-c", "ulimit -c 0; echo ready; while :; do sleep 0.05; done"});
  ReadUntil("ready");
  Type('\x1c');
  ReadUntil("ended by SIGQUIT; wrote");
  EXPECT_EQ(WaitForShell(), 128 + SIGQUIT);
}

TEST_F(TerminalTest, StopsAndContinuesAsOftenAsAskedAndTellsTheProgramOnce) {
  Start({"/bin/bash", "-c",
         "n=0; trap 'n=$((n+1)); echo continued $n' CONT; echo ready; "
         "while read -r line; do echo \"got $line\"; [[ $line == end ]] && exit 9; done; "
         "while :; do sleep 0.05; done"});
  ReadUntil("ready");
  for (int i = 1; i <= 3; ++i) {
    Type('\x1a');
    EXPECT_EQ(WaitForStop(), 's');
    ContinueInForeground();
    // A shell reads on after its trap; the number says how often it was told.
    Type("line\n");
    const std::string seen = ReadUntil("got line");
    EXPECT_THAT(seen, Not(HasSubstr("continued " + std::to_string(i + 1))));
  }
  Type("end\n");
  ReadUntil("got end");
  EXPECT_EQ(WaitForShell(), 9);
}

TEST_F(TerminalTest, StopsInTheBackgroundWhenTheProgramWantsInput) {
  StartInBackground({"/bin/sh", "-c", "read line; echo got $line; exit 7"});
  EXPECT_EQ(WaitForStop(), 'i');
  ContinueInForeground();
  Type("x\n");
  ReadUntil("got x");
  EXPECT_EQ(WaitForShell(), 7);
}

TEST_F(TerminalTest, TellsTheProgramOfANewWindowSize) {
  Start({"/bin/bash", "-c",
         "trap 'stty size; exit 3' WINCH; echo ready; while :; do sleep 0.05; done"});
  ReadUntil("ready");
  winsize size = {};
  size.ws_row = 33;
  size.ws_col = 111;
  ASSERT_EQ(ioctl(terminal_, TIOCSWINSZ, &size), 0);
  ReadUntil("33 111");
  EXPECT_EQ(WaitForShell(), 3);
}

TEST_F(TerminalTest, TellsTheProgramOnceThatTheTerminalIsGone) {
  const std::string told = directory_ / "told";
  Start({"/bin/bash", "-c",
         "n=0; trap 'n=$((n+1))' HUP; echo ready; while ((n == 0)); do sleep 0.05; done; sleep 0.3; "
         "echo $n > " + told + ".new; mv " + told + ".new " + told});
  ReadUntil("ready");
  close(terminal_);
  terminal_ = -1;
  std::string text;
  for (int i = 0; i < 2000 && text.empty(); ++i) {
    usleep(10'000);
    std::getline(std::ifstream(told), text);
  }
  EXPECT_EQ(text, "1");
}

TEST_F(TerminalTest, RunsAShellWithJobsOfItsOwn) {
  Start({"/bin/bash", "--norc", "--noprofile", "-i"});
  const std::string go_on = "PS1='> '; stty -echo; echo begun $((40 + 2))\n";
  Type(go_on);
  ReadUntil("begun 42");
  Type("sh -c 'echo inner $((1 + 1)); exec sleep 1000'\n");
  ReadUntil("inner 2");
  Type('\x1a');  // stops the inner job only
  ReadUntil("Stopped");
  Type("echo between $((5 + 5))\n");
  ReadUntil("between 10");
  const pid_t shells = Foreground();
  Type("fg\n");
  ReadUntil("sleep 1000");  // says what it continues, and then gives it the terminal
  for (int i = 0; i < 2000 && Foreground() == shells; ++i) usleep(10'000);
  Type('\x03');
  Type("echo over $?\n");
  ReadUntil("over 130");
  Type("exit 5\n");
  ReadUntil("memtrace: wrote");
  EXPECT_EQ(WaitForShell(), 5);
}

// As a shell starts programs; these tests themselves ignore it.
void DefaultSigpipe() { signal(SIGPIPE, SIG_DFL); }

TEST_F(RunTest, EndsAsAShellSaysTheProgramEnds) {
  for (const int number : {SIGTERM, SIGKILL, SIGSEGV, SIGABRT, SIGUSR1, SIGPIPE, SIGRTMIN + 2}) {
    const std::string kill = "ulimit -c 0; kill -" + std::to_string(number) + " $$";
    const Outcome plain = Plain({"/bin/sh", "-c", "sh -c '" + kill + "'; echo $?"}, "",
                                DefaultSigpipe);
    EXPECT_EQ(plain.out, std::to_string(128 + number) + "\n");
    const Outcome traced = Run({"/bin/sh", "-c", kill}, {}, "", DefaultSigpipe);
    EXPECT_EQ(std::to_string(traced.status) + "\n", plain.out);
  }
}

TEST_F(RunTest, EndsWithTheProgramInAPipeline) {
  // yes, and memtrace behind it, end when nobody reads any more.
  const Outcome outcome =
      Plain({"/bin/bash", "-c",
             std::string(RUN_MEMTRACE) + " run -o out.mtr -- yes | head -1; echo ${PIPESTATUS[@]}"},
            "", DefaultSigpipe);
  EXPECT_EQ(outcome.out, "y\n141 0\n");
  EXPECT_TRUE(PackedTrace::Read(directory_ / "out.mtr").packed);
}

TEST_F(RunTest, PassesOnRealTimeSignalsWithTheirValues) {
  Running run(Command({"/usr/bin/python3", "-s", "-c",
                       "import signal, sys\n"
                       "wanted = {signal.SIGRTMIN + 1}\n"
                       "signal.pthread_sigmask(signal.SIG_BLOCK, wanted)\n"
                       "print('ready', flush=True)\n"
                       "info = signal.sigwaitinfo(wanted)\n"
                       "print(info.si_signo - signal.SIGRTMIN, info.si_code)\n"}),
              directory_.path());
  run.WaitFor("ready");
  sigval value = {};
  value.sival_int = 4711;
  ASSERT_EQ(sigqueue(run.pid(), SIGRTMIN + 1, value), 0);
  const Outcome outcome = run.Wait();
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("1 " + std::to_string(SI_QUEUE)));
}

TEST_F(RunTest, LeavesHangupsIgnoredUnderNohup) {
  Running run(Command({"/bin/sh", "-c", "echo ready; read line; exit 6"}), directory_.path(),
              std::string(1 << 20, '\n'), [] { signal(SIGHUP, SIG_IGN); });
  run.WaitFor("ready");
  kill(run.pid(), SIGHUP);
  EXPECT_EQ(run.Wait().status, 6);
}

// A child that memtrace had before it was memtrace: as the first process of a container has
// everybody's orphans.
TEST_F(RunTest, LeavesNoZombies) {
  const Outcome outcome = Plain(
      {"/bin/bash", "-c",
       "sleep 0.2 & first=$!; exec " + std::string(RUN_MEMTRACE) +
           " run -q -o out.mtr -- /bin/bash -c \"while [[ -e /proc/$first ]]; do sleep 0.05; "
           "((++n < 200)) || exit 1; done\""});
  EXPECT_EQ(outcome.status, 0) << "the child that had ended stayed a zombie";
}

}  // namespace
}  // namespace memtrace::report
