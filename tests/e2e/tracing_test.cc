// Tracees whose allocations are known beforehand, or to glibc, or to gdb: what the
// library records of them is neither more nor less.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <regex>
#include <sstream>

#include "tests/e2e/check_command.h"
#include "tests/e2e/harness.h"

namespace memtrace::e2e {
namespace {

using ::testing::HasSubstr;

struct Sums {
  uint64_t allocations = 0, frees = 0, live_blocks = 0, live_bytes = 0;
  bool operator==(const Sums&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Sums& sums) {
  return out << sums.allocations << " allocations, " << sums.frees << " frees, "
             << sums.live_blocks << " live blocks of " << sums.live_bytes << " bytes";
}

// Over the sites whose stack has one of these functions.
Sums SumsOf(const Json& report, const std::vector<std::string>& functions) {
  Sums sums;
  for (const Json& site : report.at("sites")) {
    bool is_of_them = false;
    for (const Json& frame : site.at("stack")) {
      for (const std::string& function : functions) {
        is_of_them = is_of_them || frame.value("function", "") == function;
      }
    }
    if (!is_of_them) continue;
    sums.allocations += site.at("allocations").get<uint64_t>();
    sums.frees += site.at("frees").get<uint64_t>();
    sums.live_blocks += site.at("live_blocks").get<uint64_t>();
    sums.live_bytes += site.at("live_bytes").get<uint64_t>();
  }
  return sums;
}

class PassedBlocksTest : public ::testing::TestWithParam<int> {};

TEST_P(PassedBlocksTest, BlocksThatChangeHandsBalance) {
  TempDir traces;
  const Result run = RunCommand(
      Traced({.arguments = {TraceePath("pass_blocks_between_threads"), std::to_string(GetParam()),
                            std::to_string(200000 / GetParam())}},
             traces.path()));
  ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
  Sums ledger;
  std::istringstream(run.out) >> ledger.allocations >> ledger.frees >> ledger.live_blocks >>
      ledger.live_bytes;
  ASSERT_EQ(ledger.allocations - ledger.frees, ledger.live_blocks);
  const Json report = Report(TraceOf(traces.path(), "pass_blocks_between_threads"));
  const Json& coverage = report.at("coverage");
  EXPECT_EQ(coverage.at("unordered_events"), 0);
  EXPECT_EQ(SumsOf(report, {"Allocate", "Resize"}), ledger);
  EXPECT_EQ(coverage.at("dropped_events"), 0);
  EXPECT_EQ(coverage.at("marked_stacks"), 0);
  const Json& totals = report.at("totals");
  EXPECT_EQ(totals.at("allocations").get<uint64_t>() - totals.at("frees").get<uint64_t>(),
            totals.at("live_blocks"));
}

INSTANTIATE_TEST_SUITE_P(Threads, PassedBlocksTest, ::testing::Values(1, 2, 8, 64));

TEST(TracingTest, ThePackedTraceReportsTheSame) {
  TempDir traces;
  const Result run = RunCommand(Traced(
      {.arguments = {TraceePath("pass_blocks_between_threads"), "4", "30000"}}, traces.path()));
  ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
  const std::string raw = TraceOf(traces.path(), "pass_blocks_between_threads");
  const std::string packed = traces / "packed.mtr";
  const Result pack = RunCommand({.arguments = {ToolPath(), "pack", raw, "-o", packed}});
  ASSERT_EQ(pack.Outcome(), "exit 0") << pack.err;
  EXPECT_LT(ReadFile(packed).size(), ReadFile(raw).size());
  const Json from_raw = Report(raw), from_packed = Report(packed);
  for (const char* part : {"totals", "leaks", "sites", "process", "timeline"}) {
    EXPECT_EQ(from_raw.at(part), from_packed.at(part)) << part;
  }
}

// Of an event by another thread: who did it, and when, within what a clock beside it says.
TEST(TracingTest, EventsHaveTheirThreadAndTime) {
  TempDir traces;
  const Result run = RunCommand(Traced({.arguments = {TraceePath("named_threads")}}, traces.path()));
  ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
  long long apart[2];
  std::istringstream(run.out) >> apart[0] >> apart[1];
  const Result dump =
      RunCommand({.arguments = {ToolPath(), "dump", TraceOf(traces.path(), "named_threads")}});
  ASSERT_EQ(dump.Outcome(), "exit 0") << dump.err;
  std::map<std::string, std::string> names;           // by thread
  std::map<int, std::pair<double, std::string>> of;   // time and thread, by size
  std::istringstream lines(dump.out);
  std::smatch match;
  for (std::string line; std::getline(lines, line);) {
    if (std::regex_search(line, match, std::regex("^# thread (\\d+) .*name=(\\S+)"))) {
      names[match[1]] = match[2];
    } else if (std::regex_search(line, match,
                                 std::regex("^(\\S+) (\\d+) malloc \\S+ size=([12]00[12]) "))) {
      of[std::stoi(match[3])] = {std::stod(match[1]), match[2]};
    }
  }
  ASSERT_EQ(of.size(), 4u) << dump.out;
  const char* const expected[] = {"first-worker", "second-worker"};
  for (int i = 0; i < 2; ++i) {
    const auto& [begin, thread] = of[1001 + 1000 * i];
    const auto& [end, same_thread] = of[1002 + 1000 * i];
    EXPECT_EQ(names[thread], expected[i]);
    EXPECT_EQ(thread, same_thread);
    EXPECT_GE(end - begin, 0.150);
    EXPECT_LE(end - begin, static_cast<double>(apart[i]) / 1e9 + 0.001);
  }
  EXPECT_GT(of[2001].first, of[1002].first);
}

// Kilobytes that reporting a trace of so many pairs of malloc and free took, with one thread: what
// others read ahead is bounded as well (engine_command_test), but a short trace has none of it.
long ReportMemory(int pairs) {
  TempDir traces;
  const Result run = RunCommand(
      Traced({.arguments = {TraceePath("counted_pairs"), "pair", std::to_string(pairs)}},
             traces.path()));
  EXPECT_EQ(run.Outcome(), "exit 0") << run.err;
  const Result report = RunCommand(
      {.arguments = {"python3", "-c",
                     "import os, sys\n"
                     "child = os.spawnvp(os.P_NOWAIT, sys.argv[1], sys.argv[1:])\n"
                     "_, status, usage = os.wait4(child, 0)\n"
                     "print(usage.ru_maxrss)\n"
                     "sys.exit(os.waitstatus_to_exitcode(status))",
                     ToolPath(), "report", "--jobs", "1", "--index", "off",
                     TraceOf(traces.path(), "counted_pairs"), "-o", traces / "report.txt"}});
  EXPECT_EQ(report.Outcome(), "exit 0") << report.err;
  EXPECT_THAT(ReadFile(traces / "report.txt"), HasSubstr("Heap "));
  return std::stol(report.out);
}

TEST(TracingTest, AReportTakesNoMoreMemoryForMoreEvents) {
  const long few = ReportMemory(50'000), many = ReportMemory(3'000'000);
  EXPECT_LT(many, few + 4096) << "kilobytes; the trace of six million events has 72 MB";
}

TEST(TracingTest, AKilledProcessLosesNothing) {
  constexpr int kBlocks = 5000;
  TempDir traces;
  Process process(
      Traced({.arguments = {TraceePath("killed_while_allocating"), std::to_string(kBlocks)}},
             traces.path()));
  ASSERT_TRUE(process.AwaitOutput("ready\n"));
  process.Signal(SIGKILL);
  const Result result = process.Wait(10);
  ASSERT_EQ(result.Outcome(), "signal 9");
  const std::string trace = TraceOf(traces.path(), "killed_while_allocating");
  const Json report = Report(trace);
  EXPECT_EQ(SumsOf(report, {"KeepBlocks"}), (Sums{.allocations = 3 * kBlocks,
                                                  .live_blocks = 3 * kBlocks,
                                                  .live_bytes = 3 * kBlocks * 50}));
  EXPECT_GT(report.at("coverage").at("recovered_events"), 0);
  EXPECT_THAT(report.at("process").at("end"), ::testing::AnyOf("cut", "signal"));
}

TEST(TracingTest, BarePreloadLeavesOneFileAndPrintsNothing) {
  TempDir work;
  const Result run = RunCommand({.arguments = {ExamplePath("leaks")},
                                 .environment = {{"LD_PRELOAD", LibraryPath()}},
                                 .directory = work.path()});
  EXPECT_EQ(run.Outcome(), "exit 0");
  EXPECT_EQ(run.out, "");
  EXPECT_EQ(run.err, "");
  EXPECT_THAT(FilesIn(work.path()),
              ::testing::ElementsAre("memtrace.leaks." + std::to_string(run.pid) + ".mtr"));
}

// Whoever reads the standard error of a program's children gets theirs alone.
// In memory, and of a file that is gone when it starts.
TEST(TracingTest, AProgramWithoutAFileHasATraceOfItsName) {
  TempDir traces;
  const Result memory = RunCommand(Traced({.arguments = {"python3", "-c",
      "import os\n"
      "fd = os.memfd_create('tool')\n"
      "os.write(fd, open('/bin/true', 'rb').read())\n"
      "os.execve(fd, ['tool'], os.environ)\n"}}, traces.path()));
  EXPECT_EQ(memory.exit_status, 0) << memory.err;
  EXPECT_NE(TraceOf(traces.path(), "tool"), "");
  TempDir gone;
  const Result removed = RunCommand(Traced({.arguments = {"python3", "-c",
      "import os, shutil, sys\n"
      "shutil.copy('/bin/true', sys.argv[1])\n"
      "fd = os.open(sys.argv[1], os.O_RDONLY)\n"
      "os.unlink(sys.argv[1])\n"
      "os.execve(fd, ['t'], os.environ)\n", gone / "removed"}}, traces.path()));
  EXPECT_EQ(removed.exit_status, 0) << removed.err;
  EXPECT_NE(TraceOf(traces.path(), "removed"), "");
}

TEST(TracingTest, WhatGoesWrongIsSaidOfTheFirstProcessOnly) {
  TempDir work;
  const std::string missing = work / "missing/%e.mtr";
  const Result first = RunCommand({.arguments = {"true"},
                                   .environment = {{"LD_PRELOAD", LibraryPath()},
                                                   {"MEMTRACE_STACKS", "perhaps"},
                                                   {"MEMTRACE_OUT", missing}}});
  EXPECT_EQ(first.Outcome(), "exit 0");
  EXPECT_THAT(first.err, ::testing::MatchesRegex(
                             "memtrace: MEMTRACE_STACKS=perhaps is ignored: [^\n]*\n"
                             "memtrace: cannot create the trace [^\n]*/missing/true.mtr: No such "
                             "file or directory; the program runs untraced [^\n]*\n"));
  const Result children = RunCommand(
      Traced({.arguments = {"sh", "-c", "MEMTRACE_STACKS=perhaps MEMTRACE_OUT=$0 /bin/true; "
                                        "MEMTRACE_OUT=$0 env true; exit 3", missing}},
             work.path()));
  EXPECT_EQ(children.Outcome(), "exit 3");
  EXPECT_EQ(children.err, "");
}

// As in the names that `memtrace run` gives.
TEST(TracingTest, TheTimeInANameIsThatOfTheCalendar) {
  TempDir traces;
  const auto now = [] {
    timespec time = {};
    clock_gettime(CLOCK_REALTIME, &time);
    return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
  };
  const uint64_t before = now();
  const Result run = RunCommand(
      {.arguments = {"/bin/true"},
       .environment = {{"LD_PRELOAD", LibraryPath()}, {"MEMTRACE_OUT", traces / "%t.mtr"}}});
  EXPECT_EQ(run.Outcome(), "exit 0") << run.err;
  const std::vector<std::string> files = FilesIn(traces.path(), ".mtr");
  ASSERT_EQ(files.size(), 1u);
  const uint64_t started = strtoull(files[0].c_str(), nullptr, 10);
  EXPECT_LE(before, started);
  EXPECT_LE(started, now());
}

TEST(TracingTest, ADeviceIsNoTrace) {
  const Result run = RunCommand({.arguments = {"true"},
                                 .environment = {{"LD_PRELOAD", LibraryPath()},
                                                 {"MEMTRACE_OUT", "/dev/full"}}});
  EXPECT_EQ(run.Outcome(), "exit 0");
  EXPECT_THAT(run.err, ::testing::MatchesRegex(
                           "memtrace: cannot create the trace /dev/full: Not a regular "
                           "file; the program runs untraced [^\n]*\n"));
  EXPECT_FALSE(std::filesystem::exists("/dev/full.1"));
}

TEST(TracingTest, ReallocarrayIsOneEventThoughGlibcMakesItOfRealloc) {
  TempDir traces;
  const Result run =
      RunCommand(Traced({.arguments = {TraceePath("reallocarray_once")}}, traces.path()));
  ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
  const Json totals = Report(TraceOf(traces.path(), "reallocarray_once")).at("totals");
  EXPECT_EQ(totals.at("allocations"), 2);
  EXPECT_EQ(totals.at("frees"), 2);
  EXPECT_EQ(totals.at("bytes_allocated"), 300);
  EXPECT_EQ(totals.at("failed_allocations"), 1);
}

TEST(TracingTest, ACallOfReallocarrayIsOneSiteWhateverTheSizes) {
  // A sample too, of a byte of each: it takes another way into the trace.
  for (const char* sample : {"0", "1"}) {
    SCOPED_TRACE(sample);
    TempDir traces;
    const Result run = RunCommand(Traced({.arguments = {TraceePath("reallocarray_of_any_size")},
                                          .environment = {{"MEMTRACE_SAMPLE_BYTES", sample}}},
                                         traces.path()));
    ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
    const Json report = Report(TraceOf(traces.path(), "reallocarray_of_any_size"));
    ASSERT_EQ(report.at("sites").size(), 1u) << report.at("sites");
    const Json& site = report.at("sites").at(0);
    EXPECT_EQ(site.at("allocator"), "reallocarray");
    EXPECT_EQ(site.at("allocations"), 4);
    EXPECT_EQ(site.at("live_blocks"), 2);
    EXPECT_EQ(site.at("live_bytes"), 1'001'000);
  }
}

// As rustc with its jemalloc: our first call is an mmap under the lock of the program's malloc,
// before the real functions were looked for. Whatever then calls malloc never returns.
TEST(TracingTest, AProgramWithItsOwnMallocRunsAndTheReportSaysSo) {
  const Command program = {.arguments = {TraceePath("own_malloc")}, .timeout_seconds = 20};
  const Result plain = RunCommand(program);
  ASSERT_EQ(plain.Outcome(), "exit 7");
  ASSERT_EQ(plain.out, "allocated by the program itself\n");
  TempDir traces;
  const Result run = RunCommand(Traced(program, traces.path()));
  EXPECT_EQ(run.Outcome(), "exit 7");
  EXPECT_EQ(run.out, plain.out);
  EXPECT_EQ(run.err, "");
  const std::string trace = TraceOf(traces.path(), "own_malloc");
  const Json report = Report(trace);
  const std::string note =
      "the program has a malloc of its own: what is allocated with it is not in this trace, only "
      "its mappings and what libraries get from libc";
  EXPECT_THAT(report.at("coverage").at("notes"), ::testing::Contains(note));
  ASSERT_EQ(report.at("mappings").size(), 1u);
  EXPECT_EQ(report.at("mappings").at(0).at("bytes"), 16 << 20);
  // It is in the memory map at the start already, for it began the recording.
  EXPECT_LT(std::abs(report.at("memory_map").at("unexplained_bytes").get<int64_t>()), 1 << 20);
  const std::string text = ReportText(trace, {"--width", "200"});
  EXPECT_THAT(text, HasSubstr(note));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("every block was freed")));
  EXPECT_THAT(text, ::testing::ContainsRegex("Lost +not known: no allocation was recorded"));
  // Nor do several traces together read as if nothing was lost.
  ASSERT_EQ(RunCommand(Traced({.arguments = {"true"}}, traces.path())).Outcome(), "exit 0");
  const std::string together = ReportText(traces.path(), {"--width", "200"});
  EXPECT_THAT(together, HasSubstr(note));
  EXPECT_THAT(together, HasSubstr("not all was recorded: see Coverage"));
  const Json tree = Json::parse(ReportText(traces.path(), {"--format", "json"}));
  EXPECT_EQ(tree.at("coverage").at("all_recorded"), false);
  EXPECT_THAT(tree.at("coverage").at("notes").dump(), HasSubstr("own_malloc"));
}

// As setproctitle() does it: the title lies where the arguments were, and zeros behind it.
TEST(TracingTest, ATitleInThePlaceOfTheArgumentsIsAllThatIsTold) {
  TempDir directory, traces;
  const std::string program = Compile(directory, "titled", R"(#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char** argv) {
  free(malloc(10));
  char* const end = argv[argc - 1] + strlen(argv[argc - 1]) + 1;
  memset(argv[0], 0, (size_t)(end - argv[0]));
  strcpy(argv[0], "titled: worker");
  if (fork() == 0) { free(malloc(10)); _exit(0); }
  return wait(NULL) < 0;
}
)");
  const Result run = RunCommand(Traced({.arguments = {program, "--port", "4242", ""}}, traces.path()));
  ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
  for (const std::string& file : FilesIn(traces.path(), ".mtr")) {
    const Json process = BriefReport(traces / file).at("process");
    const Json whole = Json::array({program, "--port", "4242", ""}), title = Json::array({"titled: worker"});
    EXPECT_EQ(process.at("command"), process.at("forked") == true ? title : whole);
  }
  EXPECT_EQ(FilesIn(traces.path(), ".mtr").size(), 2u);
}

// "NAME ADDRESS SIZE ALIGNMENT" of a line of the dump, as the tracee says it; "" of lines that
// are no calls.
std::string CallOf(const std::string& line) {
  std::istringstream words(line);
  std::string time, thread, name, address, word;
  words >> time >> thread >> name >> address;
  if (name == "frame" || name == "usage" || name == "heap" || name == "realloc-begin") return "";
  std::map<std::string, std::string> keys;
  while (words >> word) keys[word.substr(0, word.find('='))] = word.substr(word.find('=') + 1);
  std::string size = keys.count("size") ? keys["size"] : keys["length"];
  if (name == "brk") {
    size = std::to_string(std::stoul(address, nullptr, 16) - std::stoul(keys["old"], nullptr, 16));
    address = keys["old"];
  }
  const auto or_zero = [](const std::string& text) { return text.empty() ? "0" : text; };
  return name + " " + address + " " + or_zero(size) + " " + or_zero(keys["align"]);
}

TEST(TracingTest, EveryFunctionIsRecordedWithWhatItWasAskedAndGave) {
  TempDir traces;
  const Result run = RunCommand(
      Traced({.arguments = {TraceePath("every_function"), "/etc/passwd"}}, traces.path()));
  ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
  const Result dump = RunCommand(
      {.arguments = {ToolPath(), "dump", TraceOf(traces.path(), "every_function")}});
  ASSERT_EQ(dump.Outcome(), "exit 0") << dump.err;
  std::vector<std::string> said, recorded;
  std::istringstream out(run.out);
  for (std::string line; std::getline(out, line);) said.push_back(line);
  std::istringstream lines(dump.out);
  for (std::string line; std::getline(lines, line);) {
    const std::string call = line.starts_with("#") ? "" : CallOf(line);
    // An mremap may give up what it had, which is told before it.
    if (call.starts_with("mremap ") && !recorded.empty() &&
        recorded.back().starts_with("munmap ")) {
      recorded.pop_back();
    }
    if (!call.empty()) recorded.push_back(call);
  }
  EXPECT_EQ(said.size(), 29u);
  EXPECT_EQ(recorded, said);
  EXPECT_THAT(dump.out, ::testing::ContainsRegex(" mmap [^\n]* prot=1 flags=0x2 [^\n]*/etc/passwd"));
  EXPECT_THAT(dump.out, HasSubstr(" mapped "));
}

// The kernel counts a child's faults from 0; so must the tracer its own.
TEST(TracingTest, AForkChildIsNotChargedWithTheTracersFaultsInItsParents) {
  TempDir traces;
  const Result run =
      RunCommand(Traced({.arguments = {TraceePath("fork_generations")}}, traces.path()));
  ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
  const Json report = Report(TraceOf(traces.path(), "fork_generations", std::stoi(run.out)));
  EXPECT_GE(report.at("faults").at("minor"), 256);
  EXPECT_GT(report.at("faults").at("tool_minor"), 0);
}

TEST(TracingTest, AForkChildThatIsNotTracedRuns) {
  TempDir traces;
  Command off = Traced({.arguments = {TraceePath("fork_generations")}}, traces.path());
  off.environment.emplace_back("MEMTRACE_CHILDREN", "off");
  EXPECT_EQ(RunCommand(off).Outcome(), "exit 0");
}

// Whatever it calls first: it has the parent's thread, and none of what belongs to it.
TEST(TracingTest, TheFirstCallOfAForkChildMayBeAny) {
  constexpr std::string_view kAllWell = "19\n";
  for (const bool sampled : {false, true}) {
    for (const char* children : {"follow", "off", "cannot"}) {
      TempDir traces;
      const std::string gone = traces.path() + "/gone";
      ASSERT_EQ(mkdir(gone.c_str(), 0700), 0);
      Command command = Traced({.arguments = {TraceePath("first_call_of_a_child")}}, gone);
      if (sampled) command.environment.emplace_back("MEMTRACE_SAMPLE_BYTES", "64");
      if (children == std::string_view("cannot")) {
        command.arguments.push_back(gone);
      } else {
        command.environment.emplace_back("MEMTRACE_CHILDREN", children);
      }
      const Result run = RunCommand(command);
      EXPECT_EQ(run.Outcome(), "exit 0") << children << ", sampled: " << sampled;
      EXPECT_EQ(run.out, kAllWell) << children << ", sampled: " << sampled;
    }
  }
}

// From none, not even for what the program itself would like to have, to enough.
TEST(TracingTest, AForkChildMayHaveLittleMemory) {
  TempDir traces;
  const Result run = RunCommand(
      Traced({.arguments = {TraceePath("first_call_of_a_child"), "--tight"}}, traces.path()));
  EXPECT_EQ(run.Outcome(), "exit 0");
  EXPECT_EQ(run.out, "64\n");
  size_t stopped = 0, whole = 0;
  for (const std::string& name : FilesIn(traces.path(), ".mtr")) {
    const Json report = Report(traces.path() + "/" + name);
    stopped += report.at("coverage").dump().find("no memory to record in") != std::string::npos;
    whole += report.at("totals").at("allocations") >= 200;
  }
  EXPECT_GT(stopped, 0u);
  EXPECT_GT(whole, 16u);
}

// Of clone(): as much as it needs itself, and not what it takes to begin a trace.
TEST(TracingTest, AForkChildMayHaveASmallStack) {
  TempDir traces;
  const Result run = RunCommand(
      Traced({.arguments = {TraceePath("first_call_of_a_child"), "--stack", "6144"}}, traces.path()));
  EXPECT_EQ(run.Outcome(), "exit 0");
  EXPECT_EQ(run.out, "0\n");
  size_t whole = 0;
  for (const std::string& name : FilesIn(traces.path(), ".mtr")) {
    whole += Report(traces.path() + "/" + name).at("totals").at("allocations") >= 2000;
  }
  EXPECT_EQ(whole, 1u);
}

// A directory that is gone by the time of the fork.
TEST(TracingTest, AForkChildThatCannotMakeATraceRuns) {
  TempDir traces;
  const std::string gone = traces.path() + "/gone";
  ASSERT_EQ(mkdir(gone.c_str(), 0700), 0);
  const Result run = RunCommand(
      Traced({.arguments = {"/bin/bash", "-c", "rm -r \"$0\"; (echo child; exit 3); echo $?", gone}}, gone));
  EXPECT_EQ(run.Outcome(), "exit 0");
  EXPECT_EQ(run.out, "child\n3\n");
}

TEST(TracingTest, APltEntryIsNoMallocOfItsOwn) {
  TempDir traces;
  const Result run =
      RunCommand(Traced({.arguments = {TraceePath("malloc_by_address")}}, traces.path()));
  ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
  const Json report = Report(TraceOf(traces.path(), "malloc_by_address"));
  EXPECT_EQ(report.at("totals").at("allocations"), 2);  // and the buffer of stdout
  EXPECT_EQ(report.at("coverage").at("notes"), Json::array());
}

// Every block of this tracee has exactly the usable size that was asked for, so that
// glibc's own figure is the live bytes and 8 bytes of header for each.
TEST(TracingTest, LiveBytesAreThoseOfGlibcsStatistics) {
  TempDir traces;
  const Result run = RunCommand(
      Traced({.arguments = {TraceePath("glibc_statistics")},
              .environment = {{"GLIBC_TUNABLES", "glibc.malloc.tcache_count=0"}}},
             traces.path()));
  ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
  const Json report = Report(TraceOf(traces.path(), "glibc_statistics"));
  const Json& totals = report.at("totals");
  EXPECT_GT(totals.at("live_blocks"), 300);
  EXPECT_EQ(totals.at("wasted_bytes"), 0);
  EXPECT_EQ(totals.at("live_bytes").get<uint64_t>() + 8 * totals.at("live_blocks").get<uint64_t>(),
            std::stoul(run.out));
}

// The memory that libc's allocator took from the kernel is seen, to the byte for the break; what
// the events do not explain of the memory map's growth is said.
void ExpectHeapGrowthIsThatOfTheMemoryMapOrTheRestIsStated(const Words& arguments) {
  TempDir traces;
  Words command = {TraceePath("heap_growth")};
  command.insert(command.end(), arguments.begin(), arguments.end());
  const Result run = RunCommand(Traced({.arguments = command}, traces.path()));
  ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
  const int64_t heap_bytes = std::stol(run.out);  // as the program itself read /proc/self/maps
  const std::string trace = TraceOf(traces.path(), "heap_growth");
  const Json map = Report(trace).at("memory_map");
  SCOPED_TRACE(map.dump());
  ASSERT_TRUE(map.is_object()) << "no memory map at the end";
  const auto number = [&](const char* key) { return map.at(key).get<int64_t>(); };
  constexpr int64_t kBlocks = 8192, kChunk = 1008, kMapped = (1 << 20) + 4096;
  EXPECT_EQ(number("heap_bytes"), heap_bytes);
  EXPECT_EQ(number("heap_bytes") - number("heap_at_start_bytes"),
            number("heap_growth_seen_bytes"));
  EXPECT_GE(number("heap_growth_seen_bytes"), kBlocks * kChunk);
  EXPECT_GE(number("arena_bytes"), kBlocks * kChunk);
  EXPECT_LE(number("arena_bytes"), kBlocks * kChunk + (256 << 10));
  EXPECT_EQ(number("mapped_blocks_bytes"), 2 * kMapped);
  const int64_t growth = number("anonymous_bytes") - number("anonymous_at_start_bytes");
  const int64_t rest = number("unexplained_bytes");
  EXPECT_LT(std::abs(rest), growth / 20);
  EXPECT_EQ(rest % 4096, 0) << "the kernel maps whole pages";
  if (rest != 0) {  // the text says how much it is
    const std::string text = ReportText(trace);
    std::smatch stated;
    ASSERT_TRUE(std::regex_search(text, stated,
                                  std::regex(R"(MEMORY MAP +([\d.]+) (B|KiB|MiB) )")));
    const double unit = stated[2] == "B" ? 1 : stated[2] == "KiB" ? 1 << 10 : 1 << 20;
    EXPECT_NEAR(std::stod(stated[1]) * unit, static_cast<double>(std::abs(rest)), unit);
  }
}

TEST(TracingTest, HeapGrowthIsThatOfTheMemoryMapOrTheRestIsStated) {
  ExpectHeapGrowthIsThatOfTheMemoryMapOrTheRestIsStated({});
}

// The aligned functions take from arenas as the others do.
TEST(TracingTest, HeapGrowthByAlignedBlocksIsThatOfTheMemoryMap) {
  ExpectHeapGrowthIsThatOfTheMemoryMapOrTheRestIsStated({"aligned"});
}

// Stamps are seldom where events are fast; a pause among them must not be missed where it matters.
TEST(TracingTest, LargeBlocksLiveAsLongAsTheyDid) {
  for (const char* free_stacks : {"off", "on"}) {
    TempDir traces;
    const Result run = RunCommand(Traced({.arguments = {TraceePath("holds_large_blocks")},
                                          .environment = {{"MEMTRACE_FREE_STACKS", free_stacks}}},
                                         traces.path()));
    ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
    const Json report = Report(TraceOf(traces.path(), "holds_large_blocks", run.pid));
    int large = 0;
    for (const Json& site : report.at("sites")) {
      if (site.at("bytes_allocated").get<uint64_t>() < (1 << 20)) continue;
      ++large;
      // Of 50 ms, as far as classes of half an octave tell.
      EXPECT_GE(site.at("lifetime").at("p50_s"), 0.035) << site.at("allocator");
      EXPECT_LT(site.at("lifetime").at("p50_s"), 1) << site.at("allocator");
    }
    EXPECT_EQ(large, 2) << "malloc and realloc";
  }
}

// gdb counts the calls of glibc's functions in a run without the library.
TEST(TracingTest, AllocationsAreThoseThatGdbCounts) {
  TempDir work;
  WriteFile(work / "input.sql",
            "CREATE TABLE t (a, b); INSERT INTO t VALUES (1, 'one'), (2, 'two');\n"
            "SELECT sum(a), group_concat(b) FROM t;\n");
  WriteFile(work / "count.gdb", R"(
set pagination off
set confirm off
set breakpoint pending on
set startup-with-shell off
set debuginfod enabled off
break __libc_malloc
break __libc_calloc
break __libc_realloc if $rdi != 0
ignore 1 100000000
ignore 2 100000000
ignore 3 100000000
run -batch -init )" + (work / "input.sql") + R"( :memory: .exit
info breakpoints
)");
  const Words program = {"/usr/bin/sqlite3", "-batch", "-init", work / "input.sql", ":memory:",
                         ".exit"};
  const Result gdb = RunCommand(
      {.arguments = {"gdb", "-nx", "-batch", "-x", work / "count.gdb", program[0]}});
  ASSERT_EQ(gdb.Outcome(), "exit 0") << gdb.err;
  ASSERT_THAT(gdb.out, HasSubstr("exited normally"));
  uint64_t hits = 0;
  std::istringstream lines(gdb.out);
  for (std::string line; std::getline(lines, line);) {
    unsigned long count;
    if (std::sscanf(line.c_str(), " breakpoint already hit %lu time", &count) == 1) hits += count;
  }
  ASSERT_GT(hits, 100u) << gdb.out << gdb.err;

  const Result run = RunCommand(Traced({.arguments = program}, work.path()));
  ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
  const Json report = Report(TraceOf(work.path(), "sqlite3"));
  EXPECT_EQ(report.at("totals").at("allocations"), hits) << gdb.out;
}

}  // namespace
}  // namespace memtrace::e2e
