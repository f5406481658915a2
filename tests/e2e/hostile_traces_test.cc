// The commands on traces that nobody's program wrote (tests/report/hostile_traces.h):
// they end in time and within memory, with a report or with one line that says why not,
// and nothing that a trace says reaches a terminal or a file as anything but text.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/e2e/harness.h"
#include "tests/long_run.h"
#include "tests/report/harmless.h"
#include "tests/report/hostile_traces.h"

namespace memtrace::e2e {
namespace {

using ::testing::HasSubstr;
using report::HostileTrace;

// docs/security.md: what a trace may cost. Address space, so that it is the kernel who
// counts; the binary, its libraries and their mappings are in the constant.
constexpr size_t kBytes = size_t{1} << 30, kBytesPerByte = 150;
constexpr int kSeconds = 15, kBytesPerSecond = 1 << 20;

const std::vector<Words> kCommands = {
    {"report", "--color", "never"},
    {"report", "--format", "json"},
    {"report", "--format", "csv"},
    {"report", "--format", "mtrace"},
    {"info"},
    {"dump"},
};

class HostileTracesTest : public ::testing::TestWithParam<HostileTrace> {};

TEST_P(HostileTracesTest, EndInTimeAndWithinMemory) {
  TempDir directory;
  const std::string trace = directory / "hostile.mtr";
  const std::string bytes = GetParam().build();
  WriteFile(trace, bytes);
  const Words limits = {
      "prlimit", "--as=" + std::to_string(kBytes + kBytesPerByte * bytes.size()),
      "--cpu=" + std::to_string(kSeconds + bytes.size() / kBytesPerSecond), "--"};
  std::vector<Words> commands = kCommands;
  commands.push_back({"pack", "-o", directory / "packed.mtr"});
  // All of the commands are run in the long test set.
  if (!InLongRun()) {
    commands = {commands[GetParam().name == "many_records" ? 1 : 0]};  // an object of JSON each
  }
  for (const Words& command : commands) {
    Words words = limits;
    words.push_back(ToolPath());
    words.insert(words.end(), command.begin(), command.end());
    words.push_back(trace);
    const Result result = RunCommand({.arguments = words});
    EXPECT_EQ(result.Outcome(), "exit 0") << ::testing::PrintToString(command) << result.err;
    if (command[0] != "pack") {
      EXPECT_FALSE(result.out.empty());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(TooMuchOf, HostileTracesTest,
                         ::testing::ValuesIn(report::HostileTraces()),
                         [](const auto& info) { return info.param.name; });

TEST(HostileTracesLimitTest, ATraceThatNeedsMoreMemoryThanThereIsIsRefusedInOneLine) {
  TempDir directory;
  for (const HostileTrace& hostile : report::HostileTraces()) {
    if (hostile.name == "bomb_of_blocks") WriteFile(directory / "hostile.mtr", hostile.build());
  }
  for (const Words& command : kCommands) {
    Words words = {"prlimit", "--as=" + std::to_string(200 << 20), "--", ToolPath()};
    words.insert(words.end(), command.begin(), command.end());
    words.push_back(directory / "hostile.mtr");
    if (command[0] == "report") words.insert(words.end(), {"-o", directory / "half_written"});
    const Result result = RunCommand({.arguments = words});
    EXPECT_EQ(result.Outcome(), "exit 2") << ::testing::PrintToString(command);
    EXPECT_THAT(result.err, HasSubstr("needs more memory than the limit, 200 MiB"));
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_EQ(FilesIn(directory.path()).size(), 1u) << "something was left behind";
  }
}

void ExpectHarmless(const std::string& text, const std::string& line_end) {
  const size_t at = report::FirstHarmful(text, line_end);
  EXPECT_EQ(at, std::string::npos)
      << "byte " << at << ": " << ::testing::PrintToString(text.substr(at - std::min<size_t>(at, 40), 80));
}

class HostileTextsTest : public ::testing::Test {
 protected:
  HostileTextsTest() { WriteFile(directory_ / "hostile.mtr", report::TraceOfHostileTexts()); }

  // In the directory of the trace, where commands in a name would leave their mark.
  std::string Output(Words words) {
    words.insert(words.begin(), ToolPath());
    words.push_back("hostile.mtr");
    const Result result = RunCommand({.arguments = words, .directory = directory_.path()});
    EXPECT_EQ(result.Outcome(), "exit 0") << result.err;
    EXPECT_THAT(FilesIn(directory_.path()), ::testing::ElementsAre("hostile.mtr"));
    ExpectHarmless(result.err, "\n");
    return result.out;
  }

  TempDir directory_;
};

TEST_F(HostileTextsTest, AreTextOnATerminal) {
  for (const char* locale : {"C", "C.UTF-8"}) {
    const Result result = RunCommand(
        {.arguments = {ToolPath(), "report", "--full", "--color", "never", "hostile.mtr"},
         .environment = {{"LC_ALL", locale}},
         .directory = directory_.path()});
    ExpectHarmless(result.out, "\n");
    for (const char* field : {"command", "argument", "relative", "note"}) {
      EXPECT_THAT(result.out, HasSubstr(std::string(field) + "!\\x1b")) << "is not shown at all";
    }
  }
  ExpectHarmless(Output({"report", "--width", "60"}), "\n");
  ExpectHarmless(Output({"info"}), "\n");
  ExpectHarmless(Output({"report", "--format", "mtrace"}), "\n");
}

TEST_F(HostileTextsTest, AreOneFieldOfADumpsLine) {
  const std::string dump = Output({"dump"});
  ExpectHarmless(dump, "\n");
  int names = 0;
  for (size_t at = 0; at < dump.size();) {
    const std::string line = dump.substr(at, dump.find('\n', at) - at);
    at += line.size() + 1;
    if (line.find("thread-name") == std::string::npos || line.starts_with("#")) continue;
    ++names;
    EXPECT_EQ(std::count(line.begin(), line.end(), ' '), 4) << line;
  }
  EXPECT_GT(names, 0);
}

TEST_F(HostileTextsTest, AreStringsOfJson) {
  const std::string out = Output({"report", "--format", "json"});
  ExpectHarmless(out, "\n");
  EXPECT_TRUE(std::all_of(out.begin(), out.end(), [](char c) { return c > 0; })) << "not ASCII";
  const Json report = Json::parse(out);
  const std::string command = report.at("process").at("command").at(0);
  EXPECT_THAT(command, HasSubstr("=command!\x1b]0;title\x07"));
  EXPECT_THAT(command, HasSubstr("\xe2\x80\xae" "gnp")) << "is still what it was";
}

TEST_F(HostileTextsTest, AreNoFormulasAndNoRecordsOfCsv) {
  for (const char* table : {"sites", "leaks", "timeline", "threads", "mappings", "sizes"}) {
    const std::string out = Output({"report", "--format", "csv", "--table", table});
    ExpectHarmless(out, "\r\n");
    size_t columns = 0;
    for (size_t at = 0; at < out.size();) {
      const std::string line = out.substr(at, out.find("\r\n", at) - at);
      at += line.size() + 2;
      size_t fields = 1;
      bool quoted = false, begin = true;
      for (const char c : line) {
        if (begin && c == '"') {
          quoted = true;
          continue;
        }
        EXPECT_FALSE(begin && std::string("=+-@|%").find(c) != std::string::npos) << line;
        begin = false;
        if (c == '"') quoted = !quoted;
        if (c == ',' && !quoted) ++fields, begin = true;
      }
      if (columns == 0) columns = fields;
      EXPECT_EQ(fields, columns) << table << ": " << line;
    }
  }
}

}  // namespace
}  // namespace memtrace::e2e
