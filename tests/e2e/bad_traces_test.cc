// What memtrace says of files that are no whole traces: one clear line and exit
// status 2 where there is nothing to report, a report with a note where there is.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string>

#include "format/trace_format.h"
#include "tests/e2e/harness.h"

namespace memtrace::e2e {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

const Words kReaders = {"report", "dump", "info", "pack"};

class BadTracesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    TempDir traces;
    const Result run = RunCommand(Traced(
        {.arguments = {TraceePath("pass_blocks_between_threads"), "2", "20000"}}, traces.path()));
    ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
    good_ = ReadFile(TraceOf(traces.path(), "pass_blocks_between_threads"));
    ASSERT_GT(good_.size(), 100000u);
  }

  // Each command on the file: exit 2, one line that names file and cause, no output.
  void ExpectRefused(const std::string& path, const std::string& cause) {
    for (const std::string& reader : kReaders) {
      SCOPED_TRACE(reader + " " + path);
      const std::vector<std::string> before = FilesIn(work_.path());
      Words words = {ToolPath(), reader, path};
      if (reader == "report") words.insert(words.end(), {"-o", work_ / "half_written"});
      const Result result = RunCommand({.arguments = words, .directory = work_.path()});
      EXPECT_EQ(result.Outcome(), "exit 2");
      EXPECT_EQ(result.out, "");
      EXPECT_THAT(result.err, StartsWith("memtrace: "));
      EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
      EXPECT_THAT(result.err, HasSubstr(path));
      EXPECT_THAT(result.err, ::testing::ContainsRegex(cause));
      EXPECT_EQ(FilesIn(work_.path()), before) << "something was left behind";
    }
  }

  // A ring is written until the process ends and has no checksum (format/trace_format.h):
  // of what a flipped bit does there, only that it does no harm can be asked.
  bool IsInARing(size_t at) const {
    for (size_t block = sizeof(format::FileHeader);
         block + sizeof(format::BlockHeader) <= good_.size();) {
      format::BlockHeader header;
      std::memcpy(&header, good_.data() + block, sizeof(header));
      if (header.magic != format::kBlockMagic) {
        block += format::kBlockAlignment;
        continue;
      }
      const size_t payload = block + sizeof(header), end = payload + header.payload_bytes;
      if (header.kind == format::BlockKind::kRing && at >= payload && at < end) return true;
      block = (end + format::kBlockAlignment - 1) / format::kBlockAlignment *
              format::kBlockAlignment;
    }
    return false;
  }

  std::string Write(const std::string& name, const std::string& content) {
    WriteFile(work_ / name, content);
    return work_ / name;
  }

  Result ReportOf(const std::string& path) {
    return RunCommand({.arguments = {ToolPath(), "report", "--format", "json", path}});
  }

  TempDir work_;
  std::string good_;
};

TEST_F(BadTracesTest, AMissingFileIsRefused) {
  ExpectRefused(work_ / "missing.mtr", "No such file or directory");
}

TEST_F(BadTracesTest, ADirectoryIsRefused) {
  ASSERT_EQ(mkdir((work_ / "directory.mtr").c_str(), 0700), 0);
  ExpectRefused(work_ / "directory.mtr", "directory");
}

TEST_F(BadTracesTest, AFifoIsRefusedAndNotWaitedFor) {
  ASSERT_EQ(mkfifo((work_ / "fifo").c_str(), 0600), 0);
  ExpectRefused(work_ / "fifo", "not a regular file");
}

TEST_F(BadTracesTest, AnEmptyFileIsRefused) { ExpectRefused(Write("empty.mtr", ""), "empty"); }

TEST_F(BadTracesTest, AForeignFileIsRefused) {
  ExpectRefused(Write("text.mtr", "This is a shopping list.\n" + std::string(5000, 'x')),
                "not a (memtrace )?trace");
  ExpectRefused("/bin/true", "not a (memtrace )?trace");
  ExpectRefused(Write("zeros.mtr", std::string(100000, '\0')), "no header");
}

TEST_F(BadTracesTest, AFileCutInItsHeaderIsRefused) {
  for (size_t bytes : {size_t{1}, size_t{8}, sizeof(format::FileHeader) - 1}) {
    ExpectRefused(Write("cut.mtr", good_.substr(0, bytes)), "(cut|truncated|short)");
  }
}

TEST_F(BadTracesTest, AHeaderWithoutABlockIsRefused) {
  ExpectRefused(Write("header.mtr", good_.substr(0, sizeof(format::FileHeader))), ".");
}

TEST_F(BadTracesTest, ADamagedHeaderIsRefused) {
  for (size_t at : {size_t{8}, size_t{16}, size_t{33}, size_t{60}}) {
    std::string bad = good_;
    bad[at] ^= 1;
    ExpectRefused(Write("header_flip.mtr", bad), ".");
  }
}

TEST_F(BadTracesTest, ATraceCutAnywhereBehindItsStartIsReportedWithANote) {
  const Json whole = Report(Write("whole.mtr", good_));
  for (int tenth = 3; tenth <= 9; ++tenth) {
    SCOPED_TRACE(tenth);
    const std::string path = Write("cut.mtr", good_.substr(0, good_.size() * tenth / 10 + 7));
    const Result result = ReportOf(path);
    ASSERT_EQ(result.Outcome(), "exit 0") << result.err;
    const Json report = Json::parse(result.out);
    EXPECT_FALSE(report.at("coverage").at("notes").empty());
    EXPECT_EQ(report.at("process").at("command"), whole.at("process").at("command"));
    EXPECT_LE(report.at("totals").at("allocations"), whole.at("totals").at("allocations"));
    for (const char* reader : {"dump", "info", "report"}) {
      const Result read = RunCommand({.arguments = {ToolPath(), reader, path}});
      EXPECT_EQ(read.Outcome(), "exit 0") << reader << ": " << read.err;
      EXPECT_NE(read.out, "");
    }
  }
}

// The scan at the exit lies before the last events in a packed file: without these it is of blocks that
// nobody knows, and "nothing is lost" would be a lie.
TEST_F(BadTracesTest, AScanWithoutTheEventsBeforeItSaysNothing) {
  const std::string trace = work_ / "leaks.mtr", cut = work_ / "cut.mtr";
  ASSERT_EQ(RunCommand({.arguments = {ToolPath(), "run", "-q", "--library", LibraryPath(), "-o", trace, "--",
                                      ExamplePath("leaks")}}).Outcome(), "exit 0");
  const Json whole = Report(trace);
  EXPECT_TRUE(whole.at("no_leak_scan").is_null());
  const std::string bytes = ReadFile(trace);
  int without_events = 0;
  for (size_t at = bytes.size() - 8; at > bytes.size() / 2; at -= 64) {
    WriteFile(cut, bytes.substr(0, at));
    const Json report = Report(cut);
    if (report.at("totals") == whole.at("totals")) continue;
    ++without_events;
    EXPECT_FALSE(report.at("no_leak_scan").is_null()) << at;
    const auto run = [&](const char* format) {
      return RunCommand({.arguments = {ToolPath(), "report", "--format", format, cut}});
    };
    EXPECT_EQ(run("valgrind").Outcome(), "exit 2") << at;
    EXPECT_THAT(run("mtrace").out, Not(HasSubstr("No memory leaks"))) << at;
    EXPECT_THAT(run("text").out, Not(HasSubstr("Lost       nothing"))) << at;
    EXPECT_THAT(RunCommand({.arguments = {ToolPath(), "rings", "--no-static", cut}}).out,
                HasSubstr("! the trace is incomplete: ")) << at;
  }
  EXPECT_GT(without_events, 0);
}

TEST_F(BadTracesTest, OfSeveralTheCutOneIsNamed) {
  std::filesystem::create_directory(work_ / "all");
  const std::string trace = work_ / "all/whole.mtr";
  ASSERT_EQ(RunCommand({.arguments = {ToolPath(), "run", "-q", "--library", LibraryPath(), "-o", trace, "--",
                                      ExamplePath("leaks")}}).Outcome(), "exit 0");
  const auto report = [&] {
    return RunCommand({.arguments = {ToolPath(), "report", work_ / "all"}}).out;
  };
  EXPECT_THAT(report(), HasSubstr(", none lost"));
  const Result other = RunCommand({.arguments = {ToolPath(), "run", "-q", "--library", LibraryPath(), "-o",
                                                 work_ / "all/cut.mtr", "--", ExamplePath("leaks")}});
  ASSERT_EQ(other.Outcome(), "exit 0");
  const std::string bytes = ReadFile(work_ / "all/cut.mtr");
  WriteFile(work_ / "all/cut.mtr", bytes.substr(0, bytes.size() / 2));
  EXPECT_THAT(report(), HasSubstr("1 trace incomplete: "));
  EXPECT_THAT(report(), Not(HasSubstr("none lost")));
}

TEST_F(BadTracesTest, APackedTraceIsAsPrivateAsTheOther) {
  const std::string packed = work_ / "packed.mtr";
  ASSERT_EQ(RunCommand({.arguments = {ToolPath(), "pack", Write("raw.mtr", good_), "-o", packed}}).Outcome(),
            "exit 0");
  struct stat st;
  ASSERT_EQ(stat(packed.c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777, 0600u);
}

TEST_F(BadTracesTest, AFlippedBitIsNeverReportedAsTheTruth) {
  const Json whole = Report(Write("whole.mtr", good_));
  uint64_t random = 20240101;
  int reported = 0, outside_rings = 0;
  for (int i = 0; i < 60; ++i) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    std::string bad = good_;
    const size_t at = (random >> 20) % bad.size();
    bad[at] ^= static_cast<char>(1 << (random >> 12 & 7));
    SCOPED_TRACE("byte " + std::to_string(at));
    const Result result = ReportOf(Write("flip.mtr", bad));
    if (result.Outcome() == "exit 2") {
      EXPECT_THAT(result.err, MatchesRegex("memtrace: [^\n]*\n"));
      EXPECT_EQ(result.out, "");
      continue;
    }
    ASSERT_EQ(result.Outcome(), "exit 0") << result.err;
    ++reported;
    outside_rings += !IsInARing(at);
    const Json report = Json::parse(result.out);
    const bool same =
        report.at("totals") == whole.at("totals") && report.at("leaks") == whole.at("leaks");
    if (!same && !IsInARing(at)) {
      EXPECT_FALSE(report.at("coverage").at("notes").empty());
    }
  }
  EXPECT_GT(reported, 0);
  EXPECT_GT(outside_rings, 20);
}

TEST_F(BadTracesTest, ATraceOfANewerVersionIsRefusedAsSuch) {
  std::string newer = good_;
  newer[offsetof(format::FileHeader, version)] = 99;
  ExpectRefused(Write("newer.mtr", newer), "version|damaged|checksum");
}

TEST_F(BadTracesTest, NothingIsWrittenOverWhenTheOutputCannotBeMade) {
  const std::string path = Write("good.mtr", good_);
  const Result result =
      RunCommand({.arguments = {ToolPath(), "report", path, "-o", "/nowhere/at/all/report.txt"}});
  EXPECT_EQ(result.Outcome(), "exit 2");
  EXPECT_THAT(result.err, MatchesRegex("memtrace: [^\n]*/nowhere/at/all/report.txt[^\n]*\n"));
}

}  // namespace
}  // namespace memtrace::e2e
