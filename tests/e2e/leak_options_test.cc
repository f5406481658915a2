// Options of memtrace report about leaks, and Valgrind's of the same names on the same programs:
// --leak-resolution, --suppressions.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <set>
#include <string>

#include "tests/e2e/harness.h"
#include "tests/e2e/memcheck.h"

namespace memtrace::e2e {
namespace {

using testing::HasSubstr;

std::string TraceIn(const TempDir& directory, const std::string& program) {
  const Result run = RunCommand(Traced({.arguments = {TraceePath(program)}}, directory.path()));
  EXPECT_EQ(run.Outcome(), "exit 0") << run.err;
  return TraceOf(directory.path(), program);
}

std::string ValgrindLog(const std::string& program, const Words& options) {
  Words words = MemcheckCommand({"--show-leak-kinds=all", "--num-callers=50"});
  words.insert(words.end(), options.begin(), options.end());
  words.push_back(TraceePath(program));
  const Result run = RunCommand({.arguments = words});
  EXPECT_EQ(run.Outcome(), "exit 0") << run.err;
  return run.err;
}

// --- Resolution ---------------------------------------------------------------

// "definite 600 in 3".
using Records = std::multiset<std::string>;

Records DefiniteOfValgrind(const std::string& log) {
  static const std::regex kRecord(R"(== ([\d,]+) bytes in ([\d,]+) blocks? (?:are|is) definitely lost)");
  Records records;
  for (std::sregex_iterator it(log.begin(), log.end(), kRecord), end; it != end; ++it) {
    const auto plain = [](std::string number) {
      return std::regex_replace(number, std::regex(","), "");
    };
    records.insert(plain((*it)[1]) + " in " + plain((*it)[2]));
  }
  return records;
}

Records DefiniteOfMemtrace(const std::string& trace, const std::string& resolution) {
  Records records;
  const Json report = Report(trace, {"--leak-resolution", resolution});
  for (const Json& leak : report.at("leaks")) {
    if (leak.at("kind") != "definite") continue;
    records.insert(std::to_string(leak.at("bytes").get<uint64_t>()) + " in " +
                   std::to_string(leak.at("blocks").get<uint64_t>()));
  }
  return records;
}

TEST(LeakResolutionTest, RecordsAreThoseOfValgrind) {
  if (!HaveValgrind()) GTEST_SKIP() << "no valgrind";
  const TempDir directory;
  const std::string trace = TraceIn(directory, "allocates_by_new");
  std::set<size_t> counts;
  for (const char* resolution : {"low", "med", "high"}) {
    SCOPED_TRACE(resolution);
    const Records theirs = DefiniteOfValgrind(
        ValgrindLog("allocates_by_new", {std::string("--leak-resolution=") + resolution}));
    EXPECT_EQ(DefiniteOfMemtrace(trace, resolution), theirs);
    EXPECT_GE(theirs.size(), 6u);
    counts.insert(theirs.size());
  }
  EXPECT_EQ(counts.size(), 3u) << "the program has stacks that differ in every depth";
}

// libstdc++'s operator new[] jumps to operator new: what the program called is told by the instruction that did, here by a
// first report and by a second one, which asks the cache.
TEST(AllocationNameTest, NewArrayIsToldFromNew) {
  const TempDir directory;
  const std::string trace = TraceIn(directory, "allocates_by_new");
  const std::string first = ReportText(trace, {"--table", "leaks", "--full"});
  EXPECT_THAT(first, testing::ContainsRegex("300 bytes in 1 block is definitely lost, operator new\\[\\]"));
  EXPECT_THAT(first, testing::ContainsRegex("200 bytes in 1 block is definitely lost, operator new "));
  EXPECT_EQ(ReportText(trace, {"--table", "leaks", "--full"}), first);
  const Result log = RunCommand({.arguments = {ToolPath() + "-valgrind", "-q", "--leak-check=full",
                                               TraceePath("allocates_by_new")}});
  EXPECT_THAT(log.err, testing::ContainsRegex("at 0x[0-9A-F]+: operator new\\[\\]\\(unsigned long\\) \\("));
  EXPECT_THAT(log.err, testing::ContainsRegex("at 0x[0-9A-F]+: operator new\\(unsigned long\\) \\("));
  EXPECT_THAT(log.err, testing::HasSubstr("operator new(unsigned long, std::nothrow_t const&)"));
}

// --- Heuristics ---------------------------------------------------------------

// As blocks of their own and as slices of a slab; GLib of 2.76 and later has no slabs.
TEST(GLibHeuristicsTest, ObjectsWithPrivateDataAreReachable) {
  for (const char* slice : {"", "always-malloc"}) {
    SCOPED_TRACE(slice);
    const TempDir directory;
    Command command = Traced({.arguments = {TraceePath("keeps_gobjects")}}, directory.path());
    command.environment.emplace_back("G_SLICE", slice);
    const Result run = RunCommand(command);
    if (run.Outcome() == "exit 77") GTEST_SKIP() << "no GLib";
    ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
    const std::string trace = TraceOf(directory.path(), "keeps_gobjects");
    const auto texts = [&](const Words& options) {
      std::map<std::string, uint64_t> blocks;
      const Json report = Report(trace, options);
      for (const Json& leak : report.at("leaks")) {
        if (leak.at("bytes") == 300 * leak.at("blocks").get<uint64_t>()) {
          blocks[leak.at("kind")] += leak.at("blocks").get<uint64_t>();
        }
      }
      return blocks;
    };
    EXPECT_THAT(texts({}), testing::ElementsAre(testing::Pair("reachable", 100)));
    EXPECT_THAT(texts({"--leak-check-heuristics", "none"}), testing::ElementsAre(testing::Pair("possible", 100)));
    const Json report = Report(trace);
    const Json& by = report.at("leak_scans").at(0).at("reachable_via_heuristic");
    EXPECT_GT(by.at("gobject").at("blocks").get<int>() + by.at("gslice").at("blocks").get<int>(), 0);
    const std::string notes = report.at("leak_scans").at(0).at("notes").dump();
    if (*slice != 0) {
      EXPECT_THAT(notes, testing::Not(testing::HasSubstr("G_SLICE")));
    } else if (by.at("gslice").at("blocks") != 0) {
      EXPECT_THAT(notes, testing::HasSubstr("G_SLICE=always-malloc"));
    }
  }
}

// --- Suppressions -------------------------------------------------------------

constexpr char kOfValgrind[] = R"({
   one kind of a function
   Memcheck:Leak
   match-leak-kinds: definite
   fun:calloc
   fun:lose_indirectly
   ...
}
{
   what is kept
   Memcheck:Leak
   match-leak-kinds: reachable
   fun:calloc
   fun:keep_reachable
   ...
}
{
   of another program
   Memcheck:Leak
   fun:malloc
   fun:never_called
}
)";

std::map<std::string, std::string> SummaryOfValgrind(const std::string& log) {
  static const std::regex kLine(
      R"((definitely lost|indirectly lost|possibly lost|still reachable|suppressed): ([\d,]+) bytes in ([\d,]+) block)");
  static const std::map<std::string, std::string> kNames = {{"definitely lost", "definite"},
                                                            {"indirectly lost", "indirect"},
                                                            {"possibly lost", "possible"},
                                                            {"still reachable", "reachable"},
                                                            {"suppressed", "suppressed"}};
  std::map<std::string, std::string> summary;
  for (std::sregex_iterator it(log.begin(), log.end(), kLine), end; it != end; ++it) {
    summary[kNames.at((*it)[1])] = (*it)[2].str() + " in " + (*it)[3].str();
  }
  return summary;
}

Json ScanOf(const Json& report) { return report.at("leak_scans").at(0); }

std::map<std::string, std::string> SummaryOfMemtrace(const Json& report) {
  std::map<std::string, std::string> summary;
  const auto text = [](const Json& amount) {
    return std::to_string(amount.at("bytes").get<uint64_t>()) + " in " +
           std::to_string(amount.at("blocks").get<uint64_t>());
  };
  const Json scan = ScanOf(report);
  for (const auto& [kind, amount] : scan.at("totals").items()) summary[kind] = text(amount);
  summary["suppressed"] = text(scan.at("suppressed"));
  return summary;
}

class SuppressionsTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_ = new TempDir;
    trace_ = TraceIn(*directory_, "leaks_of_each_kind");
  }
  static void TearDownTestSuite() {
    delete directory_;
    directory_ = nullptr;
  }
  static std::string File(const std::string& content) {
    const std::string path = *directory_ / "leaks.supp";
    WriteFile(path, content);
    return path;
  }

  inline static TempDir* directory_ = nullptr;
  inline static std::string trace_;
};

TEST_F(SuppressionsTest, AreCountedApartAsByValgrind) {
  const std::string file = File(kOfValgrind);
  const Json report = Report(trace_, {"--suppressions", file});
  const std::map<std::string, std::string> expected = {{"definite", "300 in 3"},
                                                       {"indirect", "32 in 1"},
                                                       {"possible", "200 in 1"},
                                                       {"reachable", "0 in 0"},
                                                       {"suppressed", "64 in 2"}};
  EXPECT_EQ(SummaryOfMemtrace(report), expected);
  if (HaveValgrind()) {
    EXPECT_EQ(SummaryOfValgrind(ValgrindLog("leaks_of_each_kind", {"--suppressions=" + file})),
              expected);
  }
  EXPECT_EQ(ScanOf(report).at("suppressed_records"), 2);
  std::map<std::string, uint64_t> used;
  const Json scan = ScanOf(report);
  for (const Json& each : scan.at("suppressions")) {
    used[each.at("name")] = each.at("records").get<uint64_t>();
  }
  EXPECT_EQ(used, (std::map<std::string, uint64_t>{
                      {"one kind of a function", 1}, {"what is kept", 1}, {"of another program", 0}}));
  int suppressed = 0;
  for (const Json& leak : report.at("leaks")) {
    if (leak.at("kind") != "suppressed") continue;
    ++suppressed;
    EXPECT_THAT(leak.at("lost_as").get<std::string>(), testing::AnyOf("definite", "reachable"));
  }
  EXPECT_EQ(suppressed, 2);
  const std::string text = ReportText(
      trace_, {"--suppressions", file, "--show-leak-kinds", "all", "--table", "leaks"});
  EXPECT_THAT(text, HasSubstr("suppressed: 64 bytes in 2 blocks"));
  EXPECT_THAT(text, HasSubstr("suppression of another program matched nothing"));
  EXPECT_THAT(text, testing::Not(HasSubstr("keep_reachable")));
  EXPECT_THAT(ReportText(trace_, {"--suppressions", file, "--format", "csv", "--table", "leaks"}),
              HasSubstr("suppressed,32,1,calloc"));
}

TEST_F(SuppressionsTest, TakeWithThemWhatOnlyTheyLeadTo) {
  const std::string file = File(kOfValgrind);
  const Json report = Report(trace_, {"--suppressions", file, "--suppress-children"});
  EXPECT_EQ(SummaryOfMemtrace(report),
            (std::map<std::string, std::string>{{"definite", "300 in 3"},
                                                {"indirect", "0 in 0"},
                                                {"possible", "200 in 1"},
                                                {"reachable", "0 in 0"},
                                                {"suppressed", "96 in 3"}}));
}

TEST_F(SuppressionsTest, OfLeakSanitizerAreTakenAsWell) {
  const Json report = Report(trace_, {"--suppressions", File("leak:lose_definitely\n")});
  EXPECT_EQ(SummaryOfMemtrace(report).at("suppressed"), "300 in 3");
  EXPECT_EQ(SummaryOfMemtrace(report).at("definite"), "32 in 1");
}

TEST_F(SuppressionsTest, AMistakeIsAnError) {
  const auto error = [&](const Words& options) {
    Words words = {ToolPath(), "report", trace_};
    words.insert(words.end(), options.begin(), options.end());
    const Result run = RunCommand({.arguments = words});
    EXPECT_EQ(run.exit_status, 2);
    return run.err;
  };
  EXPECT_THAT(error({"--suppressions", "/nowhere/leaks.supp"}), HasSubstr("/nowhere/leaks.supp"));
  EXPECT_THAT(error({"--suppress-children"}), HasSubstr("--suppress-children needs --suppressions FILE"));
  EXPECT_THAT(error({"--suppressions", File("leak:x\n"), "--format", "valgrind"}),
              HasSubstr("is for --format text, json and csv"));
  EXPECT_THAT(error({"--suppressions", File("{\n name\n")}), HasSubstr("leaks.supp"));
}

}  // namespace
}  // namespace memtrace::e2e
