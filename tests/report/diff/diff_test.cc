// What two runs are found to differ in, and how that is written.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "report/diff/diff_formats.h"
#include "report/diff/run_diff.h"
#include "report/diff/told_apart.h"
#include "report/words/escape.h"
#include "report/words/sink.h"

namespace memtrace::report {
namespace {

using testing::HasSubstr;
using testing::Not;

RunSummary MadeRun(const std::string& name, uint64_t seconds, uint64_t allocations) {
  RunSummary run;
  run.name = name;
  run.command = "./app --fast";
  run.end = "exit 0";
  run.start_realtime_ns = 1763712603000000000;
  run.duration_ns = seconds * 1000000000;
  run.executables = {"app"};
  run.totals[Measure::kAllocations] = allocations;
  return run;
}

RunSite& Site(RunSummary* run, const std::string& fingerprint, uint64_t live, uint64_t allocations = 1,
              const std::string& executable = "app") {
  RunSite& site = run->sites[{executable, fingerprint}];
  site.allocator = "malloc";
  site.caller = absl::StrCat("Make_", fingerprint);
  site.file = "/src/make.cc";
  site.line = 7;
  site.stack = {absl::StrCat(site.caller, "  /src/make.cc:7"), "main  /src/main.cc:1"};
  site.amounts[Measure::kLive] = live;
  site.amounts[Measure::kLiveBlocks] = live > 0;
  site.amounts[Measure::kAllocations] = allocations;
  site.amounts[Measure::kAllocated] = live + 1;
  run->totals[Measure::kLive] += live;
  return site;
}

std::vector<std::string> Rows(const RunDiff& diff) {
  std::vector<std::string> rows;
  for (const DiffRow& row : diff.rows) {
    rows.push_back(absl::StrCat(VerdictName(row.verdict), " ", row.executable, row.fingerprint, " ",
                                row.change()));
  }
  return rows;
}

TEST(RunDiffTest, TellsNewGrownShrunkAndGone) {
  RunSummary before = MadeRun("old", 1, 10), after = MadeRun("new", 1, 10);
  Site(&before, "same", 5), Site(&after, "same", 5);
  Site(&before, "grown", 5), Site(&after, "grown", 9);
  Site(&before, "shrunk", 5), Site(&after, "shrunk", 1);
  Site(&before, "gone", 5), Site(&after, "new", 6);
  Site(&after, "new_and_freed", 0);
  Site(&before, "leaks_now", 0), Site(&after, "leaks_now", 3);
  const auto diff = CompareRuns(before, after, {});
  ASSERT_TRUE(diff.ok());
  EXPECT_THAT(Rows(*diff), testing::ElementsAre("new new 6", "grown grown 4", "grown leaks_now 3",
                                                "shrunk shrunk -4", "gone gone -5"));
  EXPECT_EQ(diff->same, 1u);
  EXPECT_TRUE(diff->grew());
  const auto back = CompareRuns(before, before, {});
  ASSERT_TRUE(back.ok());
  EXPECT_TRUE(back->rows.empty());
  EXPECT_FALSE(back->grew());
}

TEST(RunDiffTest, DividesByTimeAndByAllocations) {
  RunSummary before = MadeRun("old", 1, 100), after = MadeRun("new", 2, 400);
  Site(&before, "a", 50), Site(&after, "a", 100);  // twice in twice the time; half an allocation
  DiffOptions options;
  options.per = Per::kSecond;
  EXPECT_TRUE(CompareRuns(before, after, options)->rows.empty());
  options.per = Per::kAllocation;
  const auto diff = CompareRuns(before, after, options);
  ASSERT_EQ(diff->rows.size(), 1u);
  EXPECT_EQ(diff->rows[0].verdict, Verdict::kShrunk);
  EXPECT_DOUBLE_EQ(diff->rows[0].old_value, 0.5);
  EXPECT_DOUBLE_EQ(diff->rows[0].new_value, 0.25);
  before.duration_ns = 0;
  options.per = Per::kSecond;
  EXPECT_FALSE(CompareRuns(before, after, options).ok());
}

TEST(RunDiffTest, LeavesOutWhatIsLessThanTheLeast) {
  RunSummary before = MadeRun("old", 1, 1), after = MadeRun("new", 1, 1);
  Site(&before, "a", 1000), Site(&after, "a", 1099);
  Site(&before, "b", 10), Site(&after, "b", 30);
  DiffOptions options;
  options.least = *ParseLeast("10%");
  EXPECT_THAT(Rows(*CompareRuns(before, after, options)), testing::ElementsAre("grown b 20"));
  options.least = *ParseLeast("50");
  EXPECT_THAT(Rows(*CompareRuns(before, after, options)), testing::ElementsAre("grown a 99"));
  EXPECT_EQ(ParseLeast("64K")->amount, 65536);
  EXPECT_EQ(ParseLeast("1.5M")->amount, 1.5 * 1048576);
  EXPECT_EQ(ParseLeast("0.5")->amount, 0.5) << "for each allocation";
  EXPECT_EQ(ParseLeast("2.5%")->share, 0.025);
  for (const char* wrong : {"", "x", "-1", "nan", "inf", "K", "%", "5x", "1MK", "1K%", "1.2.3"}) {
    EXPECT_FALSE(ParseLeast(wrong).ok()) << wrong;
  }
}

TEST(RunDiffTest, KeepsExecutablesApartOnlyWhereThereAreSeveral) {
  RunSummary before = MadeRun("old", 1, 1), after = MadeRun("new", 1, 1);
  before.executables = {"app-1"};
  after.executables = {"app-2"};
  Site(&before, "a", 5, 1, "app-1"), Site(&after, "a", 5, 1, "app-2");
  EXPECT_TRUE(CompareRuns(before, after, {})->rows.empty());
  after.executables = {"app-1", "sh"};
  after.sites.clear();
  Site(&after, "a", 5, 1, "sh");
  EXPECT_THAT(Rows(*CompareRuns(before, after, {})),
              testing::ElementsAre("new sha 5", "gone app-1a -5"));
}

// A site of blocks of `size` bytes, as `samples` of them, one of every 4 KiB, estimate it.
RunSite& SampledSite(RunSummary* run, const std::string& fingerprint, int samples, uint64_t size = 100,
                     const std::string& executable = "app") {
  run->sampled = true;
  run->sample_bytes[executable] = 4096;
  SampledSum sum;
  for (int i = 0; i < samples; ++i) sum.Add(size, 4096);
  const auto blocks = static_cast<uint64_t>(sum.estimate / static_cast<double>(size));
  RunSite& site = Site(run, fingerprint, static_cast<uint64_t>(sum.estimate), blocks, executable);
  site.amounts[Measure::kAllocated] = site.amounts[Measure::kPeak] = site.amounts[Measure::kLive];
  site.amounts[Measure::kLiveBlocks] = blocks;
  site.estimated = site.amounts;
  site.bytes_sample = site.live_sample = sum;
  return site;
}

TEST(RunDiffTest, WhatAnotherSampleMayMakeIsNoChange) {
  RunSummary before = MadeRun("old", 1, 10), after = MadeRun("new", 1, 10);
  SampledSite(&before, "a", 220), SampledSite(&after, "a", 234);  // 899 KiB, 957 KiB
  SampledSite(&before, "b", 50), SampledSite(&after, "b", 200);
  SampledSite(&after, "c", 4);
  SampledSite(&after, "d", 40);
  DiffOptions options;
  for (const Measure measure : {Measure::kLive, Measure::kPeak, Measure::kAllocated}) {
    options.measure = measure;
    const auto diff = CompareRuns(before, after, options);
    ASSERT_EQ(diff->rows.size(), 2u) << MeasureName(measure);
    EXPECT_EQ(diff->rows[0].fingerprint, "d");
    EXPECT_EQ(diff->rows[1].fingerprint, "b");
    EXPECT_EQ(diff->by_chance, 2u) << "a and c";
    EXPECT_THAT(RenderDiffText(*diff, {}), HasSubstr("2 more sites differ by no more than another sample might"));
  }
}

// Of the small blocks of a site some were sampled in one run and none in the other. The large one
// is in both samples, and says nothing of them.
TEST(RunDiffTest, BesideALargeBlockSmallOnesMayHaveNoSample) {
  for (const auto& [samples, rows] : {std::pair(2, 0u), {12, 1u}}) {
    RunSummary before = MadeRun("old", 1, 10), after = MadeRun("new", 1, 10);
    SampledSite(&before, "a", 1, 20 * 4096);
    RunSite& site = SampledSite(&after, "a", 1, 20 * 4096);
    for (int i = 0; i < samples; ++i) site.live_sample.Add(100, 4096);
    site.amounts[Measure::kLive] = static_cast<uint64_t>(site.live_sample.estimate);
    site.estimated = site.amounts;
    const auto diff = CompareRuns(before, after, {});
    EXPECT_EQ(diff->rows.size(), rows) << samples;
    EXPECT_EQ(diff->by_chance, 1 - rows);
  }
}

TEST(RunDiffTest, ASampleBesideAllOfItMayBeOffOnOneSideOnly) {
  RunSummary before = MadeRun("old", 1, 10), after = MadeRun("new", 1, 10);
  SampledSite(&after, "a", 220), SampledSite(&after, "b", 220);
  Site(&before, "a", 950'000), Site(&before, "b", 300'000);
  Site(&before, "gone", 10'000), Site(&before, "all gone", 1 << 20);
  const auto diff = CompareRuns(before, after, {});
  ASSERT_EQ(diff->rows.size(), 2u);
  EXPECT_EQ(diff->rows[0].fingerprint, "b");
  EXPECT_EQ(diff->rows[1].fingerprint, "all gone");
  EXPECT_EQ(diff->by_chance, 2u);
  const std::string text = RenderDiffText(*diff, {});
  EXPECT_THAT(text, HasSubstr("the new run is of a sample: its amounts are estimates"));
  EXPECT_THAT(text, testing::AllOf(HasSubstr(" 293 KiB"), Not(HasSubstr("~293 KiB")))) << "of the old run";
}

// A directory may hold traces of both.
TEST(RunDiffTest, WhatFullTracesHaveIsExactBesideSamples) {
  RunSummary before = MadeRun("old", 1, 10), after = MadeRun("new", 1, 10);
  for (RunSummary* run : {&before, &after}) {
    run->executables = {"app", "tool"};
    SampledSite(run, "a", 220);
  }
  // Of the tool no trace is a sample.
  Site(&before, "grown", 10'000, 1, "tool"), Site(&after, "grown", 10'008, 1, "tool");
  Site(&after, "new", 8, 1, "tool");
  // Of the app some are: another of its sites may have been missed in them, but not as much as this.
  Site(&before, "little", 10'000), Site(&after, "little", 20'000);
  Site(&before, "much", 10'000), Site(&after, "much", 1'000'000);
  // And one that both have: 899 KiB by samples and 10 MB beside them that are known.
  RunSite& in_old = SampledSite(&before, "both", 220);
  RunSite& in_new = SampledSite(&after, "both", 234);
  for (const Measure measure : {Measure::kLive, Measure::kPeak}) {
    in_old.amounts[measure] += 10'000'000;
    in_new.amounts[measure] += 11'000'000;
  }
  DiffOptions options;
  const auto diff = CompareRuns(before, after, options);
  ASSERT_EQ(diff->rows.size(), 4u);
  EXPECT_EQ(diff->rows[0].fingerprint, "new");
  EXPECT_EQ(diff->rows[1].fingerprint, "both");
  EXPECT_EQ(diff->rows[2].fingerprint, "much");
  EXPECT_EQ(diff->rows[3].fingerprint, "grown");
  EXPECT_EQ(diff->by_chance, 1u) << "little";
  options.measure = Measure::kPeak;
  EXPECT_THAT(Rows(*CompareRuns(before, after, options)), testing::ElementsAre(testing::StartsWith("grown appboth")));
}

TEST(RunDiffTest, ChanceIsOfTheCountWhereThatIsAskedFor) {
  RunSummary before = MadeRun("old", 1, 10), after = MadeRun("new", 1, 10);
  SampledSite(&before, "as many", 220), SampledSite(&after, "as many", 234);
  SampledSite(&before, "smaller", 100, 1600), SampledSite(&after, "smaller", 100 * 34 / 28, 16);
  SampledSite(&after, "few", 3);
  DiffOptions options;
  for (const Measure measure : {Measure::kLiveBlocks, Measure::kAllocations}) {
    options.measure = measure;
    const auto diff = CompareRuns(before, after, options);
    EXPECT_THAT(Rows(*diff), testing::ElementsAre(testing::StartsWith("grown smaller"))) << MeasureName(measure);
    EXPECT_EQ(diff->by_chance, 2u);
  }
  options.measure = Measure::kLive;
  EXPECT_THAT(Rows(*CompareRuns(before, after, options)), testing::IsEmpty()) << "as many bytes";
}

TEST(RunDiffTest, SaysWhatItCannotKnow) {
  RunSummary before = MadeRun("old", 1, 1), after = MadeRun("new", 1, 1);
  before.scanned = true;
  DiffOptions options;
  options.measure = Measure::kDefinite;
  const auto diff = CompareRuns(before, after, options);
  ASSERT_FALSE(diff.ok());
  EXPECT_THAT(std::string(diff.status().message()), HasSubstr("new was not scanned"));
  after.scanned = true;
  Site(&after, "a", 8).amounts[Measure::kDefinite] = 8;
  EXPECT_THAT(Rows(*CompareRuns(before, after, options)), testing::ElementsAre("new a 8"));
}

TEST(DiffTextTest, FitsItsWidthAndEscapesNames) {
  RunSummary before = MadeRun("old.mtr", 1, 10), after = MadeRun("new.mtr", 1, 10);
  Site(&before, "1111111111111111", 1 << 20), Site(&after, "1111111111111111", 5 << 20);
  RunSite& evil = Site(&after, "2222222222222222", 4096);
  evil.caller = absl::StrCat("evil\x1b[2J", std::string(300, 'x'));
  evil.stack = {evil.caller};
  after.notes = {absl::StrCat("note \x1b[31m ", std::string(200, 'n'))};
  const auto diff = CompareRuns(before, after, {});
  for (const size_t width : {60u, 80u, 120u, 200u}) {
    for (const bool utf8 : {false, true}) {
      render::TextOptions options;
      options.style.width = width;
      options.style.utf8 = utf8;
      const std::string text = RenderDiffText(*diff, options);
      EXPECT_THAT(text, Not(HasSubstr("\x1b")));
      EXPECT_THAT(text, HasSubstr("+4.00 MiB"));
      EXPECT_THAT(text, HasSubstr("NEW"));
      EXPECT_THAT(text, HasSubstr("GROWN"));
      for (const absl::string_view line : absl::StrSplit(text, '\n')) {
        EXPECT_LE(words::DisplayWidth(line), width) << line;
      }
    }
  }
}

// Two runs may have run in two directories.
TEST(DiffTextTest, TheStackOfANewSiteHasTheLastTwoPartsOfItsPlaces) {
  RunSummary before = MadeRun("old.mtr", 1, 10), after = MadeRun("new.mtr", 1, 10);
  Site(&after, "1", 100).stack = {
      absl::StrCat("Make(", std::string(90, 'x'), ")  /build/src/make.cc:7"),
      "main  /build/src/main.cc:1", "_start", "call  libc.so.6"};
  const auto diff = CompareRuns(before, after, {});
  render::TextOptions options;
  options.style.width = 80;
  EXPECT_THAT(RenderDiffText(*diff, options),
              HasSubstr("  malloc\n    Make  make.cc:7\n    main  src/main.cc:1\n    _start\n"
                        "    call  libc.so.6\n"));
  options.full = true;
  EXPECT_THAT(RenderDiffText(*diff, options), HasSubstr("\n    main  /build/src/main.cc:1\n"));
}

TEST(DiffTextTest, ACommandThatIsCutSaysSoInEveryTerminal) {
  RunSummary run = MadeRun("a", 1, 10);
  run.command = "./app 'two'\u2026";
  render::TextOptions options;
  options.style.width = 80;
  EXPECT_THAT(RenderDiffText(*CompareRuns(run, run, {}), options), HasSubstr("./app 'two'..., 2025"));
  options.style.utf8 = true;
  EXPECT_THAT(RenderDiffText(*CompareRuns(run, run, {}), options),
              HasSubstr("./app 'two'\u2026, 2025"));
}

// A report's duration is that of the whole process.
TEST(DiffTextTest, SaysThatTheWorkAtTheExitIsInNoDuration) {
  RunSummary run = MadeRun("a", 1, 10);
  Site(&run, "x", 5);
  EXPECT_THAT(RenderDiffText(*CompareRuns(run, run, {}), {}), Not(HasSubstr("work at the exit")));
  run.without_exit_work = true;
  EXPECT_THAT(RenderDiffText(*CompareRuns(run, run, {}), {}),
              HasSubstr("Durations are without memtrace's own work at the exit."));
}

TEST(DiffTextTest, SaysSoWhenNothingChanged) {
  RunSummary run = MadeRun("a", 1, 10);
  Site(&run, "x", 5);
  render::TextOptions options;
  EXPECT_THAT(RenderDiffText(*CompareRuns(run, run, {}), options), HasSubstr("no site changed"));
}

TEST(DiffTextTest, NothingBeyondChanceIsNoGoodNews) {
  RunSummary before = MadeRun("old", 1, 10), after = MadeRun("new", 1, 10);
  SampledSite(&before, "a", 220), SampledSite(&after, "a", 220);
  render::TextOptions options;
  options.style.color = true;
  EXPECT_THAT(RenderDiffText(*CompareRuns(before, after, {}), options), HasSubstr("\x1b[32mno site changed in"));
  SampledSite(&after, "a", 234);
  const std::string text = RenderDiffText(*CompareRuns(before, after, {}), options);
  EXPECT_THAT(text, HasSubstr("no site changed beyond chance in bytes unfreed at the end"));
  EXPECT_THAT(text, HasSubstr("1 more site differs by no more than another sample might"));
}

TEST(DiffTextTest, SaysThatOnlySomeSitesWereLookedAt) {
  RunSummary run = MadeRun("a", 1, 10);
  Site(&run, "x", 5);
  EXPECT_THAT(RenderDiffText(*CompareRuns(run, run, {}), {}), Not(HasSubstr("Only")));
  run.frames.match = "x|y";
  const auto diff = CompareRuns(run, run, {});
  EXPECT_THAT(RenderDiffText(*diff, {}), HasSubstr("sites that match /x|y/"));
  EXPECT_THAT(RenderDiffText(*diff, {}), HasSubstr("no site that matches changed"));
  words::StringSink out;
  RenderDiffJson(*diff, SIZE_MAX, out);
  EXPECT_EQ(nlohmann::json::parse(out.text())["match"], "x|y");
}

// A site of a wrapper, which `callers` called.
RunSite& WrappedSite(RunSummary* run, const std::string& fingerprint, uint64_t live,
                     const std::vector<std::string>& callers) {
  RunSite& site = Site(run, fingerprint, live);
  site.caller = "prod::Duplicate(char const*)";
  site.file = "/src/parser.cc";
  site.line = 8;
  site.stack = {"std::string::string()", "prod::Duplicate(char const*)  /src/parser.cc:8"};
  site.callers_begin = 2;
  site.stack.insert(site.stack.end(), callers.begin(), callers.end());
  return site;
}

TEST(ToldApartTest, SitesThatReadTheSameHaveTheCallerThatDiffers) {
  RunSummary run = MadeRun("a", 1, 10);
  const std::string load = "Load()  /src/load.cc:20", parse = "Parse()  /src/load.cc:30";
  std::vector<SiteInTable> table;
  const auto add = [&](const std::string& fingerprint, const std::vector<std::string>& callers) {
    table.push_back({"app", &WrappedSite(&run, fingerprint, 5, callers)});
  };
  add("a", {load, "main  /src/main.cc:1"});
  add("b", {load, "Reload()  /src/main.cc:9", "main  /src/main.cc:1"});
  add("c", {parse, "main  /src/main.cc:1"});
  add("d", {});
  table.push_back({"app", &Site(&run, "other", 5)});
  table.push_back({"tool", table[0].site});
  const std::vector<ToldApart> apart = TellApart(table);
  ASSERT_EQ(apart.size(), 6u);
  EXPECT_EQ(apart[0].called_by, "main  /src/main.cc:1");
  EXPECT_EQ(apart[0].callers, 2u);
  EXPECT_EQ(apart[1].called_by, "Reload()  /src/main.cc:9");
  EXPECT_EQ(apart[2].called_by, parse);
  EXPECT_EQ(apart[2].callers, 1u);
  EXPECT_TRUE(apart[3].reads_as_another);
  EXPECT_EQ(apart[3].called_by, "");
  EXPECT_FALSE(apart[4].reads_as_another);
  EXPECT_FALSE(apart[5].reads_as_another) << "of another executable";
}

TEST(DiffTextTest, TellsSitesBelowAWrapperApart) {
  RunSummary before = MadeRun("old", 1, 10), after = MadeRun("new", 1, 10);
  for (RunSummary* run : {&before, &after}) {
    const uint64_t live = run == &before ? 5 : 50;
    WrappedSite(run, "a", live, {"Load()  /src/load.cc:20", "main  /src/main.cc:1"});
    WrappedSite(run, "b", live + 1, {"Parse()  /src/load.cc:30", "main  /src/main.cc:1"});
    Site(run, "c", live + 2);
  }
  const auto diff = CompareRuns(before, after, {});
  const std::string text = RenderDiffText(*diff, {});
  EXPECT_THAT(text, HasSubstr("  called by Load()  src/load.cc:20\n"));
  EXPECT_THAT(text, HasSubstr("  called by Parse()  src/load.cc:30\n"));
  EXPECT_THAT(text, Not(HasSubstr("called by main")));
  words::StringSink out;
  RenderDiffJson(*diff, SIZE_MAX, out);
  const auto sites = nlohmann::json::parse(out.text())["sites"];
  EXPECT_EQ(sites[0]["called_by"], "Load()  /src/load.cc:20");
  EXPECT_EQ(sites[0]["called_by_depth"], 1);
  EXPECT_EQ(sites[1]["called_by"], "Parse()  /src/load.cc:30");
  EXPECT_TRUE(sites[2]["called_by"].is_null());
  EXPECT_TRUE(sites[2]["called_by_depth"].is_null());
  for (const size_t width : {60u, 80u, 200u}) {
    render::TextOptions options;
    options.style.width = width;
    for (const absl::string_view line : absl::StrSplit(RenderDiffText(*diff, options), '\n')) {
      EXPECT_LE(words::DisplayWidth(line), width) << line;
    }
  }
  // Not by what called them itself.
  after.sites.erase({"app", "b"});
  WrappedSite(&after, "b", 51, {"Load()  /src/load.cc:20", "Reload()  /src/main.cc:9"});
  const auto further = CompareRuns(before, after, {});
  EXPECT_THAT(RenderDiffText(*further, {}), HasSubstr("  on behalf of Reload()  src/main.cc:9\n"));
  words::StringSink json;
  RenderDiffJson(*further, SIZE_MAX, json);
  const auto of_load = nlohmann::json::parse(json.text())["sites"];
  EXPECT_EQ(of_load[1]["called_by"], "Reload()  /src/main.cc:9");
  EXPECT_EQ(of_load[1]["called_by_depth"], 2);
  // By nothing but what is inside of them.
  after.sites.erase({"app", "b"});
  WrappedSite(&after, "b", 51, {"Load()  /src/load.cc:20", "main  /src/main.cc:1"});
  EXPECT_THAT(RenderDiffText(*CompareRuns(before, after, {}), {}), HasSubstr("  fingerprint b\n"));
}

TEST(DiffJsonTest, HasTheSchemaAndBothAmounts) {
  RunSummary before = MadeRun("old", 1, 10), after = MadeRun("new", 1, 10);
  Site(&before, "a", 5), Site(&after, "a", 9), Site(&after, "b\x1b", 1);
  after.all_recorded = false;
  words::StringSink out;
  const auto diff = CompareRuns(before, after, {});
  RenderDiffJson(*diff, SIZE_MAX, out);
  const auto json = nlohmann::json::parse(out.text());
  EXPECT_EQ(json["schema"], "memtrace-diff/1");
  EXPECT_EQ(json["grew"], true);
  EXPECT_EQ(json["counts"]["new"], 1);
  EXPECT_EQ(json["counts"]["grown"], 1);
  ASSERT_EQ(json["sites"].size(), 2u);
  EXPECT_TRUE(json["sites"][0]["old_amounts"].is_null());
  EXPECT_EQ(json["sites"][1]["change"], 4);
  EXPECT_EQ(json["sites"][1]["old_amounts"]["live_bytes"], 5);
  EXPECT_TRUE(json["old"]["totals"]["definite_bytes"].is_null()) << "not known is not 0";
  EXPECT_EQ(json["old"]["all_recorded"], true);
  EXPECT_EQ(json["new"]["all_recorded"], false);
  words::StringSink one;
  RenderDiffJson(*diff, 1, one);
  EXPECT_EQ(nlohmann::json::parse(one.text())["sites"].size(), 1u);
  EXPECT_EQ(nlohmann::json::parse(one.text())["sites_total"], 2);
}

TEST(DiffCsvTest, IsARecordForEachSite) {
  RunSummary before = MadeRun("old", 1, 10), after = MadeRun("new", 1, 10);
  Site(&before, "a", 5), Site(&after, "a", 9);
  after.sites[{"app", "a"}].caller = "=f(\"x\",1)";
  words::StringSink out;
  RenderDiffCsv(*CompareRuns(before, after, {}), SIZE_MAX, out);
  const std::vector<std::string> lines = absl::StrSplit(out.text(), "\r\n");
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_THAT(lines[1], testing::StartsWith("grown,,a,live,run,5,9,4,1,1,malloc,\"'=f(\"\"x\"\",1)\""));
}

}  // namespace
}  // namespace memtrace::report
