// Grouping, sorting, matching and fingerprints of the view.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/render/text_report.h"
#include "tests/report/render/render_made_up.h"

namespace memtrace::report::render {
namespace {

using ::testing::HasSubstr;

TEST(ViewTest, ALoopThatTheCompilerUnrolledIsOneCallSite) {
  MadeUp trace;
  trace.AddSite(trace.Stack({{"leak", "leak.c", 7}, {"main", "leak.c", 20}}), 1, 100, 1);
  trace.AddSite(trace.Stack({{"leak", "leak.c", 7}, {"main", "leak.c", 20}}), 1, 100, 1);
  trace.AddSite(trace.Stack({{"leak", "leak.c", 8}, {"main", "leak.c", 20}}), 1, 256, 1);
  const ReportView view = trace.View();
  ASSERT_EQ(view.unfreed().size(), 2u);
  EXPECT_EQ(view.unfreed()[0].live_bytes, 256u);
  EXPECT_EQ(view.unfreed()[1].live_bytes, 200u);
  EXPECT_EQ(view.unfreed()[1].live_blocks, 2u);
}

TEST(ViewTest, DifferentFunctionsAtOneLineAreNotOneCallSite) {
  MadeUp trace;
  const StackId stack = trace.Stack({{"f", "f.c", 7}});
  trace.AddSite(stack, 1, 100, 1);
  trace.AddSite(stack, 1, 100, 1).function = format::AllocFunction::kCalloc;
  EXPECT_EQ(trace.View().unfreed().size(), 2u);
  ASSERT_EQ(trace.View().callers().size(), 1u) << "but one caller";
  EXPECT_EQ(trace.View().callers()[0].sites.size(), 2u);
}

TEST(ViewTest, SitesWithoutAStackAreShownToo) {
  MadeUp trace;
  trace.AddSite({}, 3, 10, 2);
  const ReportView view = trace.View();
  ASSERT_EQ(view.unfreed().size(), 1u);
  EXPECT_EQ(view.CallerText(view.unfreed()[0].stack), "[no stack]");
}

TEST(ViewTest, MatchLooksAtFunctionFileAndModuleOfEveryFrame) {
  MadeUp trace;
  trace.AddSite(trace.Stack({{"alpha", "x.c", 1}, {"main", "main.c", 1}}), 1, 1, 1);
  trace.AddSite(trace.Stack({{"beta", "dir/alpha.c", 1}, {"main", "main.c", 1}}), 1, 2, 1);
  trace.AddSite(trace.Stack({{"gamma", "y.c", 1, kPlugin}, {"main", "main.c", 1}}), 1, 4, 1);
  EXPECT_EQ(trace.View("alpha").unfreed_bytes(), 3u);
  EXPECT_EQ(trace.View("plugin\\.so$").unfreed_bytes(), 4u);
  EXPECT_EQ(trace.View("^main$").unfreed_bytes(), 7u);
  EXPECT_EQ(trace.View("^nothing$").sites().size(), 0u);
  EXPECT_EQ(trace.View("gamma|beta").sites().size(), 2u);
}

// Sites of a sample are rounded one by one: 1.6 blocks of each of two are 2 and 2, and 3 in all.
TEST(ViewTest, WhatASampleHasUnfreedIsOneFigure) {
  MadeUp trace;
  trace.analysis.process.sample_bytes = 4096;
  trace.AddSite(trace.Stack({{"alpha", "x.c", 1}, {"main", "main.c", 1}}), 2, 3000, 2);
  trace.AddSite(trace.Stack({{"beta", "x.c", 2}, {"main", "main.c", 1}}), 2, 3000, 2);
  trace.analysis.totals.live_blocks = 3;
  trace.analysis.totals.live_bytes = 11'900;
  EXPECT_EQ(trace.View().unfreed_blocks(), 3u);
  EXPECT_EQ(trace.View().unfreed_bytes(), 11'900u);
  EXPECT_EQ(trace.View("alpha").unfreed_blocks(), 2u);
  TextOptions options;
  options.sections = {TextSection::kLeaks};
  const std::string text = RenderText(trace.View(), options);
  EXPECT_THAT(text, HasSubstr("~11.6 KiB in ~3 blocks from 2 call sites"));
  options.top = 1;
  EXPECT_THAT(RenderText(trace.View(), options), HasSubstr("~5.76 KiB in ~1 block"));
  trace.analysis.totals.live_blocks = 1;  // less than the site that is shown
  trace.analysis.totals.live_bytes = 5000;
  EXPECT_THAT(RenderText(trace.View(), options), HasSubstr(" with 0 B in 0 blocks"));
}

TEST(ViewTest, ABadExpressionIsAnErrorThatNamesTheOption) {
  MadeUp trace;
  const auto view = ReportView::Create(trace.analysis, trace.symbols(), "a(b");
  ASSERT_FALSE(view.ok());
  EXPECT_THAT(std::string(view.status().message()), HasSubstr("--match: \"a(b\""));
}

TEST(SortTest, EveryColumnSortsItsOwnFigureLargestFirst) {
  // Site i is the largest in column i alone.
  using Member = uint64_t Site::*;
  const std::pair<SortColumn, Member> columns[] = {
      {SortColumn::kTotal, &Site::bytes_allocated}, {SortColumn::kWasted, &Site::wasted_bytes},
      {SortColumn::kLive, &Site::live_bytes},       {SortColumn::kBlocks, &Site::live_blocks},
      {SortColumn::kPeak, &Site::bytes_at_peak},    {SortColumn::kAllocations, &Site::allocations},
      {SortColumn::kFrees, &Site::frees},           {SortColumn::kTemporary, &Site::temporary},
  };
  MadeUp trace;
  for (size_t i = 0; i < std::size(columns); ++i) {
    const StackId stack =
        trace.Stack({{"f" + std::to_string(i), "f.c", static_cast<uint32_t>(i + 1)}});
    Site& site = trace.AddSite(stack, 10, 1, 5);
    for (const auto& [column, member] : columns) site.*member = 10;
    site.*columns[i].second = 1000;
  }
  const ReportView view = trace.View();
  std::vector<SiteGroup> groups = view.callers();
  ASSERT_EQ(groups.size(), std::size(columns));
  for (size_t i = 0; i < std::size(columns); ++i) {
    SortGroups(view, columns[i].first, &groups);
    EXPECT_EQ(view.CallerText(groups[0].stack), "f" + std::to_string(i) + " f.c:" +
                                                    std::to_string(i + 1))
        << SortColumnName(columns[i].first);
  }
  SortGroups(view, SortColumn::kCaller, &groups);
  for (size_t i = 0; i < groups.size(); ++i) {
    EXPECT_EQ(view.CallerText(groups[i].stack).substr(0, 2), "f" + std::to_string(i));
  }
}

TEST(SortTest, EveryNameOfAColumnIsAccepted) {
  for (const absl::string_view name : SortColumnNames()) {
    const auto column = ParseSortColumn(name);
    ASSERT_TRUE(column.ok()) << name;
    EXPECT_EQ(SortColumnName(*column), name);
  }
  EXPECT_FALSE(ParseSortColumn("size").ok());
}

TEST(FingerprintTest, SurvivesOtherLinesAddressesAndSizes) {
  MadeUp one, two;
  const StackId a = one.Stack({Libc("malloc"), {"leak", "/build/a/leak.c", 7}, {"main", "m.c", 1}});
  two.Stack({{"shifts all addresses", "x.c", 1}});
  const StackId b = two.Stack({{"leak", "/home/b/leak.c", 99}, {"main", "m.c", 3}});
  one.AddSite(a, 1, 100, 1);
  two.AddSite(b, 5, 300, 5);
  const auto kMalloc = format::AllocFunction::kMalloc;
  const std::string fingerprint = one.View().Fingerprint(a, kMalloc);
  EXPECT_EQ(fingerprint.size(), 16u);
  EXPECT_EQ(fingerprint, two.View().Fingerprint(b, kMalloc));
  EXPECT_NE(fingerprint, one.View().Fingerprint(a, format::AllocFunction::kAlignedAlloc));
}

TEST(FingerprintTest, SurvivesAnotherSplitOfTheFunction) {
  MadeUp trace;
  const StackId whole = trace.Stack({{"leak", "leak.c", 7}, {"ns::f(int)", "f.cc", 1}});
  const StackId split =
      trace.Stack({{"leak.part.0", "leak.c", 7}, {"ns::f(int) [clone .isra.0]", "f.cc", 1}});
  for (const StackId stack : {whole, split}) trace.AddSite(stack, 1, 1, 1);
  const ReportView view = trace.View();
  const auto kMalloc = format::AllocFunction::kMalloc;
  EXPECT_EQ(view.Fingerprint(whole, kMalloc), view.Fingerprint(split, kMalloc));
}

TEST(FingerprintTest, DiffersByFunctionAndFile) {
  MadeUp trace;
  const StackId a = trace.Stack({{"leak", "leak.c", 7}});
  const StackId b = trace.Stack({{"leak2", "leak.c", 7}});
  const StackId c = trace.Stack({{"leak", "other.c", 7}});
  for (const StackId stack : {a, b, c}) trace.AddSite(stack, 1, 1, 1);
  const ReportView view = trace.View();
  const auto kMalloc = format::AllocFunction::kMalloc;
  EXPECT_NE(view.Fingerprint(a, kMalloc), view.Fingerprint(b, kMalloc));
  EXPECT_NE(view.Fingerprint(a, kMalloc), view.Fingerprint(c, kMalloc));
}

}  // namespace
}  // namespace memtrace::report::render
