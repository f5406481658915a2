// Mismatched pairs, in programs that were compiled and linked in several ways; memcheck is the
// second opinion. And what free stacks must not change.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <sstream>

#include "tests/e2e/check_command.h"
#include "tests/e2e/harness.h"

namespace memtrace::e2e {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

using Pair = std::pair<std::string, std::string>;  // "operator new", "free"
using Pairs = std::map<std::string, std::pair<Pair, long>>;  // by the function, with the times

Json MismatchesOf(const std::string& program, const Words& arguments, const std::string& mode) {
  TempDir traces;
  Command command{.arguments = {TraceePath(program)}, .environment = {{"MEMTRACE_FREE_STACKS", mode}}};
  command.arguments.insert(command.arguments.end(), arguments.begin(), arguments.end());
  const Result run = RunCommand(Traced(command, traces.path()));
  EXPECT_EQ(run.Outcome(), "exit 0") << run.err;
  EXPECT_EQ(run.err, "");
  return Report(TraceOf(traces.path(), program, run.pid)).at("mismatches");
}

// "NewThenFree() mismatched_pairs.cc:34" and "(anonymous namespace)::NewThenFree() ..."
std::string FunctionIn(const std::string& caller) {
  const size_t end = caller.find("()");
  const size_t colon = caller.rfind(':', end);
  return caller.substr(colon == std::string::npos ? 0 : colon + 1,
                       end - (colon == std::string::npos ? 0 : colon + 1));
}

Pairs PairsOf(const Json& mismatches) {
  Pairs pairs;
  for (const Json& pair : mismatches.at("pairs")) {
    const std::string function = FunctionIn(pair.at("allocated_at"));
    EXPECT_EQ(FunctionIn(pair.at("ended_at")), function);
    // A loop that was unrolled calls it from several places.
    const Pair functions = {pair.at("allocator"), pair.at("ended_by")};
    const auto [at, is_new] = pairs.try_emplace(function, functions, 0);
    EXPECT_EQ(at->second.first, functions) << function;
    at->second.second += pair.at("times").get<long>();
  }
  return pairs;
}

const Pairs& Expected() {
  static const Pairs* const kPairs = new Pairs{
      {"NewThenFree", {{"operator new", "free"}, 3}},
      {"NewArrayThenFree", {{"operator new[]", "free"}, 1}},
      {"NewArrayThenDelete", {{"operator new[]", "operator delete"}, 2}},
      {"NewThenDeleteArray", {{"operator new", "operator delete[]"}, 1}},
      {"MallocThenDelete", {{"malloc", "operator delete"}, 1}},
      {"CallocThenDeleteArray", {{"calloc", "operator delete[]"}, 1}},
      {"ReallocThenDelete", {{"realloc", "operator delete"}, 1}},
      {"StrdupThenDelete", {{"malloc", "operator delete"}, 1}},
      {"NewThenRealloc", {{"operator new[]", "realloc"}, 1}},
      {"AlignedNewThenFree", {{"operator new", "free"}, 1}},
  };
  return *kPairs;
}

class MismatchesTest : public ::testing::TestWithParam<std::string> {};

TEST_P(MismatchesTest, EachPairIsToldAndNoOther) {
  const Json mismatches = MismatchesOf(GetParam(), {}, "on");
  EXPECT_TRUE(mismatches.at("frees_known").get<bool>());
  EXPECT_EQ(PairsOf(mismatches), Expected());
}

INSTANTIATE_TEST_SUITE_P(Builds, MismatchesTest,
                         ::testing::Values("mismatched_pairs", "mismatched_pairs_no_plt",
                                           "mismatched_pairs_static_libstdcxx",
                                           "mismatched_pairs_no_pie", "mismatched_pairs_clang"),
                         [](const auto& info) { return info.param; });

// memcheck names the functions of both stacks of each, but tells neither how often nor of realloc
// in another way than of free.
TEST(MismatchesOracleTest, MemcheckSaysTheSame) {
  TempDir directory;
  const std::string file = directory / "valgrind.xml";
  const Result run = RunCommand({.arguments = {"valgrind", "--xml=yes", "--xml-file=" + file,
                                               TraceePath("mismatched_pairs")},
                                 .timeout_seconds = 300});
  ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
  std::set<std::string> functions;
  std::istringstream lines(ReadFile(file));
  bool mismatched = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("<kind>") != std::string::npos) {
      mismatched = line.find("MismatchedFree") != std::string::npos;
    }
    const size_t name = line.find("<fn>(anonymous namespace)::");
    if (mismatched && name != std::string::npos) functions.insert(FunctionIn(line.substr(name)));
  }
  std::set<std::string> ours;
  for (const auto& [function, pair] : Expected()) ours.insert(function);
  EXPECT_EQ(functions, ours);
}

TEST(MismatchesOracleTest, WhatAPointerCalledIsNotGuessed) {
  const Json mismatches = MismatchesOf("mismatched_pairs", {"pointers"}, "on");
  EXPECT_EQ(PairsOf(mismatches), Expected());
}

TEST(MismatchesOracleTest, WithoutFreeStacksReallocsAloneAreKnown) {
  const Json mismatches = MismatchesOf("mismatched_pairs", {}, "off");
  EXPECT_FALSE(mismatches.at("frees_known").get<bool>());
  ASSERT_EQ(mismatches.at("pairs").size(), 1u);
  EXPECT_EQ(mismatches.at("pairs").at(0).at("ended_by"), "realloc");
}

TEST(FreeStacksTest, TextHasTheTable) {
  TempDir traces;
  const std::string trace = traces / "app.mtr";
  const Result run = RunCommand({.arguments = {ToolPath(), "run", "-q", "--free-stacks", "-o", trace,
                                               "--", TraceePath("mismatched_pairs")}});
  ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
  for (const char* width : {"80", "200"}) {
    const std::string text = ReportText(trace, {"--table", "reallocs", "--width", width});
    EXPECT_THAT(text, HasSubstr("MISMATCHED PAIRS"));
    EXPECT_THAT(text, HasSubstr("operator new[]"));
    EXPECT_THAT(text, HasSubstr("operator delete"));
  }
  const std::string all = ReportText(trace, {});
  EXPECT_THAT(all, Not(HasSubstr("frees were recorded without stacks")));
}

// Two calls of one line read alike: they are one row.
TEST(FreeStacksTest, PairsThatReadAlikeAreOneRow) {
  TempDir traces;
  const std::string program = Compile(traces, "pairs", "#include <stdlib.h>\n"
      "void* _Znam(unsigned long); void* volatile sink;\n"
      "int main(void) {\n"
      "  sink = realloc(_Znam(10), 20); free(sink); sink = realloc(_Znam(30), 40); free(sink);\n"
      "  return 0;\n}\n", {"-g", "-lstdc++"});
  const std::string trace = traces / "app.mtr";
  const Result run = RunCommand({.arguments = {ToolPath(), "run", "-q", "--free-stacks", "-o", trace, "--", program}});
  ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
  const std::string text = ReportText(trace, {"--table", "reallocs"});
  EXPECT_THAT(text, ContainsRegex(" 2  operator new\\[\\]  realloc +main  pairs.c:4 -> main  pairs.c:4\n"));
  EXPECT_THAT(text, Not(ContainsRegex(" 1  operator new")));
}

TEST(FreeStacksTest, TheDatabaseHasWhereBlocksEnded) {
  TempDir traces;
  const Result run = RunCommand(Traced({.arguments = {TraceePath("mismatched_pairs")},
                                        .environment = {{"MEMTRACE_FREE_STACKS", "on"}}},
                                       traces.path()));
  ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
  ReportText(TraceOf(traces.path(), "mismatched_pairs", run.pid),
             {"--format", "sqlite", "-o", traces / "app.db"});
  long wrong = 0;
  for (const auto& [function, pair] : Expected()) wrong += pair.second;
  const Result query = RunCommand(
      {.arguments = {"sqlite3", traces / "app.db",
                     "SELECT sum(times) FROM block_ends WHERE mismatched;"
                     "SELECT sum(times) >= 100 FROM block_ends WHERE NOT mismatched;"}});
  EXPECT_EQ(query.out, std::to_string(wrong) + "\n1\n") << query.err;
}

// A block that was freed twice: glibc ends the program, and the report says which.
TEST(FreeStacksTest, InvalidFreesHaveTheirStacks) {
  for (const char* how : {"", "inside"}) {
    TempDir traces;
    const std::string trace = traces / "app.mtr";
    Words words = {ToolPath(), "run", "-q", "--free-stacks", "-o", trace, "--", TraceePath("frees_twice")};
    if (*how != '\0') words.push_back(how);
    const Result run = RunCommand({.arguments = words});
    EXPECT_NE(run.Outcome(), "exit 0");
    const Json report = Report(trace);
    const Json& stories = report.at("invalid_frees").at("stories");
    ASSERT_EQ(stories.size(), 1u) << how;
    const Json& story = stories.at(0);
    EXPECT_EQ(story.at("times"), 1);
    EXPECT_EQ(story.at("block_bytes"), 100);
    EXPECT_THAT(story.at("allocated").at("caller").get<std::string>(), HasSubstr("make "));
    EXPECT_THAT(story.at("again").at("caller").get<std::string>(), HasSubstr("give_back_again "));
    const std::string text = ReportText(trace, {});
    EXPECT_THAT(text, HasSubstr("INVALID FREES"));
    if (*how == '\0') {
      EXPECT_EQ(story.at("kind"), "double_free");
      EXPECT_THAT(story.at("freed").at("caller").get<std::string>(), HasSubstr("give_back "));
      EXPECT_THAT(text, HasSubstr("1 double free"));
    } else {
      EXPECT_EQ(story.at("kind"), "inside_live_block");
      EXPECT_EQ(story.at("offset"), 16);
      EXPECT_TRUE(story.at("freed").is_null());
    }
  }
}

// Everything but the mismatches is as it was, for programs whose threads hand blocks over too.
TEST(FreeStacksTest, NothingElseChanges) {
  const Words programs[] = {{"hand_blocks_over", "3", "2000"}, {"counted_pairs", "turns", "5000"}};
  for (const Words& words : programs) {
    const std::string& program = words.front();
    Json reports[2];
    for (const bool on : {false, true}) {
      TempDir traces;
      Words arguments = words;
      arguments.front() = TraceePath(program);
      const Result run = RunCommand(Traced(
          {.arguments = arguments, .environment = {{"MEMTRACE_FREE_STACKS", on ? "on" : "off"}}},
          traces.path()));
      ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
      reports[on] = Report(TraceOf(traces.path(), program, run.pid));
    }
    // How many blocks there are depends on the threads' luck.
    const bool is_exact = program == "counted_pairs";
    for (const char* figure : {"allocations", "frees", "bytes_allocated", "live_bytes", "live_blocks"}) {
      if (!is_exact) break;
      EXPECT_EQ(reports[0].at("totals").at(figure), reports[1].at("totals").at(figure))
          << program << " " << figure;
    }
    for (const char* loss : {"dropped_events", "unordered_events", "unknown_frees", "lost_blocks"}) {
      EXPECT_EQ(reports[1].at("coverage").at(loss), 0) << program << " " << loss;
    }
  }
}

}  // namespace
}  // namespace memtrace::e2e
