#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_split.h"
#include "report/render/formats.h"
#include "tests/report/render/render_made_up.h"

namespace memtrace::report::render {
namespace {

using Row = std::vector<std::string>;

// A reader of RFC 4180, written from it and not from the writer.
std::vector<Row> Parsed(const std::string& text) {
  std::vector<Row> rows(1, Row(1));
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    std::string& field = rows.back().back();
    if (quoted) {
      if (text[i] != '"') {
        field.push_back(text[i]);
      } else if (i + 1 < text.size() && text[i + 1] == '"') {
        field.push_back(text[++i]);
      } else {
        quoted = false;
      }
    } else if (text[i] == '"') {
      EXPECT_TRUE(field.empty()) << "a quote inside a field that is not quoted";
      quoted = true;
    } else if (text[i] == ',') {
      rows.back().emplace_back();
    } else if (text[i] == '\r') {
      EXPECT_EQ(text[++i], '\n');
      rows.emplace_back(1);
    } else {
      field.push_back(text[i]);
    }
  }
  EXPECT_EQ(rows.back(), Row(1)) << "the last record ends with CRLF";
  rows.pop_back();
  return rows;
}

std::vector<Row> Rendered(const ReportView& view, CsvTable table, size_t top = kAllRows,
                          SortColumn sort = SortColumn::kTotal) {
  words::StringSink sink;
  RenderCsv(view, table, sort, top, sink);
  return Parsed(sink.text());
}

std::string Cell(const std::vector<Row>& rows, size_t row, const std::string& column) {
  for (size_t i = 0; i < rows[0].size(); ++i) {
    if (rows[0][i] == column) return rows[row][i];
  }
  ADD_FAILURE() << "no column " << column;
  return "";
}

TEST(CsvTest, ExchangesThatWereNotToldApartAreTheLastRow) {
  MadeUp trace;
  trace.AddSite(trace.Stack({{"Make", "make.cc", 1}}), 1, 16, 0);
  for (const uint32_t tid : {7u, 8u}) {
    ThreadSummary thread;
    thread.id = {tid};
    thread.tid = 100 + tid;
    trace.analysis.threads.push_back(thread);
  }
  trace.analysis.exchanges = {{ThreadId{7}, ThreadId{8}, 3, 48}, {ThreadId{7}, ThreadId{9}, 2, 32}};
  EXPECT_THAT(Rendered(trace.View(), CsvTable::kExchanges),
              testing::ElementsAre(Row{"from_tid", "to_tid", "blocks", "bytes"},
                                   Row{"107", "108", "3", "48"}, Row{"107", "", "2", "32"}));
  trace.analysis.exchanges_left_out = {5, 80};
  const std::vector<Row> rows = Rendered(trace.View(), CsvTable::kExchanges);
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows.back(), (Row{"", "", "5", "80"}));
  EXPECT_EQ(Rendered(trace.View(), CsvTable::kExchanges, 2).size(), 3u) << "not among the first two";
}

TEST(CsvTest, EveryTableHasAHeaderAndRowsOfItsLength) {
  MadeUp trace;
  const StackId stack = trace.Stack({{"void f<int, char>(int)", "a b,c.c", 3}, {"main", "m.c", 1}});
  trace.AddSite(stack, 3, 100, 2);
  trace.analysis.timeline.push_back({.time_ns = 1'500'000'000, .live_bytes = 200});
  trace.analysis.threads.push_back({.tid = 42, .name = "a,b"});
  trace.analysis.mappings.push_back({.stack = stack, .file = "/tmp/x,y", .calls = 1});
  trace.analysis.sizes.allocations[7] = 3;
  const ReportView view = trace.View();
  for (const char* name : {"sites", "leaks", "timeline", "threads", "mappings", "sizes"}) {
    const auto table = ParseCsvTable(name);
    ASSERT_TRUE(table.ok());
    const std::vector<Row> rows = Rendered(view, *table);
    ASSERT_EQ(rows.size(), 2u) << name;
    EXPECT_EQ(rows[0].size(), rows[1].size()) << name;
  }
  EXPECT_FALSE(ParseCsvTable("nothing").ok());
}

TEST(CsvTest, FaultsThatWereNotCountedAreNotZero) {
  MadeUp trace;
  trace.analysis.timeline.push_back({.time_ns = 1'500'000'000, .minor_faults = 3});
  EXPECT_EQ(Cell(Rendered(trace.View(), CsvTable::kTimeline), 1, "minor_faults"), "3");
  trace.analysis.process.start_realtime_ns = 0;  // imported
  const std::vector<Row> rows = Rendered(trace.View(), CsvTable::kTimeline);
  EXPECT_EQ(Cell(rows, 1, "minor_faults"), "");
  EXPECT_EQ(Cell(rows, 1, "major_faults"), "");
  EXPECT_EQ(Cell(rows, 1, "usable_bytes"), "0");
}

TEST(CsvTest, SaysTheSiteInFigures) {
  MadeUp trace;
  trace.AddSite(trace.Stack({{"leak", "/work/leak.c", 7}, {"main", "/work/leak.c", 20}}), 3, 100,
                2);
  const std::vector<Row> rows = Rendered(trace.View(), CsvTable::kSites);
  EXPECT_EQ(Cell(rows, 1, "allocations"), "3");
  EXPECT_EQ(Cell(rows, 1, "live_bytes"), "200");
  EXPECT_EQ(Cell(rows, 1, "first_time_s"), "0.100000000");
  EXPECT_EQ(Cell(rows, 1, "caller"), "leak");
  EXPECT_EQ(Cell(rows, 1, "line"), "7");
  EXPECT_EQ(Cell(rows, 1, "stack"), "leak (/work/leak.c:7) < main (/work/leak.c:20)");
}

TEST(CsvTest, HostileNamesAreNeitherFormulasNorRecords) {
  MadeUp trace;
  trace.AddSite(trace.Stack({{"=cmd|' /C calc'!A0", "@evil\r\n1,2", 1}}), 1, 10, 1);
  const std::vector<Row> rows = Rendered(trace.View(), CsvTable::kLeaks);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(Cell(rows, 1, "caller"), "'=cmd|' /C calc'!A0");
  EXPECT_EQ(Cell(rows, 1, "file"), "'@evil\\x0d\\x0a1,2");
  EXPECT_EQ(Cell(rows, 1, "stack")[0], '\'');
}

TEST(CsvTest, SortAndTopApply) {
  MadeUp trace;
  for (uint32_t i = 1; i <= 5; ++i) {
    trace.AddSite(trace.Stack({{"f", "f.c", i}}), 1, 10 * i, 1).wasted_bytes = 100 - i;
  }
  const std::vector<Row> rows = Rendered(trace.View(), CsvTable::kSites, 2, SortColumn::kWasted);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(Cell(rows, 1, "line"), "1");
  EXPECT_EQ(Cell(rows, 2, "line"), "2");
}

// Of the sites that have any, however small beside those that have none.
TEST(CsvTest, TopIsOfTheRowsThereAre) {
  MadeUp trace;
  for (uint32_t i = 1; i <= 5; ++i) {
    const StackId stack = trace.Stack({{"f", "f.c", i}});
    Site& site = trace.AddSite(stack, 1, 1000 - 10 * i, 1);
    if (i > 2) site.moves.Make().reallocations = i;
    if (i > 2) site.sizes = {i, {1}};
  }
  const std::vector<Row> reallocs = Rendered(trace.View(), CsvTable::kReallocs, 2);
  ASSERT_EQ(reallocs.size(), 3u);
  EXPECT_EQ(Cell(reallocs, 1, "line"), "3");
  EXPECT_EQ(Cell(reallocs, 2, "line"), "4");
  EXPECT_EQ(Rendered(trace.View(), CsvTable::kSiteSizes, 2).size(), 3u);
}

}  // namespace
}  // namespace memtrace::report::render
