// Programs that give up rights while they are traced: seccomp filters that kill for any call
// but those of memory and write(), chroot, other users, namespaces. They do what they do
// without the tracer, and every event is in the report.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "tests/e2e/harness.h"

namespace memtrace::e2e {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Sums {
  uint64_t allocations = 0, frees = 0, blocks = 0, bytes = 0;
  bool operator==(const Sums&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Sums& sums) {
  return out << sums.allocations << " allocations, " << sums.frees << " frees, " << sums.blocks
             << " live blocks of " << sums.bytes << " bytes";
}

Sums Told(const std::string& line) {
  Sums sums;
  std::istringstream(line) >> sums.allocations >> sums.frees >> sums.blocks >> sums.bytes;
  return sums;
}

Sums Reported(const Json& report) {
  Sums sums;
  for (const Json& site : report.at("sites")) {
    bool is_work = false;
    for (const Json& frame : site.at("stack")) is_work |= frame.value("function", "") == "Work";
    if (!is_work) continue;
    sums.allocations += site.at("allocations").get<uint64_t>();
    sums.frees += site.at("frees").get<uint64_t>();
    sums.blocks += site.at("live_blocks").get<uint64_t>();
    sums.bytes += site.at("live_bytes").get<uint64_t>();
  }
  return sums;
}

uint64_t DiskBytes(const std::string& path) {
  struct stat info;
  EXPECT_EQ(stat(path.c_str(), &info), 0) << path;
  return static_cast<uint64_t>(info.st_blocks) * 512;
}

std::string Notes(const Json& report) { return report.at("coverage").at("notes").dump(); }

// The report has what the program told, and nothing was lost.
void ExpectWhole(const Json& report, const std::string& told) {
  EXPECT_EQ(Reported(report), Told(told));
  const Json& coverage = report.at("coverage");
  EXPECT_EQ(coverage.at("dropped_events"), 0);
  EXPECT_EQ(coverage.at("marked_stacks"), 0);
  EXPECT_EQ(coverage.at("unordered_events"), 0);
  EXPECT_EQ(coverage.at("truncated"), false);
  EXPECT_EQ(coverage.at("all_recorded"), true) << coverage.dump();
}

struct Way {
  const char* name;
  const char* times;
  bool needs_root;
  const char* note;  // in the report
};

class SandboxTest : public ::testing::TestWithParam<Way> {};

TEST_P(SandboxTest, LosesNothingAndHarmsNothing) {
  const Way& way = GetParam();
  if (way.needs_root && geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  TempDir traces;
  const Words arguments = {TraceePath("sandboxed"), way.name, way.times, traces.path()};
  const Result plain = RunCommand({.arguments = arguments});
  if (plain.exit_status == 77) GTEST_SKIP() << "not open to this user on this machine";
  const Result traced = RunCommand(Traced({.arguments = arguments}, traces.path()));
  EXPECT_EQ(traced.Outcome(), plain.Outcome());
  EXPECT_EQ(traced.err, plain.err);
  if (std::string(way.name) != "all_threads") {  // which works for as long as it takes
    EXPECT_EQ(traced.out, plain.out);
  }
  const std::string trace = TraceOf(traces.path(), "sandboxed");
  const Json report = Report(trace, {"--top", "1000000"});
  ExpectWhole(report, traced.out);
  EXPECT_THAT(Notes(report), HasSubstr(way.note));
  EXPECT_EQ(report.at("process").at("end"), "exit");
  // 16 GiB were set aside, as holes.
  EXPECT_LT(DiskBytes(trace), 100u << 20);
}

constexpr char kFiltered[] = "usage samples, thread names and memory maps end there";
constexpr char kPathLost[] = "the trace went on in the part that was mapped before";

INSTANTIATE_TEST_SUITE_P(
    Ways, SandboxTest,
    ::testing::Values(Way{"prctl", "1000000", false, kFiltered},
                      Way{"seccomp", "100000", false, kFiltered},
                      Way{"libseccomp", "100000", false, kFiltered},
                      Way{"some_advice", "1000000", false, kFiltered},
                      Way{"no_populating", "100000", false, kFiltered},
                      Way{"chroot_no_populating", "100000", false, kFiltered},
                      Way{"threads", "100000", false, kFiltered},
                      Way{"all_threads", "20000", false, kFiltered},
                      Way{"fork", "20000", false, kFiltered},
                      Way{"refused", "20000", false, ""},
                      Way{"refused_no_memory", "20000", false, ""},
                      Way{"chroot", "100000", false, kPathLost},
                      Way{"namespaces", "100000", false, kPathLost},
                      Way{"setuid", "100000", true, kPathLost},
                      Way{"setresuid", "100000", true, kPathLost},
                      Way{"syscall", "100000", true, "gave up rights by setresuid"},
                      Way{"address_space", "100000", true, kPathLost},
                      Way{"chdir", "100000", false, ""}),
    [](const auto& info) { return std::string(info.param.name); });

// How often `command` makes the system call with this number. -1: no process may be traced here.
long CountCalls(const Command& command, uint64_t number) {
  const pid_t child = fork();
  if (child == 0) {
    for (const auto& [name, value] : command.environment) setenv(name.c_str(), value.c_str(), 1);
    std::vector<char*> arguments;
    for (const std::string& argument : command.arguments) {
      arguments.push_back(const_cast<char*>(argument.c_str()));
    }
    arguments.push_back(nullptr);
    if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(126);
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (!WIFSTOPPED(status)) return -1;
  ptrace(PTRACE_SETOPTIONS, child, nullptr, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
  long calls = 0, signal = 0;
  for (;;) {
    if (ptrace(PTRACE_SYSCALL, child, nullptr, signal) != 0) return -1;
    waitpid(child, &status, 0);
    if (!WIFSTOPPED(status)) break;
    const bool is_call = WSTOPSIG(status) == (SIGTRAP | 0x80);
    signal = is_call ? 0 : WSTOPSIG(status);
    __ptrace_syscall_info info = {};
    if (is_call && ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof(info), &info) > 0) {
      calls += info.op == PTRACE_SYSCALL_INFO_ENTRY && info.entry.nr == number;
    }
  }
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  return calls;
}

// Behind the filter the kernel cannot be asked any more whether this is the main thread, on whose
// stack no walk has to look whether it can be read.
TEST(SandboxedProgramTest, AFilterBeforeTheFirstAllocationDoesNotMakeEachEventACall) {
  const TempDir traces;
  const long calls = CountCalls(
      Traced({.arguments = {TraceePath("sandboxed"), "first", "20000"}}, traces.path()),
      SYS_madvise);
  if (calls < 0) GTEST_SKIP() << "no process may be traced here";
  EXPECT_LT(calls, 1000);
}

// Not even memory may be had then. The trace ends before, and says so.
class NoWayOutTest : public ::testing::TestWithParam<const char*> {};

TEST_P(NoWayOutTest, EndsTheRecording) {
  TempDir traces;
  const Words arguments = {TraceePath("sandboxed"), GetParam(), "30000"};
  const Result plain = RunCommand({.arguments = arguments});
  if (plain.exit_status == 77) GTEST_SKIP() << "a filter is there already";
  const Result traced = RunCommand(Traced({.arguments = arguments}, traces.path()));
  EXPECT_EQ(traced.Outcome(), "exit 3");
  EXPECT_EQ(traced.Outcome(), plain.Outcome());
  EXPECT_EQ(traced.out, plain.out);
  const Json report = Report(TraceOf(traces.path(), "sandboxed"), {"--top", "1000000"});
  // The work was done before, and the thousand pairs behind are not in it.
  Sums before = Told(traced.out), reported = Reported(report);
  before.frees = reported.frees = before.blocks = reported.blocks = 0;
  before.bytes = reported.bytes = 0;
  EXPECT_EQ(reported, before);
  EXPECT_EQ(report.at("coverage").at("dropped_events"), 0);
  EXPECT_THAT(Notes(report), HasSubstr("entered a sandbox that left no way to write more"));
}

INSTANTIATE_TEST_SUITE_P(Ways, NoWayOutTest, ::testing::Values("mode_strict", "no_memory", "no_memory_later"));

class LittleSpaceTest : public ::testing::TestWithParam<const char*> {};

// A sixteenth of the address space is mapped before, and that is less than what the program does.
TEST_P(LittleSpaceTest, WhenThePartThatWasMappedIsUsedUpTheTraceSaysThatAndHowItEnded) {
  const TempDir traces;
  const Words arguments = {TraceePath("sandboxed"), GetParam(), "1000000", traces.path()};
  const Result plain = RunCommand({.arguments = arguments});
  if (plain.exit_status == 77) GTEST_SKIP() << "not open to this user on this machine";
  const Result traced = RunCommand(Traced({.arguments = arguments}, traces.path()));
  EXPECT_EQ(traced.Outcome(), plain.Outcome());
  EXPECT_EQ(traced.out, plain.out);
  EXPECT_EQ(traced.err, plain.err);
  const Json report = BriefReport(TraceOf(traces.path(), "sandboxed"));
  EXPECT_THAT(Notes(report), HasSubstr("the part that was mapped before was used up"));
  EXPECT_THAT(Notes(report), Not(HasSubstr("entered a sandbox")));
  EXPECT_GT(report.at("coverage").at("dropped_events"), 0);
  EXPECT_EQ(report.at("process").at("end"), "exit");
}

INSTANTIATE_TEST_SUITE_P(Ways, LittleSpaceTest,
                         ::testing::Values("chroot_in_little_space", "filter_in_little_space"));

// A size limit makes that part smaller, and is what the trace then tells.
TEST(SandboxedProgramTest, ASizeLimitIsToldAlsoWhereItIsThePartThatWasMapped) {
  for (const std::string way : {"prctl", "chroot"}) {
    const TempDir traces;
    const Words arguments = {TraceePath("sandboxed"), way, "1000000", traces.path()};
    const Result plain = RunCommand({.arguments = arguments});
    if (plain.exit_status == 77) GTEST_SKIP() << "not open to this user on this machine";
    Command command = Traced({.arguments = arguments}, traces.path());
    command.environment.emplace_back("MEMTRACE_MAX_BYTES", "3M");
    const Result traced = RunCommand(command);
    EXPECT_EQ(traced.Outcome(), plain.Outcome());
    EXPECT_EQ(traced.out, plain.out);
    const Json report = BriefReport(TraceOf(traces.path(), "sandboxed"));
    EXPECT_THAT(Notes(report), HasSubstr("at the size limit")) << way;
    EXPECT_EQ(report.at("process").at("end"), "exit") << way;
  }
}

// The trace that a flight recorder leaves of the program; empty: it cannot do that here.
std::string RecordedFlight(const std::string& sandbox, const std::string& pairs,
                           const TempDir& traces) {
  const Words arguments = {TraceePath("sandboxed"), sandbox, pairs, traces.path()};
  const Result plain = RunCommand({.arguments = arguments});
  if (plain.exit_status == 77) return "";
  Command command = Traced({.arguments = arguments}, traces.path());
  command.environment.emplace_back("MEMTRACE_MAX_BYTES", "6M");
  command.environment.emplace_back("MEMTRACE_KEEP", "newest");
  const Result traced = RunCommand(command);
  EXPECT_EQ(traced.Outcome(), plain.Outcome());
  EXPECT_EQ(traced.out, plain.out);
  EXPECT_EQ(traced.err, plain.err);
  return TraceOf(traces.path(), "sandboxed");
}

// A flight recorder has no part that could be mapped before: it says what is missing.
TEST(SandboxedProgramTest, AFlightRecorderEndsAtAFilter) {
  const TempDir traces;
  const std::string trace = RecordedFlight("prctl", "20000", traces);
  if (trace.empty()) GTEST_SKIP() << "not open to this user on this machine";
  EXPECT_LE(std::filesystem::file_size(trace), 6u << 20);
  EXPECT_THAT(Notes(BriefReport(trace)),
              HasSubstr("entered a sandbox that left no way to write more"));
}

TEST(SandboxedProgramTest, AFlightRecorderCountsWhatItCannotWrite) {
  const TempDir traces;
  const std::string trace = RecordedFlight("chroot", "100000", traces);
  if (trace.empty()) GTEST_SKIP() << "not open to this user on this machine";
  const Json report = BriefReport(trace);
  EXPECT_THAT(Notes(report), HasSubstr("could not be written to the trace"));
  EXPECT_GT(report.at("coverage").at("dropped_events"), 0);
}

// As nginx does it: the master forks, and the worker gives up root first of all.
// The usual order of daemons that keep their memory from being swapped out. What the library maps
// must not count as locked then.
TEST(SandboxedProgramTest, MayLockItsMemoryBeforeItBecomesAnotherUser) {
  TempDir directory;
  WriteFile(directory / "program.c", R"(
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
int main(void) {
  const struct rlimit limit = {64 << 20, 64 << 20};
  if (setrlimit(RLIMIT_MEMLOCK, &limit) != 0 || mlockall(MCL_CURRENT | MCL_FUTURE) != 0) return 77;
  if (setgid(65534) != 0 || setuid(65534) != 0) return 77;
  for (int i = 0; i < 10; ++i) {
    char* const block = malloc(200000);
    if (block == NULL) return 1;
    block[0] = 1;
  }
  return 0;
}
)");
  const Result built = RunCommand({.arguments = {"gcc", directory / "program.c", "-o", directory / "program"}});
  ASSERT_EQ(built.Outcome(), "exit 0") << built.err;
  const Result plain = RunCommand({.arguments = {directory / "program"}});
  if (plain.exit_status == 77) GTEST_SKIP() << "not open to this user on this machine";
  TempDir traces;
  const Result run = RunCommand(Traced({.arguments = {directory / "program"}}, traces.path()));
  EXPECT_EQ(run.Outcome(), plain.Outcome()) << run.err;
}

TEST(SandboxedProgramTest, AWorkerThatBecomesAnotherUserBeforeItAllocates) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  TempDir traces;
  const Result run = RunCommand(
      Traced({.arguments = {TraceePath("sandboxed"), "worker", "100000"}}, traces.path()));
  ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
  pid_t worker = 0;
  std::istringstream lines(run.out);
  std::string told;
  lines >> worker >> std::ws;
  std::getline(lines, told);
  const Json report = Report(TraceOf(traces.path(), "sandboxed", worker), {"--top", "1000000"});
  ExpectWhole(report, told);
  EXPECT_THAT(Notes(report), HasSubstr("by setgid"));
}

// The follower of `memtrace run` sees a file that is mostly a hole, packs it, and removes it.
TEST(SandboxedProgramTest, MemtraceRunFollowsIt) {
  TempDir work;
  const std::string trace = work / "run.mtr";
  const Result run = RunCommand({.arguments = {ToolPath(), "run", "-o", trace, "--",
                                               TraceePath("sandboxed"), "prctl", "1000000"},
                                 .timeout_seconds = 60});
  ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
  ExpectWhole(Report(trace, {"--top", "1000000"}), run.out);
  struct stat info;
  ASSERT_EQ(stat(trace.c_str(), &info), 0);
  EXPECT_LT(info.st_size, 50 << 20);
  EXPECT_THAT(run.err, Not(HasSubstr("dropped")));
}

TEST(SandboxedProgramTest, ItsTraceCanBePacked) {
  TempDir traces;
  const Result run = RunCommand(
      Traced({.arguments = {TraceePath("sandboxed"), "prctl", "100000"}}, traces.path()));
  const std::string raw = TraceOf(traces.path(), "sandboxed"), packed = traces / "packed.mtr";
  const Result pack = RunCommand({.arguments = {ToolPath(), "pack", raw, "-o", packed}});
  ASSERT_EQ(pack.Outcome(), "exit 0") << pack.err;
  ExpectWhole(Report(packed, {"--top", "1000000"}), run.out);
  for (const char* part : {"totals", "leaks", "sites", "timeline"}) {
    EXPECT_EQ(Report(raw).at(part), Report(packed).at(part)) << part;
  }
}

}  // namespace
}  // namespace memtrace::e2e
