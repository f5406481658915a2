// The world of a traced program is the one it has without the tracer: descriptors, threads,
// children, signals, environment, umask, errno. And the trace is a file of its own, private,
// never through what stands at its name already.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sstream>
#include <string>

#include "tests/e2e/harness.h"

namespace memtrace::e2e {
namespace {

using ::testing::HasSubstr;

Words InShell(const std::string& script, const std::string& program) {
  return {"/bin/sh", "-c", script + "; exec \"$0\"", program};
}

class HostWorldTest : public ::testing::TestWithParam<Environment> {};

// With a trace, with the cross-check that opens libunwind, where no trace can be made.
TEST_P(HostWorldTest, IsAsWithoutTheTracer) {
  TempDir traces;
  const Words arguments = {TraceePath("tells_its_world")};
  const Result plain = RunCommand({.arguments = arguments});
  ASSERT_EQ(plain.Outcome(), "exit 0");
  ASSERT_THAT(plain.out, HasSubstr("descriptor 2\n1 threads, single-threaded 1\n"
                                   "wait() -1 No child processes\n"));
  Command command = {.arguments = arguments, .environment = GetParam()};
  const Result traced = RunCommand(Traced(command, traces.path()));
  EXPECT_EQ(traced.Outcome(), "exit 0");
  EXPECT_EQ(traced.out, plain.out);
  EXPECT_EQ(traced.err, plain.err);
  EXPECT_EQ(FilesIn(traces.path(), ".mtr").size(), 1u);
}

INSTANTIATE_TEST_SUITE_P(Modes, HostWorldTest,
                         ::testing::Values(Environment{},
                                           Environment{{"MEMTRACE_CROSS_CHECK", "100"}},
                                           Environment{{"MEMTRACE_SAMPLE_BYTES", "1K"}}));

// What it writes to the trace goes neither to a number that was closed nor to one that is
// in use again.
// Of those that a fault raises, too: the tracer, which does not block them, must not let them through.
TEST(HostWorldTest, SignalsThatTheProgramBlocksStayBlocked) {
  TempDir traces;
  const Command command = {.arguments = {TraceePath("waits_for_a_blocked_fault"), "4", "5", "7", "8", "10",
                                         "11", "12", "31"}};
  ASSERT_EQ(RunCommand(command).Outcome(), "exit 0");
  EXPECT_EQ(RunCommand(Traced(command, traces.path())).Outcome(), "exit 0");
}

TEST(HostWorldTest, AProgramThatTheLoaderIsAskedForHasItsName) {
  TempDir traces;
  const Result run = RunCommand(Traced(
      {.arguments = {"/lib64/ld-linux-x86-64.so.2", TraceePath("loses_large_blocks")}}, traces.path()));
  ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
  const Json report = Report(TraceOf(traces.path(), "loses_large_blocks", run.pid));
  EXPECT_EQ(report.at("process").at("executable"), TraceePath("loses_large_blocks"));
  EXPECT_THAT(report.at("leaks").dump(), HasSubstr("\"Lose\""));
}

// Its file is found by what it was called: the kernel says "/".
TEST(HostWorldTest, AProgramFromADetachedMountHasItsName) {
  const std::string program = TraceePath("loses_large_blocks");
  const std::string directory = program.substr(0, program.rfind('/'));
  TempDir elsewhere;
  for (const std::string& name : {program, std::string("./loses_large_blocks"),
                                  std::string("loses_large_blocks"), std::string("nobody")}) {
    SCOPED_TRACE(name);
    const bool by_directory = name[0] == '.';
    TempDir traces;
    const Result run = RunCommand(Traced(
        {.arguments = {TraceePath("starts_detached"), program, name},
         .environment = {{"PATH", "/usr/bin::/nowhere:" + directory}},
         .directory = by_directory ? directory : elsewhere.path()}, traces.path()));
    if (run.Outcome() == "exit 77") GTEST_SKIP() << run.err;
    ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
    Json report;
    for (const std::string& file : FilesIn(traces.path(), ".mtr")) {
      const Json one = Report(traces / file);
      if (one.at("process").at("end") == "exit") report = one;
    }
    ASSERT_FALSE(report.is_null());
    if (name == "nobody") {
      EXPECT_EQ(report.at("process").at("executable"), "nobody");
    } else {
      EXPECT_EQ(report.at("process").at("executable"), program);
      EXPECT_THAT(report.at("leaks").dump(), HasSubstr("\"Lose\""));
    }
  }
}

// The kernel's peak is that of a process, before an exec as well, and of a vfork child that of its parent.
TEST(HostWorldTest, TheMemoryOfALargeParentIsNotTheChilds) {
  TempDir traces;
  const Result run = RunCommand(Traced(
      {.arguments = {"/usr/bin/python3", "-c",
                     "import subprocess, sys\nblock = bytearray(200 << 20)\n"
                     "subprocess.run([sys.argv[1]])", TraceePath("loses_large_blocks")}}, traces.path()));
  if (run.Outcome() == "exit 127") GTEST_SKIP() << "there is no python3";
  ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
  bool found = false;
  for (const std::string& file : FilesIn(traces.path(), ".mtr")) {
    if (file.find("loses_large_blocks") == file.npos) continue;
    found = true;
    const uint64_t peak = Report(traces / file).at("faults").at("peak_rss_bytes").get<uint64_t>();
    EXPECT_GT(peak, 1u << 20);
    EXPECT_LT(peak, 100u << 20);
  }
  EXPECT_TRUE(found);
}

TEST(HostWorldTest, EveryDescriptorMayBeClosed) {
  for (const char* way : {"close", "daemon"}) {
    SCOPED_TRACE(way);
    TempDir traces, work;
    const Result run = RunCommand(Traced(
        {.arguments = {TraceePath("tells_its_world"), way, work / "told"}}, traces.path()));
    ASSERT_EQ(run.Outcome(), "exit 0");
    std::string told;
    for (int i = 0; i < 1000 && !told.ends_with("\n"); ++i) {  // a daemon is not waited for
      if (Exists(work / "told")) told = ReadFile(work / "told");
      usleep(10'000);
    }
    pid_t pid = 0;
    uint64_t blocks = 0;
    std::istringstream(told) >> pid >> blocks;
    ASSERT_EQ(blocks, 100000u) << told;
    for (int i = 0; i < 1000 && kill(pid, 0) == 0 && pid != run.pid; ++i) usleep(10'000);
    const Json report = Report(TraceOf(traces.path(), "tells_its_world", pid));
    uint64_t recorded = 0;
    for (const Json& site : report.at("sites")) {
      for (const Json& frame : site.at("stack")) {
        if (frame.value("function", "") == "WorkWithoutDescriptors") {
          recorded += site.at("allocations").get<uint64_t>();
        }
      }
    }
    EXPECT_EQ(recorded, blocks);
    EXPECT_EQ(report.at("coverage").at("dropped_events"), 0);
  }
}

uint64_t AllocationsBy(const Json& report, const std::string& function) {
  uint64_t allocations = 0;
  for (const Json& site : report.at("sites")) {
    const auto& stack = site.at("stack");
    if (!stack.empty() && stack[0].value("function", "") == function) {
      allocations += site.at("allocations").get<uint64_t>();
    }
  }
  return allocations;
}

// All that it does is recorded, though it has no descriptor to spare; and it has lost none.
TEST(HostWorldTest, EveryDescriptorMayBeInUse) {
  TempDir traces, work;
  const Command command = {.arguments = {TraceePath("uses_up_descriptors"), work / "locked"}};
  const Result plain = RunCommand(command);
  EXPECT_EQ(plain.out, "64 descriptors, 1 children, status 0, signals seen, 0 elsewhere\n");
  const Result run = RunCommand(Traced(command, traces.path()));
  EXPECT_EQ(run.Outcome(), "exit 0");
  EXPECT_EQ(run.out, plain.out);
  EXPECT_EQ(run.err, "");
  size_t children = 0;
  for (const auto& file : std::filesystem::directory_iterator(traces.path())) {
    const Json report = Report(file.path());
    const bool parent = file.path() == TraceOf(traces.path(), "uses_up_descriptors", run.pid);
    children += parent ? 0 : 1;
    EXPECT_EQ(report.at("coverage").at("dropped_events"), 0) << file.path();
    EXPECT_EQ(report.at("process").at("end"), "exit");
    EXPECT_EQ(AllocationsBy(report, "Pairs"), parent ? 200000u : 100000u);
    uint64_t lost = 0;
    for (const Json& record : report.at("leaks")) {
      if (record.at("kind") == "definite") lost += record.at("bytes").get<uint64_t>();
    }
    EXPECT_EQ(lost, parent ? 321u + 987 : 654u) << report.at("leaks").dump().substr(0, 2000);
  }
  EXPECT_EQ(children, 1u);
}

class TraceFileNameTest : public ::testing::Test {
 protected:
  Result Run(const std::string& before = ":") const {
    return RunCommand({.arguments = InShell("umask 0; " + before + "; export LD_PRELOAD=" +
                                                LibraryPath(),
                                            TraceePath("reallocarray_once")),
                       .environment = {{"MEMTRACE_OUT", work_ / "x.mtr"}}});
  }
  void ExpectTrace(const std::string& name) const {
    struct stat info;
    ASSERT_EQ(lstat((work_ / name).c_str(), &info), 0) << name;
    EXPECT_TRUE(S_ISREG(info.st_mode));
    EXPECT_EQ(info.st_mode & 07777, 0600u) << std::oct << info.st_mode;
    EXPECT_EQ(info.st_nlink, 1u);
    EXPECT_GT(BriefReport(work_ / name).at("totals").at("allocations").get<uint64_t>(), 0u);
  }

  TempDir work_;
};

TEST_F(TraceFileNameTest, IsPrivateWhateverTheUmask) {
  for (const char* mask : {"umask 0", "umask 022", "umask 0377", "umask 0777"}) {
    SCOPED_TRACE(mask);
    EXPECT_EQ(Run(mask).Outcome(), "exit 0");
    ExpectTrace("x.mtr");
    unlink((work_ / "x.mtr").c_str());
  }
}

TEST_F(TraceFileNameTest, FollowsNoLink) {
  WriteFile(work_ / "victim", "precious");
  ASSERT_EQ(symlink("victim", (work_ / "x.mtr").c_str()), 0);
  ASSERT_EQ(symlink("nothing", (work_ / "x.1.mtr").c_str()), 0);
  ASSERT_EQ(link((work_ / "victim").c_str(), (work_ / "x.2.mtr").c_str()), 0);
  ASSERT_EQ(mkfifo((work_ / "x.3.mtr").c_str(), 0666), 0);
  ASSERT_EQ(mkdir((work_ / "x.4.mtr").c_str(), 0777), 0);
  const Result run = Run();
  EXPECT_EQ(run.Outcome(), "exit 0");
  EXPECT_EQ(run.err, "");
  ExpectTrace("x.5.mtr");
  EXPECT_EQ(ReadFile(work_ / "victim"), "precious");
  EXPECT_FALSE(Exists(work_ / "nothing"));
}

TEST_F(TraceFileNameTest, AProgramMayHaveTheLongestName) {
  const std::string name(250, 'n');
  ASSERT_EQ(RunCommand({.arguments = {"cp", TraceePath("counted_pairs"), work_ / name}}).Outcome(), "exit 0");
  const Result bare = RunCommand({.arguments = {work_ / name, "pair", "10"},
                                  .environment = {{"LD_PRELOAD", LibraryPath()}, {"MEMTRACE_OUT", work_ / "%e.mtr"}}});
  EXPECT_EQ(bare.Outcome(), "exit 0") << bare.err;
  ExpectTrace(name.substr(0, 128) + ".mtr");
  const Result run = RunCommand({.arguments = {ToolPath(), "run", "-q", "--library", LibraryPath(), "-o",
                                               work_ / "short.mtr", "--", work_ / name, "pair", "10"}});
  EXPECT_EQ(run.Outcome(), "exit 0") << run.err;
  ExpectTrace("short.mtr");
}

// The files of /proc of such a process are root's, that of its environment too.
TEST_F(TraceFileNameTest, AProgramThatMayBeExecutedAndNotReadHasItsSettings) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const std::string program = work_ / "not_readable";
  ASSERT_EQ(RunCommand({.arguments = {"cp", TraceePath("counted_pairs"), program}}).Outcome(), "exit 0");
  ASSERT_EQ(chmod(program.c_str(), 0711), 0);
  ASSERT_EQ(chmod(work_.path().c_str(), 0777), 0);
  const Result run = RunCommand(
      {.arguments = {"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "env",
                     "LD_PRELOAD=" + LibraryPath(), "MEMTRACE_OUT=" + (work_ / "x.mtr"),
                     "MEMTRACE_LEAK_CHECK=off", program, "pair", "10"}});
  if (run.err.find("cannot be preloaded") != std::string::npos) {
    GTEST_SKIP() << "the other user cannot read the library: " << run.err;
  }
  ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
  ExpectTrace("x.mtr");
  EXPECT_TRUE(Report(work_ / "x.mtr").at("leak_scans").empty());
}

// A program with another effective user than its real one. ld.so ignores LD_PRELOAD there, so
// this one is linked with the library.
TEST_F(TraceFileNameTest, NothingIsWrittenInSecureExecution) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can make a program of another user's";
  const std::string program = work_ / "linked";
  ASSERT_EQ(RunCommand({.arguments = {"cp", TraceePath("linked_with_the_library"), program}})
                .Outcome(),
            "exit 0");
  ASSERT_EQ(chmod(work_.path().c_str(), 0755), 0);
  const Command command = {.arguments = {program},
                           .environment = {{"MEMTRACE_OUT", work_ / "x.mtr"}}};
  const Result usual = RunCommand(command);
  ASSERT_EQ(usual.Outcome(), "exit 0") << usual.err;
  EXPECT_EQ(usual.out, "secure 0\n");
  ExpectTrace("x.mtr");
  unlink((work_ / "x.mtr").c_str());
  // A directory that the other user could write to: it is not the rights that forbid it.
  ASSERT_EQ(chmod(work_.path().c_str(), 01777), 0);
  ASSERT_EQ(chown(program.c_str(), 65534, 65534), 0);
  ASSERT_EQ(chmod(program.c_str(), 06755), 0);
  const Result secure = RunCommand(command);
  if (secure.exit_status == 127) {
    GTEST_SKIP() << "the other user cannot read the library: " << secure.err;
  }
  EXPECT_EQ(secure.Outcome(), "exit 0");
  if (secure.out == "secure 0\n") GTEST_SKIP() << "setuid programs do not work here";
  EXPECT_EQ(secure.out, "secure 1\n");
  EXPECT_EQ(secure.err, "");
  EXPECT_EQ(FilesIn(work_.path(), ".mtr").size(), 0u);
}

}  // namespace
}  // namespace memtrace::e2e
