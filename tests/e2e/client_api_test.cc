// memtrace.h in programs of every kind: what they tell arrives, and where there is no library
// nothing happens.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "tests/e2e/harness.h"

namespace memtrace::e2e {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Ge;
using testing::HasSubstr;
using testing::Le;
using testing::Not;
using testing::StartsWith;

constexpr char kActive[] = "1 0 0 -3\n", kAbsent[] = "0 -1 -1 -1\n";

Words Split(const std::string& text) {
  std::istringstream in(text);
  Words words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

void Compile(const std::string& compiler, const std::string& options) {
  Words arguments = Split(compiler + " -g -Wall -Wextra -pedantic -Werror -fno-builtin " + options);
  arguments.push_back("-I" + SourcePath("include"));
  const Result result = RunCommand({.arguments = arguments});
  ASSERT_EQ(result.Outcome(), "exit 0") << compiler << " " << options << "\n" << result.err;
}

// The events that tell something, one a word.
std::string Told(const std::string& trace) {
  const Result dump = RunCommand({.arguments = {ToolPath(), "dump", trace}});
  EXPECT_EQ(dump.Outcome(), "exit 0") << dump.err;
  static const Words kOf = {"phase",      "pool-create", "custom-alloc",      "custom-free",
                            "ignore",     "leaks-disabled", "recording-stopped", "pool-destroy"};
  std::istringstream lines(dump.out);
  std::string told;
  for (std::string line; std::getline(lines, line);) {
    const Words words = Split(line);
    if (words.size() < 4 || std::find(kOf.begin(), kOf.end(), words[2]) == kOf.end()) continue;
    told += words[2];
    for (size_t i = 4; i < words.size(); ++i) {
      if (!words[i].starts_with("stack=") && !words[i].starts_with("pool=")) told += " " + words[i];
    }
    told += "\n";
  }
  return told;
}

constexpr char kAll[] =
    "phase begin name=all\n"
    "pool-create name=arena\n"
    "custom-alloc size=100\n"
    "custom-alloc size=50\n"
    "custom-free\n"
    "custom-alloc size=32\n"
    "ignore\n"
    "leaks-disabled depth=1\n"
    "leaks-disabled depth=0\n"
    "phase mark name=half\n"
    "recording-stopped stopped=1\n"
    "recording-stopped stopped=0\n"
    "phase end name=all\n";

struct Way {
  const char* name;
  const char* compiler;
  const char* options;
  bool is_static = false;
};
void PrintTo(const Way& way, std::ostream* out) { *out << way.name; }

class LinkedTest : public testing::TestWithParam<Way> {};

TEST_P(LinkedTest, TellsWhatItHasToTell) {
  const Way& way = GetParam();
  TempDir directory;
  const std::string program = directory / "program";
  ASSERT_NO_FATAL_FAILURE(Compile(
      way.compiler, std::string(way.options) + " " + SourcePath("tests/tracees/client_api.c") +
                        " -o " + program));
  const Result alone = RunCommand({.arguments = {program}});
  EXPECT_EQ(alone.Outcome(), "exit 0");
  EXPECT_EQ(alone.out, kAbsent);
  const Result traced = RunCommand(Traced({.arguments = {program}}, directory.path()));
  EXPECT_EQ(traced.Outcome(), "exit 0") << traced.err;
  EXPECT_EQ(traced.out, way.is_static ? kAbsent : kActive);
  if (way.is_static) return;
  EXPECT_EQ(Told(TraceOf(directory.path(), "program", traced.pid)), kAll);
}

const Way kWays[] = {
    {"GccPie", "gcc", "-std=c89 -O2 -fPIE -pie"},
    {"GccPieNotOptimized", "gcc", "-std=c89 -O0 -fPIE -pie"},
    {"GccNoPie", "gcc", "-std=c89 -O2 -fno-pie -no-pie"},
    {"GccNoPieNotOptimized", "gcc", "-std=gnu17 -O0 -fno-pie -no-pie"},
    {"GccStatic", "gcc", "-std=c89 -O2 -static", true},
    {"GccStaticPie", "gcc", "-std=c89 -O0 -fPIE -static-pie", true},
    {"GccGold", "gcc", "-std=c99 -O2 -fno-pie -no-pie -fuse-ld=gold"},
    {"GccLto", "gcc", "-std=c99 -O2 -flto=1"},
    {"GccNow", "gcc", "-std=c99 -O2 -Wl,-z,now -fno-plt"},
    {"ClangPie", "clang", "-std=c89 -O2 -fPIE -pie"},
    {"ClangNoPie", "clang", "-std=c89 -O2 -fno-pie -no-pie"},
    {"ClangNoPieNotOptimized", "clang", "-std=c89 -O0 -fno-pie -no-pie"},
    {"ClangStatic", "clang", "-std=c89 -O2 -static", true},
    {"ClangLldNoPie", "clang", "-std=c89 -O2 -fno-pie -no-pie -fuse-ld=lld"},
    {"GxxPie", "g++", "-x c++ -std=c++98 -O2 -fPIE -pie -Wold-style-cast"},
    {"GxxNoPie", "g++", "-x c++ -std=c++20 -O0 -fno-pie -no-pie"},
    {"GxxStatic", "g++", "-x c++ -std=c++17 -O2 -static", true},
    {"ClangxxPie", "clang++", "-x c++ -std=c++20 -O2 -fPIE -pie"},
    {"ClangxxNoPie", "clang++", "-x c++ -std=c++98 -O2 -fno-pie -no-pie"},
};
INSTANTIATE_TEST_SUITE_P(All, LinkedTest, testing::ValuesIn(kWays),
                         [](const auto& info) { return info.param.name; });

TEST(ClientApiTest, WorksInALibraryThatIsLoadedLate) {
  TempDir directory;
  ASSERT_NO_FATAL_FAILURE(Compile("gcc", "-std=c89 -O2 -fPIC -shared -DAS_LIBRARY " +
                                             SourcePath("tests/tracees/client_api.c") + " -o " +
                                             (directory / "plugin.so")));
  WriteFile(directory / "host.c",
            "#include <dlfcn.h>\n#include <stddef.h>\n"
            "int main(int argc, char** argv) {\n"
            "  void* plugin = dlopen(argv[argc - 1], RTLD_NOW);\n"
            "  int (*run)(void) = NULL;\n"
            "  if (plugin != NULL) *(void**)&run = dlsym(plugin, \"RunAll\");\n"
            "  return run != NULL ? run() : 2;\n}\n");
  const std::string host = directory / "host";
  ASSERT_NO_FATAL_FAILURE(Compile("gcc", (directory / "host.c") + " -o " + host));
  const Result traced =
      RunCommand(Traced({.arguments = {host, directory / "plugin.so"}}, directory.path()));
  EXPECT_EQ(traced.Outcome(), "exit 0") << traced.err;
  EXPECT_EQ(traced.out, kActive);
  EXPECT_EQ(Told(TraceOf(directory.path(), "host", traced.pid)), kAll);
}

TEST(ClientApiTest, LeavesNothingWhereItIsDisabled) {
  TempDir directory;
  const std::string object = directory / "object.o";
  ASSERT_NO_FATAL_FAILURE(Compile("gcc", "-std=c89 -O2 -DMEMTRACE_DISABLE -c " +
                                             SourcePath("tests/tracees/client_api.c") + " -o " +
                                             object));
  const Result symbols = RunCommand({.arguments = {"nm", object}});
  EXPECT_THAT(symbols.out, Not(HasSubstr("memtrace")));
  EXPECT_THAT(symbols.out, Not(HasSubstr("pthread")));
}

// Figures and stacks, from the report of one of them.
TEST(ClientApiTest, IsInTheReport) {
  for (const char* how : {"gcc -O2", "clang -O2", "gcc -O0"}) {
    SCOPED_TRACE(how);
    TempDir directory;
    const std::string program = directory / "program";
    ASSERT_NO_FATAL_FAILURE(
        Compile(how, SourcePath("tests/tracees/client_api.c") + " -o " + program));
    const Result traced = RunCommand(Traced({.arguments = {program}}, directory.path()));
    ASSERT_EQ(traced.Outcome(), "exit 0") << traced.err;
    const Json report = Report(TraceOf(directory.path(), "program", traced.pid));
    ASSERT_EQ(report.at("phases").size(), 1u);
    EXPECT_EQ(report.at("phases")[0].at("name"), "all");
    EXPECT_EQ(report.at("phases")[0].at("growth_bytes"), 100 + 32 + 1002);
    EXPECT_EQ(report.at("marks")[0].at("name"), "half");
    EXPECT_EQ(report.at("pools")[0].at("live_bytes"), 100);
    EXPECT_EQ(report.at("pools")[0].at("frees"), 1);
    EXPECT_EQ(report.at("pools")[0].at("stack")[0].at("function"), "RunAll");
    EXPECT_EQ(report.at("coverage").at("stops"), 1);
    EXPECT_EQ(report.at("coverage").at("stopped_allocations"), 1);
    EXPECT_EQ(report.at("coverage").at("unknown_frees"), 0);
    int found = 0;
    for (const Json& site : report.at("sites")) {
      if (site.at("allocator") != "pool_alloc") continue;
      EXPECT_EQ(site.at("stack")[0].at("function"), "TakeFromArena")
          << "and not memtrace.h's function";
      ++found;
    }
    EXPECT_EQ(found, 2) << "places that take from the arena";
  }
}

// However soon one comes after the other: what a phase took is not in the next one too.
TEST(ClientApiTest, EachPhaseHasItsOwnFaults) {
  TempDir directory;
  const std::string source = directory / "phases.c", program = directory / "phases";
  WriteFile(source, R"(#include <memtrace.h>
#include <sys/mman.h>
static void Touch(char *pages, const char *name) {
  int i;
  memtrace_phase_begin(name);
  for (i = 0; i < 32; ++i) pages[i << 12] = 1;
  memtrace_phase_end(name);
}
int main(void) {
  char *pages = mmap(0, 96 << 12, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) return 1;
  madvise(pages, 96 << 12, MADV_NOHUGEPAGE);
  Touch(pages, "first");
  Touch(pages + (32 << 12), "second");
  Touch(pages, "nothing");
  Touch(pages + (64 << 12), "last");
  return 0;
}
)");
  ASSERT_NO_FATAL_FAILURE(Compile("gcc -O2", source + " -o " + program));
  const Result traced = RunCommand(Traced({.arguments = {program}}, directory.path()));
  ASSERT_EQ(traced.Outcome(), "exit 0") << traced.err;
  const Json report = Report(TraceOf(directory.path(), "phases", traced.pid));
  std::map<std::string, long> faults;
  for (const Json& phase : report.at("phases")) faults[phase.at("name")] = phase.at("minor_faults");
  // And a page of code or of a ring, here and there.
  for (const char* name : {"first", "second", "last"}) EXPECT_THAT(faults[name], AllOf(Ge(32), Le(40))) << name;
  EXPECT_LE(faults["nothing"], 8);
}

// One thread stops and starts the recording as often as it can, another allocates and frees: an event that found
// the recording stopped, and then started again, was in neither of the two ways.
TEST(ClientApiTest, NoEventIsLostBetweenAStopAndAStart) {
  TempDir directory;
  const std::string source = directory / "toggles.c", program = directory / "toggles";
  WriteFile(source, R"(#include <memtrace.h>
#include <pthread.h>
#include <stdlib.h>
static volatile int over;
static void *Work(void *unused) {
  void *kept[256] = {0};
  unsigned state = 1;
  int i;
  for (i = 0; i < 3000000; ++i) {
    const unsigned at = (state = state * 1103515245u + 12345u) >> 16 & 255;
    free(kept[at]);
    kept[at] = malloc(state >> 8 & 1023);
  }
  for (i = 0; i < 256; ++i) free(kept[i]);
  over = 1;
  return unused;
}
int main(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, Work, NULL) != 0) return 1;
  while (!over) {
    memtrace_stop();
    memtrace_start();
  }
  return pthread_join(thread, NULL);
}
)");
  ASSERT_NO_FATAL_FAILURE(Compile("gcc", source + " -pthread -o " + program));
  const Result traced = RunCommand(Traced({.arguments = {program}, .timeout_seconds = 60}, directory.path()));
  ASSERT_EQ(traced.Outcome(), "exit 0") << traced.err;
  const Json report = Report(TraceOf(directory.path(), "toggles", traced.pid));
  EXPECT_GT(report.at("coverage").at("stops"), 10);
  EXPECT_EQ(report.at("coverage").at("unknown_frees"), 0);
  EXPECT_EQ(report.at("coverage").at("unseen_frees"), 0);
  EXPECT_EQ(report.at("invalid_frees").at("stories"), Json::array()) << report.at("invalid_frees");
}

// What is lost meanwhile nobody looks at: no output may say that nothing is. It is the program's
// own wish all the same, and makes no gate red.
TEST(ClientApiTest, WhatWasLostWhileItWasStoppedIsNotDenied) {
  TempDir directory;
  const std::string source = directory / "stops.c", program = directory / "stops";
  WriteFile(source, R"(#include <memtrace.h>
#include <stdlib.h>
int main(void) {
  void *volatile block = malloc(10);
  int i;
  free(block);
  memtrace_stop();
  for (i = 0; i < 1000; ++i) block = malloc(1000);
  block = NULL;
  return 0;
}
)");
  ASSERT_NO_FATAL_FAILURE(Compile("gcc", source + " -o " + program));
  TempDir traces;
  const Result traced = RunCommand(Traced({.arguments = {program}}, traces.path()));
  ASSERT_EQ(traced.Outcome(), "exit 0") << traced.err;
  const std::string trace = TraceOf(traces.path(), "stops", traced.pid);
  const auto memtrace = [](Words arguments) {
    arguments.insert(arguments.begin(), ToolPath());
    const Result result = RunCommand({.arguments = arguments});
    EXPECT_EQ(result.Outcome(), "exit 0") << arguments[1] << result.err;
    return result;
  };
  const std::string said = "recording stopped by the program 1 time for ";
  const auto is_said = Contains(HasSubstr(said));
  const Json report = Report(trace);
  EXPECT_EQ(report.at("coverage").at("all_recorded"), false);
  EXPECT_THAT(report.at("coverage").at("notes"), is_said);
  const Json tree = Json::parse(memtrace({"report", traces.path(), "--format", "json"}).out);
  EXPECT_EQ(tree.at("coverage").at("all_recorded"), false);
  EXPECT_THAT(tree.at("coverage").at("notes"), is_said);
  const Json diff =
      Json::parse(memtrace({"diff", trace, trace, "--exit-code", "--format", "json"}).out);
  EXPECT_EQ(diff.at("old").at("all_recorded"), false);
  EXPECT_THAT(diff.at("old").at("notes"), is_said);
  EXPECT_THAT(memtrace({"rings", trace, "--format", "json"}).out, HasSubstr(said));
  EXPECT_THAT(memtrace({"info", trace}).out, HasSubstr(said));
  EXPECT_THAT(memtrace({"report", trace, "--format", "mtrace"}).out,
              StartsWith("Not known whether there are leaks: " + said));
  EXPECT_THAT(memtrace({"report", trace, "--format", "valgrind"}).out,
              AllOf(HasSubstr("Note: " + said), Not(HasSubstr("no leaks are possible"))));
  EXPECT_THAT(memtrace({"report", trace, "--format", "folded"}).err, HasSubstr(": " + said));
  memtrace({"check", traces.path()});
}

// The scan that counts may be one that was asked for what is new.
TEST(ClientApiTest, WhatIsNotNewInTheLastScanIsThereToBeAskedFor) {
  TempDir directory;
  const std::string source = directory / "asks.c", program = directory / "asks";
  WriteFile(source, R"(#include <memtrace.h>
#include <stdlib.h>
static void *volatile sink;
int main(void) {
  sink = malloc(447);
  sink = NULL;
  if (memtrace_leak_check("first", MEMTRACE_LEAKS_ANY, 1) != 1) return 1;
  if (memtrace_leak_check("second", MEMTRACE_LEAKS_NEW, 1) != 2) return 1;
  abort();
}
)");
  ASSERT_NO_FATAL_FAILURE(Compile("gcc", source + " -o " + program));
  const Result traced = RunCommand(Traced({.arguments = {program}}, directory.path()));
  const std::string trace = TraceOf(directory.path(), "asks", traced.pid);
  const auto report = [&trace](Words more) {
    more.insert(more.begin(), {ToolPath(), "report", trace, "--tables", "leaks", "--width", "200"});
    return RunCommand({.arguments = more});
  };
  const Json document = Report(trace);
  ASSERT_EQ(document.at("leak_scan"), 2);
  ASSERT_FALSE(document.at("leaks").empty());
  EXPECT_EQ(document.at("leaks").size(), document.at("leak_scans")[1].at("records"));
  EXPECT_EQ(document.at("leaks")[0].at("is_new"), false);
  const std::string cure = "the others are not new, --show-leak-kinds=all shows them\n";
  EXPECT_THAT(report({}).out, HasSubstr(": " + cure));
  EXPECT_THAT(report({"--show-leak-kinds", "all"}).out,
              HasSubstr("447 (+0) bytes in 1 (+0) block"));
  const Result refused = report({"--why", "1"});
  EXPECT_EQ(refused.Outcome(), "exit 2");
  EXPECT_THAT(refused.err, HasSubstr("no loss record is shown; " + cure));
  EXPECT_EQ(report({"--why", "1", "--show-leak-kinds", "all"}).Outcome(), "exit 0");
}

}  // namespace
}  // namespace memtrace::e2e
