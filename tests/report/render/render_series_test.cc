// Sites over time: the steps, and the three formats of `memtrace report --series`.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "report/render/site_series_table.h"
#include "report/render/stacked_timeline.h"
#include "report/words/escape.h"
#include "tests/report/render/render_made_up.h"

namespace memtrace::report::render {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint64_t kSecond = 1'000'000'000;

// Ten seconds in steps of one: a site that did something in three of them, and a smaller one.
class SeriesTest : public ::testing::Test {
 protected:
  SeriesTest() {
    made_up_.analysis.process.duration_ns = 10 * kSecond;
    made_up_.analysis.series_interval_ns = kSecond;
    Site& small = made_up_.AddSite(made_up_.Stack({{"Small()", "s.cc", 2}}), 1, 8, 1);
    small.series = {{.interval = 9, .allocations = 1, .live_blocks = 1, .live_bytes = 8,
                     .bytes_allocated = 8}};
    Site& site = made_up_.AddSite(made_up_.Stack({{"Grow()", "g.cc", 7}}), 6, 100, 3);
    site.peak_bytes = 400;
    site.series = {
        {.interval = 0, .allocations = 4, .live_blocks = 4, .live_bytes = 400, .bytes_allocated = 400},
        {.interval = 3, .frees = 3, .live_blocks = 1, .live_bytes = 100},
        {.interval = 4, .allocations = 2, .live_blocks = 3, .live_bytes = 300, .bytes_allocated = 200},
    };
  }

  // Of the larger one.
  std::vector<SeriesStep> Steps(size_t most = SIZE_MAX) {
    return StepsOf(made_up_.analysis, made_up_.analysis.sites[1], most);
  }
  std::vector<uint64_t> Live(const std::vector<SeriesStep>& steps) {
    std::vector<uint64_t> live;
    for (const SeriesStep& step : steps) live.push_back(step.live_bytes);
    return live;
  }
  std::string Text(size_t width, size_t top = 10) {
    TextOptions options;
    options.style.width = width;
    options.top = top;
    return SeriesText(made_up_.View(), options);
  }

  MadeUp made_up_;
};

TEST_F(SeriesTest, WhereNothingHappenedASiteHoldsWhatItHeld) {
  const std::vector<SeriesStep> steps = Steps();
  EXPECT_THAT(Live(steps), ElementsAre(400, 400, 400, 100, 300, 300, 300, 300, 300, 300));
  EXPECT_EQ(steps[0].time_ns, kSecond);
  EXPECT_EQ(steps[9].time_ns, 10 * kSecond);
  EXPECT_EQ(steps[3].frees, 3u);
  EXPECT_EQ(steps[4].allocations, 2u);
  EXPECT_EQ(steps[4].bytes_allocated, 200u);
  EXPECT_EQ(steps[5].allocations, 0u);
}

TEST_F(SeriesTest, WhatIsAtTheVeryEndIsInTheLastStep) {
  made_up_.analysis.sites[1].series.push_back(
      {.interval = 10, .allocations = 1, .live_blocks = 4, .live_bytes = 350, .bytes_allocated = 50});
  const std::vector<SeriesStep> steps = Steps();
  ASSERT_EQ(steps.size(), 10u);
  EXPECT_EQ(steps[9].live_bytes, 350u);
  EXPECT_EQ(steps[9].allocations, 1u);
}

TEST_F(SeriesTest, NeighboursBecomeOneAndNothingIsLost) {
  const std::vector<SeriesStep> steps = Steps(3);
  EXPECT_THAT(Live(steps), ElementsAre(100, 300, 300));
  EXPECT_EQ(steps.front().time_ns, 4 * kSecond);
  uint64_t allocations = 0, frees = 0, bytes = 0;
  for (const SeriesStep& step : steps) {
    allocations += step.allocations;
    frees += step.frees;
    bytes += step.bytes_allocated;
  }
  EXPECT_EQ(allocations, 6u);
  EXPECT_EQ(frees, 3u);
  EXPECT_EQ(bytes, 600u);
  EXPECT_EQ(steps.back().time_ns, 10 * kSecond);
}

TEST_F(SeriesTest, ARangeBeginsWhereItDoes) {
  made_up_.analysis.range.from_ns = 5 * kSecond;
  made_up_.analysis.range.to_ns = 8 * kSecond;
  const std::vector<SeriesStep> steps = Steps();
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(steps.front().time_ns, 6 * kSecond);
  EXPECT_EQ(steps.back().time_ns, 8 * kSecond);
}

TEST_F(SeriesTest, TextHasTheHighestPeakFirstAndSaysHowMany) {
  const std::string text = Text(80);
  EXPECT_THAT(text, HasSubstr("2 of 2 sites, highest peak first"));
  EXPECT_LT(text.find("Grow()"), text.find("Small()"));
  EXPECT_THAT(text, ::testing::ContainsRegex("1\\.0+ s +400 +4 +400 +4 +0\n"));
  EXPECT_THAT(text, ::testing::ContainsRegex("4\\.0+ s +100 +1 +0 +0 +3\n"));
  const std::string first = Text(80, 1);
  EXPECT_THAT(first, HasSubstr("1 of 2 sites"));
  EXPECT_THAT(first, Not(HasSubstr("Small()")));
}

TEST_F(SeriesTest, TextNamesFilesFromWhereTheProgramRan) {
  Site& site = made_up_.AddSite(made_up_.Stack({{"Late()", "/work/src/l.cc", 4}}), 1, 900, 1);
  site.peak_bytes = 900;
  site.series = {{.interval = 9, .allocations = 1, .live_blocks = 1, .live_bytes = 900, .bytes_allocated = 900}};
  EXPECT_THAT(Text(80), HasSubstr("\n  Late() src/l.cc:4  "));
}

// Of a place that is far away the path is cut, and not the file with the line.
TEST_F(SeriesTest, TextKeepsTheEndOfAPlace) {
  const std::string far = "/tmp/python-build.20260509073455.222/Python-3.13.1/Objects/listobject.c";
  Site& site = made_up_.AddSite(made_up_.Stack({{"list_resize", far, 79}}), 1, 900, 1);
  site.peak_bytes = site.bytes_at_peak = 900;
  site.series = {{.interval = 9, .allocations = 1, .live_blocks = 1, .live_bytes = 900, .bytes_allocated = 900}};
  EXPECT_THAT(Text(80), HasSubstr("\n  list_resize Objects/listobject.c:79  "));
  EXPECT_THAT(Text(60), HasSubstr("\n  list_resize Objects/listobject.c:79  "));
  TextOptions options;
  options.style.width = 80;
  options.timeline_by = StackBy::kSite;
  EXPECT_THAT(TimelineByText(made_up_.View(), options),
              HasSubstr("  list_resize  listobject.c:79\n"));
  options.style.width = 100;
  EXPECT_THAT(TimelineByText(made_up_.View(), options),
              HasSubstr("  list_resize  Objects/listobject.c:79\n"));
  options.timeline_by = StackBy::kFolder;
  options.style.width = 80;
  EXPECT_THAT(TimelineByText(made_up_.View(), options), HasSubstr("/Python-3.13.1/Objects\n"));
  EXPECT_EQ(StackTimeline(made_up_.View(), StackBy::kSite, 1).series[0].name,
            absl::StrCat("list_resize ", far, ":79"))
      << "in data nothing is cut";
}

TEST_F(SeriesTest, TextFitsTheTerminal) {
  made_up_.AddSite(made_up_.Stack({{std::string(300, 'x') + "()", "/a/" + std::string(200, 'y'), 1}}),
                   1, 8, 1);
  for (const size_t width : {60, 80, 200}) {
    const std::string text = Text(width);
    size_t begin = 0;
    for (size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
      EXPECT_LE(words::DisplayWidth(text.substr(begin, end - begin)), width)
          << text.substr(begin, end - begin);
    }
  }
}

TEST_F(SeriesTest, CsvHasARecordForEachSiteAndStep) {
  words::StringSink out;
  SeriesCsv(made_up_.View(), SIZE_MAX, out);
  const std::string text = out.text();
  EXPECT_EQ(text.substr(0, text.find("\r\n")),
            "time_s,live_bytes,live_blocks,bytes_allocated,allocations,frees,caller,file,line,module,"
            "fingerprint");
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1 + 2 * 10);
  EXPECT_THAT(text, HasSubstr("\r\n4.000000000,100,1,0,0,3,Grow(),g.cc,7,"));
  EXPECT_LT(text.find("Grow()"), text.find("Small()"));
}

// What holds little for long would hide what grows.
TEST_F(SeriesTest, PartsAreRankedByTheMostThatTheyHeld) {
  Site& grew = made_up_.AddSite(made_up_.Stack({{"Late()", "l.cc", 3}}), 1, 900, 1);
  grew.series = {{.interval = 9, .allocations = 1, .live_blocks = 1, .live_bytes = 900, .bytes_allocated = 900}};
  const StackedTimeline timeline = StackTimeline(made_up_.View(), StackBy::kSite, 1);
  ASSERT_EQ(timeline.series.size(), 1u);
  EXPECT_THAT(timeline.series[0].name, HasSubstr("Late()"));
  EXPECT_EQ(timeline.others, 2u);
}

// A peak within an interval is in none of the values.
TEST_F(SeriesTest, TextSaysHowOftenThePartsAreKnown) {
  made_up_.analysis.sites[1].peak_bytes = made_up_.analysis.sites[1].bytes_at_peak = 900;
  TextOptions options;
  options.style.width = 80;
  options.timeline_by = StackBy::kSite;
  const std::string text = TimelineByText(made_up_.View(), options);
  EXPECT_THAT(text, HasSubstr("HEAP OVER TIME BY SITE  live bytes every 1.00 s, all of one scale"));
  EXPECT_THAT(text, HasSubstr("\n   400         300  "));
}

TEST_F(SeriesTest, SaysWhatWasChosen) {
  made_up_.analysis.range.from_ns = 1'000'000'000;
  const auto view = made_up_.View();
  EXPECT_THAT(SeriesText(view, {}), HasSubstr("blocks allocated from 1.00 s to 10.0 s"));
  words::StringSink out;
  SeriesJson(view, 1, out);
  EXPECT_EQ(nlohmann::json::parse(out.text()).at("only").at(0), "blocks allocated from 1.00 s to 10.0 s");
}

TEST_F(SeriesTest, JsonHasListsOfOneLength) {
  words::StringSink out;
  SeriesJson(made_up_.View(), 1, out);
  const auto json = nlohmann::json::parse(out.text());
  EXPECT_EQ(json.at("schema"), "memtrace-series/1");
  EXPECT_EQ(json.at("begin_s"), 0);
  EXPECT_EQ(json.at("end_s"), 10);
  EXPECT_EQ(json.at("interval_s"), 1);
  ASSERT_EQ(json.at("sites").size(), 1u);
  const auto& site = json.at("sites").at(0);
  EXPECT_EQ(site.at("live_bytes").dump(), "[400,400,400,100,300,300,300,300,300,300]");
  EXPECT_EQ(site.at("frees").dump(), "[0,0,0,3,0,0,0,0,0,0]");
  for (const char* name : {"live_blocks", "bytes_allocated", "allocations"}) {
    EXPECT_EQ(site.at(name).size(), 10u) << name;
  }
  EXPECT_EQ(site.at("stack").at(0).at("function"), "Grow()");
}

}  // namespace
}  // namespace memtrace::report::render
