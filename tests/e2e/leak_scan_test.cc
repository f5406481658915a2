// What memory scans find of programs that know what keeps their blocks: in registers, on stacks,
// in mappings, in threads of all kinds; and that the programs notice nothing of it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/personality.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <regex>
#include <string>
#include <thread>

#include "absl/strings/str_join.h"
#include "report/analyzer.h"
#include "report/leak/leak_check.h"
#include "report/leak/scan_reader.h"
#include "report/leak_kinds.h"
#include "report/trace_reader.h"
#include "tests/e2e/harness.h"

namespace memtrace::e2e {
namespace {

using report::LeakKind;
using report::LeakScan;

class LeakScanTest : public ::testing::Test {
 protected:
  // False: the program cannot do that here.
  bool Run(const std::string& name, const Environment& environment = {},
           const std::string& outcome = "exit 0") {
    Command command{.arguments = {TraceePath("kept_by"), name}, .timeout_seconds = 60};
    command.environment = environment;
    const Result run = RunCommand(Traced(command, directory_.path()));
    if (run.exit_status == 77) return false;
    out_ = run.out;
    pid_ = run.pid;
    EXPECT_EQ(run.Outcome(), outcome) << run.out << run.err;
    EXPECT_EQ(run.err, "");
    EXPECT_EQ(run.out.find("unexpected"), std::string::npos) << run.out;
    return true;
  }

  // What is read of one trace.
  void Load(const std::string& trace) {
    auto analyzed = report::AnalyzeTrace(trace, {});
    ASSERT_TRUE(analyzed.ok()) << analyzed.status();
    scans_ = analyzed->analysis.leak_scans;
    auto reader = report::TraceReader::Open(trace);
    ASSERT_TRUE(reader.ok());
    raw_.clear();
    for (const uint32_t number : report::leak::ScanNumbers(**reader)) {
      raw_.push_back(report::leak::ReadScan(**reader, number, nullptr));
    }
  }

  // strikes_its_scan in each of these ways that the machine has: it ends as without us, and its scan is done.
  // `check` looks at what was found.
  void Strike(std::initializer_list<std::vector<std::string>> ways,
              const std::function<void(const std::string& how)>& check) {
    int ran = 0;
    for (const std::vector<std::string>& way : ways) {
      const std::string how = absl::StrJoin(way, " ");
      TempDir traces;
      Command command{.arguments = {TraceePath("strikes_its_scan")}, .timeout_seconds = 60};
      command.arguments.insert(command.arguments.end(), way.begin(), way.end());
      const Result run = RunCommand(Traced(command, traces.path()));
      if (run.exit_status == 77) continue;
      ++ran;
      ASSERT_EQ(run.Outcome(), "exit 0") << how << ": " << run.err;
      Load(TraceOf(traces.path(), "strikes_its_scan", run.pid));
      ASSERT_EQ(scans_.size(), 1u) << how;
      ASSERT_EQ(scans_[0].state, LeakScan::State::kDone) << how << ": " << scans_[0].failure;
      check(how);
    }
    if (ran == 0) GTEST_SKIP() << "this machine has none of these";
  }

  // Each "expect SIZE KIND" of `text` is a loss record of its own in `scan`.
  static void ExpectKinds(const LeakScan& scan, const std::string& text) {
    ASSERT_EQ(scan.state, LeakScan::State::kDone) << scan.failure;
    std::multimap<uint64_t, std::string> found;
    for (const report::LossRecord& record : scan.records) {
      for (uint64_t i = 0; i < record.blocks; ++i) {
        found.emplace(record.bytes / record.blocks, report::KindName(record.kind));
      }
    }
    std::string all;
    for (const auto& [size, kind] : found) all += std::to_string(size) + " " + kind + ", ";
    std::istringstream lines(text);
    int expected = 0;
    for (std::string word, kind; lines >> word;) {
      if (word != "expect") continue;
      uint64_t size;
      lines >> size >> kind;
      ++expected;
      const auto at = found.find(size);
      if (at == found.end()) {
        ADD_FAILURE() << "no block of " << size << " bytes: " << kind << " expected\n" << text << all;
      } else {
        EXPECT_EQ(at->second, kind) << size << " bytes\n" << text;
      }
    }
    EXPECT_GT(expected, 0);
  }

  bool RunAndCheck(const std::string& name) {
    if (!Run(name)) return false;
    Load(TraceOf(directory_.path(), "kept_by", pid_));
    if (scans_.empty()) {
      ADD_FAILURE() << "no scan";
    } else {
      ExpectKinds(scans_.back(), out_);
    }
    return true;
  }

  size_t Threads(format::ScanThreadState state) const {
    size_t count = 0;
    for (const auto& thread : raw_.back().threads) count += thread.state == state;
    return count;
  }

  TempDir directory_;
  std::string out_;
  pid_t pid_ = 0;
  std::vector<LeakScan> scans_;
  std::vector<report::leak::Scan> raw_;
};

#define RUN_AND_CHECK(name) \
  if (!RunAndCheck(name)) GTEST_SKIP() << "this machine does not let it"

TEST_F(LeakScanTest, WordsOfModules) { RUN_AND_CHECK("globals"); }

TEST_F(LeakScanTest, StacksAndThreadLocals) {
  RUN_AND_CHECK("threads");
  EXPECT_EQ(Threads(format::ScanThreadState::kParked), 2u);
}

#ifdef __x86_64__
TEST_F(LeakScanTest, ARegisterAndNothingElse) { RUN_AND_CHECK("register"); }
#endif

// Neither is sent a signal: the second would take it for the program's.
TEST_F(LeakScanTest, ThreadsThatBlockAllSignals) {
  RUN_AND_CHECK("signals_blocked");
  EXPECT_EQ(Threads(format::ScanThreadState::kUnparked), 2u);
}

TEST_F(LeakScanTest, AThreadOnItsSignalStack) { RUN_AND_CHECK("signal_stack"); }

TEST_F(LeakScanTest, ASignalStackThatWasFreedAndIsOtherBlocksNow) { RUN_AND_CHECK("freed_signal_stack"); }

TEST_F(LeakScanTest, SignalStacksThatOnlyTheKernelKnows) { RUN_AND_CHECK("kept_signal_stacks"); }

TEST_F(LeakScanTest, WhatTheUsableSizeOfABlockHasRoomFor) { RUN_AND_CHECK("usable_size"); }

// All of its heap counts as roots; but what malloc keeps there of its own is none.
TEST_F(LeakScanTest, AForkChildWhoseArenaGrows) {
  ASSERT_TRUE(Run("forks_from_a_thread"));
  const size_t child = out_.find("child ");
  ASSERT_NE(child, out_.npos);
  Load(TraceOf(directory_.path(), "kept_by", std::stoi(out_.substr(child + 6))));
  ASSERT_EQ(scans_.size(), 1u);
  ASSERT_EQ(scans_[0].state, LeakScan::State::kDone) << scans_[0].failure;
  EXPECT_EQ(scans_[0].totals[static_cast<size_t>(report::LeakKind::kDefinite)].blocks, 60u);
  EXPECT_EQ(scans_[0].totals[static_cast<size_t>(report::LeakKind::kPossible)].blocks, 0u);
}

// They block all signals, and are not waited for: they never run the program's code.
TEST_F(LeakScanTest, ThreadsOfTheKernels) {
  RUN_AND_CHECK("io_uring");
  EXPECT_EQ(raw_.back().threads.size(), 1u);
  EXPECT_LT(raw_.back().begin.stood_ns, 100'000'000u);
}

TEST_F(LeakScanTest, LittleAddressSpace) {
  RUN_AND_CHECK("tight");
  RUN_AND_CHECK("tight_until_raised");
}

TEST_F(LeakScanTest, StacksOfThreadsThatHaveEnded) {
  RUN_AND_CHECK("ended_threads");
  EXPECT_EQ(Threads(format::ScanThreadState::kEnding), 1u);
}

TEST_F(LeakScanTest, StacksThatAreGuardedByARegion) { RUN_AND_CHECK("guard_regions"); }

TEST_F(LeakScanTest, Mappings) {
  RUN_AND_CHECK("mappings");
  EXPECT_GE(raw_.back().regions.size(), 8u);
}

TEST_F(LeakScanTest, ASparseMappingCostsNothing) {
  RUN_AND_CHECK("sparse");
  EXPECT_LT(raw_.back().done->root_bytes, 16u << 20);
}

// Nobody waits for a page that is not there.
TEST_F(LeakScanTest, ASparseSharedMappingIsLookedThroughWhereItHasData) {
  RUN_AND_CHECK("sparse_shared");
  EXPECT_LT(raw_.back().done->root_bytes, 16u << 20);
}

// Two million pointers are read, and not written down.
TEST_F(LeakScanTest, PointersIntoMemoryOfTheProgramsOwnCostNothing) {
  RUN_AND_CHECK("own_heap");
  EXPECT_GT(raw_.back().done->root_bytes, 16u << 20);
  EXPECT_LT(raw_.back().words, 20'000u);
}

// Of 45 MB some 40 were freed.
TEST_F(LeakScanTest, WhatWasFreedCostsNothing) {
  RUN_AND_CHECK("freed_heap");
  EXPECT_GT(raw_.back().done->territory_bytes, 5'000'000u);  // what is kept
  EXPECT_LT(raw_.back().done->territory_bytes, 6'000'000u);
}

TEST_F(LeakScanTest, ABreakThatTheProgramMoved) { RUN_AND_CHECK("own_break"); }

// Without randomized addresses, as under a debugger, the heap follows the .bss: all of it was taken for heap,
// and what global variables pointed to was lost.
TEST_F(LeakScanTest, AHeapThatIsOneMappingWithTheBss) {
  const int before = personality(0xffffffff);
  if (personality(static_cast<unsigned long>(before) | ADDR_NO_RANDOMIZE) == -1) GTEST_SKIP() << "not allowed here";
  const bool ran = RunAndCheck("heap_behind_bss");
  personality(static_cast<unsigned long>(before));
  if (!ran) GTEST_SKIP() << "they are two";
}

TEST_F(LeakScanTest, BlocksWhereTheProgramHadAMapping) {
  RUN_AND_CHECK("mapped_before");
  EXPECT_EQ(out_.find("elsewhere"), std::string::npos) << out_;
}

TEST_F(LeakScanTest, GuardPages) { RUN_AND_CHECK("guard_pages"); }

// It is no root, as for memcheck, and its blocks are blocks.
TEST_F(LeakScanTest, MemoryThatWasProtectedWhenItWasFilled) { RUN_AND_CHECK("read_only"); }

TEST_F(LeakScanTest, WhatIsBelowTheStackPointerOfAThreadThatWaits) {
  RUN_AND_CHECK("stale_below");
  uint64_t lost = 0;
  for (const report::LossRecord& record : scans_.back().records) {
    if (record.kind == report::LeakKind::kDefinite && record.bytes == 4999 * record.blocks) {
      lost += record.blocks;
    }
  }
  EXPECT_EQ(lost, 10u);
}

TEST_F(LeakScanTest, AProgramThatWaitsForItsChildrenSeesNone) { RUN_AND_CHECK("wait_loop"); }

TEST_F(LeakScanTest, AStormOfSignals) { RUN_AND_CHECK("storm"); }

TEST_F(LeakScanTest, ThreadsThatComeAndGo) {
  RUN_AND_CHECK("churn");
  EXPECT_EQ(scans_.size(), 201u);
  // What ended while it was being stopped is no thread that did not stop.
  const auto has_unparked = [](const report::leak::Scan& scan) {
    return std::any_of(scan.threads.begin(), scan.threads.end(),
                       [](const auto& thread) { return thread.state == format::ScanThreadState::kUnparked; });
  };
  EXPECT_LT(std::count_if(raw_.begin(), raw_.end(), has_unparked), 50);
}

TEST_F(LeakScanTest, ManyThreadsHaveItScanned) {
  RUN_AND_CHECK("scanned_by_many");
  ASSERT_EQ(scans_.size(), 321u);
  for (const LeakScan& scan : scans_) EXPECT_EQ(scan.state, LeakScan::State::kDone) << scan.number << ": " << scan.failure;
}

TEST_F(LeakScanTest, AForkChildThatEndsByUnderscoreExit) {
  ASSERT_TRUE(Run("fork"));
  const size_t child = out_.find("child\n");
  ASSERT_NE(child, std::string::npos);
  for (const std::string& file : FilesIn(directory_.path(), ".mtr")) {
    SCOPED_TRACE(file);
    const bool parent = file.find("." + std::to_string(pid_) + ".") != std::string::npos;
    Load(directory_ / file);
    ASSERT_EQ(scans_.size(), 1u);
    ExpectKinds(scans_[0], parent ? out_.substr(0, child) : out_.substr(child));
  }
}

// It scans itself, and says so.
TEST_F(LeakScanTest, NoProcessCanBeMade) {
  RUN_AND_CHECK("no_process");
  EXPECT_EQ(raw_.back().begin.scanner_pid, 0u);
  EXPECT_NE(raw_.back().begin.note, "");
}

// Memory that comes and goes meanwhile ended the process that looked at it.
TEST_F(LeakScanTest, NoProcessCanBeMadeAndAThreadGoesOn) {
  for (int i = 0; i < 5; ++i) {
    if (!Run("busy_alone")) GTEST_SKIP() << "this machine does not let it";
    Load(TraceOf(directory_.path(), "kept_by", pid_));
    ASSERT_EQ(scans_.size(), 1u);
    EXPECT_EQ(scans_[0].state, LeakScan::State::kFailed);
    EXPECT_NE(scans_[0].failure.find("a thread of it did not stop"), std::string::npos) << scans_[0].failure;
  }
}

TEST_F(LeakScanTest, AfterASeccompFilterThereIsNone) {
  if (!Run("seccomp")) GTEST_SKIP() << "no seccomp filter here";
  Load(TraceOf(directory_.path(), "kept_by"));
  ASSERT_EQ(scans_.size(), 1u);
  EXPECT_EQ(scans_[0].state, LeakScan::State::kFailed);
  EXPECT_NE(scans_[0].failure.find("seccomp"), std::string::npos) << scans_[0].failure;
}

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

TEST_F(LeakScanTest, AfterChrootToWhereThereIsNoProc) {
  if (!Run("chroot")) GTEST_SKIP() << "chroot is root's";
  Load(TraceOf(directory_.path(), "kept_by"));
  ASSERT_EQ(scans_.size(), 1u);
  EXPECT_EQ(scans_[0].state, LeakScan::State::kFailed);
  EXPECT_NE(scans_[0].failure.find("/proc"), std::string::npos) << scans_[0].failure;
}

TEST_F(LeakScanTest, ProcessesThatEndAtOnce) {
  ASSERT_TRUE(Run("_exit", {}, "exit 3"));
  Load(TraceOf(directory_.path(), "kept_by"));
  ASSERT_EQ(scans_.size(), 1u);
  ExpectKinds(scans_[0], out_);
}

// Stopped there all at once, they would come back as one another.
TEST_F(LeakScanTest, ThreadsThatShareAnAlternateSignalStack) {
  for (int i = 0; i < 5; ++i) {
    const TempDir own;
    const Result run =
        RunCommand(Traced({.arguments = {TraceePath("shares_a_signal_stack")}}, own.path()));
    EXPECT_EQ(run.Outcome(), "exit 0") << run.err;
    EXPECT_EQ(run.out + run.err, "bye\n");
    Load(TraceOf(own.path(), "shares_a_signal_stack"));
    ASSERT_EQ(scans_.size(), 1u);
    EXPECT_EQ(scans_[0].totals[static_cast<size_t>(LeakKind::kDefinite)].blocks, 0u);
    EXPECT_GE(scans_[0].totals[static_cast<size_t>(LeakKind::kReachable)].blocks, 60u);
  }
}

TEST_F(LeakScanTest, WhenItIsDone) {
  using format::ScanReason;
  const auto reasons = [&](const char* value) {
    std::vector<ScanReason> found;
    const TempDir own;
    Command command{.arguments = {TraceePath("kept_by"), "globals"}};
    command.environment = {{"MEMTRACE_LEAK_CHECK", value}};
    const Result run = RunCommand(Traced(command, own.path()));
    EXPECT_EQ(run.Outcome(), "exit 0");
    Load(TraceOf(own.path(), "kept_by"));
    for (const LeakScan& scan : scans_) {
      found.push_back(scan.reason);
      ExpectKinds(scan, run.out);
    }
    return found;
  };
  EXPECT_EQ(reasons("exit"), (std::vector{ScanReason::kExitLate}));
  EXPECT_EQ(reasons("exit-early"), (std::vector{ScanReason::kExitEarly}));
  EXPECT_EQ(reasons("both"), (std::vector{ScanReason::kExitEarly, ScanReason::kExitLate}));
  EXPECT_EQ(reasons("off"), std::vector<ScanReason>{});
}

TEST_F(LeakScanTest, UnderMemtraceRun) {
  const std::string trace = directory_ / "run.mtr";
  const Result run = RunCommand({.arguments = {ToolPath(), "run", "-q", "--library", LibraryPath(), "-o",
                                               trace, "--", TraceePath("kept_by"), "threads"}});
  ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
  Load(trace);
  ASSERT_EQ(scans_.size(), 1u);
  ExpectKinds(scans_[0], run.out);
}

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

// gdb stops at nothing that the program did not do, and announces no thread or process of ours.
TEST_F(LeakScanTest, ADebuggerSeesNoNewThread) {
  for (int i = 0; i < 5; ++i) {
    Command command{.arguments = {"gdb", "-nx", "-batch", "-ex", "set startup-with-shell off", "-ex",
                                  "set environment LD_PRELOAD " + LibraryPath(), "-ex",
                                  "set environment MEMTRACE_OUT " + (directory_ / "%e.%p.mtr"), "-ex", "run",
                                  "--args", TraceePath("kept_by"), "globals"}};
    const Result gdb = RunCommand(command);
    ASSERT_EQ(gdb.Outcome(), "exit 0") << gdb.err;
    EXPECT_EQ(gdb.out.find("[New "), std::string::npos) << gdb.out;
    EXPECT_NE(gdb.out.find("exited normally"), std::string::npos) << gdb.out;
  }
  EXPECT_EQ(FilesIn(directory_.path(), ".mtr").size(), 5u);
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

// A signal that is sent to the thread that execs would end the program that it begins.
TEST_F(LeakScanTest, AnExecMeanwhileIsNotHarmed) {
  for (int i = 0; i < 60; ++i) {
    TempDir traces;
    const Result run = RunCommand(Traced(
        {.arguments = {TraceePath("execs_while_scanned"), std::to_string(500 * i)}}, traces.path()));
    ASSERT_EQ(run.Outcome(), "exit 0") << "after " << 500 * i << " us: " << run.err;
  }
}

// Guard regions and pages with a protection key look like memory: the copy died of them, and where the
// process scanned itself, the program.
TEST_F(LeakScanTest, PagesThatCannotBeRead) {
  Strike({{"guard"}, {"guard", "alone"}, {"key"}, {"key", "alone"}}, [&](const std::string& how) {
    for (const report::LossRecord& record : scans_[0].records) {
      EXPECT_EQ(record.kind, LeakKind::kReachable) << how << ": " << record.bytes;
    }
  });
}

// Within a block, that words point to. Where the process scans itself and another thread fills them, it stood
// there for ever.
TEST_F(LeakScanTest, PagesBeforeAPlaceInABlockThatCannotBeRead) {
  Strike({{"block"}, {"block", "alone"}, {"userfault"}}, [&](const std::string& how) {
    EXPECT_EQ(scans_[0].totals[static_cast<size_t>(LeakKind::kDefinite)].blocks, 0u) << how;
  });
}

// It is opened without the system call of that name, and its reader stands when it is told of the copy.
TEST_F(LeakScanTest, AUserfaultfdOfTheDevice) {
  const Result run = RunCommand(
      Traced({.arguments = {TraceePath("strikes_its_scan"), "device"}, .timeout_seconds = 60}, directory_.path()));
  if (run.exit_status == 77) GTEST_SKIP() << "this machine has none";
  ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
  Load(TraceOf(directory_.path(), "strikes_its_scan", run.pid));
  ASSERT_EQ(scans_.size(), 1u);
  EXPECT_EQ(scans_[0].state, LeakScan::State::kDone) << scans_[0].failure;
  EXPECT_EQ(raw_.back().begin.scanner_pid, 0u);
}

// It was told as if none had been asked for.
TEST_F(LeakScanTest, ACopyThatIsKilledIsTold) {
  const Result run = RunCommand(
      Traced({.arguments = {TraceePath("strikes_its_scan"), "killed"}, .timeout_seconds = 60}, directory_.path()));
  if (run.exit_status == 77) GTEST_SKIP() << "the kernel tells no children";
  ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
  Load(TraceOf(directory_.path(), "strikes_its_scan", run.pid));
  ASSERT_EQ(scans_.size(), 1u);
  EXPECT_EQ(scans_[0].state, LeakScan::State::kFailed);
  EXPECT_NE(scans_[0].failure.find("was ended by signal 9, as where memory is short"), std::string::npos) << scans_[0].failure;
}

// They were not found, and nothing said so. The launcher is traced as well: its filter is there after exec.
TEST_F(LeakScanTest, CallsPastTheLibraryWhereAContainerRefusesProcessVmReadv) {
  for (const bool refused : {false, true}) {
    TempDir traces;
    Command command{.arguments = {TraceePath("libc_malloc_by_name")}};
    if (refused) command.arguments.insert(command.arguments.begin(), TraceePath("without_readv"));
    const Result run = RunCommand(Traced(command, traces.path()));
    if (refused && run.exit_status == 3) GTEST_SKIP() << "a filter of system calls cannot be set here";
    ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
    Load(TraceOf(traces.path(), "libc_malloc_by_name", run.pid));
    ASSERT_EQ(scans_.size(), 1u);
    EXPECT_EQ(scans_[0].state, LeakScan::State::kDone) << scans_[0].failure;
    EXPECT_TRUE(scans_[0].frees_unseen) << refused;
    EXPECT_NE(absl::StrJoin(scans_[0].notes, "; ").find("what libc_malloc_by_name freed past"), std::string::npos);
  }
}

TEST_F(LeakScanTest, AskedForWhatIsNotTraced) {
  const Result leaks = RunCommand({.arguments = {ToolPath(), "leaks", std::to_string(getpid())}});
  EXPECT_EQ(leaks.exit_status, 2);
  EXPECT_NE(leaks.err.find("is not traced"), std::string::npos) << leaks.err;
}

}  // namespace
}  // namespace memtrace::e2e
