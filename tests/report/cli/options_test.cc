#include "report/cli/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "report/analysis/instant.h"

namespace memtrace::report::render {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

uint64_t Ns(absl::string_view text) {
  const auto instant = ParseInstant("--from", text);
  EXPECT_TRUE(instant.ok()) << instant.status();
  EXPECT_FALSE(instant->share.has_value());
  return instant->ns;
}

TEST(InstantTest, TakesSecondsAndUnits) {
  EXPECT_EQ(Ns("1.5"), 1'500'000'000u);
  EXPECT_EQ(Ns("1.5s"), 1'500'000'000u);
  EXPECT_EQ(Ns("1.5 s"), 1'500'000'000u);
  EXPECT_EQ(Ns("250ms"), 250'000'000u);
  EXPECT_EQ(Ns("10us"), 10'000u);
  EXPECT_EQ(Ns("7ns"), 7u);
  EXPECT_EQ(Ns("2min"), 120'000'000'000u);
  EXPECT_EQ(Ns("2m"), 120'000'000'000u);
  EXPECT_EQ(Ns("1h"), 3'600'000'000'000u);
  EXPECT_EQ(Ns("0"), 0u);
}

TEST(InstantTest, TakesShares) {
  EXPECT_EQ(ParseInstant("--from", "90%")->share, 0.9);
  EXPECT_EQ(ParseInstant("--from", "0%")->share, 0.0);
}

TEST(InstantTest, RefusesWhatIsNoTime) {
  for (const char* text : {"", "soon", "-1", "1.2.3", "1e300", "inf", "nan", "0x10", "s", "%",
                           "101%", "99999999999h", "1 5", "1,5"}) {
    const auto instant = ParseInstant("--to", text);
    EXPECT_FALSE(instant.ok()) << text;
    EXPECT_THAT(std::string(instant.status().message()), HasSubstr("--to: "));
    EXPECT_THAT(std::string(instant.status().message()), HasSubstr("phase:NAME or mark:NAME"));
  }
}

std::string Error(const ReportFlags& flags) {
  const auto options = ParseReportFlags(flags);
  return options.ok() ? "" : std::string(options.status().message());
}

TEST(ReportFlagsTest, AnIndexIsKeptInADirectory) {
  EXPECT_THAT(Error({.index = "/proc/self/exe"}), HasSubstr("--index: /proc/self/exe is no directory"));
  EXPECT_EQ(Error({.index = "/no/such/directory"}), "");
  EXPECT_EQ(Error({.index = "off"}), "");
}

TEST(ReportFlagsTest, DefaultsAreAsDocumented) {
  const auto options = ParseReportFlags({});
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->format, ReportFormat::kText);
  EXPECT_EQ(options->text_top, 10u);
  EXPECT_EQ(options->csv_top, kAllRows);
  EXPECT_EQ(options->json_top, kJsonRows);
  EXPECT_EQ(ParseReportFlags({.full = true})->json_top, kAllRows);
  EXPECT_EQ(ParseReportFlags({.top = 3})->json_top, 3u);
  EXPECT_TRUE(options->analyze.range.whole());
  EXPECT_FALSE(options->analyze.keep_live_blocks);
  EXPECT_THAT(options->symbolizer.debug_dirs, ElementsAre("/usr/lib/debug"));
  EXPECT_FALSE(options->symbolizer.debuginfod);
}

TEST(ReportFlagsTest, ErrorsNameTheOptionAndWhatItTakes) {
  EXPECT_THAT(Error({.format = "yaml"}), HasSubstr("--format: \"yaml\" is none of text, json"));
  EXPECT_THAT(Error({.sort = "size"}), HasSubstr("--sort: no column \"size\"; there are total,"));
  EXPECT_THAT(Error({.color = "maybe"}), HasSubstr("--color"));
  EXPECT_THAT(Error({{.from = "2", .to = "1"}}), HasSubstr("--from must be before --to"));
  EXPECT_THAT(Error({{.from = "90%", .to = "10%"}}), HasSubstr("--from must be before --to"));
  EXPECT_THAT(Error({{.from = "then"}}), HasSubstr("--from: \"then\" is not a time"));
  EXPECT_THAT(Error({.tables = {"leeks"}}), HasSubstr("--table: \"leeks\" is none of summary"));
  EXPECT_THAT(Error({.format = "csv", .tables = {"summary"}}), HasSubstr("--table: no table"));
  EXPECT_THAT(Error({.format = "csv", .tables = {"sites,leaks"}}), HasSubstr("one table"));
  EXPECT_THAT(Error({.format = "json", .tables = {"sites"}}), HasSubstr("--table"));
}

TEST(ReportFlagsTest, TablesAndDirectoriesAreLists) {
  const auto options = ParseReportFlags(
      {.tables = {"leaks,growth", "sizes"}, .debug_dirs = {"/a", "/b"}});
  ASSERT_TRUE(options.ok());
  EXPECT_THAT(options->sections,
              ElementsAre(TextSection::kLeaks, TextSection::kGrowth, TextSection::kSizes));
  EXPECT_THAT(options->symbolizer.debug_dirs, ElementsAre("/a", "/b", "/usr/lib/debug"));
}

TEST(ReportFlagsTest, MtraceNeedsTheBlocks) {
  EXPECT_TRUE(ParseReportFlags({.format = "mtrace"})->analyze.keep_live_blocks);
}

TEST(SuggestTest, FindsWhatWasProbablyMeant) {
  const std::vector<std::string> commands = {"run", "report", "dump", "info", "pack"};
  EXPECT_THAT(Suggest("reprot", commands), ElementsAre("report"));
  EXPECT_THAT(Suggest("dmup", commands), ElementsAre("dump"));
  EXPECT_THAT(Suggest("rnu", commands), ElementsAre("run"));
  EXPECT_THAT(Suggest("frobnicate", commands), IsEmpty());
  EXPECT_THAT(Suggest("--fromat", {"--format", "--from"}), ElementsAre("--format", "--from"));
}

TEST(ReportFlagsTest, AnInstantIsARangeFromTheBegin) {
  ReportFlags flags;
  flags.at = "2s";
  const auto options = ParseReportFlags(flags);
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->analyze.range.from_ns, 0u);
  EXPECT_EQ(options->analyze.range.to_ns, 2'000'000'000u);
  flags.at = "50%";
  EXPECT_EQ(ParseReportFlags(flags)->analyze.to_share, 0.5);
  flags.at = "soon";
  EXPECT_THAT(std::string(ParseReportFlags(flags).status().message()), HasSubstr("--at"));
  flags.at = "2s";
  flags.from = "1s";
  EXPECT_THAT(std::string(ParseReportFlags(flags).status().message()), HasSubstr("--at"));
}

TEST(ReportFlagsTest, ARangeThatEndsAtTheStartIsRefusedHoweverItIsWritten) {
  for (const char* start : {"0", "0ms", "0%", "0.0%"}) {
    ReportFlags flags;
    flags.to = start;
    EXPECT_THAT(std::string(ParseReportFlags(flags).status().message()), HasSubstr("must be after the start")) << start;
    std::swap(flags.to, flags.at);
    EXPECT_THAT(std::string(ParseReportFlags(flags).status().message()), HasSubstr("must be after the start")) << start;
    for (const char* from : {"0", "0%"}) {
      flags = {{.from = from, .to = start}};
      EXPECT_THAT(std::string(ParseReportFlags(flags).status().message()), HasSubstr("--from must be before --to"));
    }
  }
  ReportFlags flags;
  flags.from = "0%";
  flags.to = "1%";
  EXPECT_TRUE(ParseReportFlags(flags).ok());
  flags.to = "phase:start";
  EXPECT_TRUE(ParseReportFlags(flags).ok());
}

TEST(ReportFlagsTest, SeriesAreOfThreeFormatsAndAllBlocks) {
  ReportFlags flags;
  flags.series = true;
  for (const char* format : {"text", "csv", "json"}) {
    flags.format = format;
    EXPECT_TRUE(ParseReportFlags(flags).ok()) << format;
  }
  flags.format = "massif";
  EXPECT_THAT(std::string(ParseReportFlags(flags).status().message()), HasSubstr("--series"));
  flags.format = "csv";
  flags.size = "10..";
  EXPECT_THAT(std::string(ParseReportFlags(flags).status().message()),
              testing::AllOf(HasSubstr("--series cannot be combined with --size"),
                             HasSubstr("; --timeline-by site can (csv: --table timeline-by-site)")));
  flags.series = false;
  flags.tables = {"timeline-by-site"};
  EXPECT_TRUE(ParseReportFlags(flags).ok()) << "what the refusal tells to take";
}

// What a format does not look at is refused, not passed over.
TEST(ReportFlagsTest, NothingIsAskedForInVain) {
  const auto refusal = [](const ReportFlags& flags) {
    return std::string(ParseReportFlags(flags).status().message());
  };
  ReportFlags flags;
  flags.scan = "2";
  for (const char* format : {"text", "json", "csv", "html"}) {
    flags.format = format;
    EXPECT_EQ(refusal(flags), "") << format;
  }
  flags.format = "sqlite";
  EXPECT_THAT(refusal(flags), HasSubstr("--scan: is for --format text, json, csv and html; sqlite has the leaks of all scans"));
  flags.format = "valgrind-xml";
  EXPECT_THAT(refusal(flags), HasSubstr("--scan: is for --format text, json, csv and html, not valgrind-xml"));
  flags = {};
  flags.timeline_by = "thread";
  EXPECT_EQ(refusal(flags), "");
  flags.format = "csv";
  EXPECT_THAT(refusal(flags), HasSubstr("--timeline-by: is for --format text, not csv"));
  flags = {};
  flags.sort = "live";
  for (const char* format : {"text", "json", "csv"}) {
    flags.format = format;
    EXPECT_EQ(refusal(flags), "") << format;
  }
  flags.format = "html";
  EXPECT_THAT(refusal(flags), HasSubstr("--sort: is for --format text, json and csv, not html"));
  flags = {};
  flags.tables = {","};
  EXPECT_THAT(refusal(flags), HasSubstr("--table: \",\" names none"));
  flags = {};
  flags.top = 1;
  flags.format = "html";
  EXPECT_EQ(refusal(flags), "");
  flags.format = "folded";
  EXPECT_THAT(refusal(flags), HasSubstr("--top: is for --format text, json, csv and html"));
  flags = {};
  flags.leak_kinds = "reachable";
  for (const char* format : {"text", "json", "csv", "html"}) {
    flags.format = format;
    EXPECT_EQ(refusal(flags), "") << format;
  }
  flags.format = "valgrind";
  EXPECT_THAT(refusal(flags), HasSubstr("--show-leak-kinds: is for --format text, json, csv and html"));
  flags = {};
  flags.size = "64";
  flags.format = "heaptrack";
  EXPECT_THAT(refusal(flags), HasSubstr("--size: --format heaptrack has the events of all threads and blocks"));
  flags = {};
  flags.questions.summary = true;
  flags.format = "csv";
  EXPECT_THAT(refusal(flags), HasSubstr("--graph, --why and --who-points-at are for --format text and json, not csv"));
  flags = {};
  flags.suppress_children = true;
  EXPECT_THAT(refusal(flags), HasSubstr("--suppress-children needs --suppressions FILE"));
  flags.suppressions = {"known"};
  EXPECT_EQ(refusal(flags), "");
  flags.format = "html";
  EXPECT_THAT(refusal(flags), HasSubstr("--suppressions: is for --format text, json and csv, not html"));
  flags = {};
  flags.series = true;
  flags.scan = "2";
  EXPECT_THAT(refusal(flags), HasSubstr("--series cannot be combined with --scan"));
  flags.scan = "last";
  flags.suppressions = {"known"};
  EXPECT_THAT(refusal(flags), HasSubstr("--series cannot be combined with --suppressions"));
}

TEST(ReportFlagsTest, TheIndexIsBesideTheTraceUnlessADirectoryIsNamed) {
  ReportFlags flags;
  EXPECT_TRUE(ParseReportFlags(flags)->index_beside);
  flags.index = "/somewhere";
  EXPECT_FALSE(ParseReportFlags(flags)->index_beside);
  EXPECT_EQ(ParseReportFlags(flags)->summary_dir, "/somewhere");
  flags.index = "off";
  EXPECT_FALSE(ParseReportFlags(flags)->index_beside);
  EXPECT_EQ(ParseReportFlags(flags)->summary_dir, "");
}

}  // namespace
}  // namespace memtrace::report::render
