// `memtrace check` of whole programs: its answer, what it does to the answer of the program, and
// that it reads the files of the tools whose files it reads: the same suppressions are given to
// Valgrind, to LeakSanitizer and to us.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <regex>

#include "tests/e2e/check_command.h"
#include "tests/e2e/harness.h"
#include "tests/e2e/memcheck.h"

namespace memtrace::e2e {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

struct Amount {
  uint64_t bytes = 0, blocks = 0;
  bool operator==(const Amount&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Amount& amount) {
  return out << amount.bytes << " bytes in " << amount.blocks << " blocks";
}

Amount Total(const Json& check, const std::string& kind) {
  const Json& total = check.at("totals").at(kind);
  return {total.at("bytes").get<uint64_t>(), total.at("blocks").get<uint64_t>()};
}

TEST(CheckTest, SaysWhetherAProgramLeaks) {
  const Result leaks = Check({"--run", "--", ExamplePath("leaks")});
  EXPECT_EQ(leaks.exit_status, 1) << leaks.err;
  EXPECT_THAT(leaks.out, StartsWith("memtrace check: FAILED: 2 leaks\n"));
  EXPECT_THAT(leaks.out, HasSubstr("256 bytes in 1 block definitely lost"));
  EXPECT_THAT(leaks.out, HasSubstr("definitely lost   456 bytes in 3 blocks"));
  const Result clean = Check({"--run", "--", "/bin/true"});
  EXPECT_EQ(clean.exit_status, 0) << clean.out << clean.err;
  EXPECT_THAT(clean.out, StartsWith("memtrace check: CLEAN\n"));
}

// memcheck: 1,384 bytes in 5 blocks definitely lost. It has freed the pool of libstdc++ before.
TEST(CheckTest, SaysOfCxxWhatMemcheckSays) {
  TempDir traces;
  Trace(traces.path(), {ExamplePath("new_delete")});
  const Json check = CheckJson({traces.path()});
  EXPECT_EQ(Total(check, "definite"), (Amount{1384, 5}));
  EXPECT_EQ(Total(check, "reachable"), (Amount{0, 0}));
  EXPECT_GT(Total(check, "suppressed").bytes, 70'000u);
  const Json all = CheckJson({"--default-suppressions", "no", traces.path()});
  EXPECT_GT(Total(all, "reachable").bytes, 70'000u);
  EXPECT_EQ(Total(all, "suppressed"), (Amount{0, 0}));
}

TEST(CheckTest, NamesPlacesBelowARelativeRoot) {
  TempDir work;
  const std::string program = Compile(work, "three", kThreeLeaks);
  const Result check = Check({"--run", "--source-root", ".", "--format", "gitlab", "--", "./three"},
                             work.path());
  EXPECT_EQ(check.exit_status, 1) << check.err;
  for (const Json& one : Json::parse(check.out)) {
    EXPECT_EQ(one.at("location").at("path"), "three.c");
  }
}

TEST(CheckTest, NeverMasksTheProgramsOwnFailure) {
  const Result failed = Check({"--run", "--", "sh", "-c", ExamplePath("leaks") + "; exit 7"});
  EXPECT_EQ(failed.exit_status, 7);
  EXPECT_THAT(failed.out, StartsWith("memtrace check: FAILED: 2 leaks\n"));
  const Result killed = Check({"--run", "--", "sh", "-c", "kill -9 $$"});
  EXPECT_EQ(killed.exit_status, 128 + SIGKILL);
  EXPECT_EQ(Check({"--run", "--", "/no/such/program"}).exit_status, 127);
  const Result two = Check({"--run", "--", "sh", "-c", "exit 2"});
  EXPECT_EQ(two.exit_status, 2);
  EXPECT_THAT(two.out, StartsWith("memtrace check: CLEAN\n")) << "this 2 is the program's";
}

TEST(CheckTest, LimitsAreOfEachProcess) {
  TempDir traces;
  Trace(traces.path(), {ExamplePath("leaks")});
  const auto status = [&](Words options) {
    options.push_back(traces.path());
    return Check(options).exit_status;
  };
  EXPECT_EQ(status({"--max-leaked", "456"}), 0);
  EXPECT_EQ(status({"--max-leaked", "455"}), 1);
  EXPECT_EQ(status({"--max-leaked", "0", "--max-leaked", "leaks=1K"}), 0);
  EXPECT_EQ(status({"--fail-on", "none", "--max-allocations", "4"}), 0);
  EXPECT_EQ(status({"--fail-on", "none", "--max-allocations", "3"}), 1);
  EXPECT_EQ(status({"--fail-on", "none", "--max-peak", "1456"}), 0);
  EXPECT_EQ(status({"--fail-on", "none", "--max-peak", "1455"}), 1);
  EXPECT_EQ(status({"--max-growth", "a..b=0"}), 1) << "the leaks stand";
  EXPECT_EQ(status({"--fail-on", "none", "--max-growth", "a..b=0"}), 2) << "no such phases";
}

// A report lists ten thousand marks.
TEST(CheckTest, GrowthCountsBehindTheMarksThatAReportLists) {
  TempDir directory;
  const std::string program = Compile(directory, "turns", R"(#include <memtrace.h>
#include <stdio.h>
#include <stdlib.h>
static void* volatile kept;
int main(int argc, char** argv) {
  (void)argv;
  for (int i = 0; i < 12000; ++i) {
    char name[32] = "turn";
    if (argc > 1) snprintf(name, sizeof(name), "turn %d", i);
    memtrace_mark(name);
    if (i >= 11000) kept = malloc(1000);
  }
  return 0;
}
)", {"-I" + SourcePath("include")});
  const auto check = [&](const std::string& limit, const Words& words) {
    Words options = {"--run", "--fail-on", "none", "--max-growth", limit, "--", program};
    options.insert(options.end(), words.begin(), words.end());
    return Check(options);
  };
  const Result turns = check("turn..turn=0", {});
  EXPECT_EQ(turns.exit_status, 1) << turns.out << turns.err;
  EXPECT_THAT(turns.out, HasSubstr("in turn..turn, at most 0 bytes"));
  EXPECT_THAT(turns.out, Not(HasSubstr("--from")));
  EXPECT_EQ(check("turn..turn=999000", {}).exit_status, 0);
  const Result names = check("turn 11100..turn 11900=1M", {"names"});
  EXPECT_EQ(names.exit_status, 2) << names.out << names.err;
  EXPECT_THAT(names.out, HasSubstr("its marks more names than are told apart"));
  EXPECT_THAT(names.out, Not(HasSubstr("no process")));
  EXPECT_EQ(check("turn 1..turn 9900=0", {"names"}).exit_status, 0);
}

// glibc notices only some.
TEST(CheckTest, ADoubleFreeFails) {
  TempDir directory;
  const std::string program = Compile(directory, "app", R"(#include <stdlib.h>
int main(void) {
  void* volatile blocks[9];
  for (int i = 0; i < 9; ++i) blocks[i] = malloc(24);
  for (int i = 0; i < 9; ++i) free(blocks[i]);
  free(blocks[7]);
  return 0;
})", {"-w"});
  TempDir traces;
  Trace(traces.path(), {program});
  const Result check = Check({traces.path()});
  EXPECT_EQ(check.exit_status, 1) << check.out;
  EXPECT_THAT(check.out, HasSubstr("app: 1 invalid free, at most 0"));
  EXPECT_EQ(Check({traces.path(), "--max-invalid-frees", "1"}).exit_status, 0);
  EXPECT_EQ(Check({traces.path(), "--max-invalid-frees", "other=1"}).exit_status, 1);
  EXPECT_THAT(ReportText(traces.path()), HasSubstr("1 trace"));
}

// The process ends by it, for the block has been unmapped: not before it is in the trace.
TEST(CheckTest, ADoubleFreeOfALargeBlockIsTold) {
  TempDir directory;
  const std::string program = Compile(directory, "app", R"(#include <stdlib.h>
int main(int argc, char** argv) {
  void* volatile block = malloc(1000000);
  free(block);
  if (argc > 1) {
    block = realloc(block, 2000000);
  } else {
    free(block);
  }
  return argv[0] == block;
})", {"-w"});
  for (const Words& words : {Words{program}, Words{program, "by realloc"}}) {
    for (const char* stacks : {"off", "on"}) {
      SCOPED_TRACE(words.back() + " " + stacks);
      TempDir traces;
      Command command{.arguments = words};
      command.environment = {{"MEMTRACE_FREE_STACKS", stacks}};
      EXPECT_EQ(RunCommand(Traced(command, traces.path())).Outcome(), "signal 11");
      EXPECT_THAT(ReportText(traces / FilesIn(traces.path(), ".mtr").at(0)), HasSubstr("double free"));
      EXPECT_THAT(Check({traces.path()}).out, HasSubstr("app: 1 invalid free, at most 0"));
    }
  }
}

TEST(CheckTest, ADoubleFreeOfAForkedChildFails) {
  TempDir directory;
  const std::string program = Compile(directory, "app", R"(#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
  void* volatile of_parent[300];
  for (int i = 0; i < 300; ++i) of_parent[i] = malloc(5000);
  const pid_t child = fork();
  if (child == 0) {
    for (int i = 0; i < 300; ++i) free(of_parent[i]);
    void* volatile blocks[9];
    for (int i = 0; i < 9; ++i) blocks[i] = malloc(24);
    for (int i = 0; i < 9; ++i) free(blocks[i]);
    free(blocks[7]);
    exit(0);
  }
  waitpid(child, NULL, 0);
  for (int i = 0; i < 300; ++i) free(of_parent[i]);
  return 0;
})", {"-w"});
  TempDir traces;
  Trace(traces.path(), {program});
  const Result check = Check({traces.path()});
  EXPECT_EQ(check.exit_status, 1) << check.out;
  EXPECT_THAT(check.out, HasSubstr("app: 1 invalid free, at most 0"));
  Json of_child;
  for (const std::string& file : FilesIn(traces.path(), ".mtr")) {
    const Json report = Report(traces / file);
    if (report["coverage"]["inherited_frees"] != 0) of_child = report;
  }
  ASSERT_FALSE(of_child.is_null());
  EXPECT_EQ(of_child["coverage"]["inherited_frees"], 300);
  EXPECT_EQ(of_child["invalid_frees"]["stories"].size(), 1u);
}

TEST(CheckTest, WhatAnOperatorDeleteOfTheProgramsOwnEndsIsItsOwnAffair) {
  TempDir directory;
  const std::string source = directory / "app.cc", program = directory / "app";
  WriteFile(source, R"(#include <cstdlib>
#include <new>
static char* slab;
static int used;
void* operator new(size_t bytes) {
  if (slab == nullptr) slab = static_cast<char*>(std::malloc(4096));
  used += 64;
  return slab + used - 64;
}
void operator delete(void*) noexcept { std::free(slab); }
void operator delete(void*, size_t) noexcept { std::free(slab); }
int* volatile block;
volatile int after;
int main() {
  block = new int;
  delete block;
  after = 1;
})");
  ASSERT_EQ(RunCommand({.arguments = {"g++", "-g", "-O2", "-w", source, "-o", program}}).exit_status, 0);
  TempDir traces;
  const Result run = RunCommand(Traced({.arguments = {program}, .environment = {{"MEMTRACE_FREE_STACKS", "on"}}},
                                       traces.path()));
  ASSERT_EQ(run.Outcome(), "exit 0");
  const Result check = Check({traces.path()});
  EXPECT_EQ(check.exit_status, 0) << check.out;
}

TEST(CheckTest, AMismatchedFreeFails) {
  TempDir traces;
  Trace(traces.path(), {TraceePath("mismatched_pairs")});
  const Result reallocs = Check({traces.path()});
  EXPECT_EQ(reallocs.exit_status, 1) << "of operator new, by realloc";
  EXPECT_THAT(reallocs.out, HasSubstr("mismatched_pairs: 1 mismatched free, at most 0"));
  TempDir with_frees;
  const Result run = RunCommand(Traced({.arguments = {TraceePath("mismatched_pairs")},
                                        .environment = {{"MEMTRACE_FREE_STACKS", "on"}}}, with_frees.path()));
  ASSERT_EQ(run.Outcome(), "exit 0");
  const Result all = Check({with_frees.path(), "--max-mismatched-frees", "12"});
  EXPECT_EQ(all.exit_status, 1);
  EXPECT_THAT(all.out, HasSubstr("13 mismatched frees, at most 12"));
  EXPECT_THAT(all.out, HasSubstr("operator new at (anonymous namespace)::NewThenFree()"));
  EXPECT_THAT(all.out, HasSubstr(", free at (anonymous namespace)::NewThenFree()"));
  EXPECT_EQ(Check({with_frees.path(), "--max-mismatched-frees", "mismatched_pairs=13"}).exit_status, 0);
  WriteFile(with_frees / "known.supp", "{\n   known\n   Memcheck:Free\n   fun:free\n   ...\n   fun:main\n}\n");
  const Result known = Check({with_frees.path(), "--suppressions", with_frees / "known.supp"});
  EXPECT_THAT(known.out, HasSubstr("suppressed: 5 wrong frees  known"));
  EXPECT_THAT(known.out, HasSubstr("8 mismatched frees, at most 0"));
}

// What is freed there a second time may have been given out by somebody whose allocations are not in the trace.
TEST(CheckTest, AFreeThatMayBeOfAnotherBlockIsNoDoubleFree) {
  TempDir directory;
  const std::string plugin = Compile(directory, "plugin.so", R"(#include <stdlib.h>
void* give(void) { return malloc(100); })", {"-shared", "-fPIC"});
  const std::string program = Compile(directory, "app", R"(#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
int main(int argc, char** argv) {
  void* plugin = dlopen(argv[1], RTLD_NOW | RTLD_DEEPBIND);
  void* (*give)(void) = (void* (*)(void))dlsym(plugin, "give");
  for (int i = 0; i < 3; ++i) {
    free(malloc(100));
    free(give());
  }
  return argc - 2;
})");
  TempDir traces;
  Trace(traces.path(), {program, plugin});
  const Json report = Report(TraceOf(traces.path(), "app"));
  EXPECT_EQ(report.at("invalid_frees").at("stories").size(), 1u);
  const Result check = Check({traces.path()});
  EXPECT_EQ(check.exit_status, 0) << check.out;
}

TEST(CheckTest, TheVariableForBaselinesSaysWhatItTakes) {
  TempDir traces, work;
  Trace(traces.path(), {ExamplePath("leaks")});
  const std::string baseline = work / "leaks.baseline";
  const auto check = [&](const std::string& value, const Words& options) {
    Command command = {.arguments = {ToolPath(), "check"}};
    command.arguments.insert(command.arguments.end(), options.begin(), options.end());
    command.arguments.push_back(traces.path());
    command.environment = {{"MEMTRACE_UPDATE_BASELINE", value}};
    return RunCommand(command);
  };
  constexpr char kIgnored[] =
      "memtrace: MEMTRACE_UPDATE_BASELINE=yes is ignored: it takes 1 or on, 0 or off\n";
  const Result made = check("yes", {"--baseline", baseline});
  EXPECT_EQ(made.exit_status, 2);
  EXPECT_THAT(made.err, HasSubstr(kIgnored));
  EXPECT_NE(access(baseline.c_str(), F_OK), 0);
  EXPECT_THAT(check("yes", {}).err, Not(HasSubstr("UPDATE_BASELINE=yes"))) << "it is not asked";
  for (const char* value : {"0", "off", ""}) {
    EXPECT_THAT(check(value, {"--baseline", baseline}).err, Not(HasSubstr("is ignored"))) << value;
    EXPECT_NE(access(baseline.c_str(), F_OK), 0);
  }
  const Result updated = check("on", {"--baseline", baseline});
  EXPECT_EQ(updated.exit_status, 0) << updated.err;
  EXPECT_EQ(access(baseline.c_str(), F_OK), 0);
}

TEST(CheckTest, ABaselineGoesThroughItsLife) {
  TempDir traces, work;
  Trace(traces.path(), {ExamplePath("leaks")});
  const std::string baseline = work / "leaks.baseline";
  EXPECT_EQ(Check({"--baseline", baseline, traces.path()}).exit_status, 2) << "it is not there";
  const Result made = Check({"--baseline", baseline, "--update-baseline", traces.path()});
  EXPECT_EQ(made.exit_status, 0);
  EXPECT_THAT(made.out, HasSubstr("\nBaseline " + baseline + ": 2 added\n"));
  const std::string first = ReadFile(baseline);
  EXPECT_THAT(first, HasSubstr("bytes=256 blocks=1 program=leaks caller=LeakOneTable  leaks.c\n"));
  EXPECT_EQ(Check({"--baseline", baseline, traces.path()}).exit_status, 0);

  const std::string smaller = std::regex_replace(first, std::regex("bytes=256"), "bytes=255");
  // Some editors put a mark in front, which is no part of it.
  WriteFile(baseline, "\xEF\xBB\xBF" + first);
  EXPECT_EQ(Check({"--baseline", baseline, traces.path()}).exit_status, 0);
  ASSERT_EQ(chmod(baseline.c_str(), 0640), 0);
  WriteFile(baseline, smaller);
  const Result grown = Check({"--baseline", baseline, traces.path()});
  EXPECT_EQ(grown.exit_status, 1);
  EXPECT_THAT(grown.out, HasSubstr("grown: 256 bytes in 1 block in one process"));
  EXPECT_EQ(Check({"--baseline", baseline, "--tolerance", "1%", traces.path()}).exit_status, 0);

  // A night of a clean program finds nothing of it, and nothing is fixed.
  TempDir clean;
  Trace(clean.path(), {"/bin/true"});
  EXPECT_EQ(Check({"--baseline", baseline, "--update-baseline", clean.path()}).exit_status, 0);
  EXPECT_EQ(ReadFile(baseline), smaller);
  struct stat info;
  ASSERT_EQ(stat(baseline.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0640u);
  // Without evidence it stays as it is.
  TempDir blind;
  TraceWithoutScan(blind.path(), {ExamplePath("leaks")});
  EXPECT_EQ(Check({"--baseline", baseline, "--update-baseline", blind.path()}).exit_status, 2);
  EXPECT_EQ(ReadFile(baseline), smaller);
}

// Another test's gate may have updated it meanwhile, as the program here does in its place.
TEST(CheckTest, AnUpdateIsOfTheBaselineAsItIsWhenTheProgramHasEnded) {
  TempDir work;
  const std::string baseline = work / "leaks.baseline";
  const std::string other =
      "definite 0123456789abcdef bytes=7 blocks=1 program=of_another_test caller=F";
  const Result check = Check({"--baseline", baseline, "--update-baseline", "--run", "--", "sh", "-c",
                              "echo '" + other + "' > " + baseline + "; " + ExamplePath("leaks") + "; :"});
  EXPECT_EQ(check.exit_status, 0) << check.out << check.err;
  EXPECT_THAT(check.out, HasSubstr(": 2 added\n"));
  const std::string text = ReadFile(baseline);
  EXPECT_THAT(text, StartsWith(other + "\n"));
  EXPECT_THAT(text, HasSubstr("bytes=256 blocks=1 program=leaks"));
}

// It may have ended before it came to what it leaks on its usual way.
TEST(CheckTest, OfAProgramThatFailedTheBaselineForgetsNothing) {
  TempDir work;
  const std::string program = Compile(work, "early", R"(#include <stdlib.h>
static void* volatile lost;
int main(int argc, char** argv) {
  if (argc > 1) return atoi(argv[1]);
  lost = malloc(40);
  lost = NULL;
  return 0;
})");
  const std::string baseline = work / "leaks.baseline";
  const auto update = [&](const char* status) {
    Words words = {"--baseline", baseline, "--update-baseline", "--run", "--", program};
    if (status != nullptr) words.push_back(status);
    return Check(words);
  };
  EXPECT_THAT(update(nullptr).out, HasSubstr(": 1 added\n"));
  const std::string known = ReadFile(baseline);
  EXPECT_THAT(known, HasSubstr("bytes=40 blocks=1 program=early"));
  const Result failed = update("3");
  EXPECT_EQ(failed.exit_status, 3);
  EXPECT_THAT(failed.out, HasSubstr(": unchanged, 1 kept, for not all was seen\n"));
  EXPECT_THAT(failed.out, Not(HasSubstr("These are gone")));
  EXPECT_EQ(ReadFile(baseline), known);
  EXPECT_THAT(update("0").out, HasSubstr(": 1 removed\n"));
  EXPECT_THAT(ReadFile(baseline), Not(HasSubstr("early")));
}

// A stripped build tells each leak by another fingerprint: which of the named ones it is, nobody knows.
TEST(CheckTest, OfAStrippedBuildTheBaselineForgetsNothing) {
  TempDir work;
  const std::string program = Compile(work, "three", kThreeLeaks);
  const std::string baseline = work / "leaks.baseline", named = work / "named";
  const auto check = [&](bool update) {
    Words words = {"--baseline", baseline};
    if (update) words.push_back("--update-baseline");
    words.insert(words.end(), {"--run", "--", program});
    return Check(words);
  };
  ASSERT_EQ(check(true).exit_status, 0);
  const std::string known = ReadFile(baseline);
  ASSERT_EQ(RunCommand({.arguments = {"cp", program, named}}).Outcome(), "exit 0");
  ASSERT_EQ(RunCommand({.arguments = {"strip", program}}).Outcome(), "exit 0");
  const Result stripped = check(true);
  EXPECT_THAT(stripped.out, HasSubstr(" kept, for not all was seen\n"));
  EXPECT_THAT(ReadFile(baseline), StartsWith(known));
  ASSERT_EQ(RunCommand({.arguments = {"cp", named, program}}).Outcome(), "exit 0");
  EXPECT_EQ(check(false).exit_status, 0);
  // By name again, what has none is gone.
  EXPECT_THAT(check(true).out, HasSubstr(" removed\n"));
  EXPECT_EQ(ReadFile(baseline), known);
}

TEST(CheckTest, WritesSeveralFormatsAtOnce) {
  TempDir traces, work;
  Trace(traces.path(), {ExamplePath("leaks")});
  const Result check = Check({"-o", "junit=" + (work / "j.xml"), "-o", "sarif=" + (work / "s.json"),
                              "-o", "gitlab=" + (work / "g.json"), "-q", traces.path()});
  EXPECT_EQ(check.out, "memtrace check: failed: 2 leaks\n");
  EXPECT_THAT(ReadFile(work / "j.xml"), HasSubstr("<failure message=\"definitely lost: 256 bytes"));
  EXPECT_EQ(Json::parse(ReadFile(work / "s.json")).at("version"), "2.1.0");
  EXPECT_EQ(Json::parse(ReadFile(work / "g.json")).size(), 2u);
}

// Each site is for one suppression, and leaks three times so many bytes as no other.
constexpr char kSites[] = R"(#include <stdlib.h>
static void *volatile sink, *volatile none;  // gcc makes realloc(NULL, n) a malloc(n)
#define SITE(name, call) static __attribute__((noinline)) void name(void) { sink = call; sink = NULL; }
SITE(Aa, malloc(101)) SITE(Bb, malloc(102)) SITE(Cc, malloc(103)) SITE(Dd, realloc(none, 104))
SITE(Ee, malloc(105)) SITE(Ff, malloc(106)) SITE(Gg, malloc(107)) SITE(Hh, realloc(none, 108))
SITE(Ii, malloc(109)) SITE(Jj, malloc(110)) SITE(Kk, calloc(1, 111))
static __attribute__((noinline)) void Deep(int n) {
  if (n > 0) { Deep(n - 1); return; }
  Aa(); Bb(); Cc(); Dd(); Ee(); Ff(); Gg(); Hh(); Ii(); Jj(); Kk();
}
int main(void) {
  for (int i = 0; i < 3; ++i) { Deep(2); sink = malloc(1000); free(sink); sink = NULL; }
  return 0;
})";
constexpr std::pair<const char*, const char*> kSuppressions[] = {
    {"by-allocator", "fun:malloc\nfun:Aa"},
    {"by-wildcard", "fun:*alloc\nfun:B*"},
    {"by-one-character", "fun:?alloc\nfun:C?"},
    {"through-frames", "...\nfun:Dd\n...\nfun:main"},
    {"of-another-allocator", "fun:calloc\nfun:Ee"},
    {"of-another-kind", "match-leak-kinds: possible,reachable\nfun:malloc\nfun:Ff"},
    {"of-this-kind", "match-leak-kinds: definite\nfun:malloc\nfun:Gg\nfun:Deep"},
    {"by-realloc", "fun:malloc\nfun:Hh"},
    {"too-deep", "fun:malloc\nfun:Ii\nfun:main"},
    {"from-the-end", "...\nfun:Jj\nfun:Deep\nfun:Deep\nfun:Deep\nfun:main"},
    {"by-object-of-calloc", "fun:calloc\nobj:*/sites"},
};

uint64_t Number(std::string text) {
  text.erase(std::remove(text.begin(), text.end(), ','), text.end());
  return std::stoull(text);
}

// What each suppression took, by memcheck's list of those it used.
struct Memcheck {
  Amount definite;
  std::map<std::string, Amount> used;
  size_t lines = 0;  // of that list; names may begin with the same word
};
Memcheck RunMemcheck(const std::string& program, const std::string& suppressions) {
  const Result result = RunCommand(
      {.arguments = MemcheckCommand({"-v", "--show-leak-kinds=all",
                              "--suppressions=" + suppressions, program})});
  EXPECT_EQ(result.exit_status, 0) << result.err;
  Memcheck memcheck;
  std::smatch match;
  const std::regex definite("definitely lost: ([0-9,]+) bytes in ([0-9,]+) blocks");
  EXPECT_TRUE(std::regex_search(result.err, match, definite)) << result.err;
  if (!match.empty()) memcheck.definite = {Number(match[1]), Number(match[2])};
  const std::regex used("used_suppression: +[0-9]+ ([^ ]+) .*suppressed: ([0-9,]+) bytes in "
                        "([0-9,]+) blocks");
  for (std::sregex_iterator it(result.err.begin(), result.err.end(), used), end; it != end; ++it) {
    ++memcheck.lines;
    memcheck.used[(*it)[1]] = {Number((*it)[2]), Number((*it)[3])};
  }
  return memcheck;
}

TEST(CheckSuppressionsTest, ValgrindTakesTheSameFile) {
  TempDir work, traces;
  const std::string program = Compile(work, "sites", kSites);
  Trace(traces.path(), {program});
  const std::string file = work / "shared.supp";
  std::string text = "# shared\n{\n   of another tool\n   Helgrind:Race\n   fun:Aa\n}\n";
  for (const auto& [name, frames] : kSuppressions) {
    text += std::string("{\n") + name + "\nMemcheck:Leak\n" + frames + "\n}\n";
  }
  WriteFile(file, text);
  const Memcheck theirs = RunMemcheck(program, file);
  const Json ours = CheckJson({"--suppressions", file, traces.path()});
  EXPECT_EQ(Total(ours, "definite"), theirs.definite);
  std::map<std::string, Amount> used;
  for (const Json& one : ours.at("suppressions")) {
    const Amount amount{one.at("bytes").get<uint64_t>(), one.at("blocks").get<uint64_t>()};
    if (amount.blocks > 0) used[one.at("name").get<std::string>()] = amount;
  }
  EXPECT_EQ(used, theirs.used);
  EXPECT_EQ(used.size(), 8u);
  const Result listed = Check({"--suppressions", file, traces.path()});
  EXPECT_THAT(listed.out, HasSubstr("unused suppression: too-deep  " + file + ":"));
}

TEST(CheckSuppressionsTest, ValgrindTakesWhatWeGenerate) {
  TempDir work, traces;
  const std::string program = Compile(work, "sites", kSites);
  Trace(traces.path(), {program});
  const std::string file = work / "gen.supp";
  EXPECT_EQ(Check({"--gen-suppressions", file, traces.path()}).exit_status, 1);
  EXPECT_EQ(Check({"--suppressions", file, traces.path()}).exit_status, 0);
  const Memcheck memcheck = RunMemcheck(program, file);
  EXPECT_EQ(memcheck.definite, (Amount{0, 0})) << ReadFile(file);
  EXPECT_EQ(memcheck.lines, 11u);
}

// LeakSanitizer stops the threads with ptrace, which not every sandbox allows.
// One leak of several stacks, and names that the two tools write in different ways.
TEST(CheckSuppressionsTest, WhatIsGeneratedCoversAllStacksOfALeakInBothTools) {
  TempDir directory;
  const std::string program = Compile(directory, "several", R"(
#include <stdlib.h>
#include <string.h>
static void* volatile sink;
static __attribute__((noinline)) void Work(void) {
  void* aligned = NULL;
  sink = strdup("text");
  sink = malloc(90);
  if (posix_memalign(&aligned, 64, 70) == 0) sink = aligned;
  aligned = NULL;
  sink = NULL;
}
int main(void) {
  Work();
  return 0;
}
)");
  const std::string ours = directory / "ours.supp", theirs = directory / "theirs.supp";
  EXPECT_EQ(Check({"--gen-suppressions", ours, "--run", "--", program}, directory.path()).exit_status, 1);
  const Result again = Check({"--suppressions", ours, "--run", "--", program}, directory.path());
  EXPECT_EQ(again.exit_status, 0) << again.out << ReadFile(ours);
  const Result memcheck = RunCommand({.arguments = {"valgrind", "-q", "--leak-check=full", "--error-exitcode=9",
                                                    "--suppressions=" + ours, program}});
  EXPECT_EQ(memcheck.exit_status, 0) << memcheck.err << ReadFile(ours);
  const Result generated = RunCommand({.arguments = {"valgrind", "-q", "--leak-check=full",
                                                     "--gen-suppressions=all", program}});
  std::string text;
  for (size_t at = 0; at < generated.err.size();) {
    const size_t end = generated.err.find('\n', at);
    const std::string line = generated.err.substr(at, end - at);
    if (line.rfind("==", 0) != 0) text += line + "\n";
    at = end == std::string::npos ? generated.err.size() : end + 1;
  }
  WriteFile(theirs, text);
  const Result with_theirs = Check({"--suppressions", theirs, "--run", "--", program}, directory.path());
  EXPECT_EQ(with_theirs.exit_status, 0) << with_theirs.out << text;
}

TEST(CheckSuppressionsTest, LeakSanitizerTakesTheSameFile) {
  TempDir work, traces;
  const std::string program = Compile(work, "three", kThreeLeaks);
  const std::string sanitized = Compile(work, "three_lsan", kThreeLeaks, {"-fsanitize=leak"});
  Trace(traces.path(), {program});
  for (const std::string pattern : {"Hundred", "^Twenty$", "Thr*e", "undre$", "three*.c", "^ain"}) {
    SCOPED_TRACE(pattern);
    const std::string file = work / "lsan.supp";
    WriteFile(file, "# shared\nleak:" + pattern + "\n");
    const Result lsan = RunCommand(
        {.arguments = {sanitized},
         .environment = {{"LSAN_OPTIONS", "suppressions=" + file + ":report_objects=0"}}});
    if (lsan.err.find("LeakSanitizer has encountered a fatal error") != std::string::npos) {
      GTEST_SKIP() << "LeakSanitizer may not trace here";
    }
    Amount theirs;
    const std::regex leak("leak of ([0-9]+) byte\\(s\\) in ([0-9]+) object");
    for (std::sregex_iterator it(lsan.err.begin(), lsan.err.end(), leak), end; it != end; ++it) {
      theirs.bytes += std::stoull((*it)[1]);
      theirs.blocks += std::stoull((*it)[2]);
    }
    const Json ours = CheckJson({"--suppressions", file, traces.path()});
    EXPECT_EQ(Total(ours, "definite"), theirs) << lsan.err;
  }
}

}  // namespace
}  // namespace memtrace::e2e
