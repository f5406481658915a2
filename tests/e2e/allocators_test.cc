// Programs whose memory is not, or not only, glibc's: other allocators preloaded, linked and
// linked in, and programs with an allocator of their own. What goes through malloc and its
// kin is recorded exactly as the program counts it; what does not, the report says.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "tests/e2e/check_command.h"
#include "tests/e2e/harness.h"

namespace memtrace::e2e {
namespace {

using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

struct Counted {
  std::string kind;
  uint64_t bytes = 0, count = 0;
};

std::vector<Counted> CountsOf(const std::string& out) {
  std::vector<Counted> all;
  std::istringstream lines(out);
  for (Counted one; lines >> one.kind >> one.bytes >> one.count;) all.push_back(one);
  return all;
}

void ExpectCounts(const Json& report, const std::string& out, const std::string& kind) {
  size_t met = 0;
  for (const Counted& one : CountsOf(out)) {
    if (one.kind != kind) continue;
    EXPECT_EQ(AllocationsOf(report, one.bytes), one.count) << one.bytes << " bytes";
    ++met;
  }
  EXPECT_GT(met, 0u) << kind;
}

const Json& CoverageOf(const Json& report) { return report.at("coverage"); }

std::string NotesOf(const Json& report) { return CoverageOf(report).at("notes").dump(); }

Words WaysOf(const Json& report) {
  Words ways;
  for (const Json& one : CoverageOf(report).at("unseen_allocators")) {
    const Json& allocator = one.at("allocator");
    ways.push_back(one.at("way").get<std::string>() + " " +
                   (allocator.is_null() ? "?" : allocator.get<std::string>()));
  }
  return ways;
}

std::string Info(const std::string& trace) {
  return RunCommand({.arguments = {ToolPath(), "info", trace}}).out;
}

// How the allocator comes to the program: as a library of the distribution, before or after
// us in LD_PRELOAD, or linked with the program.
struct Allocator {
  std::string name;
  std::string library;  // beside libc
};
std::string LibraryOf(const std::string& file) {
  for (const char* directory :
       {"/usr/lib/x86_64-linux-gnu/", "/lib/x86_64-linux-gnu/", "/usr/lib64/", "/usr/lib/"}) {
    if (Exists(directory + file)) return directory + file;
  }
  return "";
}

std::string PluginPath(const std::string& name) {
  return MEMTRACE_BUILD_DIR "/tests/tracees/plugins/libplugin_" + name + ".so";
}

class AllocatorTest : public ::testing::TestWithParam<Allocator> {
 protected:
  // The same with and without us, but for the trace.
  void Run(const std::string& program, const std::string& preloaded_before,
           const std::string& preloaded_after) {
    const Command command = {.arguments = {TraceePath(program)}};
    Command plain = command;
    const std::string others =
        preloaded_before.empty() ? preloaded_after : preloaded_before;
    if (!others.empty()) plain.environment.emplace_back("LD_PRELOAD", others);
    const Result expected = RunCommand(plain);
    ASSERT_EQ(expected.Outcome(), "exit 3") << expected.err;

    Command traced = Traced(command, traces_.path());
    for (auto& [name, value] : traced.environment) {
      if (name != "LD_PRELOAD") continue;
      if (!preloaded_before.empty()) value = preloaded_before + ":" + value;
      if (!preloaded_after.empty()) value += ":" + preloaded_after;
    }
    run_ = RunCommand(traced);
    ASSERT_EQ(run_.Outcome(), expected.Outcome()) << run_.err;
    EXPECT_EQ(run_.out, expected.out);
    EXPECT_EQ(run_.err, expected.err);
    trace_ = TraceOf(traces_.path(), program, run_.pid);
    report_ = Report(trace_, {"--top", "100000"});
    EXPECT_EQ(CoverageOf(report_).at("dropped_events"), 0);
    for (const std::string& file : FilesIn(traces_.path(), ".mtr")) {
      if (traces_ / file != trace_) child_ = Report(traces_ / file, {"--top", "100000"});
    }
    ASSERT_FALSE(child_.is_null());
  }

  // The allocator is preloaded behind us.
  Result RunPreloaded(const std::string& program, const std::string& library,
                      const Words& arguments = {}, const Environment& environment = {}) {
    Words words = {TraceePath(program)};
    words.insert(words.end(), arguments.begin(), arguments.end());
    Command command = Traced({.arguments = words, .environment = environment}, traces_.path());
    for (auto& [name, value] : command.environment) {
      if (name == "LD_PRELOAD") value += ":" + library;
    }
    return RunCommand(command);
  }

  void ExpectKeptBesideIt(const Words& arguments) {
    const std::string library = LibraryOf(GetParam().library);
    if (library.empty()) GTEST_SKIP() << GetParam().library << " is not installed";
    const Result run = RunPreloaded("kept_beside_blocks", library, arguments);
    if (run.exit_status == 77) GTEST_SKIP() << "there is no room beside it";
    ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
    const Json report = Report(TraceOf(traces_.path(), "kept_beside_blocks", run.pid));
    bool kept = false;
    for (const Json& leak : report.at("leaks")) {
      if (leak.at("bytes") != 5000) continue;
      EXPECT_EQ(leak.at("kind"), "reachable");
      kept = true;
    }
    EXPECT_TRUE(kept);
  }

  // All that goes through malloc and its kin, with nothing made up about its waste.
  void ExpectAllButItsOwnNames() {
    ExpectCounts(report_, run_.out, "all");
    ExpectCounts(child_, run_.out, "child");
    EXPECT_TRUE(report_.at("totals").at("wasted_bytes").is_null());
    EXPECT_THAT(Info(trace_), HasSubstr("not glibc's"));
    EXPECT_THAT(WaysOf(report_), Contains("own_names " + GetParam().name));
    EXPECT_THAT(WaysOf(child_), Contains("own_names " + GetParam().name));
    EXPECT_THAT(NotesOf(report_), HasSubstr("operator new"));
    EXPECT_THAT(ReportText(trace_, {"--width", "200"}), HasSubstr("is " + GetParam().name));
    EXPECT_EQ(AllocationsOf(report_, 771), 0u) << "then this note is not true any more";
  }

  TempDir traces_;
  Result run_;
  std::string trace_;
  Json report_, child_;
};

TEST_P(AllocatorTest, PreloadedAfterUs) {
  const std::string library = LibraryOf(GetParam().library);
  if (library.empty()) GTEST_SKIP() << GetParam().library << " is not installed";
  Run("other_allocator", "", library);
  ExpectAllButItsOwnNames();
}

TEST_P(AllocatorTest, PreloadedBeforeUs) {
  const std::string library = LibraryOf(GetParam().library);
  if (library.empty()) GTEST_SKIP() << GetParam().library << " is not installed";
  Run("other_allocator", library, "");
  for (const Json* report : {&report_, &child_}) {
    EXPECT_THAT(WaysOf(*report), Contains("comes_first " + GetParam().name));
    EXPECT_THAT(NotesOf(*report), HasSubstr(library + " comes before libmemtrace.so"));
  }
  EXPECT_THAT(ReportText(trace_), Not(HasSubstr("every block was freed")));
}

// What the allocator knows of its blocks makes none of them reachable.
TEST_P(AllocatorTest, WhatIsLostIsLost) {
  const std::string library = LibraryOf(GetParam().library);
  if (library.empty()) GTEST_SKIP() << GetParam().library << " is not installed";
  const Result run = RunPreloaded("loses_large_blocks", library);
  ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
  uint64_t large = 0, small = 0;
  const Json report = Report(TraceOf(traces_.path(), "loses_large_blocks", run.pid));
  for (const Json& leak : report.at("leaks")) {
    if (leak.at("kind") != "definite") continue;
    const uint64_t blocks = leak.at("blocks").get<uint64_t>();
    (leak.at("bytes") == 100000 * blocks ? large : small) += blocks;
  }
  EXPECT_EQ(large, 5u);
  EXPECT_EQ(small, 80u);
}

// What it gives out by names of its own is not in the trace, and keeps what is.
TEST_P(AllocatorTest, WhatItsOwnBlocksKeepIsKept) {
  const std::string library = LibraryOf(GetParam().library);
  if (library.empty()) GTEST_SKIP() << GetParam().library << " is not installed";
  const Result run = RunPreloaded("held_by_new", library);
  ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
  const Json report = Report(TraceOf(traces_.path(), "held_by_new", run.pid));
  uint64_t kept = 0, lost = 0;
  for (const Json& leak : report.at("leaks")) {
    const uint64_t blocks = leak.at("blocks").get<uint64_t>();
    const bool reachable = leak.at("kind") == "reachable";
    if (leak.at("bytes") == 777 * blocks && reachable) kept += blocks;
    if (leak.at("bytes") == 1311 * blocks && !reachable) lost += blocks;
  }
  EXPECT_EQ(kept, 400u);
  EXPECT_GE(lost, 10u) << "all but what is still in its cache";
  EXPECT_THAT(report.at("leak_scans").dump(), HasSubstr("held_by_new"));
}

// Its cache keeps what is lost. Where libstdc++'s operator new comes first everything is malloc's,
// and neither the cache nor the tables are looked through.
TEST_P(AllocatorTest, WithLibstdcxxsOperatorNewAllThatIsLostBesideJemallocIsFound) {
  if (GetParam().name != "jemalloc") GTEST_SKIP() << "what others need is no such cure";
  const std::string library = LibraryOf(GetParam().library);
  if (library.empty()) GTEST_SKIP() << GetParam().library << " is not installed";
  constexpr char kAdvice[] = "with libstdc++.so.6 first in LD_PRELOAD it is";
  const Result beside = RunPreloaded("held_by_new", library);
  ASSERT_EQ(beside.Outcome(), "exit 0") << beside.err;
  EXPECT_THAT(CoverageOf(Report(TraceOf(traces_.path(), "held_by_new", beside.pid))).dump(),
              HasSubstr(kAdvice));
  const Result run = RunPreloaded("held_by_new", "libstdc++.so.6:" + library);
  ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
  const Json report = Report(TraceOf(traces_.path(), "held_by_new", run.pid));
  EXPECT_TRUE(CoverageOf(report).at("all_recorded").get<bool>()) << CoverageOf(report).dump();
  uint64_t definite = 0;
  for (const Json& leak : report.at("leaks")) {
    if (leak.at("kind") != "definite") continue;
    EXPECT_EQ(leak.at("bytes"), 1311 * leak.at("blocks").get<uint64_t>());
    definite += leak.at("blocks").get<uint64_t>();
  }
  EXPECT_EQ(definite, 40u);
}

// Beside its memory there is the program's own, which is a root: also a page of the 64 KiB that are
// looked at together.
TEST_P(AllocatorTest, WhatIsKeptBesideItsMemoryIsKept) { ExpectKeptBesideIt({}); }
TEST_P(AllocatorTest, WhatIsKeptOnAPageBesideItsBlockIsKept) { ExpectKeptBesideIt({"page"}); }

TEST_P(AllocatorTest, Linked) {
  const std::string program = "linked_" + GetParam().name;
  if (!Exists(TraceePath(program))) GTEST_SKIP() << "the -dev package was not there at build time";
  Run(program, "", "");
  ExpectAllButItsOwnNames();
  EXPECT_THAT(NotesOf(report_), AnyOf(HasSubstr("mallocx"), HasSubstr("tc_malloc"),
                                      HasSubstr("mi_malloc")));
  EXPECT_EQ(AllocationsOf(report_, 773), 0u);
}

TEST_P(AllocatorTest, LinkedIn) {
  const std::string program = "static_" + GetParam().name;
  if (!Exists(TraceePath(program))) GTEST_SKIP() << "there was no static archive at build time";
  Run(program, "", "");
  EXPECT_THAT(NotesOf(report_), HasSubstr("the program has a malloc of its own"));
  EXPECT_THAT(NotesOf(child_), HasSubstr("the program has a malloc of its own"));
  EXPECT_THAT(WaysOf(report_), Contains("comes_first " + GetParam().name));
  EXPECT_EQ(AllocationsOf(report_, 1011), 0u);
}

TEST_P(AllocatorTest, LinkedInWithHiddenNames) {
  const std::string program = "static_" + GetParam().name + "_hidden";
  if (!Exists(TraceePath(program))) GTEST_SKIP() << "there was no static archive at build time";
  Run(program, "", "");
  EXPECT_THAT(WaysOf(report_), Contains("hidden " + GetParam().name));
  EXPECT_THAT(NotesOf(report_), HasSubstr("has " + GetParam().name + " inside, with hidden names"));
  // Those that come from libc come from glibc's malloc, behind the same interface.
  EXPECT_EQ(AllocationsOf(report_, 1011), 0u);
  EXPECT_THAT(Info(trace_), HasSubstr("has " + GetParam().name + " inside"));
}

// Its names are gone, its messages are not.
TEST_P(AllocatorTest, LinkedInAndStripped) {
  const std::string program = TraceePath("static_" + GetParam().name + "_hidden");
  if (!Exists(program)) GTEST_SKIP() << "there was no static archive at build time";
  TempDir directory;
  const std::string stripped = directory / "stripped";
  ASSERT_EQ(RunCommand({.arguments = {"strip", "-o", stripped, program}}).Outcome(), "exit 0");
  const Result run = RunCommand(Traced({.arguments = {stripped}}, traces_.path()));
  ASSERT_EQ(run.Outcome(), "exit 3") << run.err;
  const std::string trace = TraceOf(traces_.path(), "stripped", run.pid);
  EXPECT_THAT(WaysOf(Report(trace)), Contains("hidden " + GetParam().name));
  // And when the file is another one by now, nothing is said of it.
  ASSERT_EQ(RunCommand({.arguments = {"cp", "/bin/true", stripped}}).Outcome(), "exit 0");
  const Json report = Report(trace);
  EXPECT_THAT(WaysOf(report), IsEmpty());
  EXPECT_EQ(CoverageOf(report).at("modules_not_examined"), 1);
}

TEST_P(AllocatorTest, PreloadedUnderMemtraceRun) {
  const std::string library = LibraryOf(GetParam().library);
  if (library.empty()) GTEST_SKIP() << GetParam().library << " is not installed";
  const std::string trace = traces_ / "run.mtr";
  const Result run = RunCommand({.arguments = {ToolPath(), "run", "-o", trace,
                                               TraceePath("other_allocator")},
                                 .environment = {{"LD_PRELOAD", library}}});
  ASSERT_EQ(run.Outcome(), "exit 3") << run.err;
  const Json report = Report(trace, {"--top", "100000"});
  ExpectCounts(report, run.out, "all");
  EXPECT_THAT(WaysOf(report), Contains("own_names " + GetParam().name));
}

// Its operator delete may come to us, as jemalloc's does; its operator new does not.
TEST_P(AllocatorTest, WhatItsOperatorDeleteEndsIsNoDoubleFree) {
  const std::string library = LibraryOf(GetParam().library);
  if (library.empty()) GTEST_SKIP() << GetParam().library << " is not installed";
  const Result run = RunPreloaded("deletes_at_freed_blocks", library);
  ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
  const std::string trace = TraceOf(traces_.path(), "deletes_at_freed_blocks", run.pid);
  const Json report = Report(trace);
  EXPECT_EQ(report.at("invalid_frees").at("stories"), Json::array()) << report.at("invalid_frees").dump();
  EXPECT_THAT(ReportText(trace), Not(AnyOf(HasSubstr("Verdict"), HasSubstr("INVALID FREES"))));
}

// Nor where only a plugin calls these, whatever is known of that: a page fault, a memory map of the
// end, or nothing.
TEST_P(AllocatorTest, NorWhatAPluginEndsThatNoStackMet) {
  const std::string library = LibraryOf(GetParam().library);
  if (library.empty()) GTEST_SKIP() << GetParam().library << " is not installed";
  for (const char* faults : {"auto", "off"}) {
    for (const std::string end : {"opened", "closed", "killed"}) {
      SCOPED_TRACE(testing::Message() << "faults " << faults << ", " << end);
      const Result run = RunPreloaded("opens_silent_plugin", library, {end, PluginPath("deleting")},
                                      {{"MEMTRACE_FAULTS", faults}});
      ASSERT_EQ(run.Outcome(), end == "killed" ? "signal 9" : "exit 0") << run.out << run.err;
      const std::string trace = TraceOf(traces_.path(), "opens_silent_plugin", run.pid);
      const Json frees = Report(trace).at("invalid_frees");
      EXPECT_EQ(frees.at("stories"), Json::array()) << frees.dump();
      if (GetParam().name == "jemalloc") {
        EXPECT_EQ(frees.at("of_unseen_blocks"), 64) << "then this has nothing to tell any more";
      }
      const Result check = RunCommand({.arguments = {ToolPath(), "check", trace}});
      EXPECT_EQ(check.exit_status, end == "killed" ? 2 : 0) << check.out << check.err;
      EXPECT_THAT(check.out, Not(HasSubstr("invalid free")));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Of, AllocatorTest,
                         ::testing::Values(Allocator{"jemalloc", "libjemalloc.so.2"},
                                           Allocator{"tcmalloc", "libtcmalloc_minimal.so.4"},
                                           Allocator{"mimalloc", "libmimalloc.so.2.0"}),
                         [](const auto& info) { return info.param.name; });

// An allocator whose functions call each other by their exported names, which are ours: a call of
// the program's is one event, and what it leads to is none.
class NestingAllocatorTest : public ::testing::Test {
 protected:
  void ExpectTheProgramsBlocksAlone(const std::string& library, const std::string& mode,
                                    Environment environment = {}) {
    const Words words = {TraceePath("allocates_by_nested_calls"), mode};
    environment.emplace_back("EF_DISABLE_BANNER", "1");
    Command plain = {.arguments = words, .environment = environment};
    plain.environment.emplace_back("LD_PRELOAD", library);
    const Result expected = RunCommand(plain);
    ASSERT_EQ(expected.Outcome(), "exit 0") << expected.err;

    Command command = Traced({.arguments = words, .environment = environment}, traces_.path());
    for (auto& [name, value] : command.environment) {
      if (name == "LD_PRELOAD") value += ":" + library;
    }
    const Result run = RunCommand(command);
    ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
    EXPECT_EQ(run.out, expected.out);
    const Json report =
        Report(TraceOf(traces_.path(), "allocates_by_nested_calls", run.pid), {"--top", "100000"});
    ExpectCounts(report, run.out, "all");
    for (const char* none :
         {"unknown_frees", "unseen_frees", "unordered_events", "dropped_events"}) {
      EXPECT_EQ(CoverageOf(report).at(none), 0) << none;
    }
    EXPECT_EQ(report.at("invalid_frees").at("stories"), Json::array());
    for (const Json& leak : report.at("leaks")) {
      for (const Counted& one : CountsOf(run.out)) {
        EXPECT_NE(leak.at("bytes"), one.bytes * leak.at("blocks").get<uint64_t>()) << leak.dump();
      }
    }
  }

  TempDir traces_;
  const std::string library_ = TraceePath("libnesting_allocator.so");
};

TEST_F(NestingAllocatorTest, EachCallOfTheProgramsIsOneEvent) {
  ExpectTheProgramsBlocksAlone(library_, "calls");
}

TEST_F(NestingAllocatorTest, AndOneSample) {
  ExpectTheProgramsBlocksAlone(library_, "calls", {{"MEMTRACE_SAMPLE_BYTES", "1"}});
}

TEST_F(NestingAllocatorTest, WithTheStacksOfFreesToo) {
  ExpectTheProgramsBlocksAlone(library_, "calls", {{"MEMTRACE_FREE_STACKS", "on"}});
}

// They return into the program, whatever they have interrupted.
TEST_F(NestingAllocatorTest, CallsOfHandlersInItsMidstAreRecorded) {
  ExpectTheProgramsBlocksAlone(library_, "handlers");
  ExpectTheProgramsBlocksAlone(library_, "handlers", {{"MEMTRACE_SAMPLE_BYTES", "1"}});
}

TEST_F(NestingAllocatorTest, NothingIsMissingAfterAJumpOutOfIt) {
  ExpectTheProgramsBlocksAlone(library_, "jumps");
  ExpectTheProgramsBlocksAlone(library_, "jumps", {{"MEMTRACE_SAMPLE_BYTES", "1"}});
}

// It takes records within calls, which is no event, and gives them back outside of any. They lie where
// blocks of the program's lay that were freed.
TEST_F(NestingAllocatorTest, WhatItKeepsOfItsOwnIsNoDoubleFreeAndNoLeak) {
  Command command = Traced(
      {.arguments = {TraceePath("allocates_by_nested_calls"), "keeps"}}, traces_.path());
  for (auto& [name, value] : command.environment) {
    if (name == "LD_PRELOAD") value += ":" + library_;
  }
  const Result run = RunCommand(command);
  ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
  const std::string trace = TraceOf(traces_.path(), "allocates_by_nested_calls", run.pid);
  const Json report = Report(trace, {"--top", "100000"});
  ExpectCounts(report, run.out, "all");
  EXPECT_EQ(report.at("totals").at("live_blocks"), 0) << "the table, too, has its end";
  EXPECT_EQ(report.at("invalid_frees").at("stories"), Json::array());
  EXPECT_EQ(report.at("invalid_frees").at("of_unseen_blocks"), 40) << "then this shows nothing";
  EXPECT_THAT(NotesOf(report), HasSubstr("the allocator, which calls itself by name, may have"));
  const Result check = RunCommand({.arguments = {ToolPath(), "check", trace}});
  EXPECT_EQ(check.exit_status, 0) << check.out << check.err;
}

TEST_F(NestingAllocatorTest, ElectricFence) {
  const std::string library = LibraryOf("libefence.so.0");
  if (library.empty()) GTEST_SKIP() << "electric-fence is not installed";
  ExpectTheProgramsBlocksAlone(library, "fewer_calls");
}

struct Traces {
  explicit Traces(const std::string& tracee, const Words& arguments = {},
                  const Environment& environment = {}) {
    Words words = {TraceePath(tracee)};
    words.insert(words.end(), arguments.begin(), arguments.end());
    const Command command = {.arguments = words, .environment = environment};
    const Result plain = RunCommand(command);
    run = RunCommand(Traced(command, directory.path()));
    EXPECT_EQ(plain.Outcome(), "exit 0") << plain.out << plain.err;
    EXPECT_EQ(run.Outcome(), plain.Outcome()) << run.out << run.err;
    EXPECT_EQ(run.out, plain.out);
    trace = TraceOf(directory.path(), tracee, run.pid);
    report = Report(trace, {"--top", "100000"});
  }
  TempDir directory;
  Result run;
  std::string trace;
  Json report;
};

TEST(OwnAllocatorTest, WhatJemallocsOwnFunctionsFreeIsToldAsNotSeen) {
  if (!Exists(TraceePath("freed_by_sdallocx")))
    GTEST_SKIP() << "the -dev package was not there at build time";
  const Traces traces("freed_by_sdallocx");
  EXPECT_EQ(AllocationsOf(traces.report, 1761), 300u);
  EXPECT_EQ(AllocationsOf(traces.report, 2761), 300u);
  EXPECT_THAT(WaysOf(traces.report), ElementsAre("own_names jemalloc"));
  EXPECT_THAT(NotesOf(traces.report),
              HasSubstr("what is freed by its own dallocx, sdallocx counts as live"));
  EXPECT_FALSE(CoverageOf(traces.report).at("all_recorded").get<bool>());
  EXPECT_GT(CoverageOf(traces.report).at("unseen_frees").get<int>(), 0);
}

TEST(OwnAllocatorTest, AllOfGlibcIsSeenAndNothingIsNoted) {
  TempDir directory;
  const Result run =
      RunCommand(Traced({.arguments = {TraceePath("other_allocator")}}, directory.path()));
  ASSERT_EQ(run.Outcome(), "exit 3") << run.err;
  const std::string trace = TraceOf(directory.path(), "other_allocator", run.pid);
  const Json report = Report(trace, {"--top", "100000"});
  ExpectCounts(report, run.out, "all");
  ExpectCounts(report, run.out, "new");
  EXPECT_THAT(WaysOf(report), IsEmpty());
  EXPECT_EQ(NotesOf(report), "[]");
  EXPECT_THAT(Info(trace), Not(HasSubstr("not glibc's")));
}

TEST(OwnAllocatorTest, OfAPartOfTheFamilyTheRestIsSeen) {
  const Traces traces("partial_malloc");
  ExpectCounts(traces.report, traces.run.out, "calloc");
  EXPECT_EQ(AllocationsOf(traces.report, 1743), 0u);
  EXPECT_THAT(NotesOf(traces.report), HasSubstr("the program has a malloc of its own"));
}

// Valgrind's formats have no words for what is not known: they do not say that nothing is lost.
TEST(OwnAllocatorTest, OfWhatIsNotSeenNoLeaksAreKnown) {
  const Traces traces("partial_malloc");
  for (const char* format : {"valgrind", "valgrind-xml"}) {
    const Result report =
        RunCommand({.arguments = {ToolPath(), "report", "--format", format, traces.trace}});
    EXPECT_EQ(report.exit_status, 2) << report.out;
    EXPECT_EQ(report.out, "");
    EXPECT_THAT(report.err, HasSubstr("has a malloc of its own"));
  }
}

TEST(OwnAllocatorTest, OfOperatorNewThePoolsAreSeen) {
  const Traces traces("own_new");
  ExpectCounts(traces.report, traces.run.out, "pool");
  EXPECT_EQ(NotesOf(traces.report), "[]");
}

TEST(OwnAllocatorTest, GlibcsByItsOtherNamesLeavesTheHalfThatIsSeen) {
  const Traces traces("libc_malloc_by_name");
  ExpectCounts(traces.report, traces.run.out, "seen");
  EXPECT_EQ(AllocationsOf(traces.report, 1751), 0u);
  EXPECT_GT(CoverageOf(traces.report).at("unknown_frees").get<int>() +
                CoverageOf(traces.report).at("unseen_frees").get<int>(), 0);
}

TEST(OwnAllocatorTest, OfALibraryThatBindsItToItselfIsNoted) {
  const Traces traces("opens_libraries", {"symbolic", MEMTRACE_BUILD_DIR "/tests/tracees/plugins"});
  EXPECT_EQ(AllocationsOf(traces.report, 1733), 0u);
  EXPECT_EQ(AllocationsOf(traces.report, 1737), 50u);
  EXPECT_THAT(WaysOf(traces.report), ::testing::ElementsAre(StartsWith("hidden ")));
  EXPECT_THAT(NotesOf(traces.report),
              HasSubstr("libplugin_symbolic.so has a malloc of its own and binds it to itself"));
}

// The operator new of a library that no other allocator is known by: _Znwm, in C.
TEST(OwnAllocatorTest, OfALibraryWhoseOperatorNewCallsNoMallocByNameThatIsNoted) {
  constexpr char kLibrary[] = R"(
#include <stddef.h>
static char room[1 << 20];
static size_t used;
static void* Take(size_t bytes) {
  used = (used + 15) & ~(size_t)15;
  void* block = room + used;
  used += bytes;
  return block;
}
void* malloc(size_t bytes) { return Take(bytes); }
void free(void* block) { (void)block; }
void* _Znwm(size_t bytes) { return TAKE(bytes); })";
  constexpr char kProgram[] = R"(
#include <stddef.h>
#include <stdlib.h>
void* _Znwm(size_t bytes);
static void* volatile lost;
int main(void) {
  lost = _Znwm(1777);
  lost = malloc(1779);
  return lost == NULL;
})";
  TempDir directory;
  for (const bool by_name : {false, true}) {
    const std::string library = by_name ? "libby_name.so" : "libwithin.so";
    Compile(directory, library, kLibrary,
            {"-shared", "-fPIC", by_name ? "-DTAKE=malloc" : "-DTAKE=Take"});
    const std::string program =
        Compile(directory, by_name ? "calls_by_name" : "calls_within", kProgram,
                {directory / library, "-Wl,-rpath," + directory.path()});
    const Result run = RunCommand(Traced({.arguments = {program}}, directory.path()));
    ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
    const Json report =
        Report(TraceOf(directory.path(), by_name ? "calls_by_name" : "calls_within", run.pid));
    EXPECT_EQ(AllocationsOf(report, 1779), 1u);
    EXPECT_EQ(AllocationsOf(report, 1777), by_name ? 1u : 0u);
    EXPECT_EQ(CoverageOf(report).at("all_recorded"), by_name) << NotesOf(report);
    if (by_name) continue;
    EXPECT_THAT(WaysOf(report), ElementsAre("own_names ?"));
    EXPECT_THAT(NotesOf(report),
                HasSubstr("libwithin.so has a malloc and an operator new of its own"));
  }
}

// The memory map of the end tells of it.
TEST(OwnAllocatorTest, OfAPluginThatNoStackMetItIsNoted) {
  for (const char* faults : {"auto", "off"}) {
    const Traces traces("opens_silent_plugin", {"opened", PluginPath("hidden")},
                        {{"MEMTRACE_FAULTS", faults}});
    EXPECT_THAT(WaysOf(traces.report), ::testing::ElementsAre("hidden ?")) << faults;
    EXPECT_THAT(NotesOf(traces.report),
                HasSubstr("libplugin_hidden.so has an allocator of its own inside"))
        << faults;
  }
}

TEST(OwnAllocatorTest, BesideTheCheckingMallocOfGlibc) {
  const std::string library = LibraryOf("libc_malloc_debug.so.0");
  if (library.empty()) GTEST_SKIP() << "libc_malloc_debug.so.0 is not installed";
  TempDir directory;
  Command command = Traced({.arguments = {TraceePath("other_allocator")}}, directory.path());
  command.environment.emplace_back("MALLOC_CHECK_", "3");
  for (auto& [name, value] : command.environment) {
    if (name == "LD_PRELOAD") value += ":" + library;
  }
  const Result run = RunCommand(command);
  ASSERT_EQ(run.Outcome(), "exit 3") << run.err;
  const Json report =
      Report(TraceOf(directory.path(), "other_allocator", run.pid), {"--top", "100000"});
  ExpectCounts(report, run.out, "all");
  ExpectCounts(report, run.out, "new");
}

}  // namespace
}  // namespace memtrace::e2e
