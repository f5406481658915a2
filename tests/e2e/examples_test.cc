// Every example's report says what the example's head comment promises; the leaks
// are also those that mtrace(1) and Valgrind see.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <regex>
#include <sstream>

#include "tests/e2e/expectations.h"
#include "tests/e2e/harness.h"
#include "tests/e2e/memcheck.h"

namespace memtrace::e2e {
namespace {

using ::testing::HasSubstr;

std::string SourceOf(const std::string& example) {
  const std::string c = SourcePath("examples/" + example + ".c");
  return Exists(c) ? c : SourcePath("examples/" + example + ".cc");
}

class ExampleTest : public ::testing::TestWithParam<std::string> {};

TEST_P(ExampleTest, IsReportedAsItsHeadCommentSays) {
  const Example example = ReadExample(SourceOf(GetParam()));
  ASSERT_FALSE(example.expectations.empty());
  if (GetParam() == "huge_pages") {
    const std::string kib = RunCommand({.arguments = {ExamplePath(GetParam()), "check"}}).out;
    if (std::atol(kib.c_str()) < 3 * 2048) {
      GTEST_SKIP() << "the kernel gives no huge pages here: " << kib << " KiB of 6144";
    }
  }
  TempDir directory;
  const Result run = RunCommand(Traced({.arguments = {ExamplePath(GetParam())},
                                        .environment = {{"MEMTRACE_FAULTS", "user"}}},
                                       directory.path()));
  ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
  EXPECT_EQ(run.out + run.err, "");

  const std::string trace = TraceOf(directory.path(), GetParam(), run.pid);
  const Json report = Report(trace);
  const std::string text = ReportText(trace);
  Json child_report;
  std::string child_text;
  for (const Expectation& expectation : example.expectations) {
    SCOPED_TRACE("expect" + std::string(expectation.child ? " child" : "") + ": " +
                 expectation.text);
    if (expectation.child && child_report.is_null()) {
      for (const std::string& file : FilesIn(directory.path(), ".mtr")) {
        const std::string path = directory / file;
        if (path == trace) continue;
        ASSERT_TRUE(child_report.is_null()) << "a second child: " << file;
        child_report = Report(path);
        child_text = ReportText(path);
      }
      ASSERT_FALSE(child_report.is_null()) << "the child left no trace";
    }
    if (expectation.faults && report.at("faults").at("source") != "perf") continue;
    EXPECT_EQ(Check(example, expectation, expectation.child ? child_report : report,
                    expectation.child ? child_text : text),
              "");
  }
}

INSTANTIATE_TEST_SUITE_P(All, ExampleTest,
                         ::testing::Values("leaks", "first_touch", "growth_saturates",
                                           "growth_unbounded", "realloc_chain",
                                           "freed_by_other_thread", "plugin_leak", "new_delete",
                                           "mmap_brk", "temporary", "many_threads",
                                           "tls_destructor", "fork_child", "waste", "arena",
                                           "calloc_untouched", "give_back", "mapped_file",
                                           "copy_on_write", "huge_pages", "pinned_arena"),
                         [](const auto& info) { return info.param; });

// "leaks.c:25" -> bytes and blocks.
struct Lost {
  long bytes = 0;
  long blocks = 0;
  bool operator==(const Lost&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Lost& lost) {
  return out << lost.bytes << " bytes in " << lost.blocks << " blocks";
}
using LostByLine = std::map<std::string, Lost>;

LostByLine LostAsReported(const std::string& trace) {
  LostByLine lost;
  const Json report = Report(trace);
  for (const Json& leak : report.at("leaks")) {
    for (const Json& frame : leak.at("stack")) {
      const std::string file = frame.value("file", "");
      if (!file.ends_with("/leaks.c")) continue;
      Lost& at = lost["leaks.c:" + std::to_string(frame.value("line", 0))];
      at.bytes += leak.at("bytes").get<long>();
      at.blocks += leak.at("blocks").get<long>();
      break;
    }
  }
  return lost;
}

// "0x000055a38587d4a0     0x64  at /source/leaks.c:25 (discriminator 3)"
LostByLine LostAsMtraceSays(const std::string& said) {
  static const std::regex kLine(R"(^0x[0-9a-f]+\s+0x([0-9a-f]+)\s+at .*/(leaks\.c:\d+).*$)");
  LostByLine lost;
  std::istringstream lines(said);
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (!std::regex_match(line, match, kLine)) continue;
    lost[match[2]].bytes += std::stol(match[1], nullptr, 16);
    lost[match[2]].blocks += 1;
  }
  return lost;
}

// "==1== 200 bytes in 2 blocks are definitely lost ..." and the stack behind it
LostByLine LostAsValgrindSays(const std::string& said) {
  static const std::regex kRecord(
      R"(^==\d+== ([\d,]+) bytes in ([\d,]+) blocks are .* lost in .*)");
  static const std::regex kFrame(R"(^==\d+==    (?:at|by) .*\((leaks\.c:\d+)\)$)");
  LostByLine lost;
  Lost record;
  std::istringstream lines(said);
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (std::regex_match(line, match, kRecord)) {
      record = {.bytes = std::stol(match[1]), .blocks = std::stol(match[2])};
    } else if (record.blocks != 0 && std::regex_match(line, match, kFrame)) {
      lost[match[1]] = record;
      record = {};
    }
  }
  return lost;
}

class LeaksAgreementTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const Example example = ReadExample(SourcePath("examples/leaks.c"));
    const Result run = RunCommand(Traced({.arguments = {ExamplePath("leaks")}}, directory_.path()));
    ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
    reported_ = LostAsReported(TraceOf(directory_.path(), "leaks"));
    const std::string file = "leaks.c:";
    ASSERT_EQ(reported_,
              (LostByLine{{file + std::to_string(example.tags.at("loop")), {200, 2}},
                          {file + std::to_string(example.tags.at("calloc")), {256, 1}}}));
  }

  TempDir directory_;
  LostByLine reported_;
};

TEST_F(LeaksAgreementTest, MtraceSeesTheSameLeaks) {
  const std::string log = directory_ / "mtrace";
  const Result run = RunCommand({.arguments = {ExamplePath("leaks")},
                          .environment = {{"MALLOC_TRACE", log},
                                          {"LD_PRELOAD", "libc_malloc_debug.so.0"}}});
  ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
  const Result mtrace = RunCommand({.arguments = {"mtrace", ExamplePath("leaks"), log}});
  EXPECT_EQ(LostAsMtraceSays(mtrace.out), reported_) << mtrace.out << mtrace.err;
}

TEST_F(LeaksAgreementTest, ValgrindSeesTheSameLeaks) {
  const Result valgrind =
      RunCommand({.arguments = MemcheckCommand({ExamplePath("leaks")})});
  ASSERT_EQ(valgrind.Outcome(), "exit 0") << valgrind.err;
  EXPECT_EQ(LostAsValgrindSays(valgrind.err), reported_) << valgrind.err;
  EXPECT_THAT(valgrind.err, HasSubstr("total heap usage: 4 allocs, 1 frees"));
}

}  // namespace
}  // namespace memtrace::e2e
