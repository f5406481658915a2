// `memtrace leaks`: scans that are asked for from outside, of programs that go on meanwhile and notice nothing.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include "report/base/unique_fd.h"
#include "report/run/reader_lock.h"
#include "tests/e2e/check_command.h"
#include "tests/e2e/leak_scan.h"

namespace memtrace::e2e {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Says that it is ready when it has done `first`, and allocates nothing more.
Command StillAfter(const std::string& first, const std::string& signal) {
  Command command{.arguments = {"/usr/bin/python3", "-S", "-B", "-c",
                                first + "\nimport time\n"
                                        "print('ready', flush=True)\n"
                                        "time.sleep(600)\n"}};
  command.environment = {{"MEMTRACE_LEAK_SIGNAL", signal}};
  return command;
}

void Settle() { std::this_thread::sleep_for(std::chrono::milliseconds(300)); }

Result AskForLeaks(pid_t pid, const std::string& timeout_s = "30") {
  return RunCommand(
      {.arguments = {ToolPath(), "leaks", "--timeout", timeout_s, std::to_string(pid)}});
}

pid_t ChildOf(pid_t parent) {
  const std::string of = std::to_string(parent);
  return std::stoi(ReadFile("/proc/" + of + "/task/" + of + "/children"));
}

void Until(const std::function<bool()>& done) {
  for (int i = 0; i < 1000 && !done(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

// Whether somebody has asked for a scan of the process of that raw trace.
bool IsAsked(const std::string& trace) {
  format::StatusArea area = {};
  std::ifstream(trace, std::ios::binary)
      .seekg(static_cast<std::streamoff>(sizeof(format::FileHeader) + sizeof(format::BlockHeader)))
      .read(reinterpret_cast<char*>(&area), sizeof(area));
  return area.scan_request != 0;
}

// Who asks a program that does not allocate any more is told of the scan at its end.
TEST_F(LeakScanTest, AskedOfAnIdleProgramThatEnds) {
  Process process(Traced({.arguments = {TraceePath("kept_by"), "ends_when_told"}}, directory_.path()));
  ASSERT_TRUE(process.AwaitOutput("ready\n"));
  const std::string trace = TraceOf(directory_.path(), "kept_by", process.pid());
  Process leaks({.arguments = {ToolPath(), "leaks", "--timeout", "60", std::to_string(process.pid())}});
  Until([&] { return IsAsked(trace); });
  process.Signal(SIGUSR1);
  EXPECT_EQ(process.Wait(60).Outcome(), "exit 0");
  const Result asked = leaks.Wait(60);
  EXPECT_EQ(asked.Outcome(), "exit 0") << asked.err;
  EXPECT_THAT(asked.out, HasSubstr("at the exit"));
}

#ifdef __x86_64__
// What is asked before is answered with all threads stopped, though the tracer's own signals are blocked already.
TEST_F(LeakScanTest, AskedRightBeforeASeccompFilter) {
  Process process(Traced({.arguments = {TraceePath("kept_by"), "asked_before_a_filter"}}, directory_.path()));
  ASSERT_TRUE(process.AwaitOutput("ready\n"));
  const std::string trace = TraceOf(directory_.path(), "kept_by", process.pid());
  Process leaks({.arguments = {ToolPath(), "leaks", std::to_string(process.pid())}});
  Until([&] { return IsAsked(trace); });
  process.Signal(SIGUSR1);
  const Result asked = leaks.Wait(20);
  EXPECT_EQ(asked.Outcome(), "exit 0") << asked.err;
  Until([&] { return process.HasWritten("filtered\n"); });
  const Result later = AskForLeaks(process.pid());
  process.Signal(SIGTERM);
  const Result run = process.Wait(20);
  if (run.exit_status == 77) GTEST_SKIP() << "no seccomp filter here";
  EXPECT_EQ(later.Outcome(), "exit 2");
  EXPECT_THAT(later.err,
              HasSubstr("can be made any more: the program has installed a seccomp filter"));
  EXPECT_THAT(later.err, Not(HasSubstr("did not answer")));
  Load(trace);
  ASSERT_EQ(scans_.size(), 1u);
  EXPECT_EQ(scans_[0].reason, format::ScanReason::kOutside);
  EXPECT_EQ(Threads(format::ScanThreadState::kParked), 1u);
  ExpectKinds(scans_[0], run.out);
}
#endif

TEST_F(LeakScanTest, AskedFromOutside) {
  struct Asked {
    const char* tracee;
    const char* signal;
  };
  // Of SIGKILL the library says that it is ignored: it must not be sent.
  for (const Asked& asked : {Asked{"talks", "0"}, Asked{"idle", "62"}, Asked{"talks", "9"}}) {
    SCOPED_TRACE(testing::Message() << asked.tracee << " " << asked.signal);
    Command command{.arguments = {TraceePath("kept_by"), asked.tracee}};
    command.environment = {{"MEMTRACE_LEAK_SIGNAL", asked.signal}};
    Process process(Traced(command, directory_.path()));
    ASSERT_TRUE(process.AwaitOutput("ready\n"));
    for (int i = 0; i < 2; ++i) {
      const Result leaks = RunCommand({.arguments = {ToolPath(), "leaks", std::to_string(process.pid())}});
      EXPECT_EQ(leaks.Outcome(), "exit 0") << leaks.err;
      EXPECT_NE(leaks.out.find("Lose"), std::string::npos) << leaks.out;
      EXPECT_EQ(leaks.out.find("one of 2 scans of the trace\n") != leaks.out.npos, i > 0)
          << "it has no --scan to advise: " << leaks.out;
      EXPECT_THAT(leaks.out, Not(HasSubstr("BLOCKS"))) << "nobody asked for what is live now";
    }
    const Result of_none = RunCommand({.arguments = {ToolPath(), "leaks", std::to_string(process.pid()), "--function", "^Nobody$", "--size", "1.."}});
    EXPECT_EQ(of_none.Outcome(), "exit 0") << of_none.err;
    EXPECT_THAT(of_none.out, testing::AllOf(Not(HasSubstr("Lose")), HasSubstr("function /^Nobody$/"))) << of_none.out;
    const Result wrong = RunCommand({.arguments = {ToolPath(), "leaks", std::to_string(process.pid()), "--match", "("}});
    EXPECT_EQ(wrong.exit_status, 2) << "and no scan is made";
    Load(TraceOf(directory_.path(), "kept_by", process.pid()));
    ASSERT_EQ(scans_.size(), 3u);
    process.Signal(SIGTERM);
    const Result run = process.Wait(20);
    EXPECT_EQ(run.Outcome(), "signal 15");
    ExpectKinds(scans_[1], run.out);
    EXPECT_EQ(scans_[1].reason, format::ScanReason::kOutside);
  }
}

// The signal is for a thread that takes it, and for none that would take it for the program's.
TEST_F(LeakScanTest, AskedWhereTheFirstThreadTakesNoSignals) {
  const std::string waits = "import signal, threading, time\n"
                            "%s\n"
                            "signal.pthread_sigmask(signal.SIG_BLOCK, [62, signal.SIGUSR1])\n"
                            "print('ready', flush=True)\n"
                            "print(signal.sigwait([62, signal.SIGUSR1]), flush=True)\n";
  for (const bool has_other : {true, false}) {
    SCOPED_TRACE(has_other);
    const std::string other = has_other ? "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()" : "";
    Command command{.arguments = {"/usr/bin/python3", "-S", "-B", "-c", std::regex_replace(waits, std::regex("%s"), other)}};
    command.environment = {{"MEMTRACE_LEAK_SIGNAL", "62"}};
    const TempDir own;
    Process process(Traced(command, own.path()));
    ASSERT_TRUE(process.AwaitOutput("ready\n"));
    const Result leaks = RunCommand({.arguments = {ToolPath(), "leaks", "--timeout", has_other ? "30" : "2",
                                                   std::to_string(process.pid())}});
    if (has_other) {
      EXPECT_EQ(leaks.Outcome(), "exit 0") << leaks.err;
      EXPECT_EQ(leaks.err, "");
    } else {
      EXPECT_NE(leaks.Outcome(), "exit 0");
      EXPECT_NE(leaks.err.find("no thread takes signal 62"), std::string::npos) << leaks.err;
    }
    process.Signal(SIGUSR1);
    EXPECT_EQ(process.Wait(20).out, "ready\n" + std::to_string(SIGUSR1) + "\n");
  }
}

// redis-server and the workers of PostgreSQL write titles over their environment.
TEST_F(LeakScanTest, AskedWhereATitleIsWrittenOverTheEnvironment) {
  const std::string title = "import ctypes\n"
                            "fields = open('/proc/self/stat').read().rsplit(') ', 1)[1].split()\n"
                            "begin, end = int(fields[47]), int(fields[48])\n"
                            "ctypes.memset(begin, 0, end - begin)\n";
  for (const bool forked : {false, true}) {
    SCOPED_TRACE(forked);
    const std::string fork = forked ? "import os\nif os.fork(): os.wait()\n" : "";
    const TempDir own;
    Process process(Traced(StillAfter(fork + title, "62"), own.path()));
    ASSERT_TRUE(process.AwaitOutput("ready\n"));
    const pid_t pid = forked ? ChildOf(process.pid()) : process.pid();
    EXPECT_THAT(ReadFile("/proc/" + std::to_string(pid) + "/environ"), Not(HasSubstr("MEMTRACE")));
    Settle();
    const Result leaks = AskForLeaks(pid);
    EXPECT_EQ(leaks.Outcome(), "exit 0") << leaks.err;
    EXPECT_EQ(leaks.err, "");
    if (forked) kill(pid, SIGKILL);
  }
}

// Who gets no answer is told what is known, and no more.
TEST_F(LeakScanTest, AskedOfWhatDoesNotAnswer) {
  struct Silent {
    const char* first;
    const char* signal;
    bool stopped;
    const char* why;
  };
  for (const Silent& silent :
       {Silent{"", "0", false,
               " did not answer: no allocation of it was recorded since it was asked, for it makes "
               "none now; --timeout waits longer, and started with MEMTRACE_LEAK_SIGNAL=N it "
               "answers at once\n"},
        Silent{"", "62", true, " lets it go on); --timeout waits longer\n"},
        Silent{"import signal\nsignal.signal(62, signal.SIG_DFL)", "62", false,
               "; --timeout waits longer, and it has no handler any more for signal 62, which "
               "MEMTRACE_LEAK_SIGNAL names\n"}}) {
    SCOPED_TRACE(silent.why);
    const TempDir own;
    Process process(Traced(StillAfter(silent.first, silent.signal), own.path()));
    ASSERT_TRUE(process.AwaitOutput("ready\n"));
    if (silent.stopped) process.Signal(SIGSTOP);
    Settle();
    const Result leaks = AskForLeaks(process.pid(), "2");
    EXPECT_EQ(leaks.Outcome(), "exit 2");
    EXPECT_THAT(leaks.err, HasSubstr(silent.why));
    EXPECT_THAT(leaks.err, Not(HasSubstr("made none")));
    if (silent.stopped) {
      EXPECT_THAT(leaks.err, HasSubstr(" did not answer: it is stopped (kill -CONT " +
                                       std::to_string(process.pid()) + " lets"));
    }
    if (std::string(silent.signal) != "0") {
      EXPECT_THAT(leaks.err, Not(HasSubstr("MEMTRACE_LEAK_SIGNAL=N"))) << "it was";
    }
  }
}

TEST_F(LeakScanTest, AskedOfWhatADebuggerHasStopped) {
  Process process(Traced(StillAfter("", "62"), directory_.path()));
  ASSERT_TRUE(process.AwaitOutput("ready\n"));
  const pid_t pid = process.pid();
  int status = 0;
  if (ptrace(PTRACE_SEIZE, pid, nullptr, nullptr) != 0 ||
      ptrace(PTRACE_INTERRUPT, pid, nullptr, nullptr) != 0 ||
      waitpid(pid, &status, __WALL) != pid || !WIFSTOPPED(status)) {
    GTEST_SKIP() << "not allowed here";
  }
  Settle();
  const Result leaks = AskForLeaks(pid, "2");
  EXPECT_EQ(leaks.Outcome(), "exit 2");
  EXPECT_THAT(leaks.err, HasSubstr(" did not answer: it is stopped by a debugger; --timeout waits "
                                   "longer\n"));
  ptrace(PTRACE_DETACH, pid, nullptr, nullptr);
  process.Signal(SIGKILL);
  process.Wait(20);
}

TEST_F(LeakScanTest, AskedOfWhatHasNeverAllocated) {
  const Command nothing = {.arguments = {TraceePath("allocates_nothing")}};
  Process process(Traced(nothing, directory_.path()));
  ASSERT_TRUE(process.AwaitOutput("ready\n"));
  const Result leaks = AskForLeaks(process.pid(), "2");
  EXPECT_EQ(leaks.Outcome(), "exit 2");
  EXPECT_THAT(leaks.err, HasSubstr("no allocation of it was recorded, for it made none or has a "
                                   "malloc of its own"));
}

// As a container's from its host. With mounts of its own the trace is not where the process says.
TEST_F(LeakScanTest, AskedOfAnotherPidNamespace) {
  if (geteuid() != 0) GTEST_SKIP() << "for root";
  for (const bool own_mounts : {false, true}) {
    SCOPED_TRACE(own_mounts);
    const TempDir own;
    const std::string mount = own_mounts ? "mount -t tmpfs none " + own.path() + " && " : "";
    const Command container = {
        .arguments = {"unshare", own_mounts ? "-pfm" : "-pf", "--kill-child", "sh", "-c",
                      mount + "exec " + TraceePath("kept_by") + " talks"}};
    Process process(Traced(container, own.path()));
    if (!process.AwaitOutput("ready\n")) {
      const Result run = process.Wait(1);
      ASSERT_THAT(run.err, HasSubstr("unshare: ")) << run.Outcome();
      GTEST_SKIP() << run.err;
    }
    const Result leaks = AskForLeaks(ChildOf(process.pid()));
    EXPECT_EQ(leaks.Outcome(), "exit 0") << leaks.err;
    EXPECT_THAT(leaks.out, HasSubstr("Lose"));
  }
}

// It has no option by which one would choose another scan.
TEST_F(LeakScanTest, AskedWhereAScanFails) {
  {
    Command newest = StillAfter("", "62");
    newest.environment.insert(newest.environment.end(),
                              {{"MEMTRACE_KEEP", "newest"}, {"MEMTRACE_MAX_BYTES", "6M"}});
    Process process(Traced(newest, directory_.path()));
    ASSERT_TRUE(process.AwaitOutput("ready\n"));
    const Result leaks = AskForLeaks(process.pid());
    EXPECT_EQ(leaks.Outcome(), "exit 2");
    EXPECT_EQ(leaks.err,
              "memtrace: the scan failed: the trace keeps no more than the newest events "
              "(MEMTRACE_KEEP=newest), so what is live is not known\n");
  }
  if (geteuid() != 0) return;
  const Command chrooted = StillAfter("import os, time\nos.chroot('/usr')", "62");
  Process process(Traced(chrooted, directory_.path()));
  ASSERT_TRUE(process.AwaitOutput("ready\n"));
  const Result leaks = AskForLeaks(process.pid());
  EXPECT_EQ(leaks.Outcome(), "exit 2");
  EXPECT_EQ(leaks.err,
            "memtrace: the scan failed: the threads of the process are not known: /proc is not "
            "there\n");
}

// Where nobody mounts a /proc of the new namespace, the threads have other numbers there than for themselves.
TEST_F(LeakScanTest, ThreadsStandInAPidNamespaceWithoutAProcOfItsOwn) {
  const Words namespaces = {"unshare", "--user", "--map-root-user", "--pid", "--fork"};
  Words probe = namespaces;
  probe.push_back("true");
  if (RunCommand({.arguments = probe}).Outcome() != "exit 0") GTEST_SKIP() << "no namespaces here";
  for (const char* way : {"threads", "ended_threads"}) {
    SCOPED_TRACE(way);
    const TempDir traces;
    Words words = namespaces;
    words.insert(words.end(), {TraceePath("kept_by"), way});
    const Result run = RunCommand(Traced({.arguments = words}, traces.path()));
    ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
    Load(TraceOf(traces.path(), "kept_by"));
    ASSERT_EQ(scans_.size(), 1u);
    ExpectKinds(scans_[0], run.out);
    EXPECT_EQ(Threads(format::ScanThreadState::kUnparked), 0u);
  }
}

// The child has mounted a /proc in which its parent is not: `unshare --mount-proc`, whose mounts are the
// parent's, too.
TEST_F(LeakScanTest, SaysThatProcIsAnotherNamespaces) {
  const Command parent = {.arguments = {"unshare", "--user", "--map-root-user", "--pid", "--fork",
                                        "--mount-proc", "true"}};
  if (RunCommand(parent).Outcome() != "exit 0") GTEST_SKIP() << "no namespaces here";
  const Result run = RunCommand(Traced(parent, directory_.path()));
  EXPECT_EQ(run.Outcome(), "exit 0") << run.err;
  Load(TraceOf(directory_.path(), "unshare", run.pid));
  ASSERT_EQ(scans_.size(), 1u);
  EXPECT_EQ(scans_[0].state, LeakScan::State::kFailed);
  EXPECT_EQ(scans_[0].failure,
            "the threads of the process are not known: /proc is another pid namespace's");
}

TEST_F(LeakScanTest, AskedFromOutsideByTwoAtOnce) {
  Process process(Traced({.arguments = {TraceePath("kept_by"), "talks"}}, directory_.path()));
  ASSERT_TRUE(process.AwaitOutput("ready\n"));
  for (int round = 0; round < 4; ++round) {
    const Command leaks = {
        .arguments = {ToolPath(), "leaks", "--timeout", "20", std::to_string(process.pid())}};
    Process one(leaks), other(leaks);
    for (Process* each : {&one, &other}) {
      const Result result = each->Wait(60);
      EXPECT_EQ(result.Outcome(), "exit 0") << result.err;
      EXPECT_NE(result.out.find("Lose"), std::string::npos) << result.out;
    }
  }
  process.Signal(SIGTERM);
  EXPECT_EQ(process.Wait(20).Outcome(), "signal 15");
}

// A program that handles no signals need not expect EINTR.
TEST_F(LeakScanTest, NoCallOfTheProgramEndsBecauseOfAScan) {
  Process process(Traced({.arguments = {TraceePath("waits_in_the_kernel"), "1500"}}, directory_.path()));
  ASSERT_TRUE(process.AwaitOutput("ready\n"));
  for (int i = 0; i < 2; ++i) {
    const Result leaks = RunCommand({.arguments = {ToolPath(), "leaks", std::to_string(process.pid())}});
    EXPECT_EQ(leaks.Outcome(), "exit 0") << leaks.err;
  }
  const Result run = process.Wait(20);
  EXPECT_EQ(run.Outcome(), "exit 0") << run.err;
  EXPECT_EQ(run.out, "ready\n");
  EXPECT_EQ(run.err, "");
  Load(TraceOf(directory_.path(), "waits_in_the_kernel", process.pid()));
  EXPECT_EQ(scans_.size(), 3u) << "two that were asked for, and that at the exit";
}

// Nor because of the signal that wakes an idle one. What would have ended the call does, also while
// our handler goes on with it. syscall() has the number of its call nowhere near.
TEST_F(LeakScanTest, NoCallOfTheProgramEndsBecauseOfTheLeakSignal) {
  const std::string program = Compile(directory_, "waits_idle", R"(#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static void OnSignal(int number) { (void)number; }
int main(int argc, char** argv) {
  const struct timespec time = {1000, 0}, short_time = {3, 0};
  struct epoll_event event;
  struct sigaction action;
  struct timespec began, ended;
  const int queue = epoll_create1(0);
  const char* const call = argv[argc - 1];
  long result = 0;
  free(malloc(100));
  memset(&action, 0, sizeof(action));
  action.sa_handler = OnSignal;
  sigaction(SIGUSR1, &action, NULL);
  clock_gettime(CLOCK_MONOTONIC, &began);
  write(1, "ready\n", 6);
  errno = 0;
  if (!strcmp(call, "poll")) result = poll(NULL, 0, 1000000);
  if (!strcmp(call, "poll for ever")) result = poll(NULL, 0, -1);
  if (!strcmp(call, "epoll_wait")) result = epoll_wait(queue, &event, 1, 1000000);
  if (!strcmp(call, "nanosleep")) result = nanosleep(&time, NULL);
  if (!strcmp(call, "sleep")) result = sleep(1000) > 0;
  if (!strcmp(call, "pause")) result = pause();
  if (!strcmp(call, "syscall")) result = syscall(SYS_poll, NULL, 0, 1000000);
  if (!strcmp(call, "in time")) result = nanosleep(&short_time, NULL);
  const int error = errno;
  clock_gettime(CLOCK_MONOTONIC, &ended);
  printf("%s %ld %s\n", call, result, strerror(error));
  return ended.tv_sec - began.tv_sec < 2;
})");
  struct Waiting {
    const char* call;
    const char* result;
  };
  for (const Waiting& waiting :
       {Waiting{"poll", "-1 Interrupted system call"}, {"poll for ever", "-1 Interrupted system call"},
        {"epoll_wait", "-1 Interrupted system call"}, {"nanosleep", "-1 Interrupted system call"},
        {"sleep", "1 Interrupted system call"}, {"pause", "-1 Interrupted system call"},
        {"syscall", "-1 Interrupted system call"}, {"in time", "0 Success"}}) {
    SCOPED_TRACE(waiting.call);
    const bool is_ended = std::string(waiting.call) != "in time";
    const TempDir own;
    Command command{.arguments = {program, waiting.call}};
    command.environment = {{"MEMTRACE_LEAK_SIGNAL", "62"}};
    Process process(Traced(command, own.path()));
    ASSERT_TRUE(process.AwaitOutput("ready\n"));
    Settle();
    for (int i = 0; i < 2; ++i) {
      const Result leaks = AskForLeaks(process.pid());
      if (is_ended) {
        EXPECT_EQ(leaks.Outcome(), "exit 0") << leaks.err;
      }
    }
    if (is_ended) {
      std::this_thread::sleep_for(std::chrono::seconds(2));
      EXPECT_TRUE(process.HasWritten("ready\n"));
      process.Signal(SIGUSR1);
    }
    const Result run = process.Wait(20);
    EXPECT_EQ(run.Outcome(), "exit 0");
    EXPECT_EQ(run.out, "ready\n" + std::string(waiting.call) + " " + waiting.result + "\n");
  }
}

// What is packed already and what is not yet are one trace, whenever one asks.
TEST_F(LeakScanTest, AskedFromOutsideUnderMemtraceRun) {
  const std::string trace = directory_ / "run.mtr";
  Process tool({.arguments = {ToolPath(), "run", "-q", "--library", LibraryPath(), "-o", trace, "--",
                              TraceePath("kept_by"), "talks"}});
  ASSERT_TRUE(tool.AwaitOutput("ready\n"));
  const pid_t program = ChildOf(tool.pid());
  for (int i = 0; i < 5; ++i) {
    const Result leaks = RunCommand({.arguments = {ToolPath(), "leaks", std::to_string(program)}});
    EXPECT_EQ(leaks.Outcome(), "exit 0") << i << ": " << leaks.err;
    EXPECT_NE(leaks.out.find("Lose"), std::string::npos) << i << ": " << leaks.out;
    std::this_thread::sleep_for(std::chrono::milliseconds(50 * i));
  }
  kill(program, SIGTERM);
  const Result run = tool.Wait(60);
  EXPECT_EQ(run.Outcome(), "exit 143") << run.err;
  Load(trace);
  EXPECT_EQ(scans_.size(), 5u);
}

// Whether memtrace run takes nothing out of raw traces, in a spool directory of this one.
bool IsBeingRead(const TempDir& directory) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory.path())) {
    if (entry.path().extension() != ".packed") continue;
    const report::UniqueFd packed(open(entry.path().c_str(), O_RDONLY | O_CLOEXEC));
    return report::HasReaders(packed.get());
  }
  ADD_FAILURE() << "nothing is packed";
  return false;
}

// While its report waits for a reader nothing of the trace is kept for it, nor is there anything
// that a signal would leave behind.
TEST_F(LeakScanTest, AskedByWhoIsInterrupted) {
  const std::string copies = directory_ / "copies", pipe = directory_ / "pipe";
  std::filesystem::create_directory(copies);
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  Command run = StillAfter("", "62");
  const Words tool = {ToolPath(), "run", "-q", "--library", LibraryPath(),
                      "-o", directory_ / "run.mtr", "--"};
  run.arguments.insert(run.arguments.begin(), tool.begin(), tool.end());
  Process program(run);
  ASSERT_TRUE(program.AwaitOutput("ready\n"));
  Settle();
  const std::string pid = std::to_string(ChildOf(program.pid()));
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGKILL}) {
    SCOPED_TRACE(signal);
    Process leaks({.arguments = {"sh", "-c", "exec \"$0\" leaks --full --show-leak-kinds all $1 > $2",
                                 ToolPath(), pid, pipe},
                   .environment = {{"TMPDIR", copies}}});
    const report::UniqueFd reader(open(pipe.c_str(), O_RDONLY | O_CLOEXEC));
    ASSERT_GE(fcntl(reader.get(), F_SETPIPE_SZ, 4096), 0);
    pollfd written = {reader.get(), POLLIN, 0};
    ASSERT_EQ(poll(&written, 1, 60'000), 1);
    ASSERT_NE(written.revents & POLLIN, 0) << leaks.Wait(1).err;
    EXPECT_FALSE(IsBeingRead(directory_));
    EXPECT_TRUE(std::filesystem::is_empty(copies));
    leaks.Signal(signal);
    EXPECT_EQ(leaks.Wait(20).Outcome(), "signal " + std::to_string(signal));
    EXPECT_TRUE(std::filesystem::is_empty(copies));
  }
  kill(std::stoi(pid), SIGTERM);
  EXPECT_EQ(program.Wait(60).Outcome(), "exit 143");
}

// A control group for a process of a test, of version 1 or 2.
class Freezer {
 public:
  Freezer() {
    for (const char* const above : {"/sys/fs/cgroup/freezer", "/sys/fs/cgroup"}) {
      const std::string group = std::string(above) + "/memtrace-test-" + std::to_string(getpid());
      if (!Exists(std::string(above) + "/cgroup.procs") || mkdir(group.c_str(), 0755) != 0) continue;
      group_ = group;
      break;
    }
  }
  ~Freezer() {
    if (!group_.empty()) rmdir(group_.c_str());
  }
  bool Take(pid_t pid) const { return Write("/cgroup.procs", std::to_string(pid)); }
  bool Freeze(bool frozen) const {
    return Write("/freezer.state", frozen ? "FROZEN" : "THAWED") ||
           Write("/cgroup.freeze", frozen ? "1" : "0");
  }

 private:
  bool Write(const std::string& file, const std::string& text) const {
    return !group_.empty() && Exists(group_ + file) &&
           (std::ofstream(group_ + file) << text << std::flush).good();
  }
  std::string group_;
};

// As by docker pause.
TEST_F(LeakScanTest, AskedOfWhatIsFrozen) {
  const Freezer freezer;
  Process process(Traced(StillAfter("", "62"), directory_.path()));
  ASSERT_TRUE(process.AwaitOutput("ready\n"));
  if (!freezer.Take(process.pid()) || !freezer.Freeze(true)) {
    GTEST_SKIP() << "no control group can be made here";
  }
  Settle();
  const Result leaks = AskForLeaks(process.pid(), "2");
  freezer.Freeze(false);
  EXPECT_EQ(leaks.Outcome(), "exit 2");
  EXPECT_THAT(leaks.err, HasSubstr(" did not answer: it is frozen by its control group (docker "
                                   "unpause, systemctl thaw); --timeout waits longer\n"));
  process.Signal(SIGKILL);
  process.Wait(20);
}

// Its own user may not look at it either.
TEST_F(LeakScanTest, AskedByItsUserOfWhatIsNotDumpable) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const pid_t child = fork();
  ASSERT_NE(child, -1);
  if (child == 0) {
    const bool left = geteuid() != 0 || (setgid(65534) == 0 && setuid(65534) == 0);
    prctl(PR_SET_DUMPABLE, 0);
    const char ready = left ? 'y' : 'n';
    if (write(ends[1], &ready, 1) != 1) _exit(1);
    while (true) pause();
  }
  char ready = 0;
  EXPECT_EQ(read(ends[0], &ready, 1), 1);
  close(ends[0]);
  close(ends[1]);
  Command command{.arguments = {ToolPath(), "leaks", std::to_string(child)}};
  if (geteuid() == 0) {
    const std::vector<std::string> as_nobody = {"setpriv", "--reuid=65534", "--regid=65534",
                                                "--clear-groups"};
    command.arguments.insert(command.arguments.begin(), as_nobody.begin(), as_nobody.end());
  }
  const Result asked = RunCommand(command);
  // As root, of a user namespace to which the process does not belong.
  const std::vector<std::string> as_root = {"unshare", "-Ur"};
  command.arguments.insert(command.arguments.end() - 3, as_root.begin(), as_root.end());
  const Result asked_by_root = RunCommand(command);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  if (ready != 'y' || asked.exit_status > 2) GTEST_SKIP() << "no other user can: " << asked.err;
  EXPECT_EQ(asked.exit_status, 2);
  EXPECT_THAT(asked.err, HasSubstr("PR_SET_DUMPABLE"));
  EXPECT_THAT(asked.err, HasSubstr("ask as root"));
  if (asked_by_root.err.starts_with("unshare")) GTEST_SKIP() << asked_by_root.err;
  EXPECT_EQ(asked_by_root.exit_status, 2);
  EXPECT_THAT(asked_by_root.err, HasSubstr("the kernel keeps it from root here"));
  EXPECT_THAT(asked_by_root.err, Not(HasSubstr("ask as")));
}

// Of such a process /proc/PID/maps is empty.
TEST_F(LeakScanTest, AskedOfAProgramWhoseFirstThreadHasEnded) {
  const std::string program = Compile(directory_, "headless", R"(#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static pthread_t first;
static void* GoOn(void* unused) {
  pthread_join(first, NULL);
  puts("ready");
  fflush(stdout);
  for (;; usleep(1000)) free(malloc(100));
  return unused;
}
static __attribute__((noinline)) void Lose(void) {
  void* volatile lost = malloc(123);
  lost = NULL;
}
int main(void) {
  Lose();
  pthread_t thread;
  first = pthread_self();
  if (pthread_create(&thread, NULL, GoOn, NULL) != 0) return 1;
  pthread_exit(NULL);
})", {"-pthread"});
  Process process(Traced({.arguments = {program}}, directory_.path()));
  ASSERT_TRUE(process.AwaitOutput("ready\n"));
  const Result leaks = AskForLeaks(process.pid());
  EXPECT_EQ(leaks.Outcome(), "exit 0") << leaks.err;
  EXPECT_THAT(leaks.out, HasSubstr("Lose"));
  process.Signal(SIGKILL);
  process.Wait(20);
}

TEST_F(LeakScanTest, AskedForWhatIsNotTraced) {
  const Result leaks = RunCommand({.arguments = {ToolPath(), "leaks", std::to_string(getpid())}});
  EXPECT_EQ(leaks.exit_status, 2);
  EXPECT_NE(leaks.err.find("is not traced"), std::string::npos) << leaks.err;
}

}  // namespace
}  // namespace memtrace::e2e
