// Programs that do what stack capture may go wrong at, traced whole: what the report
// says of their stacks is what the programs know of themselves (tests/tracees/expect.h).
// The cases that can be built inside one process are in tests/unwind and tests/oracle.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "report/trace/trace_reader.h"
#include "tests/e2e/check_command.h"
#include "tests/e2e/expected_stacks.h"
#include "tests/e2e/harness.h"

namespace memtrace::e2e {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

const std::string kPlugins = MEMTRACE_BUILD_DIR "/tests/tracees/plugins";

// Runs the tracee, and checks what it told of itself against its trace.
struct Traces {
  explicit Traces(const std::string& tracee, const Words& arguments,
                  const std::string& outcome = "exit 0", const Environment& environment = {},
                  const std::string& top = "1000000") {
    Words words = {TraceePath(tracee)};
    words.insert(words.end(), arguments.begin(), arguments.end());
    run = RunCommand(Traced({.arguments = words, .environment = environment}, directory.path()));
    EXPECT_EQ(run.Outcome(), outcome) << run.err;
    trace = TraceOf(directory.path(), tracee);
    told = Parse(run.out);
    report = Report(trace, {"--top", top});
    EXPECT_FALSE(told.expected.empty());
    ExpectStacks(report, told.expected);
    EXPECT_EQ(Coverage("dropped_events"), 0);
  }
  int64_t Coverage(const char* key) const { return report.at("coverage").at(key).get<int64_t>(); }

  TempDir directory;
  Result run;
  std::string trace;
  Told told;
  Json report;
};

// The lines "# module ..." of a dump for files that end in `name`: their instances.
std::vector<std::string> Instances(const std::string& trace, const std::string& name) {
  const Result dump = RunCommand({.arguments = {ToolPath(), "dump", trace}});
  EXPECT_EQ(dump.Outcome(), "exit 0") << dump.err;
  std::vector<std::string> instances;
  std::istringstream lines(dump.out);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# module ") && line.ends_with("/" + name)) {
      instances.push_back(line.substr(9, line.find(' ', 9) - 9));
    }
  }
  return instances;
}

constexpr uint64_t kBudgetBytes = 2 << 20;          // of a process
constexpr uint64_t kThreadBudgetBytes = 256 << 10;  // and of each of its threads

TEST(HazardsTest, PluginsComeAndGoAtTheSameAddresses) {
  constexpr int kRounds = 60;
  const Traces traces("plugins_come_and_go", {kPlugins, std::to_string(kRounds)});
  EXPECT_GT(traces.told.numbers.at("again"), kRounds / 2) << "the addresses were not used again";
  EXPECT_EQ(traces.Coverage("marked_stacks"), 0);
  // Each load is an instance of its own, of the same file too.
  std::set<std::string> all;
  for (const char* name : {"libplugin_red.so", "libplugin_blue.so"}) {
    const std::vector<std::string> instances = Instances(traces.trace, name);
    EXPECT_EQ(instances.size(), size_t{kRounds} / 2) << name;
    all.insert(instances.begin(), instances.end());
  }
  EXPECT_EQ(all.size(), size_t{kRounds});
}

// A leak of a plugin is one, however often the plugin was loaded.
TEST(HazardsTest, TheLeakOfAPluginThatComesAgainIsOne) {
  constexpr int kLoads = 30;
  TempDir directory;
  const std::string plugin = directory / "plugin.so";
  const auto compile = [&](const std::string& name, const std::string& code, const Words& options) {
    WriteFile(directory / (name + ".c"), code);
    Words words = {"gcc", "-g", "-O0", directory / (name + ".c")};
    words.insert(words.end(), options.begin(), options.end());
    ASSERT_EQ(RunCommand({.arguments = words}).Outcome(), "exit 0");
  };
  compile("plugin", "#include <stdlib.h>\nvoid Leak(void) { void* volatile p = malloc(100); p = NULL; }\n",
          {"-shared", "-fPIC", "-Wl,--build-id", "-o", plugin});
  compile("host", R"(#include <dlfcn.h>
#include <stdlib.h>
#include <sys/mman.h>
int main(int argc, char** argv) {
  for (int i = 0; i < atoi(argv[2]); ++i) {
    void* library = dlopen(argv[1], RTLD_NOW);
    void (*leak)(void) = (void (*)(void))dlsym(library, "Leak");
    leak();
    dlclose(library);
    mmap(NULL, 1 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);  // the next comes elsewhere
  }
  return 0;
})", {"-o", directory / "host"});
  ASSERT_EQ(RunCommand(Traced({.arguments = {directory / "host", plugin, std::to_string(kLoads)}},
                              directory.path())).Outcome(), "exit 0");
  const std::string trace = TraceOf(directory.path(), "host");
  EXPECT_EQ(Instances(trace, "plugin.so").size(), size_t{kLoads});
  const Json report = Report(trace);
  int records = 0;
  for (const Json& record : report.at("leaks")) {
    if (record.at("kind") != "definite") continue;
    ++records;
    EXPECT_EQ(record.at("blocks"), kLoads);
    EXPECT_THAT(Names(record.at("stack")), HasSubstr(" Leak main"));
  }
  EXPECT_EQ(records, 1);
}

// By gcc's __do_global_dtors_aux(), which has no unwind information.
TEST(HazardsTest, DestructorsOfAPluginThatIsClosedHaveWholeStacks) {
  TempDir directory;
  const std::string plugin = directory / "plugin.so", source = directory / "plugin.cc";
  WriteFile(source, R"(#include <stdlib.h>
struct Leaks {
  Leaks() {}
  ~Leaks() { void* volatile lost = malloc(555); lost = nullptr; }
} leaks;
)");
  const Command compiler = {
      .arguments = {"g++", "-g", "-O0", "-shared", "-fPIC", "-o", plugin, source}};
  ASSERT_EQ(RunCommand(compiler).Outcome(), "exit 0");
  const std::string host = Compile(directory, "host", R"(#include <dlfcn.h>
int main(int argc, char** argv) {
  for (int i = 0; i < 2; ++i) {
    void* const library = dlopen(argv[argc - 1], RTLD_NOW);
    if (!library) return 1;
    dlclose(library);
  }
  return 0;
})");
  Command command = {.arguments = {host, plugin}};
  command.environment = {{"MEMTRACE_CROSS_CHECK", "1"}};
  ASSERT_EQ(RunCommand(Traced(command, directory.path())).Outcome(), "exit 0");
  const Json report = Report(TraceOf(directory.path(), "host"));
  EXPECT_EQ(report.at("coverage").at("marked_stacks"), 0);
  EXPECT_EQ(report.at("coverage").at("cross_check_differences"), 0);
  uint64_t destroyed = 0;
  for (const Json& site : report.at("sites")) {
    const std::string names = Names(site.at("stack"));
    if (!names.starts_with(" Leaks::~Leaks()")) continue;
    destroyed += site.at("allocations").get<uint64_t>();
    EXPECT_THAT(names, HasSubstr(" __do_global_dtors_aux "));
    EXPECT_THAT(names, HasSubstr(" main "));
  }
  EXPECT_EQ(destroyed, 2u);
}

TEST(HazardsTest, GconvModulesComeAndGoUnseen) {
  const Traces traces("gconv_comes_and_goes", {kPlugins, "300"}, "exit 0",
                      {{"GCONV_PATH", MEMTRACE_BUILD_DIR "/tests/tracees/charsets"}});
  EXPECT_GT(traces.told.numbers.at("unloads"), 10) << "glibc unloaded nothing by itself";
  EXPECT_EQ(traces.Coverage("marked_stacks"), 0);
  // What a character set's module allocates while it is loaded, it allocates for the
  // function that asked for the set.
  const std::map<std::string, std::string> asked_by = {{"UTF-16.so", "OpenUtf16"},
                                                       {"UTF-32.so", "OpenUtf32"},
                                                       {"UNICODE.so", "OpenUnicode"},
                                                       {"ISO-2022-KR.so", "OpenIso2022Kr"}};
  std::map<std::string, int> met;
  for (const Json& site : traces.report.at("sites")) {
    for (const Json& frame : site.at("stack")) {
      const std::string module = frame.value("module", "");
      if (module.find("/gconv/") == std::string::npos) continue;
      const std::string name = module.substr(module.rfind('/') + 1);
      ASSERT_EQ(asked_by.count(name), 1u) << name << Names(site.at("stack"));
      EXPECT_THAT(Names(site.at("stack")), HasSubstr(asked_by.at(name) + " main"));
      ++met[name];
    }
  }
  EXPECT_GE(met.size(), 3u) << "which modules allocate themselves";
}

TEST(HazardsTest, ExceptionsAndCancellationThroughTracedFrames) {
  const Traces traces("exceptions_and_cancellation", {kPlugins, "50"});
  EXPECT_EQ(traces.Coverage("marked_stacks"), 0);
}

// Threads that come and go, eight at a time.
void RunThreads(int threads) {
  constexpr int kAtOnce = 8;
  const Traces traces("thread_churn", {std::to_string(threads), std::to_string(kAtOnce)});
  EXPECT_EQ(traces.Coverage("marked_stacks"), 0);
  const auto& totals = traces.report.at("totals");
  // Late frees too: nothing of these sizes is live.
  for (const Json& site : traces.report.at("sites")) {
    for (const Json& frame : site.at("stack")) {
      if (IsFunction(frame, "Short") || IsFunction(frame, "Late")) {
        EXPECT_EQ(site.at("live_blocks"), 0) << Names(site.at("stack"));
      }
    }
  }
  EXPECT_LT(totals.at("live_blocks").get<uint64_t>(), 100u);
  const auto counters = Counters(traces.trace);
  EXPECT_EQ(counters.at("missed_events"), 0u);
  // The memory of threads that ended serves the next. Some end a little after they are joined.
  EXPECT_LE(counters.at("tool_memory_bytes"),
            kBudgetBytes + (2 * kAtOnce + 1) * kThreadBudgetBytes);
}

TEST(HazardsTest, TenThousandThreads) { RunThreads(10'000); }
TEST(HazardsTest, DISABLED_AHundredThousandThreads) { RunThreads(100'000); }

// glibc lets it pass; so do we.
TEST(HazardsTest, AStackPointerThatIsNoMultipleOfSixteen) {
  for (const Environment& environment :
       {Environment{{"MEMTRACE_CROSS_CHECK", "1"}}, Environment{{"MEMTRACE_STACKS", "off"}},
        Environment{{"MEMTRACE_SAMPLE_BYTES", "4096"}}}) {
    SCOPED_TRACE(environment[0].first);
    TempDir directory;
    Command command = Traced({.arguments = {TraceePath("misaligned_stack")},
                              .environment = environment}, directory.path());
    const Result run = RunCommand(command);
    ASSERT_EQ(run.Outcome(), "exit 7") << run.err;
    EXPECT_EQ(run.out, "done\n");
    const Json report = Report(TraceOf(directory.path(), "misaligned_stack", run.pid));
    EXPECT_EQ(report.at("process").at("end"), "exit");
    if (environment[0].first != "MEMTRACE_CROSS_CHECK") continue;
    EXPECT_FALSE(report.at("leak_scan").is_null()) << report.at("no_leak_scan");
    EXPECT_GT(report.at("coverage").at("cross_checked"), 19'000);
    EXPECT_EQ(report.at("coverage").at("cross_check_differences"), 0);
    EXPECT_TRUE(NamesFunction(report, "Allocate"));
    uint64_t mapped = 0;
    for (const Json& mapping : report.at("mappings")) {
      if (Names(mapping.at("stack")).starts_with(" Map CallMisaligned main ")) {
        mapped += mapping.at("calls").get<uint64_t>();
      }
    }
    EXPECT_EQ(mapped, 20u) << "ten mmap and ten mremap";
  }
}

// One thread moves a mapping to and fro, or shrinks it; another maps where it was before that has
// returned. What cannot be moved stays where it is.
TEST(HazardsTest, WhatIsMappedWhereAMappingWasMovedFromIsLive) {
  TempDir directory;
  const std::string program = Compile(directory, "moves", R"(#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
static atomic_int over;
static void* MapMib(int mib) {
  return mmap(0, (size_t)mib << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}
static void* Keep(void* none) {
  for (int i = 0; i < 20000; ++i) MapMib(1);
  over = 1;
  return none;
}
__attribute__((noinline)) static int Move(void) {
  void* place = MapMib(1);
  do {
    void* hole = MapMib(1);
    if (mremap(place, 1 << 20, 1 << 20, MREMAP_MAYMOVE | MREMAP_FIXED, hole) != hole) return 0;
    place = hole;
    if (mremap(MapMib(2), 2 << 20, 1 << 20, 0) == MAP_FAILED) return 0;
  } while (!over);
  errno = 0;
  // More than there are addresses for.
  return mremap(place, 1 << 20, (size_t)1 << 60, MREMAP_MAYMOVE) == MAP_FAILED && errno != 0;
}
int main(void) {
  pthread_t thread;
  pthread_create(&thread, 0, Keep, 0);
  const int moved = Move();
  pthread_join(thread, 0);
  return !moved;
}
)", {"-pthread", "-O0"});
  const Result run = RunCommand(Traced({.arguments = {program}}, directory.path()));
  ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
  int64_t kept = 0, moved = 0, shrunk = -1;
  const Json report = Report(TraceOf(directory.path(), "moves", run.pid));
  for (const Json& mapping : report.at("mappings")) {
    const std::string names = Names(mapping.at("stack"));
    const int64_t live = mapping.at("live_bytes").get<int64_t>() >> 20;
    if (names.find(" Keep ") != std::string::npos) kept += live;
    if (names.find(" Move ") == std::string::npos) continue;
    moved += live;
    shrunk = std::max(shrunk, live);
  }
  EXPECT_EQ(kept, 20000);
  EXPECT_GT(shrunk, 0);
  EXPECT_EQ(moved, shrunk + 1) << "the one that is moved, and what was shrunk";
}

// Stacks that grow by pieces, which lie anywhere: a frame's caller may be below it.
TEST(HazardsTest, StacksOfPiecesAreWhole) {
  TempDir directory;
  const std::string program = Compile(directory, "pieces", R"(#include <stdlib.h>
static void* volatile sink;
__attribute__((noinline)) int Recurse(int n) {
  volatile char frame[2000];
  frame[0] = (char)n;
  if (n == 0) {
    sink = malloc(77);
    free(sink);
    return 1;
  }
  const int result = Recurse(n - 1);
  frame[1] = (char)result;
  return result + 1;
}
int main(void) { return Recurse(50) != 51; })", {"-fsplit-stack"});
  ASSERT_EQ(RunCommand(Traced({.arguments = {program}}, directory.path())).Outcome(), "exit 0");
  const Json report = Report(TraceOf(directory.path(), "pieces"), {"--top", "1000"});
  int found = 0;
  for (const Json& site : report.at("sites")) {
    const Json& stack = site.at("stack");
    if (!IsFunction(stack.front(), "Recurse")) continue;
    ++found;
    const auto count_of = [&](const char* function) {
      return std::count_if(stack.begin(), stack.end(), [&](const Json& frame) {
        return IsFunction(frame, function);
      });
    };
    EXPECT_EQ(count_of("Recurse"), 51);
    EXPECT_GE(count_of("main"), 1);
    EXPECT_FALSE(IsMarker(stack.back()));
  }
  EXPECT_EQ(found, 1);
}

TEST(HazardsTest, RecursionAHundredThousandDeep) {
  constexpr uint64_t kDepth = 100'000;
  const Traces traces("deep_recursion", {std::to_string(kDepth)});
  uint64_t cut = 0, whole = 0;
  for (const Json& site : traces.report.at("sites")) {
    const Json& stack = site.at("stack");
    if (!IsFunction(stack.front(), "Recurse")) continue;
    const auto allocations = site.at("allocations").get<uint64_t>();
    const size_t frames = stack.size() - IsMarker(stack.back());
    if (IsMarker(stack.back())) {
      EXPECT_GE(frames, 1024u);
      EXPECT_LE(frames, 1279u);
      for (size_t i = 0; i < frames; ++i) ASSERT_TRUE(IsFunction(stack[i], "Recurse")) << i;
      cut += allocations;
    } else {
      // Called by main, every one by the one before it.
      size_t recursions = 0;
      while (IsFunction(stack[recursions], "Recurse")) ++recursions;
      EXPECT_TRUE(IsFunction(stack[recursions], "main"));
      whole += allocations;
    }
  }
  // Depth 0, 100, ... from main: the first eleven are less than 1024 frames deep.
  const uint64_t all = 2 * (kDepth / 100 + 1) + 1000;
  EXPECT_EQ(cut + whole, all);
  // Those that came next may have joined them, up to 1279.
  EXPECT_GE(whole, 2 * 11u);
  EXPECT_LE(whole, 2 * 13u);
  EXPECT_EQ(traces.Coverage("marked_stacks"), static_cast<int64_t>(cut));
  // The work is bounded by the frames that are kept, not by the depth.
  const auto counters = Counters(traces.trace);
  EXPECT_LE(counters.at("stack_frames_walked"), (all + 200) * 2 * 1024);
  EXPECT_LE(counters.at("tool_memory_bytes"), kBudgetBytes + kThreadBudgetBytes);
}

// Neither their number nor their order makes the tracer grow, and they are all right.
class DistinctStacksTest : public ::testing::Test {
 protected:
  static void Run(long leaves, const char* order) {
    const Traces traces("distinct_stacks", {std::to_string(leaves), order}, "exit 0", {},
                        /*top=*/"100");
    EXPECT_EQ(traces.told.numbers.at("leaves"), leaves);
    EXPECT_EQ(traces.told.expected.size(), 16u);
    EXPECT_EQ(traces.Coverage("marked_stacks"), 0);
    EXPECT_GE(traces.report.at("totals").at("allocations").get<int64_t>(), leaves);
    const auto counters = Counters(traces.trace);
    EXPECT_LE(counters.at("tool_memory_bytes"), kBudgetBytes + kThreadBudgetBytes);
    EXPECT_LE(traces.told.numbers.at("growth_kib"), 512) << "of the whole process";
    // Every stack by one of the ways, and `info` tells how many by each.
    uint64_t stacks = 0;
    for (const char* way : {"stacks_memo_hits", "stacks_joined_whole", "stacks_joined_part",
                            "stacks_walked", "stacks_generic"}) {
      stacks += counters.at(way);
    }
    EXPECT_EQ(stacks, traces.report.at("totals").at("allocations").get<uint64_t>());
    EXPECT_EQ(counters.at("stacks_marked"), 0u);
    EXPECT_GE(counters.at("stacks_joined_part"), static_cast<uint64_t>(leaves) * 9 / 10);
  }
};

TEST_F(DistinctStacksTest, TwoHundredThousandInTheOrderOfTheTree) { Run(200'000, "tree"); }
TEST_F(DistinctStacksTest, AHundredThousandInRandomOrder) { Run(100'000, "random"); }

class LoaderStormTest : public ::testing::Test {
 protected:
  // The harness is the watchdog: what hangs is killed, and fails as "timed out".
  static void Run(int seconds) {
    TempDir directory, counts;
    Command command = {.arguments = {TraceePath("loader_storm"), kPlugins, std::to_string(seconds)},
                       .timeout_seconds = seconds * 2 + 60};
    const Result run = RunCommand(TracedAndCounted(command, directory.path(), counts.path()));
    ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
    const std::string trace = TraceOf(directory.path(), "loader_storm");
    const Told told = Parse(run.out);
    const Json report = Report(trace, {"--top", "1000000"});
    ExpectStacks(report, told.expected);
    for (const Expected& expected : told.expected) EXPECT_GT(expected.count, 10u);
    const Json& totals = report.at("totals");
    const Json& coverage = report.at("coverage");
    EXPECT_EQ(coverage.at("marked_stacks"), 0);
    // All that was allocated, whoever did it: the shim behind the tracer counted it too.
    const MemtraceCounts counted = Counts(counts.path(), "loader_storm");
    EXPECT_EQ(totals.at("allocations"), counted.allocations);
    EXPECT_EQ(totals.at("frees"), counted.frees);
    EXPECT_EQ(totals.at("bytes_allocated"), counted.bytes);
    // The handlers' too, where they interrupted the tracer.
    EXPECT_EQ(Counters(trace).at("missed_events"), 0u);
    EXPECT_EQ(coverage.at("dropped_events"), 0);
    EXPECT_GT(told.numbers.at("handler_mappings"), 0);
  }
};

TEST_F(LoaderStormTest, LosesNothingAndDoesNotHang) { Run(4); }

// The same for long, in a test of their own: ctest -L long.
TEST_F(LoaderStormTest, DISABLED_ForFiveMinutes) { Run(300); }
// A report of ten million sites takes 18 GB: what the library itself counted must do here.
TEST_F(DistinctStacksTest, DISABLED_TenMillion) {
  constexpr uint64_t kLeaves = 10'000'000;
  TempDir directory;
  const Result run = RunCommand(
      Traced({.arguments = {TraceePath("distinct_stacks"), std::to_string(kLeaves), "tree"},
              .environment = {{"MEMTRACE_LEAK_CHECK", "off"}}, .timeout_seconds = 600},
             directory.path()));
  ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
  EXPECT_LE(Parse(run.out).numbers.at("growth_kib"), 512) << "of the whole process";
  const auto reader = report::TraceReader::Open(TraceOf(directory.path(), "distinct_stacks"));
  ASSERT_TRUE(reader.ok()) << reader.status();
  const report::TraceMetadata& metadata = (*reader)->metadata();
  EXPECT_LE(metadata.counter("tool_memory_bytes"), kBudgetBytes + kThreadBudgetBytes);
  EXPECT_GE(metadata.counter("stacks_joined_part"), kLeaves * 9 / 10);
  EXPECT_EQ(metadata.counter("stacks_marked"), 0u);
  EXPECT_EQ(metadata.counter("dropped_events"), 0u);
  Run(1'000'000, "random");
}

class OverrunStackTest : public ::testing::TestWithParam<const char*> {};

// The program writes over its frames, allocates, and returns into what it wrote. Under the
// tracer it ends as without: the tracer does not crash first.
TEST_P(OverrunStackTest, DiesOfItsOwnAndNotBefore) {
  for (const char* words : {"2", "6", "20", "60"}) {
    const Words arguments = {TraceePath("overrun_stack"), words, GetParam()};
    const Result plain = RunCommand({.arguments = arguments});
    ASSERT_THAT(plain.out, HasSubstr("done\n"));
    ASSERT_THAT(plain.Outcome(), AnyOf("signal 11", "signal 4", "signal 7"));
    TempDir directory;
    const Result traced = RunCommand(Traced({.arguments = arguments}, directory.path()));
    EXPECT_EQ(traced.out, plain.out);
    EXPECT_EQ(traced.Outcome(), plain.Outcome());
    const std::string trace = TraceOf(directory.path(), "overrun_stack");
    const Json report = Report(trace);
    ExpectStacks(report, Parse(plain.out).expected);
    EXPECT_EQ(report.at("coverage").at("dropped_events"), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Patterns, OverrunStackTest,
                         ::testing::Values("letters", "zeros", "code", "stack"),
                         [](const auto& info) { return std::string(info.param); });

// A handler that jumps out of the library while it makes a larger table of rules must not leave it
// at that table for good, also where it strikes each time before a whole table could be made.
TEST(HazardsTest, TheRulesOfManyPlacesAreKeptThoughHandlersJumpOutOfIt) {
  TempDir traces;
  const Result run =
      RunCommand(Traced({.arguments = {TraceePath("jumps_among_many_places")}}, traces.path()));
  ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
  const std::string trace = TraceOf(traces.path(), "jumps_among_many_places");
  const Result info = RunCommand({.arguments = {ToolPath(), "info", trace}});
  uint64_t missed = 0, full = 0;
  std::istringstream lines(info.out);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    uint64_t value = 0;
    if (!(words >> name >> value)) continue;
    if (name == "rule_misses") missed = value;
    if (name == "rule_table_full") full = value;
  }
  EXPECT_GT(missed, 2048u) << info.out;
  EXPECT_EQ(full, 0u) << run.out;
}

// On a stack that is not the thread's own it is not proven that a handler jumped: the thread loses
// all its states, and what it does then is counted as missed. How it ends is told all the same.
TEST(HazardsTest, TheEndIsToldThoughHandlersHaveLeftEveryState) {
  for (const auto& [how, end] : std::map<std::string, std::string>{
           {"return", "exit 7"}, {"_exit", "exit 7"}, {"exec", "replaced itself by exec"}}) {
    TempDir traces;
    const Result run = RunCommand(
        Traced({.arguments = {TraceePath("jumps_on_another_stack"), how}}, traces.path()));
    ASSERT_EQ(run.Outcome(), how == "exec" ? "exit 0" : "exit 7") << run.err;
    const Result info = RunCommand(
        {.arguments = {ToolPath(), "info", TraceOf(traces.path(), "jumps_on_another_stack")}});
    EXPECT_THAT(info.out, HasSubstr("  end                    " + end + "\n"));
  }
}

}  // namespace
}  // namespace memtrace::e2e
