// Rank tests against published values, the history file, and what is called growing.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "report/growth/rank_trend.h"
#include "report/trend/history.h"
#include "report/trend/trend.h"
#include "report/trend/trend_formats.h"
#include "report/words/escape.h"
#include "report/words/sink.h"
#include "tests/temp_dir.h"

namespace memtrace::report {
namespace {

using testing::HasSubstr;
using testing::Not;

// The null distribution of Kendall's S, Kendall 1975, Appendix Table 1: n = 4, S >= 6: 0.042;
// n = 5, S >= 8: 0.042; n = 8, S >= 16: 0.031, S >= 20: 0.0071 (as printed, rounded).
TEST(RankTrendTest, HasTheProbabilitiesOfKendallsTable) {
  EXPECT_NEAR(FindTrend({1, 2, 3, 4}).p_rise, 1.0 / 24, 1e-12);
  EXPECT_NEAR(FindTrend({1, 2, 3, 5, 4}).p_rise, 5.0 / 120, 1e-12);
  const RankTrend s16 = FindTrend({1, 2, 3, 8, 4, 5, 6, 7});  // four pairs fall: S = 20
  EXPECT_EQ(s16.s, 20);
  EXPECT_NEAR(s16.p_rise, 0.0071, 0.00005);
  const RankTrend s = FindTrend({3, 1, 2, 8, 4, 5, 6, 7});  // six fall: S = 16
  EXPECT_EQ(s.s, 16);
  EXPECT_NEAR(s.p_rise, 0.031, 0.0005);
}

TEST(RankTrendTest, FallingIsRisingBackwards) {
  const RankTrend up = FindTrend({1, 5, 2, 7, 8, 9}), down = FindTrend({9, 8, 7, 2, 5, 1});
  EXPECT_EQ(up.s, -down.s);
  EXPECT_DOUBLE_EQ(up.p_rise, down.p_fall);
  EXPECT_DOUBLE_EQ(up.slope, -down.slope);
}

TEST(RankTrendTest, CountsEqualValuesAsNoChange) {
  const RankTrend flat = FindTrend({5, 5, 5, 5, 5, 5});
  EXPECT_EQ(flat.s, 0);
  EXPECT_EQ(flat.p_rise, 1);
  EXPECT_EQ(flat.slope, 0);
  // 0 0 0 1 1 1: one of C(6,3) = 20 orders rises so much.
  EXPECT_NEAR(FindTrend({0, 0, 0, 1, 1, 1}).p_rise, 1.0 / 20, 1e-12);
  EXPECT_EQ(FindTrend(std::vector<double>(30, 5.0)).p_rise, 1);
}

TEST(RankTrendTest, TheApproximationGoesOnWhereTheExactOneEnds) {
  // n = 9, S = 20: exactly 0.022 (Kendall, n = 9).
  const RankTrend nine = FindTrend({1, 2, 3, 4, 9, 8, 7, 6, 5});  // 10 fall: S = 16
  EXPECT_EQ(nine.s, 16);
  EXPECT_NEAR(nine.p_rise, 0.060, 0.003);  // 0.060 in the table
}

// Three wild nights of thirty do not move the slope.
TEST(RankTrendTest, SlopeIsThatOfMostPairs) {
  std::vector<double> series;
  for (int i = 0; i < 30; ++i) series.push_back(100 + 8 * i);
  for (const size_t wild : {4u, 17u, 29u}) series[wild] = wild == 17 ? 0 : 1e9;
  EXPECT_NEAR(FindTrend(series).slope, 8, 0.5);
}

class HistoryTest : public testing::Test {
 protected:
  std::string history() const { return directory_ / "history"; }

  static Night MakeNight(int number, uint64_t leak, uint64_t steady = 100) {
    Night night;
    night.label = absl::StrCat("night-", number);
    night.run.start_realtime_ns = int64_t{1763712603000000000} + int64_t{number} * 86400 * 1000000000;
    night.run.duration_ns = 1000000000;
    night.run.command = "./app";
    night.run.end = "exit 0";
    night.run.executables = {"app"};
    night.run.totals[Measure::kLive] = leak + steady;
    night.run.totals[Measure::kAllocations] = 10;
    for (const auto& [fingerprint, live] : {std::pair<const char*, uint64_t>{"aaaa", leak},
                                            {"bbbb", steady}}) {
      RunSite& site = night.run.sites[{"app", fingerprint}];
      site.allocator = "malloc";
      site.caller = absl::StrCat("Make_", fingerprint);
      site.file = "/src/a.cc";
      site.line = 3;
      site.amounts[Measure::kLive] = live;
      site.amounts[Measure::kAllocated] = live + 10;
      site.amounts[Measure::kAllocations] = 2;
    }
    return night;
  }

  TempDir directory_;
};

TEST_F(HistoryTest, ReadsWhatWasAppended) {
  ASSERT_TRUE(AppendNight(history(), MakeNight(2, 50)).ok());
  ASSERT_TRUE(AppendNight(history(), MakeNight(1, 40)).ok());
  const auto read = ReadHistory(history());
  ASSERT_TRUE(read.ok());
  ASSERT_EQ(read->nights.size(), 2u);
  EXPECT_EQ(read->nights[0].label, "night-1") << "by their starts";
  EXPECT_EQ(read->nights[1].run.sites.at({"app", "aaaa"}).amounts[Measure::kLive], 50u);
  EXPECT_EQ(read->nights[1].run.sites.at({"app", "aaaa"}).caller, "Make_aaaa");
  EXPECT_EQ(read->nights[1].run.totals[Measure::kLive], 150u);
  EXPECT_EQ(read->bad_lines, 0u);
}

TEST_F(HistoryTest, OutlivesACutLineAndJunk) {
  ASSERT_TRUE(AppendNight(history(), MakeNight(1, 40)).ok());
  const std::string line = NightLine(MakeNight(2, 50), kSitesKept);
  for (size_t cut = 1; cut < line.size(); cut += 97) {
    std::ofstream(HistoryFile(history()), std::ios::app) << line.substr(0, cut);
    ASSERT_TRUE(AppendNight(history(), MakeNight(3, 60)).ok());
    const auto read = ReadHistory(history());
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(read->nights.back().label, "night-3") << cut;
  }
  std::ofstream(HistoryFile(history()), std::ios::app)
      << "{}\n[]\nnull\n\"x\"\n" << std::string(100000, '[') << "\n"
      << R"({"schema":"memtrace-night/1","start_ns":"x"})" << "\n"
      << R"({"schema":"memtrace-night/1","start_ns":1,"duration_ns":1,"executables":[],"totals":5,"sites":[1]})"
      << "\n\xff\xfe\n";
  const auto read = ReadHistory(history());
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->nights.front().label, "night-1");
  EXPECT_GE(read->bad_lines, 8u);
}

TEST_F(HistoryTest, IsWholeWhenManyAppendAtOnce) {
  constexpr int kWriters = 8, kEach = 12;
  std::vector<pid_t> children;
  for (int writer = 0; writer < kWriters; ++writer) {
    const pid_t child = fork();
    if (child == 0) {
      bool ok = true;
      for (int i = 0; i < kEach; ++i) {
        ok = ok && AppendNight(history(), MakeNight(writer * kEach + i, 10)).ok();
      }
      _exit(ok ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  const auto read = ReadHistory(history());
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->bad_lines, 0u);
  std::set<std::string> labels;
  for (const Night& night : read->nights) labels.insert(night.label);
  EXPECT_EQ(labels.size(), static_cast<size_t>(kWriters * kEach));
}

TEST_F(HistoryTest, TakesNothingBackWhenItCannotWrite) {
  EXPECT_FALSE(AppendNight(directory_ / "not/there", MakeNight(1, 1)).ok());
  EXPECT_FALSE(ReadHistory(directory_ / "nothing").ok());
  ASSERT_TRUE(AppendNight(history(), MakeNight(1, 1)).ok());
  const auto before = std::filesystem::file_size(HistoryFile(history()));
  std::filesystem::create_directories(directory_ / "full");
  std::filesystem::create_symlink("/dev/full", HistoryFile(directory_ / "full"));
  EXPECT_FALSE(AppendNight(directory_ / "full", MakeNight(1, 1)).ok());
  EXPECT_EQ(std::filesystem::file_size(HistoryFile(history())), before);
}

TEST_F(HistoryTest, KeepsTheSitesThatMatter) {
  Night night = MakeNight(1, 1);
  for (int i = 0; i < 100; ++i) {
    night.run.sites[{"app", absl::StrCat("idle", i)}].amounts[Measure::kAllocated] =
        static_cast<uint64_t>(i);
  }
  Night read;
  ASSERT_TRUE(ParseNight(NightLine(night, 10), &read));
  EXPECT_TRUE(read.run.sites.contains({"app", "aaaa"}));
  EXPECT_TRUE(read.run.sites.contains({"app", "idle99"}));
  EXPECT_FALSE(read.run.sites.contains({"app", "idle5"}));
  EXPECT_LE(read.run.sites.size(), 12u);
}

// Half a character would be U+FFFD in the history, and another name when it is read.
TEST_F(HistoryTest, CutsALongNameBetweenCharacters) {
  Night night = MakeNight(1, 1), read;
  night.run.sites[{"app", "aaaa"}].caller = absl::StrCat(std::string(499, 'x'), "\u00e9");
  ASSERT_TRUE(ParseNight(NightLine(night, 10), &read));
  EXPECT_EQ(read.run.sites.at({"app", "aaaa"}).caller, std::string(499, 'x'));
}

// Of sites that read the same, and of each the first: another night may have one that does.
TEST_F(HistoryTest, KeepsTheCallersThatTellSitesApart) {
  Night night = MakeNight(1, 5), read;
  for (const char* fingerprint : {"aaaa", "bbbb", "cccc"}) {
    RunSite& site = night.run.sites[{"app", fingerprint}];
    site.caller = "Duplicate";
    site.file = "/src/a.cc";
    site.line = 3;
    site.stack = {"Duplicate  a.cc:3", "Load  a.cc:9", absl::StrCat("By_", fingerprint), "main"};
    site.callers_begin = 1;
    site.amounts[Measure::kLive] = 5;
  }
  night.run.sites[{"app", "bbbb"}].caller = "Make";
  const auto callers = [&](const char* fingerprint) {
    const auto kept = read.run.sites.at({"app", fingerprint}).callers();
    return std::vector<std::string>(kept.begin(), kept.end());
  };
  ASSERT_TRUE(ParseNight(NightLine(night, 10), &read));
  EXPECT_THAT(callers("aaaa"), testing::ElementsAre("Load  a.cc:9", "By_aaaa"));
  EXPECT_THAT(callers("bbbb"), testing::ElementsAre("Load  a.cc:9"));
  EXPECT_THAT(callers("cccc"), testing::ElementsAre("Load  a.cc:9", "By_cccc"));
  // As histories have it that were begun before there were callers.
  auto old = nlohmann::json::parse(NightLine(night, 10));
  for (auto& site : old["sites"]) site.erase("callers");
  ASSERT_TRUE(ParseNight(old.dump(), &read));
  EXPECT_TRUE(callers("aaaa").empty());
}

History Nights(const std::vector<uint64_t>& leaks) {
  History history;
  int number = 0;
  for (const uint64_t leak : leaks) {
    Night night;
    night.run.start_realtime_ns = ++number;
    night.run.duration_ns = 1000000000;
    night.run.executables = {"app"};
    night.run.totals[Measure::kAllocations] = 10;
    night.run.totals[Measure::kLive] = leak;
    RunSite& site = night.run.sites[{"app", "aaaa"}];
    site.caller = "Make";
    site.file = "a.cc";
    site.amounts[Measure::kLive] = leak;
    history.nights.push_back(std::move(night));
  }
  return history;
}

std::string VerdictOf(const std::vector<uint64_t>& leaks, TrendOptions options = {}) {
  const History history = Nights(leaks);
  const auto trend = FindTrends(history, options);
  return trend.ok() && !trend->rows.empty() ? std::string(TrendName(trend->rows[0].verdict)) : "none";
}

TEST(TrendTest, CallsGrowingWhatGrows) {
  EXPECT_EQ(VerdictOf({10, 20, 30, 40, 50}), "growing");
  EXPECT_EQ(VerdictOf({10, 20, 15, 40, 50, 60, 70, 65}), "growing") << "with noise";
  EXPECT_EQ(VerdictOf({50, 40, 30, 20, 10}), "shrinking");
  EXPECT_EQ(VerdictOf({10, 12, 9, 11, 10, 12, 10}), "steady");
  EXPECT_EQ(VerdictOf({10, 10, 10, 10, 9000, 10, 10}), "steady") << "one wild night";
  EXPECT_EQ(VerdictOf({10, 10, 10, 10, 90, 90, 90, 90, 90, 90}), "stepped");
  EXPECT_EQ(VerdictOf({0, 0, 0, 10, 20, 30, 40, 50}), "growing") << "began later";
  EXPECT_EQ(VerdictOf({10, 20, 30, 40}), "unknown") << "too few nights";
  EXPECT_EQ(VerdictOf({10, 10, 40}), "unknown");
  EXPECT_EQ(VerdictOf({10}), "unknown");
  EXPECT_EQ(VerdictOf({0, 0, 0, 0, 0}), "none");
}

TEST(TrendTest, TellsWhenNightsAreTooFew) {
  const History history = Nights({1, 2, 3, 4});
  EXPECT_FALSE(FindTrends(history, {})->enough);
  TrendOptions options;
  options.fewest = 4;
  options.chance = 0.05;
  EXPECT_EQ(VerdictOf({1, 2, 3, 4}, options), "growing");
  EXPECT_FALSE(FindTrends(History(), {}).ok());
}

TEST(TrendTest, LooksAtWhatWasAskedFor) {
  TrendOptions options;
  options.least.amount = 100;
  EXPECT_EQ(VerdictOf({10, 20, 30, 40, 50}, options), "steady");
  options = {};
  options.last = 5;
  EXPECT_EQ(VerdictOf({90, 80, 70, 10, 20, 30, 40, 50}, options), "growing");
  options = {};
  options.match = "Other";
  EXPECT_EQ(VerdictOf({10, 20, 30, 40, 50}, options), "none");
  options.match = "(";
  EXPECT_FALSE(FindTrends(Nights({1, 2}), options).ok());
  options = {};
  options.measure = Measure::kDefinite;
  EXPECT_FALSE(FindTrends(Nights({1, 2}), options).ok()) << "no night was scanned";
  // Twice the work, twice the blocks: nothing grows.
  History history = Nights({10, 20, 30, 40, 50});
  for (size_t i = 0; i < 5; ++i) history.nights[i].run.totals[Measure::kAllocations] = 10 * (i + 1);
  options = {};
  options.per = Per::kAllocation;
  EXPECT_EQ(FindTrends(history, options)->rows[0].verdict, TrendVerdict::kSteady);
}

// By chance alone a site is called growing in about one of a hundred cases, and not in ten.
TEST(TrendTest, IsSeldomWrongAboutNoise) {
  uint64_t state = 12345;
  const auto next = [&] {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % 1000;
  };
  for (const size_t nights : {5u, 8u, 14u}) {
    int growing = 0;
    for (int i = 0; i < 1000; ++i) {
      std::vector<uint64_t> leaks;
      for (size_t n = 0; n < nights; ++n) leaks.push_back(next());
      growing += VerdictOf(leaks) == "growing";
    }
    EXPECT_LE(growing, 20) << nights;
  }
}

TEST(TrendFormatsTest, FitTheirWidthAndEscapeNames) {
  History history = Nights({10, 20, 30, 40, 50, 60});
  history.nights.back().run.sites[{"app", "aaaa"}].caller = absl::StrCat("\x1b[2J", std::string(300, 'x'));
  const auto trend = FindTrends(history, {});
  for (const size_t width : {60u, 80u, 120u, 200u}) {
    for (const bool utf8 : {false, true}) {
      render::TextOptions options;
      options.style.width = width;
      options.style.utf8 = utf8;
      const std::string text = RenderTrendText(*trend, "history", options);
      EXPECT_THAT(text, HasSubstr("GROWING"));
      EXPECT_THAT(text, Not(HasSubstr("\x1b")));
      for (const absl::string_view line : absl::StrSplit(text, '\n')) {
        EXPECT_LE(words::DisplayWidth(line), width) << line;
      }
    }
  }
  words::StringSink json, csv;
  RenderTrendJson(*trend, SIZE_MAX, json);
  const auto parsed = nlohmann::json::parse(json.text());
  EXPECT_EQ(parsed["schema"], "memtrace-trend/1");
  EXPECT_EQ(parsed["grows"], true);
  EXPECT_EQ(parsed["sites"][0]["values"].size(), 6u);
  EXPECT_DOUBLE_EQ(parsed["sites"][0]["slope_per_night"].get<double>(), 10);
  RenderTrendCsv(*trend, SIZE_MAX, csv);
  EXPECT_EQ(std::count(csv.text().begin(), csv.text().end(), '\n'), 7);
}

TEST(TrendFormatsTest, TellSitesBelowAWrapperApart) {
  History history = Nights({10, 20, 30, 40, 50, 60});
  for (Night& night : history.nights) {
    RunSite& one = night.run.sites[{"app", "aaaa"}];
    one.stack = {"Load()  /src/load.cc:20", "main"};
    RunSite& other = night.run.sites[{"app", "bbbb"}] = one;
    other.stack = {"Parse()  /src/load.cc:30", "main"};
  }
  const auto trend = FindTrends(history, {});
  const std::string text = RenderTrendText(*trend, "history", {});
  EXPECT_THAT(text, HasSubstr("GROWING  2 sites\n"));
  EXPECT_THAT(text, HasSubstr("by Load()  src/load.cc:20\n"));
  EXPECT_THAT(text, HasSubstr("by Parse()  src/load.cc:30\n"));
  words::StringSink json;
  RenderTrendJson(*trend, SIZE_MAX, json);
  const auto site = nlohmann::json::parse(json.text())["sites"][0];
  EXPECT_EQ(site["called_by"], "Load()  /src/load.cc:20");
  EXPECT_EQ(site["called_by_depth"], 1);
  // Of an older history nothing else is known.
  for (Night& night : history.nights) {
    for (auto& [key, site] : night.run.sites) site.stack.clear();
  }
  EXPECT_THAT(RenderTrendText(*FindTrends(history, {}), "history", {}),
              HasSubstr("  fingerprint bbbb\n"));
}

// Rounded it is 0, which has no sign.
TEST(TrendFormatsTest, LessThanAByteANightIsNotZero) {
  const auto text = [](const std::vector<uint64_t>& leaks, bool full) {
    const History history = Nights(leaks);
    render::TextOptions options;
    options.full = full;
    return RenderTrendText(*FindTrends(history, {}), "history", options);
  };
  const std::string falls = text({102, 102, 101, 101, 100, 100}, true);
  EXPECT_THAT(falls, HasSubstr(" -0.5 B "));
  const std::string rises = text({100, 100, 101, 101, 102, 102}, true);
  EXPECT_THAT(rises, HasSubstr(" +0.5 B "));
  for (const bool full : {false, true}) {
    for (const std::vector<uint64_t>& leaks :
         {std::vector<uint64_t>{100, 100, 100, 100, 100}, {104, 104, 104, 103, 103, 100, 101, 103},
          {102, 102, 101, 101, 100, 100}}) {
      EXPECT_THAT(text(leaks, full), Not(HasSubstr("-0 ")));
      EXPECT_THAT(text(leaks, full), Not(HasSubstr("+0 ")));
    }
  }
}

TEST(TrendFormatsTest, SayThatOnlySomeSitesWereLookedAt) {
  const History history = Nights({10, 20, 30, 40, 50, 60});
  TrendOptions options;
  options.match = "Other|More";
  const auto trend = FindTrends(history, options);
  EXPECT_THAT(RenderTrendText(*trend, "history", {}), HasSubstr("sites that match /Other|More/"));
  words::StringSink json;
  RenderTrendJson(*trend, SIZE_MAX, json);
  EXPECT_EQ(nlohmann::json::parse(json.text())["match"], "Other|More");
}

// Nor where it grew by less than what counts.
TEST(TrendFormatsTest, OfTooFewNightsNothingIsSaidToBeSteady) {
  TrendOptions options;
  for (const double least : {0, 1'000'000}) {
    options.least.amount = least;
    for (const std::vector<uint64_t>& leaks :
         {std::vector<uint64_t>{100}, {100, 100}, {100, 500'100}, {100, 100, 200, 300}}) {
      const History history = Nights(leaks);
      const auto trend = FindTrends(history, options);
      const std::string text = RenderTrendText(*trend, "history", {});
      EXPECT_THAT(text, HasSubstr("SITES  1 site\n"));
      for (const char* word : {"STEADY", "steady", "UNCHANGED"}) {
        EXPECT_THAT(text, Not(HasSubstr(word)));
      }
      words::StringSink json, csv;
      RenderTrendJson(*trend, SIZE_MAX, json);
      EXPECT_EQ(nlohmann::json::parse(json.text())["sites"][0]["verdict"], "unknown");
      EXPECT_EQ(nlohmann::json::parse(json.text())["counts"]["steady"], 0);
      RenderTrendCsv(*trend, SIZE_MAX, csv);
      EXPECT_THAT(csv.text(), HasSubstr("\nunknown,"));
    }
  }
}

TEST(HistoryFileTest, IsNamedAsOneWouldWriteIt) {
  EXPECT_EQ(HistoryFile("history/"), "history/history.jsonl");
  EXPECT_EQ(HistoryFile("history"), "history/history.jsonl");
}

TEST(SparklineTest, ShowsTheHighestFullAndNothingAsEmpty) {
  EXPECT_EQ(Sparkline({0, 1, 8}, 10, false), "_:#");
  EXPECT_EQ(Sparkline({0, 0, 0}, 10, false), "___");
  EXPECT_EQ(Sparkline({}, 10, true), "");
}

TEST(SparklineTest, OfManyValuesShowsAllOfThem) {
  EXPECT_EQ(Sparkline({1, 1, 8, 8}, 2, false), ":#");
  EXPECT_EQ(Sparkline({8, 1, 1, 1, 1}, 2, false), "#:");
  EXPECT_EQ(Sparkline({1, 1, 1, 1, 8}, 4, false), ":::#");
}

// A step that is longer ago than there are marks is in the picture as well.
TEST(TrendFormatsTest, ShowAllNightsAndSayHowManyAMarkHas) {
  std::vector<uint64_t> leaks(30, 100);
  std::fill(leaks.begin() + 10, leaks.end(), 800);
  const History month = Nights(leaks), week = Nights({100, 100, 800, 800, 800, 800, 800});
  const auto text = [](const History& history) {
    return RenderTrendText(*FindTrends(history, {}), "history", {});
  };
  EXPECT_THAT(text(month), HasSubstr("each mark is of 2 or 3 nights, and as high as"));
  EXPECT_THAT(text(month), HasSubstr("  :::::#########\n"));
  EXPECT_THAT(text(week), Not(HasSubstr("each mark")));
  EXPECT_THAT(text(Nights(std::vector<uint64_t>(28, 100))),
              HasSubstr("each mark is of 2 nights, "));
}

}  // namespace
}  // namespace memtrace::report
