// What other people's viewers are given, to the letter; and that names cannot break it.
// tests/e2e/viewers_test.cc has the viewers themselves open it.

#include "report/viewers/viewers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_split.h"
#include "report/analysis/analyzer.h"
#include "tests/report/trace_builder.h"
#include "tests/report/valgrind/valgrind_made_up.h"
#include "tests/temp_dir.h"

namespace memtrace::report::viewers {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Folded(MadeUp& made_up, SiteMeasure measure) {
  words::StringSink out;
  RenderFolded(made_up.View(), measure, out);
  return out.text();
}

std::string Callgrind(MadeUp& made_up, SiteMeasure measure) {
  words::StringSink out;
  RenderCallgrind(made_up.View(), measure, out);
  return out.text();
}

nlohmann::json Speedscope(MadeUp& made_up, SiteMeasure measure) {
  words::StringSink out;
  RenderSpeedscope(made_up.View(), measure, out);
  return nlohmann::json::parse(out.text());
}

TEST(SiteMeasureTest, EveryNameIsItsOwn) {
  for (const SiteMeasure measure : render::kAllSiteMeasures) {
    EXPECT_EQ(*render::ParseSiteMeasure(SiteMeasureName(measure)), measure);
  }
  EXPECT_THAT(std::string(render::ParseSiteMeasure("size").status().message()),
              HasSubstr("--measure: \"size\" is none of live, blocks, allocated, allocations, "
                        "peak, peak-blocks, wasted, temporary"));
}

// A site of two pages at the end, of three when most was resident.
void AddResident(MadeUp& made_up, StackId stack) {
  RssBridge growth, end;
  growth.reason = format::SnapshotReason::kGrowth;
  growth.rss = 5 * 4096;
  growth.sites.push_back({.stack = stack, .resident_bytes = 3 * 4096});
  end.rss = 4 * 4096;
  end.sites.push_back({.stack = stack, .resident_bytes = 2 * 4096});
  made_up.analysis.resident.bridges = {growth, end};
}

TEST(SiteMeasureTest, ResidentIsThatOfTheSnapshots) {
  MadeUp made_up;
  const StackId stack = made_up.Stack({{"f", "a.c", 1}});
  made_up.AddSite(stack, 1, 20000, 1);
  made_up.AddSite(made_up.Stack({{"g", "a.c", 2}}), 1, 30, 1);  // has none
  AddResident(made_up, stack);
  EXPECT_EQ(Folded(made_up, SiteMeasure::kResident), "f;malloc 8192\n");
  EXPECT_EQ(Folded(made_up, SiteMeasure::kPeakResident), "f;malloc 12288\n");
  EXPECT_THAT(Callgrind(made_up, SiteMeasure::kLive), HasSubstr(" temporary resident peak-resident\n"
                                                                "summary: 20030 2 20030 2 20030 2 "
                                                                "0 0 8192 12288\n"));
}

TEST(SiteMeasureTest, WhereItIsNotKnownTheReasonAndTheCureAreSaid) {
  MadeUp made_up;
  const auto refused = [&](SiteMeasure measure) {
    return std::string(render::CheckMeasure(made_up.analysis, measure).message());
  };
  EXPECT_EQ(refused(SiteMeasure::kWasted), "");
  EXPECT_THAT(refused(SiteMeasure::kResident),
              HasSubstr("--measure resident: the trace has no snapshot of the resident pages; record "
                        "it by memtrace run"));
  AddResident(made_up, {});
  EXPECT_EQ(refused(SiteMeasure::kPeakResident), "");
  made_up.analysis.selection.sites = true;  // whole sites, of these all blocks
  EXPECT_EQ(refused(SiteMeasure::kPeakResident), "");
  made_up.analysis.some_threads = true;
  EXPECT_THAT(refused(SiteMeasure::kPeakResident), HasSubstr("of all blocks of a site together"));
  made_up.analysis.some_threads = false;
  made_up.analysis.range.from_ns = 1;
  EXPECT_THAT(refused(SiteMeasure::kPeakResident), HasSubstr("of all blocks of a site together"));
}

TEST(SiteMeasureTest, WhatIsNotKnownIsNoZero) {
  MadeUp made_up;
  made_up.AddSite(made_up.Stack({{"f", "a.c", 1}}), 1, 20, 1);
  made_up.analysis.process.sample_bytes = 1024;
  EXPECT_THAT(std::string(render::CheckMeasure(made_up.analysis, SiteMeasure::kTemporary).message()),
              HasSubstr("--measure temporary: the trace is of a sample"));
  EXPECT_THAT(Callgrind(made_up, SiteMeasure::kLive), Not(HasSubstr("temporary")));
  made_up.analysis.process.allocator = format::AllocatorKind::kOther;
  EXPECT_THAT(render::MeasuresOf(made_up.analysis),
              ElementsAre(SiteMeasure::kLive, SiteMeasure::kBlocks, SiteMeasure::kAllocated,
                          SiteMeasure::kAllocations, SiteMeasure::kPeak, SiteMeasure::kPeakBlocks));
}

TEST(FoldedTest, AStackIsALineFromTheOutermostFrameOn) {
  MadeUpLeaks made_up;
  EXPECT_EQ(Folded(made_up, SiteMeasure::kLive),
            "__libc_start_call_main;main;Lose();MakeNode(int);malloc 192\n"
            "main;Cache::Get();malloc 32\n"
            "main;Table::Grow(unsigned int);Inlined<int>::Make();operator new(unsigned long);"
            "malloc 1000\n");
  EXPECT_THAT(Folded(made_up, SiteMeasure::kAllocations), HasSubstr("Cache::Get();malloc 100\n"));
}

TEST(FoldedTest, StacksThatReadAlikeAreOneLineAndNothingIsLeftOut) {
  MadeUp made_up;
  made_up.AddSite(made_up.Stack({{"f", "a.c", 1}}), 1, 10, 1);
  made_up.AddSite(made_up.Stack({{"f", "a.c", 2}}), 1, 30, 1);
  made_up.AddSite({}, 1, 5, 1);
  made_up.AddSite(made_up.Stack({{"all freed", "a.c", 2}}), 1, 30, 0);
  EXPECT_EQ(Folded(made_up, SiteMeasure::kLive), "[no stack];malloc 5\nf;malloc 40\n");
}

TEST(FoldedTest, NamesCannotBreakALineOrAStack) {
  MadeUp made_up;
  made_up.AddSite(made_up.Stack({{"a;b\nc 7\x1b[31m", "", 0}}), 1, 10, 1);
  EXPECT_EQ(Folded(made_up, SiteMeasure::kLive), "a:b\\x0ac 7\\x1b[31m;malloc 10\n");
}

TEST(SpeedscopeTest, HasAProfileOfEachMeasureAndTheOneAskedForInFront) {
  MadeUpLeaks made_up;
  const nlohmann::json file = Speedscope(made_up, SiteMeasure::kPeak);
  std::vector<std::string> names;
  for (const auto& profile : file["profiles"]) names.push_back(profile["name"]);
  EXPECT_THAT(names, ElementsAre("live", "blocks", "allocated", "allocations", "peak",
                                 "peak-blocks"));
  const nlohmann::json& active = file["profiles"][file["activeProfileIndex"].get<size_t>()];
  EXPECT_EQ(active["name"], "peak");
  EXPECT_EQ(active["endValue"], made_up.analysis.totals.peak_live_bytes);
}

TEST(SpeedscopeTest, FramesAreFunctionsOutermostFirst) {
  MadeUp made_up;
  made_up.AddSite(made_up.Stack({{"f", "a.c", 1}, {"main", "a.c", 7}}), 1, 10, 1);
  made_up.AddSite(made_up.Stack({{"f", "a.c", 2}, {"main", "a.c", 8}}), 1, 30, 1);
  const nlohmann::json file = Speedscope(made_up, SiteMeasure::kLive);
  std::vector<std::string> names;
  for (const auto& frame : file["shared"]["frames"]) names.push_back(frame["name"]);
  EXPECT_THAT(names, ElementsAre("f", "main", "malloc"));
  EXPECT_EQ(file["profiles"][0]["samples"].dump(), "[[1,0,2],[1,0,2]]");
  EXPECT_EQ(file["profiles"][0]["weights"].dump(), "[30,10]");
}

TEST(SpeedscopeTest, AnEmptyTraceIsAValidFile) {
  MadeUp made_up;
  const nlohmann::json file = Speedscope(made_up, SiteMeasure::kLive);
  EXPECT_EQ(file["profiles"].size(), 1u);
  EXPECT_EQ(file["profiles"][0]["endValue"], 0);
}

TEST(CallgrindTest, CostsAreAtLinesAndCallsHaveThemInclusive) {
  MadeUp made_up;
  made_up.AddSite(made_up.Stack({{"f", "a.c", 1}, {"main", "b.c", 7}}), 3, 10, 1);
  made_up.AddSite(made_up.Stack({{"f", "a.c", 2}, {"main", "b.c", 7}}), 1, 30, 1);
  EXPECT_EQ(Callgrind(made_up, SiteMeasure::kAllocated),
            "# callgrind format\nversion: 1\ncreator: memtrace\npid: 42\n"
            "cmd: ./app --fast 'two words'\npositions: line\n"
            "events: allocated live blocks allocations peak peak-blocks wasted temporary\n"
            "summary: 60 40 2 4 40 2 0 0\n"
            "\nob=(1) /work/app\nfl=(1) a.c\nfn=(1) f\n1 30 10 1 3 10 1 0 0\n"
            "2 30 30 1 1 30 1 0 0\n"
            "\nob=(1)\nfl=(2) b.c\nfn=(2) main\n"
            "cob=(1)\ncfi=(1)\ncfn=(1)\ncalls=4 0\n7 60 40 2 4 40 2 0 0\n"
            "\ntotals: 60 40 2 4 40 2 0 0\n");
}

TEST(CallgrindTest, SaysWhatItIsOf) {
  MadeUp made_up;
  made_up.AddSite(made_up.Stack({{"f", "a.c", 1}, {"main", "b.c", 7}}), 3, 10, 1);
  made_up.analysis.selection.sizes = {4096, UINT64_MAX};
  words::StringSink out;
  RenderCallgrind(made_up.View("a.c"), SiteMeasure::kLive, out);
  EXPECT_THAT(out.text(), HasSubstr("'two words'\ndesc: only sites that match /a.c/: 1; only blocks of 4.00 KiB and more\n"
                                    "positions: line\n"));
}

// f has all of it by itself: no function of several has more than there is.
TEST(CallgrindTest, RecursionCountsOnce) {
  MadeUp made_up;
  made_up.AddSite(made_up.Stack({{"f", "a.c", 1}, {"f", "a.c", 1}, {"f", "a.c", 1},
                                 {"main", "b.c", 7}}), 1, 10, 1);
  const std::string text = Callgrind(made_up, SiteMeasure::kLive);
  EXPECT_THAT(text, HasSubstr("fn=(1) f\n1 10 1 10 1 10 1 0 0\n"
                              "cob=(1)\ncfi=(1)\ncfn=(1)\ncalls=1 0\n1 0 0 0 0 0 0 0 0\n\n"));
}

TEST(CallgrindTest, NamesCannotBreakALine) {
  MadeUp made_up;
  made_up.analysis.process.command = {"./a\nevents: x"};
  made_up.AddSite(made_up.Stack({{"f\ncalls=9 0\n1 9", "a\nfn=b", 1}}), 1, 10, 1);
  for (const absl::string_view line :
       absl::StrSplit(Callgrind(made_up, SiteMeasure::kLive), '\n')) {
    EXPECT_THAT(std::string(line), Not(testing::StartsWith("calls=9")));
    EXPECT_THAT(std::string(line), Not(testing::StartsWith("fn=b")));
    EXPECT_THAT(std::string(line), Not(testing::StartsWith("events: x")));
  }
}

// A short run has one sample of the resident set, at its start.
TEST(HeaptrackTest, EndsWithThePeakOfTheResidentSet) {
  const TempDir directory;
  const std::string path = directory / "short.mtr";
  TraceBuilder trace;
  trace.Thread(1, 100, "main").At(1000).Usage(100, 0, 1 << 20).Malloc(0x1010, 5).At(2000);
  trace.End(0, 3'000'000);  // with a peak of 5 MiB
  ASSERT_TRUE(trace.WriteTo(path));
  const auto analyzed = AnalyzeTrace(path, {});
  ASSERT_TRUE(analyzed.ok()) << analyzed.status();
  const SiteSymbols symbols(
      analyzed->analysis, *analyzed->stacks,
      [](const symbolizer::Module&, std::span<const symbolizer::Address> addresses) {
        symbolizer::ModuleResult result;
        result.frames.resize(addresses.size());
        return result;
      });
  const auto view = render::ReportView::Create(analyzed->analysis, symbols, "");
  ASSERT_TRUE(view.ok()) << view.status();
  words::StringSink out;
  ASSERT_TRUE(RenderHeaptrack(*view, path, analyzed->stacks.get(), out).ok());
  EXPECT_THAT(out.text(), HasSubstr("\nR 100\n"));
  EXPECT_THAT(out.text(), testing::EndsWith("\nc 3\nR 500\n"));
}

TEST(PprofTest, IsGzipOrSaysWhatItNeeds) {
  MadeUpLeaks made_up;
  words::StringSink out;
  const absl::Status status = RenderPprof(made_up.View(), SiteMeasure::kLive, out);
  if (HasPprof()) {
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(out.text().substr(0, 2), "\x1f\x8b");
  } else {
    EXPECT_THAT(std::string(status.message()), HasSubstr("install libprotozero-dev"));
  }
}

}  // namespace
}  // namespace memtrace::report::viewers
