// `memtrace leaks`: scans that are asked for from outside, of programs that go on meanwhile and notice nothing.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <functional>
#include <regex>
#include <string>
#include <thread>

#include "tests/e2e/leak_scan.h"

namespace memtrace::e2e {
namespace {

// Who asks a program that does not allocate any more is told of the scan at its end.
TEST_F(LeakScanTest, AskedOfAnIdleProgramThatEnds) {
  Process process(Traced({.arguments = {"sleep", "3"}}, directory_.path()));
  for (int i = 0; i < 200 && FilesIn(directory_.path(), ".mtr").empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // it has its locale, and sleeps
  const Result leaks = RunCommand({.arguments = {ToolPath(), "leaks", "--timeout", "20", std::to_string(process.pid())}});
  EXPECT_EQ(process.Wait(20).Outcome(), "exit 0");
  EXPECT_EQ(leaks.Outcome(), "exit 0") << leaks.err;
  EXPECT_THAT(leaks.out, testing::HasSubstr("at the exit"));
}

#ifdef __x86_64__
// What is asked before is answered with all threads stopped, though the tracer's own signals are blocked already.
TEST_F(LeakScanTest, AskedRightBeforeASeccompFilter) {
  Process process(Traced({.arguments = {TraceePath("kept_by"), "asked_before_a_filter"}}, directory_.path()));
  const auto until = [](const std::function<bool()>& done) {
    for (int i = 0; i < 1000 && !done(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  };
  ASSERT_TRUE(process.AwaitOutput("ready\n"));
  const std::string trace = TraceOf(directory_.path(), "kept_by", process.pid());
  Process leaks({.arguments = {ToolPath(), "leaks", std::to_string(process.pid())}});
  until([&] {
    format::StatusArea area = {};
    std::ifstream(trace, std::ios::binary)
        .seekg(static_cast<std::streamoff>(sizeof(format::FileHeader) + sizeof(format::BlockHeader)))
        .read(reinterpret_cast<char*>(&area), sizeof(area));
    return area.scan_request != 0;
  });
  process.Signal(SIGUSR1);
  const Result asked = leaks.Wait(20);
  EXPECT_EQ(asked.Outcome(), "exit 0") << asked.err;
  until([&] { return process.HasWritten("filtered\n"); });
  process.Signal(SIGTERM);
  const Result run = process.Wait(20);
  if (run.exit_status == 77) GTEST_SKIP() << "no seccomp filter here";
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
    }
    Load(TraceOf(directory_.path(), "kept_by", process.pid()));
    ASSERT_EQ(scans_.size(), 2u);
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

// What is packed already and what is not yet are one trace, whenever one asks.
TEST_F(LeakScanTest, AskedFromOutsideUnderMemtraceRun) {
  const std::string trace = directory_ / "run.mtr";
  Process tool({.arguments = {ToolPath(), "run", "-q", "--library", LibraryPath(), "-o", trace, "--",
                              TraceePath("kept_by"), "talks"}});
  ASSERT_TRUE(tool.AwaitOutput("ready\n"));
  const std::string children = "/proc/" + std::to_string(tool.pid()) + "/task/" +
                               std::to_string(tool.pid()) + "/children";
  const pid_t program = std::stoi(ReadFile(children));
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

TEST_F(LeakScanTest, AskedForWhatIsNotTraced) {
  const Result leaks = RunCommand({.arguments = {ToolPath(), "leaks", std::to_string(getpid())}});
  EXPECT_EQ(leaks.exit_status, 2);
  EXPECT_NE(leaks.err.find("is not traced"), std::string::npos) << leaks.err;
}

}  // namespace
}  // namespace memtrace::e2e
