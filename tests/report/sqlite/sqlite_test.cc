// --format sqlite: what is in the tables, and that docs/sql.md says the truth about them.

#include "report/sqlite/sqlite_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/report/valgrind/valgrind_made_up.h"

namespace memtrace::report::sqlite {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// A program with a bit of everything.
class MadeUpRun : public MadeUpLeaks {
 public:
  MadeUpRun() {
    Site& node = analysis.sites[0];
    node.freed_lifetime_ns = 8e6;  // of four
    node.freed_by_other_thread = 3;
    analysis.sites[1].wasted_bytes = 500;
    analysis.sites[2].temporary = 40;
    analysis.totals.wasted_bytes = 500;
    analysis.totals.temporary_allocations = 40;
    analysis.timeline = {{.time_ns = 500'000'000, .live_bytes = 700, .live_blocks = 3,
                          .max_live_bytes = 800},
                         {.time_ns = 1'000'000'000, .live_bytes = 1224, .live_blocks = 9,
                          .max_live_bytes = 1224, .rss_bytes = 4096},
                         {.time_ns = 1'500'000'000, .live_bytes = 1300, .live_blocks = 9,
                          .max_live_bytes = 1300}};
    ThreadSummary thread;
    thread.id = {1};
    thread.tid = 42;
    thread.name = "main";
    thread.allocations = 115;
    thread.live_bytes = 1224;
    analysis.threads.push_back(thread);
    Phase phase;
    phase.name = "load";
    phase.times = 2;
    phase.growth_bytes = 1000;
    analysis.phases.push_back(phase);
    MappingSite mapping;
    mapping.stack = analysis.sites[2].stack;
    mapping.calls = 1;
    mapping.bytes = 65536;
    analysis.mappings.push_back(mapping);
    analysis.block_ends = {
        {.from = node.stack, .to = mapping.stack, .by = BlockEnds::By::kFree, .times = 98},
        {.from = analysis.sites[1].stack, .to = mapping.stack, .times = 4}};
    analysis.frees_with_stack = 98;
    InvalidFree twice;
    twice.times = 3;
    twice.address = 0x30000;
    twice.allocated = {node.stack, ThreadId{1}, 1000, false};
    twice.freed.time_ns = 2000;
    twice.again = {mapping.stack, ThreadId{1}, 3000, false};
    analysis.invalid_frees = {{twice}, 3, true, 0};
    analysis.sizes.allocations[5] = 100;
    analysis.sizes.live_bytes[5] = 32;
    analysis.sizes.allocations[10] = 5;
    analysis.sizes.live_bytes[10] = 1000;
    analysis.live = {{.address = 0x10000, .bytes = 32, .stack = node.stack, .time_ns = 7'000'000},
                     {.address = 0x20000, .bytes = 32, .stack = node.stack, .time_ns = 5'000'000}};
    node.growth = {.verdict = Growth::Verdict::kGrowing, .bytes_per_s = 100, .bytes_per_s_low = 90,
                   .bytes_per_s_high = 110, .confidence = 0.99};
    analysis.fault_details.sites = {
        {.stack = node.stack, .faults = {7, 1}, .blocks = 2, .touchers = {{mapping.stack, {5, 0}}}}};
    analysis.coverage.events = 221;
    analysis.coverage.dropped_events = 2;
    analysis.coverage.events_missing = true;
  }
};

class SqliteTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!HasSqlite()) GTEST_SKIP() << "built without SQLite";
    path_ = testing::TempDir() + absl::StrCat("/sqlite_test_", getpid(), ".db");
    fs::remove(path_);
  }
  void TearDown() override {
    sqlite3_close(database_);
    fs::remove(path_);
  }

  void Write(MadeUp& made_up, const std::string& match = "") {
    const auto view = made_up.View(match);
    const absl::Status status = WriteSqlite(view, path_);
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_EQ(sqlite3_open_v2(path_.c_str(), &database_, SQLITE_OPEN_READONLY, nullptr),
              SQLITE_OK);
  }

  // Rows of "a|b|c", as sqlite3 prints them.
  std::string Query(const std::string& sql) {
    std::string rows;
    char* error = nullptr;
    const auto add = [](void* to, int columns, char** values, char**) {
      std::string& text = *static_cast<std::string*>(to);
      for (int i = 0; i < columns; ++i) {
        absl::StrAppend(&text, i == 0 ? "" : "|", values[i] == nullptr ? "" : values[i]);
      }
      text += "\n";
      return 0;
    };
    sqlite3_exec(database_, sql.c_str(), add, &rows, &error);
    EXPECT_EQ(error, nullptr) << error << "\n" << sql;
    sqlite3_free(error);
    return rows;
  }

  std::string path_;
  sqlite3* database_ = nullptr;
};

TEST_F(SqliteTest, IsWholeAndItsReferencesLeadSomewhere) {
  MadeUpRun made_up;
  Write(made_up);
  EXPECT_EQ(Query("PRAGMA integrity_check"), "ok\n");
  EXPECT_EQ(Query("PRAGMA foreign_key_check"), "");
  EXPECT_EQ(Query("SELECT value FROM meta WHERE key = 'schema'"), "memtrace-sqlite/1\n");
  EXPECT_EQ(Query("SELECT executable, command, end, exit_status, end_signal FROM process"),
            "/work/app|./app --fast two words|exit|0|\n");
}

TEST_F(SqliteTest, SumsOverSitesAreTheTotals) {
  MadeUpRun made_up;
  Write(made_up);
  EXPECT_EQ(Query("SELECT sum(allocations), sum(frees), sum(bytes_allocated), sum(live_bytes), "
                  "sum(live_blocks), sum(bytes_at_peak), sum(wasted_bytes), sum(temporary) "
                  "FROM sites"),
            Query("SELECT allocations, frees, bytes_allocated, live_bytes, live_blocks, "
                  "peak_live_bytes, wasted_bytes, temporary FROM totals"));
  EXPECT_EQ(Query("SELECT live_bytes FROM totals"), "1224\n");
  EXPECT_EQ(Query("SELECT sum(live_bytes) FROM by_caller"), "1224\n");
  EXPECT_EQ(Query("SELECT sum(live_bytes) FROM by_file"), "1224\n");
  EXPECT_EQ(Query("SELECT sum(live_bytes) FROM by_module"), "1224\n");
}

TEST_F(SqliteTest, MatchAndRangeAreSaid) {
  MadeUpRun made_up;
  made_up.analysis.range = {5, 10};
  Write(made_up, "Cache");
  EXPECT_EQ(Query("SELECT * FROM meta ORDER BY key"),
            "from_ns|5\nmatch|Cache\nonly|sites that match /Cache/: 1; the figures here are of all\n"
            "schema|memtrace-sqlite/1\nto_ns|10\ntrace|app.42.mtr\n");
  EXPECT_EQ(Query("SELECT caller FROM site_list"), "Cache::Get()\n");
  EXPECT_EQ(Query("SELECT count(*) FROM live_blocks"), "0\n");
}

TEST_F(SqliteTest, RangesOfBlocksAreSaid) {
  MadeUpRun made_up;
  made_up.analysis.selection.sizes = {64, 128};
  made_up.analysis.selection.lifetimes.low = 1000;
  made_up.analysis.selection.ages.high = 5000;
  Write(made_up);
  EXPECT_EQ(Query("SELECT key, value FROM meta WHERE key LIKE 'm__@_%' ESCAPE '@' ORDER BY key"),
            "max_age_ns|5000\nmax_size|128\nmin_lifetime_ns|1000\nmin_size|64\n");
}

TEST_F(SqliteTest, WithoutAScanLeaksAreWhatWasNotFreed) {
  MadeUpRun made_up;
  made_up.analysis.leak_scans.clear();
  Write(made_up);
  EXPECT_EQ(Query("SELECT kind, bytes, blocks, caller FROM leak_list ORDER BY bytes DESC"),
            "unfreed|1000|1|Inlined<int>::Make()\nunfreed|192|6|MakeNode(int)\n"
            "unfreed|32|2|Cache::Get()\n");
}

// As every other format: a scan behind that at the exit knows more.
TEST_F(SqliteTest, LeaksAreThoseOfTheLastFinishedScan) {
  MadeUpRun made_up;
  LeakScan& at_exit = made_up.analysis.leak_scans.front();
  at_exit.number = 1;
  at_exit.reason = format::ScanReason::kExitLate;
  LeakScan request = at_exit;
  request.number = 2;
  request.reason = format::ScanReason::kRequest;
  made_up.analysis.leak_scans.push_back(request);
  LeakScan unfinished = request;
  unfinished.number = 3;
  unfinished.state = LeakScan::State::kCutShort;
  made_up.analysis.leak_scans.push_back(unfinished);
  Write(made_up);
  EXPECT_EQ(Query("SELECT DISTINCT scan FROM leak_list"), "2\n");
}

TEST_F(SqliteTest, NothingIsLostWhereTheLastScanFoundNothing) {
  MadeUpRun made_up;
  made_up.analysis.leak_scans.front().number = 1;
  LeakScan last = made_up.analysis.leak_scans.front();
  last.number = 2;
  last.records.clear();
  made_up.analysis.leak_scans.push_back(last);
  Write(made_up);
  EXPECT_EQ(Query("SELECT count(*) FROM leak_list"), "0\n");
}

TEST_F(SqliteTest, FaultsThatWereNotCountedAreNull) {
  MadeUpRun run;
  run.analysis.process.start_realtime_ns = 0;  // imported
  Write(run);
  EXPECT_EQ(Query("SELECT count(*), count(minor_faults), count(major_faults) FROM timeline"),
            "3|0|0\n");
}

TEST_F(SqliteTest, NamesAreTextWhateverTheyAre) {
  MadeUp made_up;
  made_up.analysis.process.command = {std::string("a\0b", 3)};
  made_up.AddSite(made_up.Stack({{"x'); DROP TABLE sites; --\xff", "", 0}}), 1, 10, 1);
  made_up.AddSite({}, 1, 5, 1);
  Write(made_up);
  EXPECT_EQ(Query("SELECT function FROM frames"), "x'); DROP TABLE sites; --\xef\xbf\xbd\n");
  EXPECT_EQ(Query("SELECT count(*) FROM sites"), "2\n");
  EXPECT_EQ(Query("SELECT command FROM process"), "a\xef\xbf\xbd"
                                                  "b\n");
}

// A stripped program's frames are told apart by where they are.
TEST_F(SqliteTest, FramesWithoutANameAreModuleAndOffset) {
  MadeUp made_up;
  made_up.AddSite(made_up.Stack({{"", "", 0}, {"", "", 0}}), 1, 10, 1);
  made_up.AddSite(made_up.Stack({{"", "", 0}, {"main", "", 0}}), 1, 20, 1);
  Write(made_up);
  EXPECT_EQ(Query("SELECT count(DISTINCT caller), min(caller LIKE 'app+0x1%') FROM by_caller"), "2|1\n");
  EXPECT_EQ(Query("SELECT text LIKE 'app+0x1% < app+0x1%' FROM stack_text ORDER BY stack LIMIT 1"), "1\n");
  EXPECT_EQ(Query("SELECT count(*) FROM frames WHERE function IS NULL"), "3\n");
}

// Bytes that are no UTF-8 become one and the same.
TEST_F(SqliteTest, CountersWithHostileNamesAreNoError) {
  MadeUp made_up;
  made_up.analysis.coverage.counters = {{"a\xff", 1}, {"a\xfe", 2}, {"b", 3}};
  Write(made_up);
  EXPECT_EQ(Query("SELECT name, value FROM coverage WHERE name LIKE 'counter.%' ORDER BY name"),
            "counter.a\xef\xbf\xbd|1\ncounter.b|3\n");
}

TEST_F(SqliteTest, TellsWhatWasLeftOutWhileTheProgramHadStoppedTheRecording) {
  MadeUp made_up;
  Coverage& coverage = made_up.analysis.coverage;
  coverage.stops = 1;
  coverage.stopped_ns = 5'000'000;
  coverage.stopped_allocations = 1000;
  coverage.stopped_frees = 3;
  Write(made_up);
  EXPECT_EQ(Query("SELECT name, value FROM coverage WHERE name LIKE 'stop%' ORDER BY name"),
            "stopped_allocations|1000\nstopped_frees|3\nstopped_ns|5000000\nstops|1\n");
  EXPECT_EQ(Query("SELECT count(*) FROM notes WHERE text LIKE 'recording stopped by the program%'"),
            "1\n");
}

TEST_F(SqliteTest, NumbersBeyondSqlsAreItsLargest) {
  MadeUp made_up;
  made_up.AddSite(made_up.Stack({{"f", "", 0}}), 1, 10, 1).bytes_allocated = UINT64_MAX;
  Write(made_up);
  EXPECT_EQ(Query("SELECT bytes_allocated FROM sites"), "9223372036854775807\n");
}

TEST_F(SqliteTest, AFileThatCannotBeWrittenIsAnErrorAndLeavesNothing) {
  MadeUp made_up;
  EXPECT_THAT(std::string(WriteSqlite(made_up.View(), "/nowhere/x.db").message()),
              HasSubstr("cannot write /nowhere/x.db"));
  EXPECT_THAT(std::string(WriteSqlite(made_up.View(), "/dev/null").message()),
              HasSubstr("not a regular file"));
  EXPECT_THAT(std::string(CheckSqliteOutput("").message()), HasSubstr("name it with -o FILE"));
  EXPECT_FALSE(CheckSqliteOutput("-").ok());
}

// As in JSON: the record of the process need not have it.
TEST_F(SqliteTest, TheBuildIdOfTheProcessIsThatOfItsFile) {
  MadeUp made_up;
  made_up.analysis.process.build_id.clear();
  made_up.analysis.modules[0].build_id = "\xab\x01";
  Write(made_up);
  EXPECT_EQ(Query("SELECT build_id FROM process"), "ab01\n");
  EXPECT_EQ(Query("SELECT p.build_id FROM process AS p JOIN modules AS m ON m.build_id = p.build_id "
                  "WHERE m.executable"),
            "ab01\n");
}

// Headings of docs/sql.md and the statement below each.
std::map<std::string, std::string> Queries() {
  std::map<std::string, std::string> queries;
  std::ifstream page(MEMTRACE_SOURCE_DIR "/docs/sql.md");
  std::string heading;
  bool in_query = false;
  for (std::string line; std::getline(page, line);) {
    if (absl::StartsWith(line, "### ")) heading = line.substr(4);
    if (line == "```") in_query = false;
    if (in_query) absl::StrAppend(&queries[heading], line, "\n");
    if (line == "```sql") in_query = true;
  }
  return queries;
}

// What a ring still held is there, and a second free has no block: nothing is missing because of it.
TEST_F(SqliteTest, NothingIsMissingOfADoubleFree) {
  MadeUp made_up;
  Coverage& coverage = made_up.analysis.coverage;
  coverage.events = coverage.recovered_events = 4;
  coverage.unknown_frees = 1;
  Write(made_up);
  EXPECT_EQ(Query(Queries()["Whether anything is missing"]), "all_recorded|1\n");
}

TEST_F(SqliteTest, TheQueriesOfTheDocumentGiveWhatTheySay) {
  MadeUpRun made_up;
  Write(made_up);
  const std::map<std::string, std::string> expected = {
      {"What is live at the end, by caller",
       "Inlined<int>::Make()|1000|1\nMakeNode(int)|192|6\nCache::Get()|32|2\n"},
      {"What made up the peak",
       "Inlined<int>::Make()|1000|81.7\nMakeNode(int)|192|15.7\nCache::Get()|32|2.6\n"},
      {"Leaks with their stacks",
       "definite|1000|1|operator new(unsigned long) < Inlined<int>::Make() /src/tree.h:7 < "
       "Table::Grow(unsigned int) /src/a<b>&c.cc:17 < main /src/main.cc:10\n"
       "indirect|96|3|MakeNode(int) /src/tree.cc:6 < Lose() /src/tree.cc:8 < main /src/main.cc:9 < "
       "__libc_start_call_main\n"
       "definite|96|3|MakeNode(int) /src/tree.cc:6 < Lose() /src/tree.cc:8 < main /src/main.cc:9 < "
       "__libc_start_call_main\n"
       "possible|16|1|Cache::Get() /src/cache.cc:30 < main /src/main.cc:11\n"
       "reachable|16|1|Cache::Get() /src/cache.cc:30 < main /src/main.cc:11\n"},
      {"Bytes by source file",
       "/src/tree.h|5000|1000\n/src/cache.cc|1600|32\n/src/tree.cc|320|192\n"},
      {"Everything that goes through one function", "main|115|6920|1224\n"},
      {"The sites below one function", "2|Cache::Get()|32\n"},
      {"Many small allocations", "Cache::Get()|100|16\nMakeNode(int)|10|32\n"},
      {"Temporary allocations", "Cache::Get()|40|40.0\n"},
      {"Waste", "Inlined<int>::Make()|500|10.0\n"},
      {"How long freed blocks lived",
       "MakeNode(int)|4|2.0\nInlined<int>::Make()|4|0.0\nCache::Get()|98|0.0\n"},
      {"Freed by another thread", "MakeNode(int)|3|4\n"},
      // Made-up frames have no mangled names, so that nothing is known of their operators:
      // mismatches_test has those.
      {"Who ends whose blocks",
       "MakeNode(int)|free|Cache::Get()|98|0\nInlined<int>::Make()|realloc|Cache::Get()|4|0\n"},
      {"The oldest live blocks", "0x20000|32|5|MakeNode(int)\n0x10000|32|7|MakeNode(int)\n"},
      {"Live blocks of one size", "32|2|64\n"},
      {"The block that an address lies in", "0x10000|32\n"},
      {"The heap over time", "500|700|800|\n1000|1224|1224|4096\n1500|1300|1300|\n"},
      {"The second that grew most", "1|76\n"},
      {"Threads", "main|42|115|1224\n"},
      {"Phases that left something behind", "load|2|1000\n"},
      {"Call sites that grow", "MakeNode(int)|6|100.0|192\n"},
      {"Double frees", "double_free|3|0|MakeNode(int)|Cache::Get()\n"},
      {"Whose blocks took page faults", "MakeNode(int)|7|1|Cache::Get()|5\n"},
      {"Who mapped memory", "mmap|1|65536|Cache::Get()\n"},
      {"Size classes", "16|31|100|32\n512|1023|5|1000\n"},
      {"How deep stacks are", "4|3.3\n"},
      {"Whether anything is missing", "all_recorded|0\ndropped_events|2\n"},
  };
  std::map<std::string, std::string> found;
  for (const auto& [heading, sql] : Queries()) found[heading] = Query(sql);
  EXPECT_EQ(found, expected);
}

TEST_F(SqliteTest, TheDocumentHasEveryTableAndView) {
  MadeUp made_up;
  Write(made_up);
  std::ostringstream page;
  page << std::ifstream(MEMTRACE_SOURCE_DIR "/docs/sql.md").rdbuf();
  for (const absl::string_view name :
       absl::StrSplit(Query("SELECT name FROM sqlite_master WHERE type IN ('table', 'view') "
                            "AND name NOT LIKE 'sqlite_%'"),
                      '\n', absl::SkipEmpty())) {
    EXPECT_THAT(page.str(), HasSubstr(absl::StrCat("`", name, "`")));
  }
}

}  // namespace
}  // namespace memtrace::report::sqlite
