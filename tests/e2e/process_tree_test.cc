// Trees of processes: a trace for each process image and none written over, every event of
// each in it, parent and child linked, and the report of all of them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/e2e/harness.h"
#include "tests/e2e/real_programs.h"

namespace memtrace::e2e {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

Json TreeOf(const std::string& directory, const Words& more = {}) {
  Words words = {"--format", "json"};
  words.insert(words.end(), more.begin(), more.end());
  return Json::parse(ReportText(directory, words));
}

// The image that began the process of images[i].
size_t FirstImage(const Json& images, size_t i) {
  while (images[i].at("link") == "exec") i = images[i].at("parent");
  return i;
}

// The pid of the process above that of images[i]; 0: it has none.
int ParentPid(const Json& images, size_t i) {
  const Json& parent = images[FirstImage(images, i)].at("parent");
  return parent.is_null() ? 0 : images[parent.get<size_t>()].at("pid").get<int>();
}

// What tests/tracees/process_kinds.c says of itself.
struct Told {
  std::string label;
  int pid = 0, parent = 0;
};
std::vector<Told> ImagesTold(const std::string& out) {
  std::vector<Told> told;
  std::istringstream lines(out);
  for (std::string what, label, pid, parent; lines >> what >> label >> pid >> parent;) {
    if (what == "image") told.push_back({label, std::stoi(pid), std::stoi(parent)});
  }
  return told;
}

// "child PID NUMBER" lines.
std::multiset<std::pair<int, int>> ChildrenTold(const std::string& out) {
  std::multiset<std::pair<int, int>> told;
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) {
    int pid = 0, number = 0;
    if (sscanf(line.c_str(), "child %d %d", &pid, &number) == 2) told.emplace(pid, number);
  }
  return told;
}

class ProcessKindTest : public ::testing::TestWithParam<std::string> {};

TEST_P(ProcessKindTest, HasATraceForEachImageWithItsParent) {
  Words arguments = {TraceePath("process_kinds"), GetParam()};
  if (GetParam() == "exec_chain") arguments.push_back("4");
  Evidence evidence;
  const Result result = RunCommand(TracedAndCounted(
      {.arguments = arguments}, evidence.traces.path(), evidence.counts.path()));
  ASSERT_EQ(result.Outcome(), "exit 0") << result.err;
  EXPECT_EQ(result.err, "");
  // The shim learns of a child by pthread_atfork(), and of this one not at all.
  // When a thread executes another program, the others are ended wherever they are.
  if (GetParam() != "raw_fork") ExpectTracesEqualCounts(evidence, GetParam() == "thread_exec");

  const std::vector<Told> told = ImagesTold(result.out);
  const Json tree = TreeOf(evidence.traces.path());
  const Json& images = tree.at("processes");
  EXPECT_EQ(tree.at("coverage").at("dropped_events"), 0);
  std::multiset<int> told_pids, traced_pids;
  std::map<int, int> parents;
  for (const Told& one : told) {
    told_pids.insert(one.pid);
    parents[one.pid] = one.parent;
  }
  for (const Json& image : images) traced_pids.insert(image.at("pid").get<int>());
  EXPECT_EQ(traced_pids, told_pids) << result.out;

  const int root = told.front().pid;
  for (size_t i = 0; i < images.size(); ++i) {
    const int pid = images[i].at("pid");
    EXPECT_EQ(ParentPid(images, i), pid == root ? 0 : parents[pid]) << images[i].dump(1);
    // What comes after another image of the process is linked to it, in order.
    const Json& before = images[i].at("parent");
    if (images[i].at("link") == "exec") {
      EXPECT_EQ(images[before.get<size_t>()].at("pid"), pid);
      EXPECT_EQ(images[before.get<size_t>()].at("end"), "exec");
    }
    EXPECT_NE(images[i].at("end"), "cut") << images[i].dump(1);
    if (GetParam() == "raw_fork") {
      EXPECT_EQ(images[i].at("totals").at("allocations"), pid == root ? 12000 : 6000);
    }
  }
  std::set<int> processes(traced_pids.begin(), traced_pids.end());
  EXPECT_EQ(tree.at("totals").at("processes"), processes.size());
}

INSTANTIATE_TEST_SUITE_P(Kinds, ProcessKindTest,
                         ::testing::Values("fork", "raw_fork", "fork_exec", "vfork_exec",
                                           "vfork_alone", "spawn", "clone_vm", "double_fork",
                                           "daemon", "session", "exec_chain", "thread_exec",
                                           "empty_environment"),
                         [](const auto& info) { return info.param; });

// Their pids are 1, 2 and 3 there, which are init and threads of the kernel here.
TEST(ProcessTreeTest, ProcessesOfAnotherPidNamespaceArePackedWhenTheyEnd) {
  const Words namespaces = {"unshare", "--user", "--map-root-user", "--pid", "--fork"};
  Words probe = namespaces;
  probe.push_back("true");
  if (RunCommand({.arguments = probe}).Outcome() != "exit 0") GTEST_SKIP() << "no namespaces here";
  TempDir traces;
  Words arguments = {ToolPath(), "run", "--library", LibraryPath(), "-o", traces / "t.mtr", "--"};
  arguments.insert(arguments.end(), namespaces.begin(), namespaces.end());
  for (const char* word : {"/bin/sh", "-c", "ls / | wc -l"}) arguments.emplace_back(word);
  const Result run = RunCommand({.arguments = arguments});
  EXPECT_EQ(run.Outcome(), "exit 0");
  EXPECT_THAT(run.err, Not(HasSubstr("still running")));
  std::vector<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(traces.path())) {
    if (entry.path().extension() != ".mtr") left.push_back(entry.path());
  }
  EXPECT_THAT(left, IsEmpty()) << "a spool directory";
  EXPECT_EQ(Report(traces / "t.ls.2.mtr").at("process").at("end"), "exit");
}

// What its parent has mapped it cannot see; that it is one of the tree it must not forget.
TEST(ProcessTreeTest, AChildThatBecameAnotherUserSaysNothing) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  TempDir traces;
  // The other user may not come to where this was built.
  const std::string library = traces / "libmemtrace.so";
  std::filesystem::permissions(traces.path(), std::filesystem::perms(0755));
  std::filesystem::copy_file(LibraryPath(), library);
  Command command = Traced(
      {.arguments = {"/bin/bash", "-c", "setpriv --reuid=65534 --clear-groups id -u; true"}}, traces.path());
  for (auto& [name, value] : command.environment) {
    if (name == "LD_PRELOAD") value = library;
  }
  const Result run = RunCommand(command);
  EXPECT_EQ(run.Outcome(), "exit 0");
  EXPECT_FALSE(FilesIn(traces.path(), ".mtr").empty()) << "its parent is traced";
  EXPECT_EQ(run.out, "65534\n");
  EXPECT_EQ(run.err, "");
}

TEST(ProcessTreeTest, ChildrenAreLeftAloneWhenAsked) {
  for (const char* kind : {"fork", "fork_exec", "spawn", "daemon", "double_fork"}) {
    TempDir traces;
    Command command = Traced({.arguments = {TraceePath("process_kinds"), kind}}, traces.path());
    command.environment.emplace_back("MEMTRACE_CHILDREN", "off");
    const Result result = RunCommand(command);
    EXPECT_EQ(result.Outcome(), "exit 0") << kind;
    EXPECT_THAT(FilesIn(traces.path(), ".mtr"), SizeIs(1)) << kind;
  }
}

void ExpectStormTraced(int children, const std::string& at_once, int timeout_seconds) {
  TempDir traces;
  const Result result = RunCommand(
      Traced({.arguments = {TraceePath("fork_storm"), std::to_string(children), at_once},
              .timeout_seconds = timeout_seconds},
             traces.path()));
  ASSERT_EQ(result.Outcome(), "exit 0") << result.err;
  const auto told = ChildrenTold(result.out);
  ASSERT_EQ(told.size(), static_cast<size_t>(children));
  const Json tree = TreeOf(traces.path());
  const Json& images = tree.at("processes");
  ASSERT_EQ(images.size(), static_cast<size_t>(children) + 1) << "a trace was written over";
  std::multiset<std::pair<int, int>> traced;
  size_t roots = 0, with_parent = 0;
  for (const Json& image : images) {
    EXPECT_EQ(image.at("dropped_events"), 0);
    EXPECT_EQ(image.at("end"), "exit");
    if (image.at("parent").is_null()) {
      ++roots;
      EXPECT_EQ(image.at("pid"), result.pid);
      continue;
    }
    traced.emplace(image.at("pid").get<int>(), image.at("totals").at("allocations").get<int>());
    with_parent += image.at("link") == "fork" &&
                   images[image.at("parent").get<size_t>()].at("pid") == result.pid;
  }
  EXPECT_EQ(roots, 1u);
  EXPECT_EQ(with_parent, static_cast<size_t>(children));
  EXPECT_EQ(traced, told) << "each child's allocations";

  // Merged: one executable; the blocks that each child leaves, from one place.
  ASSERT_THAT(tree.at("executables"), SizeIs(1));
  const Json& executable = tree.at("executables")[0];
  EXPECT_EQ(executable.at("traces"), children + 1);
  ASSERT_FALSE(executable.at("leaks").empty());
  EXPECT_EQ(executable.at("leaks")[0].at("traces"), children);
  int left = 0, allocated = 0;
  for (int i = 0; i < children; ++i) {
    for (int k = 0; k < 20 + i % 40; ++k, ++allocated) left += k % 4 == 0;
  }
  EXPECT_EQ(executable.at("leaks")[0].at("blocks"), left);
  EXPECT_EQ(executable.at("totals").at("allocations").get<int>(), allocated + 1)
      << "and the parent's one";

  const std::string text = ReportText(traces.path());
  EXPECT_THAT(text, HasSubstr(std::to_string(children - 10).size() > 3
                                  ? "9,990 more like fork_storm"
                                  : std::to_string(children - 10) + " more like fork_storm"));
  EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 80);
}

TEST(ProcessTreeTest, AForkStormHasEveryEventOfEveryChild) { ExpectStormTraced(500, "32", 120); }

TEST(ProcessTreeTest, DISABLED_AForkStormOfTenThousand) { ExpectStormTraced(10'000, "64", 900); }

TEST(ProcessTreeTest, ForksAmongThreadsThatRecordAtFullSpeed) {
  Evidence evidence;
  const Result result = RunCommand(TracedAndCounted(
      {.arguments = {TraceePath("fork_among_busy_threads"), "24", "3"}, .timeout_seconds = 300},
      evidence.traces.path(), evidence.counts.path()));
  ASSERT_EQ(result.Outcome(), "exit 0") << result.out << result.err;
  const auto told = ChildrenTold(result.out);
  EXPECT_EQ(told.size(), 24u);
  ExpectTracesEqualCounts(evidence);
  const Json tree = TreeOf(evidence.traces.path());
  EXPECT_EQ(tree.at("processes").size(), told.size() + 1);
  for (const Json& image : tree.at("processes")) {
    EXPECT_EQ(image.at("dropped_events"), 0);
    if (image.at("pid") == result.pid) continue;
    EXPECT_EQ(image.at("link"), "fork");
    EXPECT_GE(image.at("totals").at("allocations"), 12000);
  }
}

// In a third of them the child returns from the handler into the midst of the tracer.
TEST(ProcessTreeTest, ForksInAHandlerThatInterruptedTheTracer) {
  TempDir traces;
  const Result result = RunCommand(Traced(
      {.arguments = {TraceePath("fork_in_signal_handler"), "90"}, .timeout_seconds = 300},
      traces.path()));
  ASSERT_EQ(result.Outcome(), "exit 0") << result.out << result.err;
  EXPECT_EQ(result.out, "children 90\n");
  const Json tree = TreeOf(traces.path());
  const Json& images = tree.at("processes");
  EXPECT_EQ(images.size(), 1u + 30 + 2 * 30 + 30) << "the executing ones have two images";
  int went_on = 0;
  for (size_t i = 0; i < images.size(); ++i) {
    EXPECT_EQ(images[i].at("dropped_events"), 0);
    EXPECT_FALSE(images[i].at("truncated")) << images[i].dump(1);
    if (images[i].at("pid") == result.pid) continue;
    EXPECT_EQ(ParentPid(images, i), result.pid);
    went_on += images[i].at("totals").at("allocations") >= 10000;
  }
  EXPECT_EQ(went_on, 30);
}

// --- The report of a directory ------------------------------------------------

class TreeReportTest : public ::testing::Test {
 protected:
  void Trace(const std::string& kind) {
    const Result result = RunCommand(
        Traced({.arguments = {TraceePath("process_kinds"), kind}}, traces_.path()));
    ASSERT_EQ(result.Outcome(), "exit 0") << result.err;
  }
  Result Report(const Words& more = {}) {
    Words words = {ToolPath(), "report", traces_.path()};
    words.insert(words.end(), more.begin(), more.end());
    return RunCommand({.arguments = words});
  }

  TempDir traces_;
};

TEST_F(TreeReportTest, ShowsTheTreeInAnyWidth) {
  Trace("double_fork");
  Trace("fork_exec");
  for (const size_t width : {size_t{80}, size_t{200}}) {
    const Result result = Report({"--width", std::to_string(width)});
    ASSERT_EQ(result.Outcome(), "exit 0") << result.err;
    std::istringstream lines(result.out);
    for (std::string line; std::getline(lines, line);) {
      const auto columns = std::count_if(line.begin(), line.end(),
                                         [](char c) { return (c & 0xc0) != 0x80; });
      EXPECT_LE(static_cast<size_t>(columns), width) << line;
    }
    EXPECT_THAT(result.out, HasSubstr("PROCESSES  5"));
    EXPECT_THAT(result.out, ContainsRegex("\n[^\n]* process_kinds [0-9]+"));
    EXPECT_THAT(result.out, HasSubstr("\u2514\u2500 process_kinds")) << "below its parent";
    EXPECT_THAT(result.out, HasSubstr("\u21d2 process_kinds")) << "the next image";
    EXPECT_THAT(result.out, HasSubstr("EXECUTABLES"));
    EXPECT_THAT(result.out, HasSubstr("Work  "));
    EXPECT_THAT(result.out, HasSubstr("in 2 of 6 traces"));
  }
}

TEST_F(TreeReportTest, ReadsRawAndPackedTracesAndSeveralFiles) {
  Trace("fork");
  const Json raw = TreeOf(traces_.path());
  TempDir packed;
  Words words = {ToolPath(), "report"};
  for (const std::string& file : FilesIn(traces_.path(), ".mtr")) {
    ASSERT_EQ(RunCommand({.arguments = {ToolPath(), "pack", traces_ / file, "-o",
                                        packed / (file + ".packed")}})
                  .Outcome(),
              "exit 0");
    words.push_back(packed / (file + ".packed"));  // found by how it begins
  }
  const Json from_packed = TreeOf(packed.path());
  EXPECT_EQ(from_packed.at("totals"), raw.at("totals"));
  EXPECT_EQ(from_packed.at("executables")[0].at("leaks"), raw.at("executables")[0].at("leaks"));
  words.insert(words.end(), {"--format", "json"});
  const Result files = RunCommand({.arguments = words});
  ASSERT_EQ(files.Outcome(), "exit 0") << files.err;
  EXPECT_EQ(Json::parse(files.out).at("totals"), raw.at("totals"));
  // The sums are those of the reports of each.
  uint64_t allocations = 0, live = 0;
  for (const std::string& file : FilesIn(traces_.path(), ".mtr")) {
    const Json one = BriefReport(traces_ / file);
    allocations += one.at("totals").at("allocations").get<uint64_t>();
    live += one.at("totals").at("live_bytes").get<uint64_t>();
  }
  EXPECT_EQ(raw.at("totals").at("allocations"), allocations);
  EXPECT_EQ(raw.at("totals").at("live_bytes"), live);
}

TEST_F(TreeReportTest, SkipsWhatIsNoTraceAndSaysSo) {
  Trace("fork");
  const std::string good = traces_ / FilesIn(traces_.path(), ".mtr").front();
  const size_t whole = TreeOf(traces_.path()).at("processes").size();
  WriteFile(traces_ / "README.txt", "not meant as a trace\n");
  ASSERT_EQ(mkfifo((traces_ / "pipe").c_str(), 0600), 0);
  ASSERT_EQ(Report().Outcome(), "exit 0");

  WriteFile(traces_ / "foreign.mtr", "This is a shopping list.\n");
  WriteFile(traces_ / "empty.mtr", "");
  WriteFile(traces_ / "twice.mtr", ReadFile(good));
  WriteFile(traces_ / "evil\x1b[31m.mtr", "not this either");
  ASSERT_EQ(mkfifo((traces_ / "pipe.mtr").c_str(), 0600), 0);
  const Result result = Report({"--format", "json"});
  EXPECT_EQ(result.Outcome(), "exit 2");
  for (const char* name : {"foreign.mtr: ", "empty.mtr: ", "evil\\x1b[31m.mtr: ", "pipe.mtr: "}) {
    EXPECT_THAT(result.err, HasSubstr(name));
  }
  EXPECT_THAT(result.err, HasSubstr("the same trace as"));
  EXPECT_THAT(result.err, Not(HasSubstr("README")));
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 5) << result.err;
  const Json tree = Json::parse(result.out);
  EXPECT_EQ(tree.at("processes").size(), whole);
  EXPECT_THAT(tree.at("coverage").at("skipped"), SizeIs(5));

  // Cut: what is there is reported, and the report says that not all is.
  WriteFile(good, ReadFile(good).substr(0, ReadFile(good).size() * 2 / 3));
  const Result cut = Report();
  EXPECT_EQ(cut.Outcome(), "exit 2") << "the others are still there";
  EXPECT_THAT(cut.out, HasSubstr("5 files skipped"));
}

TEST_F(TreeReportTest, RefusesWhatHasNoTraceOrMakesNoSense) {
  const auto refused = [this](const Words& more) {
    const Result result = Report(more);
    EXPECT_EQ(result.Outcome(), "exit 2");
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    return result.err;
  };
  EXPECT_THAT(refused({}), HasSubstr("without a trace in it"));
  WriteFile(traces_ / "only.mtr", "nothing");
  EXPECT_THAT(refused({}), HasSubstr("no trace could be read"));
  std::filesystem::remove(traces_ / "only.mtr");
  Trace("fork");
  EXPECT_THAT(refused({"--from", "1"}), HasSubstr("--from"));
  EXPECT_THAT(refused({"--thread", "main"}), HasSubstr("--thread"));
  EXPECT_THAT(refused({"--format", "mtrace"}), HasSubstr("mtrace"));
  EXPECT_THAT(refused({"--table", "growth"}), HasSubstr("processes"));
  EXPECT_THAT(refused({"--executable", "nobody"}), HasSubstr("process_kinds"));
  // Tables of whole processes, which these would leave as they are.
  EXPECT_THAT(refused({"--format", "csv", "--match", "x"}), HasSubstr("--match: the table processes"));
  EXPECT_THAT(refused({"--format", "csv", "--executable", "process_kinds"}), HasSubstr("--executable: "));
  EXPECT_THAT(refused({"--format", "csv", "--table", "executables", "--function", "x"}),
              HasSubstr("--function: the table executables"));
  EXPECT_THAT(refused({"-o", traces_ / FilesIn(traces_.path(), ".mtr").front()}),
              HasSubstr("is the trace itself"));
}

TEST_F(TreeReportTest, WritesTablesOfEverything) {
  Trace("spawn");
  const auto lines_of = [this](const std::string& table) {
    const Result result = Report({"--format", "csv", "--table", table});
    EXPECT_EQ(result.Outcome(), "exit 0") << result.err;
    const auto columns = [](const std::string& line) {
      size_t count = 1;
      bool quoted = false;
      for (const char c : line) {
        quoted ^= c == '"';
        count += c == ',' && !quoted;
      }
      return count;
    };
    std::istringstream lines(result.out);
    std::string header;
    std::getline(lines, header);
    size_t count = 0;
    for (std::string line; std::getline(lines, line); ++count) {
      EXPECT_EQ(columns(line), columns(header)) << table << ": " << line;
    }
    return count;
  };
  EXPECT_EQ(lines_of("processes"), 2u);
  EXPECT_EQ(lines_of("executables"), 1u);
  EXPECT_GE(lines_of("leaks"), 1u);
  EXPECT_GE(lines_of("sites"), 1u);
}

TEST_F(TreeReportTest, JsonSaysWhatWasChosenAndOfWhat) {
  Trace("fork");
  const auto all = nlohmann::json::parse(Report({"--format", "json"}).out);
  EXPECT_TRUE(all.at("selection").at("only").empty());
  const auto some = nlohmann::json::parse(
      Report({"--format", "json", "--match", "no such function", "--executable", "process_kinds"}).out);
  EXPECT_EQ(some.at("selection").at("match"), "no such function");
  EXPECT_EQ(some.at("selection").at("executable"), "process_kinds");
  EXPECT_EQ(some.at("selection").at("only").size(), 2u);
  EXPECT_EQ(some.at("totals"), all.at("totals"));
  EXPECT_TRUE(some.at("executables").at(0).at("sites").empty());
}

}  // namespace
}  // namespace memtrace::e2e
