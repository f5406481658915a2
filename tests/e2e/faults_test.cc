// Page faults: each is in the report with whose memory it was, and the sums are those of
// getrusage and of perf. docs/faults.md.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <regex>
#include <set>
#include <sstream>

#include "tests/e2e/harness.h"

namespace memtrace::e2e {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr long kPages = 200;  // of each kind, in faults_of_each_kind

Command Under(Command command, const std::string& traces, const std::string& mode) {
  command.environment.push_back({"MEMTRACE_FAULTS", mode});
  return Traced(std::move(command), traces);
}

// What the events of this process may see here; "" where there are none, with the reason.
bool EventsAreThere(const Json& report) { return report.at("faults").at("source") == "perf"; }

#define NEED_EVENTS(report)                                                             \
  if (!EventsAreThere(report)) {                                                        \
    GTEST_SKIP() << "no fault events here: " << report.at("faults").at("why_not_perf"); \
  }

std::map<std::string, long> Said(const std::string& out) {
  std::map<std::string, long> said;
  std::istringstream lines(out);
  std::string name;
  for (long faults; lines >> name >> faults;) said[name] = faults;
  return said;
}

// Minor faults of blocks that were allocated in `function`.
long FaultsOfSite(const Json& report, const std::string& list, const std::string& function) {
  long minor = 0;
  for (const Json& site : report.at("faults").at(list)) {
    for (const Json& frame : site.at("stack")) {
      if (frame.value("function", "") != function) continue;
      minor += site.at("minor").get<long>();
      break;
    }
  }
  return minor;
}

long Minor(const Json& sums) { return sums.at("minor").get<long>(); }

long SumOf(const Json& rows) {
  long sum = 0;
  for (const Json& row : rows) sum += Minor(row) + row.at("major").get<long>();
  return sum;
}

// Everything that is said adds up to everything that was counted.
void ExpectAccountAddsUp(const Json& report) {
  const Json& faults = report.at("faults");
  const Json& account = faults.at("account");
  const long all = Minor(account.at("counted"));
  const long parts = Minor(account.at("before")) + Minor(account.at("seen")) +
                     account.at("lost").get<long>() + Minor(account.at("not_seen"));
  EXPECT_NEAR(static_cast<double>(parts), static_cast<double>(all), 0.01 * static_cast<double>(all));
  const long seen = Minor(account.at("seen")) + account.at("seen").at("major").get<long>();
  EXPECT_EQ(SumOf(faults.at("sites")) + SumOf(faults.at("mappings")) + SumOf(faults.at("places")),
            seen);
  long by_memory = 0;
  for (const auto& [name, sums] : faults.at("by_memory").items()) {
    by_memory += Minor(sums) + sums.at("major").get<long>();
  }
  EXPECT_EQ(by_memory, seen);
  EXPECT_EQ(SumOf(faults.at("touched_by")), seen);
}

// Of what was faulted in while events were open, all but 1 % is attributed.
void ExpectNearlyAllSeen(const Json& report) {
  const Json& account = report.at("faults").at("account");
  const double seen = static_cast<double>(Minor(account.at("seen")));
  const double missing = account.at("lost").get<double>() +
                         static_cast<double>(Minor(account.at("not_seen")));
  EXPECT_LE(missing, 0.01 * (seen + missing) + 25) << account;
}

TEST(FaultsTest, EachKindOfMemoryIsTold) {
  TempDir traces;
  const Result run = RunCommand(
      Under({.arguments = {TraceePath("faults_of_each_kind")}}, traces.path(), "auto"));
  ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
  EXPECT_EQ(run.err, "");
  const Json report = Report(TraceOf(traces.path(), "faults_of_each_kind", run.pid));
  NEED_EVENTS(report);
  const auto said = Said(run.out);
  EXPECT_EQ(said.at("again"), 0);
  ExpectAccountAddsUp(report);
  // What the program itself was told, but for its end.
  const long counted = Minor(report.at("faults").at("account").at("counted"));
  EXPECT_GE(counted, said.at("total"));
  EXPECT_LE(counted, said.at("total") + 400);
  // All of each, and no more than the allocator's own first touch besides.
  const long malloced = FaultsOfSite(report, "sites", "MallocOnce");
  EXPECT_GE(malloced, said.at("malloc") + said.at("after-madvise"));
  EXPECT_LE(malloced, said.at("malloc") + said.at("after-madvise") + 1);
  const long by_thread = FaultsOfSite(report, "sites", "MallocForThread");
  EXPECT_GE(by_thread, said.at("thread"));
  EXPECT_LE(by_thread, said.at("thread") + 1);
  // Its header. (A mapping of the library's that lay there before is the library's.)
  EXPECT_LE(FaultsOfSite(report, "sites", "CallocUntouched"), 1);
  EXPECT_EQ(FaultsOfSite(report, "mappings", "MapOnce"), said.at("mmap"));
  EXPECT_EQ(FaultsOfSite(report, "mappings", "MapShared"), said.at("shared"));
  const Json& memory = report.at("faults").at("by_memory");
  // Its first page may be there already: the end of .data is in it.
  EXPECT_GE(said.at("bss"), kPages - 1);
  EXPECT_GE(Minor(memory.at("bss")), said.at("bss"));
  EXPECT_LE(Minor(memory.at("bss")), said.at("bss") + 10) << "libc's";
  EXPECT_GE(Minor(memory.at("stack")), kPages - 40) << "what the start touched is there already";
  const long of_kernel = FaultsOfSite(report, "sites", "MallocForKernel");
  if (report.at("faults").at("with_kernel")) {
    EXPECT_GE(of_kernel, said.at("kernel"));
    EXPECT_LE(of_kernel, said.at("kernel") + 1);
    ExpectNearlyAllSeen(report);
  } else {
    EXPECT_GE(Minor(report.at("faults").at("account").at("not_seen")), said.at("kernel"));
  }
  for (const Json& site : report.at("faults").at("sites")) {
    if (site.at("stack").at(0).value("function", "") != "MallocOnce") continue;
    EXPECT_EQ(site.at("touched_by").at(0).at("function"), "Touch");
  }
  for (const Json& site : report.at("sites")) {
    if (site.at("stack").at(0).value("function", "") == "MallocOnce") {
      EXPECT_EQ(site.at("minor_faults").get<long>(), malloced);
    }
  }
}

TEST(FaultsTest, UserEventsLeaveTheKernelsOut) {
  TempDir traces;
  const Result run = RunCommand(
      Under({.arguments = {TraceePath("faults_of_each_kind")}}, traces.path(), "user"));
  ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
  const Json report = Report(TraceOf(traces.path(), "faults_of_each_kind", run.pid));
  NEED_EVENTS(report);
  EXPECT_FALSE(report.at("faults").at("with_kernel").get<bool>());
  ExpectAccountAddsUp(report);
  EXPECT_LE(FaultsOfSite(report, "sites", "MallocForKernel"), 1);
  EXPECT_GE(Minor(report.at("faults").at("account").at("not_seen")), Said(run.out).at("kernel"));
}

TEST(FaultsTest, OffIsTheDefaultOfTheLibraryAndOpensNothing) {
  TempDir traces;
  const Result run =
      RunCommand(Traced({.arguments = {TraceePath("faults_of_each_kind")}}, traces.path()));
  ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
  const Json report = Report(TraceOf(traces.path(), "faults_of_each_kind", run.pid));
  EXPECT_EQ(report.at("faults").at("source"), "getrusage");
  EXPECT_TRUE(report.at("faults").at("attributed_minor").is_null());
}

// A filter that refuses perf_event_open, and one that kills for it.
class RefusedFaultsTest : public ::testing::TestWithParam<std::pair<std::string, std::string>> {};

TEST_P(RefusedFaultsTest, TheProgramRunsAndTheReportSaysWhy) {
  TempDir traces;
  const Result run = RunCommand(Under({.arguments = {TraceePath("refuses_system_calls"),
                                                     "perf_event_open", GetParam().first,
                                                     TraceePath("faults_of_each_kind")}},
                                      traces.path(), "auto"));
  ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
  EXPECT_EQ(run.err, "");
  EXPECT_EQ(Said(run.out).at("again"), 0);
  const std::string trace = TraceOf(traces.path(), "faults_of_each_kind", run.pid);
  const Json faults = Report(trace).at("faults");
  EXPECT_EQ(faults.at("source"), "pagemap");
  EXPECT_THAT(faults.at("why_not_perf").get<std::string>(), HasSubstr(GetParam().second));
  EXPECT_THAT(ReportText(trace, {"--table", "faults"}), HasSubstr("perf_event_open"));
}

INSTANTIATE_TEST_SUITE_P(All, RefusedFaultsTest,
                         ::testing::Values(std::pair("1", "seccomp"), std::pair("13", "not permitted"),
                                           std::pair("38", "no perf events"),
                                           std::pair("0", "kills")));

TEST(FaultsTest, AKilledProcessSaysHowManyAreMissing) {
  TempDir traces;
  const Result run = RunCommand(
      Under({.arguments = {TraceePath("faults_of_each_kind"), "kill"}}, traces.path(), "auto"));
  ASSERT_EQ(run.Outcome(), "signal 9") << run.err;
  const Json report = Report(TraceOf(traces.path(), "faults_of_each_kind", run.pid));
  NEED_EVENTS(report);
  const Json& account = report.at("faults").at("account");
  // Seen, and told to be missing: with what the last usage sample counted.
  EXPECT_GE(Minor(account.at("seen")) + Minor(account.at("not_seen")), 5 * kPages) << account;
}

struct RealProgram {
  std::string name;
  Words arguments;
  std::string input;
};
std::ostream& operator<<(std::ostream& out, const RealProgram& program) {
  return out << program.name;
}

class RealFaultsTest : public ::testing::TestWithParam<RealProgram> {};

struct Traces {
  std::unique_ptr<TempDir> directory = std::make_unique<TempDir>();
  std::vector<std::string> files;
};

Traces RunUnder(const RealProgram& program, const std::string& mode) {
  TempDir work;
  Traces traces;
  WriteFile(work / "input", program.input);
  Command command{.arguments = program.arguments, .directory = work.path()};
  for (std::string& word : command.arguments) {
    if (word == "INPUT") word = work / "input";
  }
  if (command.arguments.back() == "-") {
    command.arguments.pop_back();
    command.input = work / "input";
  }
  command.environment.push_back({"PYTHONMALLOC", "malloc"});
  const Result run = RunCommand(Under(command, traces.directory->path(), mode));
  EXPECT_EQ(run.exit_status, 0) << run.err;
  traces.files = FilesIn(traces.directory->path(), ".mtr");
  return traces;
}

TEST_P(RealFaultsTest, AttributedAndExplainedAreAllThatWereCounted) {
  const Traces traced = RunUnder(GetParam(), "auto");
  ASSERT_FALSE(traced.files.empty());
  for (const std::string& file : traced.files) {
    SCOPED_TRACE(file);
    const Json report = Report(traced.directory->path() + "/" + file);
    NEED_EVENTS(report);
    ExpectAccountAddsUp(report);
    if (report.at("faults").at("with_kernel")) ExpectNearlyAllSeen(report);
    EXPECT_EQ(report.at("faults").at("account").at("lost"), 0);
  }
}

// From the heap to RSS, at each snapshot: what smaps_rollup said, and what the heap model has.
void ExpectBridgesAddUp(const Json& report) {
  for (const Json& bridge : report.at("resident")) {
    double sum = 0;
    for (const auto& [name, bytes] : bridge.at("parts").items()) sum += bytes.get<double>();
    const double rss = bridge.at("smaps_rollup_rss_bytes").get<double>();
    EXPECT_EQ(sum, bridge.at("rss_bytes").get<double>()) << bridge;
    EXPECT_NEAR(sum, rss, 0.02 * rss) << bridge;
    EXPECT_EQ(bridge.at("source"), "pagemap");
    // Requested bytes are resident, swapped out, or never touched.
    const double live = bridge.at("live_bytes").get<double>();
    const double known = bridge.at("parts").at("live").get<double>() +
                         bridge.at("untouched_bytes").get<double>() +
                         bridge.at("swap_bytes").get<double>();
    EXPECT_NEAR(known, live, 0.01 * live + 4096) << bridge;
  }
  // Between the last snapshot and the end nothing is allocated any more.
  if (report.at("resident").empty() || report.at("process").at("end") != "exit") return;
  const Json& end = report.at("resident").back();
  ASSERT_EQ(end.at("reason"), "end");
  const double live = report.at("totals").at("live_bytes").get<double>();
  EXPECT_NEAR(end.at("live_bytes").get<double>(), live, 0.01 * live + 4096);
}

TEST_P(RealFaultsTest, TheBridgeAddsUpToWhatTheKernelAndTheHeapSay) {
  const Traces traced = RunUnder(GetParam(), "snapshots");
  ASSERT_FALSE(traced.files.empty());
  for (const std::string& file : traced.files) {
    SCOPED_TRACE(file);
    const Json report = Report(traced.directory->path() + "/" + file);
    ASSERT_FALSE(report.at("resident").empty());
    ExpectBridgesAddUp(report);
  }
}

constexpr char kPython[] =
    "import json\n"
    "rows = [{'id': i, 'tags': ['a', str(i % 7)]} for i in range(6000)]\n"
    "assert json.loads(json.dumps(rows)) == rows\n";
constexpr char kSql[] =
    "CREATE TABLE t (id INTEGER PRIMARY KEY, word TEXT);\n"
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)\n"
    "  INSERT INTO t SELECT i, 'word ' || (i * 7919 % 1000) FROM n;\n"
    "CREATE INDEX by_word ON t (word);\n"
    "SELECT count(*) FROM t;\n";

INSTANTIATE_TEST_SUITE_P(
    All, RealFaultsTest,
    ::testing::Values(
        RealProgram{"python3", {"/usr/bin/python3", "-s", "-B", "INPUT"}, kPython},
        RealProgram{"sqlite3", {"sqlite3", "-batch", ":memory:", "-"}, kSql},
        RealProgram{"git", {"git", "hash-object", "INPUT"}, std::string(3 << 20, 'x')},
        RealProgram{"cc1plus", {"g++", "-x", "c++", "-O1", "-c", "-o", "out.o", "INPUT"},
                    "#include <map>\n#include <string>\nstd::map<std::string, int> m;\n"},
        RealProgram{"perl", {"perl", "-e", "my %h; $h{$_} = \"v$_\" for 1..30000; print scalar keys %h"}, ""},
        RealProgram{"bash", {"bash", "-c", "a=(); for i in {1..20000}; do a+=($i); done; echo ${#a[@]}"}, ""},
        RealProgram{"redis",
                    {"bash", "-c",
                     "redis-server --port 0 --unixsocket s --save '' > log & "
                     "for i in {1..200}; do [ -S s ] && break; sleep 0.05; done; "
                     "redis-cli -s s eval \"for i=1,20000 do redis.call('set','k'..i,"
                     "string.rep('x',100)) end\" 0; redis-cli -s s shutdown nosave; wait"},
                    ""}),
    [](const auto& info) { return info.param.name; });

// A memory cgroup of our own, where this machine lets us make one.
class SmallCgroup {
 public:
  explicit SmallCgroup(uint64_t bytes) {
    std::istringstream lines(ReadFile("/proc/self/cgroup"));
    for (std::string line; std::getline(lines, line);) {
      const bool v1 = line.find(":memory:") != std::string::npos;
      if (!v1 && line.rfind("0::", 0) != 0) continue;
      const std::string root = v1 ? "/sys/fs/cgroup/memory" : "/sys/fs/cgroup";
      const std::string path = root + line.substr(line.rfind(':') + 1) + "/memtrace_faults_test_" +
                               std::to_string(getpid());
      if (mkdir(path.c_str(), 0755) != 0) continue;
      path_ = path;
      const std::string limit = path + (v1 ? "/memory.limit_in_bytes" : "/memory.max");
      if (Write(limit, std::to_string(bytes))) return;
      rmdir(path.c_str());
      path_.clear();
    }
  }
  ~SmallCgroup() {
    if (!path_.empty()) rmdir(path_.c_str());
  }
  bool ok() const { return !path_.empty(); }
  std::string procs() const { return path_ + "/cgroup.procs"; }

 private:
  static bool Write(const std::string& file, const std::string& text) {
    FILE* const out = fopen(file.c_str(), "w");
    if (out == nullptr) return false;
    const bool written = fputs(text.c_str(), out) >= 0;
    return fclose(out) == 0 && written;
  }
  std::string path_;
};

TEST(FaultsTest, ThrashingIsShownWhereItHappens) {
  const SmallCgroup cgroup(24 << 20);
  if (!cgroup.ok()) GTEST_SKIP() << "no memory cgroup can be made here";
  TempDir work, traces;
  const std::string program = TraceePath("thrashes") + " " + work.path() + "/file 40 3";
  Command command = Under({.arguments = {"bash", "-c",
                                         "echo $$ > " + cgroup.procs() + " && exec " + program}},
                          traces.path(), "auto");
  const Result run = RunCommand(command);
  ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
  const std::string trace = TraceOf(traces.path(), "thrashes");
  const Json report = Report(trace);
  NEED_EVENTS(report);
  const Json& faults = report.at("faults");
  if (faults.at("major") < 1000) GTEST_SKIP() << "the disk is memory here: " << faults.at("major");
  EXPECT_GT(faults.at("refaults"), 1000);
  ASSERT_FALSE(faults.at("thrash").empty());
  EXPECT_GT(faults.at("thrash").at(0).at("refaults"), 20);
  EXPECT_THAT(ReportText(trace, {"--table", "faults"}), HasSubstr("Thrash"));
}

// The list is freed by the interpreter's end: then its pages are the allocator's. It waits for
// the thread that samples, which comes late where others are at work.
TEST(FaultsTest, ABlockIsInTheBridgeForAsLongAsItLives) {
  TempDir traces;
  const Result run = RunCommand(
      Under({.arguments = {"perl", "-e",
                           "my @a = map { 'x' x 2000 } 1..20000; print scalar @a; sleep 3"}},
            traces.path(), "snapshots"));
  ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
  const Json report = Report(TraceOf(traces.path(), "perl", run.pid));
  ExpectBridgesAddUp(report);
  constexpr long kListed = 2000 * 20000;
  long most = 0;
  for (const Json& bridge : report.at("resident")) {
    most = std::max(most, bridge.at("live_bytes").get<long>());
  }
  // A snapshot comes when the resident memory has grown by half.
  EXPECT_GE(most, kListed * 6 / 10);
  const Json& end = report.at("resident").back();
  EXPECT_LE(end.at("live_bytes").get<long>(), kListed / 10);
  EXPECT_GE(end.at("parts").at("retained").get<long>(), kListed * 9 / 10);
}

// The kernel tells what a full ring lacks with the next fault on its processor, which never comes.
TEST(FaultsTest, WhatAFullRingLacksIsLostWhereverTheThreadGoes) {
  TempDir traces;
  const Result run = RunCommand(
      Under({.arguments = {TraceePath("fills_a_fault_ring")}}, traces.path(), "auto"));
  if (run.Outcome() == "exit 77") GTEST_SKIP() << "there is one processor";
  ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
  const Json report = Report(TraceOf(traces.path(), "fills_a_fault_ring", run.pid));
  NEED_EVENTS(report);
  const Json& account = report.at("faults").at("account");
  const long pages = (64 << 20) / report.at("process").at("page_bytes").get<long>();
  EXPECT_GE(account.at("lost").get<long>() + Minor(account.at("seen")), pages);
  EXPECT_LE(Minor(account.at("not_seen")), pages / 50) << account;
  ExpectAccountAddsUp(report);
  EXPECT_THAT(ReportText(TraceOf(traces.path(), "fills_a_fault_ring", run.pid)),
              Not(HasSubstr("none in the")));
}

// What a program has filled and then sealed is as resident as before.
TEST(FaultsTest, ASealedBlockIsInTheBridge) {
  TempDir traces;
  const Result run = RunCommand(
      Under({.arguments = {"/usr/bin/python3", "-c",
                           "import ctypes\n"
                           "c, size = ctypes.CDLL(None), 32 << 20\n"
                           "c.aligned_alloc.restype = ctypes.c_void_p\n"
                           "block = ctypes.c_void_p(c.aligned_alloc(4096, size))\n"
                           "ctypes.memset(block, 1, size)\n"
                           "assert c.mprotect(block, size, 1) == 0"}},
            traces.path(), "snapshots"));
  if (run.Outcome() == "exit 127") GTEST_SKIP() << "there is no python3";
  ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
  const Json report = Report(TraceOf(traces.path(), ProgramName("/usr/bin/python3"), run.pid));
  ExpectBridgesAddUp(report);
  const Json& end = report.at("resident").back();
  EXPECT_GE(end.at("parts").at("live").get<long>(), 32 << 20);
  EXPECT_LE(end.at("untouched_bytes").get<long>(), 4 << 20);
}

// What a fork child has from its parent is the parent's: each child of a gigabyte took half a second.
TEST(FaultsTest, AForkChildHasASnapshotOfWhatItTouched) {
  TempDir traces;
  const Result run = RunCommand(
      Under({.arguments = {"perl", "-e",
                           "my $x = 'a' x (64 << 20); "
                           "if (!fork) { exit 0 } wait; "
                           "if (!fork) { my $y = 'b' x (64 << 20); exit 0 } wait; print $$"}},
            traces.path(), "snapshots"));
  ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
  std::multiset<std::string> snapshots;  // of each process, in order
  for (const auto& file : std::filesystem::directory_iterator(traces.path())) {
    const Json report = Report(file.path());
    std::string reasons = report.at("process").at("pid") == std::stoi(run.out) ? "parent" : "child";
    for (const Json& snapshot : report.at("resident")) reasons += " " + snapshot.at("reason").get<std::string>();
    snapshots.insert(reasons);
  }
  EXPECT_EQ(snapshots.size(), 3u);
  EXPECT_EQ(snapshots.count("child"), 1u) << testing::PrintToString(snapshots);
  for (const std::string& each : snapshots) {
    EXPECT_TRUE(each == "child" || each.ends_with(" end")) << each;
  }
}

TEST(FaultsTest, RingsAndPicturesShowWhatIsResident) {
  TempDir traces;
  const Result run = RunCommand(
      Under({.arguments = {ExamplePath("first_touch")}}, traces.path(), "snapshots"));
  ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
  const std::string trace = TraceOf(traces.path(), "first_touch", run.pid);
  const Json report = Report(trace);
  const auto sum_of = [](const Json& sites) {
    long sum = 0;
    for (const Json& site : sites) sum += site.at("resident_bytes").get<long>();
    return sum;
  };
  const long at_end = sum_of(report.at("resident").back().at("sites"));
  ASSERT_GE(at_end, 1 << 20);
  long at_peak = 0;
  for (const Json& bridge : report.at("resident")) {
    if (bridge.at("peak").get<bool>()) at_peak = sum_of(bridge.at("sites"));
  }
  const Result rings = RunCommand({.arguments = {ToolPath(), "rings", trace, "--measure", "resident",
                                                 "--no-static", "--format", "json"}});
  ASSERT_EQ(rings.Outcome(), "exit 0") << rings.err;
  const Json tree = Json::parse(rings.out).at("tree");
  EXPECT_EQ(tree.at("resident_bytes"), at_end);
  EXPECT_EQ(tree.at("resident_bytes_at_peak"), at_peak);
  const Result folded = RunCommand({.arguments = {ToolPath(), "report", trace, "--format", "folded",
                                                  "--measure", "resident"}});
  ASSERT_EQ(folded.Outcome(), "exit 0") << folded.err;
  std::istringstream lines(folded.out);
  long of_lines = 0;
  for (std::string line; std::getline(lines, line);) {
    of_lines += std::stol(line.substr(line.rfind(' ')));
  }
  EXPECT_EQ(of_lines, at_end);
  const Result part = RunCommand({.arguments = {ToolPath(), "rings", trace, "--measure", "resident",
                                                "--from", "50%"}});
  EXPECT_EQ(part.exit_status, 2);
  EXPECT_THAT(part.err, HasSubstr("--measure resident: which pages are resident is known of all"));
}

TEST(FaultsTest, PagesShowsASnapshotOfATraceInEveryFormat) {
  TempDir traces;
  const Result run = RunCommand(
      Under({.arguments = {TraceePath("faults_of_each_kind")}}, traces.path(), "snapshots"));
  ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
  const std::string trace = TraceOf(traces.path(), "faults_of_each_kind", run.pid);
  const auto pages = [&trace](Words options) {
    Words words = {ToolPath(), "pages", trace};
    words.insert(words.end(), options.begin(), options.end());
    return RunCommand({.arguments = words});
  };
  const Json snapshot = Report(trace).at("resident").back();
  const Result json = pages({"--format", "json"});
  ASSERT_EQ(json.Outcome(), "exit 0") << json.err;
  const Json process = Json::parse(json.out).at("processes").at(0);
  EXPECT_EQ(process.at("pid"), run.pid);
  EXPECT_EQ(process.at("figures").at("rss_bytes"), snapshot.at("rss_bytes"));
  bool bss = false;
  for (const Json& mapping : process.at("mappings")) {
    if (mapping.at("region") != "bss" || mapping.at("figures").at("rss_bytes") < (kPages - 2) * 4096) {
      continue;
    }
    bss = true;
    EXPECT_TRUE(mapping.at("pages_known").get<bool>());
    EXPECT_THAT(mapping.at("page_map").at("characters").get<std::string>(),
                HasSubstr(std::string(40, 'a')));
  }
  EXPECT_TRUE(bss) << "its 200 pages";
  const std::string number = std::to_string(snapshot.at("number").get<int>());
  EXPECT_THAT(pages({"--maps", "--width", "120"}).out, HasSubstr("snapshot " + number + ", at its end"));
  EXPECT_THAT(pages({"--format", "csv"}).out, HasSubstr("bss"));
  EXPECT_THAT(pages({"--format", "svg"}).out, HasSubstr("<svg"));
  EXPECT_THAT(pages({"--format", "raw"}).out, HasSubstr(" a bss\n"));
  EXPECT_EQ(pages({"--snapshot", number}).exit_status, 0);
  const Result none = pages({"--snapshot", "99"});
  EXPECT_EQ(none.exit_status, 2);
  EXPECT_THAT(none.err, HasSubstr("has no complete snapshot 99; it has "));
}

// perf record of the same run: every fault of ours is one of its, at the same address.
class PerfFaultsTest : public ::testing::TestWithParam<RealProgram> {};

TEST_P(PerfFaultsTest, PerfSawTheSameFaults) {
  TempDir work, traces;
  WriteFile(work / "input", GetParam().input);
  Words program = GetParam().arguments;
  for (std::string& word : program) {
    if (word == "INPUT") word = work / "input";
    if (word == "TRACEE") word = TraceePath("faults_of_each_kind");
  }
  Command inner = Under({.arguments = program,
                         // The copy that is scanned for leaks has faults of its own.
                         .environment = {{"PYTHONMALLOC", "malloc"}, {"MEMTRACE_LEAK_CHECK", "off"}}},
                        traces.path(), "auto");
  Words words = {"perf", "record", "-q", "-e", "page-faults", "-c", "1", "-d", "-m", "4M",
                 "-o", work / "perf.data", "--", "env"};
  for (const auto& [name, value] : inner.environment) words.push_back(name + "=" + value);
  words.insert(words.end(), inner.arguments.begin(), inner.arguments.end());
  const Result perf = RunCommand({.arguments = words, .directory = work.path()});
  if (perf.exit_status != 0) GTEST_SKIP() << "perf may not run here: " << perf.err;
  const std::vector<std::string> files = FilesIn(traces.path(), ".mtr");
  ASSERT_EQ(files.size(), 1u);
  NEED_EVENTS(Report(traces / files[0]));
  const Result script = RunCommand({.arguments = {"perf", "script", "-i", work / "perf.data",
                                                  "-F", "comm,addr,ip"}});
  if (script.exit_status != 0) GTEST_SKIP() << "perf script: " << script.err;
  std::multiset<uint64_t> theirs;
  std::istringstream lines(script.out);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string word;
    // The first number of the line is the address.
    static const std::regex kHex("[0-9a-f]+:?");
    if (!(fields >> word) || word.rfind(GetParam().name, 0) != 0) continue;  // perf's and env's own
    while (fields >> word) {
      if (!std::regex_match(word, kHex) || word.size() < 5) continue;
      theirs.insert(std::strtoull(word.c_str(), nullptr, 16));
      break;
    }
  }
  const size_t fewest = GetParam().name == "python3" ? 1000 : 100;
  ASSERT_GT(theirs.size(), fewest) << script.out.substr(0, 500);
  const Result dump = RunCommand({.arguments = {ToolPath(), "dump", traces / files[0]}});
  size_t ours = 0, found = 0;
  std::istringstream events(dump.out);
  for (std::string line; std::getline(events, line);) {
    const size_t at = line.find(" fault 0x");
    if (at == std::string::npos) continue;
    ++ours;
    const auto same = theirs.find(std::strtoull(line.c_str() + at + 7, nullptr, 16));
    if (same == theirs.end()) continue;
    ++found;
    theirs.erase(same);
  }
  EXPECT_GT(ours, fewest);
  EXPECT_GE(static_cast<double>(found), 0.99 * static_cast<double>(ours));
  // What perf has besides: the start, before the library looked.
  const Json account = Report(traces / files[0]).at("faults").at("account");
  EXPECT_LE(static_cast<double>(theirs.size()),
            static_cast<double>(Minor(account.at("before"))) +
                0.01 * static_cast<double>(ours) + 300)
      << account;
}

INSTANTIATE_TEST_SUITE_P(
    All, PerfFaultsTest,
    ::testing::Values(
        RealProgram{"python3", {"/usr/bin/python3", "-s", "-B", "INPUT"}, kPython},
        RealProgram{"sqlite3", {"sqlite3", "-batch", ":memory:", ".read input"}, kSql},
        RealProgram{"git", {"git", "hash-object", "INPUT"}, std::string(3 << 20, 'x')},
        RealProgram{"perl", {"perl", "-e", "my %h; $h{$_} = \"v$_\" for 1..30000; print scalar keys %h"}, ""},
        // With a second thread; the name is cut as the kernel does.
        RealProgram{"faults_of_each_", {"TRACEE"}, ""}),
    [](const auto& info) { return info.param.name.front() == 'f' ? "threads" : info.param.name; });

}  // namespace
}  // namespace memtrace::e2e
