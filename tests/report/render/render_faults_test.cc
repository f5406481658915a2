// What the text report says of page faults.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "report/render/fault_words.h"
#include "tests/report/render/render_as_text.h"
#include "tests/report/render/render_made_up.h"

namespace memtrace::report::render {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(FaultsTextTest, ABurstOfFaultsIsToldAtItsMoment) {
  MadeUp trace;  // a first touch of 1 MiB from 0.8 to 0.84 s, and a fault now and then
  trace.analysis.faults.minor = 266;
  for (uint64_t i = 1; i <= 200; ++i) {
    trace.analysis.timeline.push_back(
        {.time_ns = i * 10'000'000,
         .minor_faults = i > 80 && i <= 84 ? uint64_t{64} : i % 20 == 0 ? uint64_t{1} : 0});
  }
  TextOptions options = Options(80, false);
  options.sections = {TextSection::kFaults};
  EXPECT_THAT(RenderText(trace.View(), options),
              HasSubstr("Busiest: 256 minor faults between 800 ms and 840 ms (1.00 MiB of pages)"));
}

TEST(FaultsTextTest, FaultsThatNoSampleTellsApartGetNoEmptyPlot) {
  MadeUp trace;
  trace.analysis.process.duration_ns = 1'000'000;
  trace.analysis.faults.minor = 98;
  trace.analysis.faults.major = 1;
  trace.analysis.timeline.push_back({.time_ns = 500'000});
  trace.analysis.timeline.push_back({.time_ns = 1'000'000});
  TextOptions options = Options(80, false);
  options.sections = {TextSection::kFaults};
  const std::string text = RenderText(trace.View(), options);
  EXPECT_THAT(text, HasSubstr("  98 minor and 1 major faults are in no plot: they were before"));
  EXPECT_THAT(text, Not(HasSubstr("Each column")));
  ExpectFits(text, 80);
  trace.analysis.range.from_ns = 1000;  // without the start
  EXPECT_THAT(RenderText(trace.View(), options),
              HasSubstr("1 major faults are in no plot: no sample tells when they were."));
}

TEST(FaultsTextTest, LongRemarksFitEightyColumnsToo) {
  MadeUp trace;
  for (uint32_t i = 1; i <= 1015; ++i) {
    trace.AddSite(trace.Stack({{absl::StrCat("f", i), "f.c", i}}), 12345, 1234567, 12345);
  }
  EXPECT_THAT(RenderText(trace.View(), Options(88, false)),
              HasSubstr(" blocks: --top 1015 or --full\n"));
  trace.analysis.faults.minor = 1'234'567;
  trace.analysis.faults.major = 1'234'567;
  trace.analysis.faults.correlation_known = true;
  trace.analysis.faults.correlation_allocated = 0.9;
  const std::string text = RenderText(trace.View(), Options(80, false));
  ExpectFits(text, 80);
  EXPECT_THAT(text, HasSubstr(" blocks: --full\n"));
}

TEST(FaultsTextTest, SaysWhatFaultsGoWithAndWhatToDo) {
  Analysis analysis;
  Faults& faults = analysis.faults;
  EXPECT_THAT(CorrelationSentences(analysis), ElementsAre(HasSubstr("Too few samples")));
  faults.correlation_known = true;
  faults.correlation_live = -0.6;
  faults.correlation_allocated = 0.3;
  EXPECT_THAT(CorrelationSentences(analysis),
              ElementsAre("Minor faults run against the growth of the live heap (r = -0.60) and "
                          "weakly follow the bytes allocated (r = 0.30)."));
  faults.correlation_allocated = 0.9;
  EXPECT_THAT(CorrelationSentences(analysis),
              ElementsAre(HasSubstr("closely follow the bytes allocated"),
                          HasSubstr("look at the sites that allocate most")));
}

// The heap is of the chosen blocks, the faults are of the process: neither says anything of the
// other.
TEST(FaultsTextTest, FaultsGoWithNoHeapThatIsOfSomeBlocks) {
  MadeUp trace;
  trace.AddSite(trace.Stack({{"main", "main.c", 1}}), 1 << 20, 1, 1 << 20);
  Analysis& a = trace.analysis;
  a.totals.peak_live_bytes = 1 << 20;
  a.totals.peak_time_ns = 500'000;
  a.process.duration_ns = 1'000'000;
  a.faults.minor = 300;
  a.timeline = {{.time_ns = 250'000, .minor_faults = 300}, {.time_ns = 500'000},
                {.time_ns = 750'000, .max_live_bytes = 1 << 20}, {.time_ns = 1'000'000}};
  TextOptions options = Options(80, false);
  options.sections = {TextSection::kFaults};
  EXPECT_THAT(RenderText(trace.View(), options),
              AllOf(HasSubstr("PAGE FAULTS  300 minor"), HasSubstr("of growth: 300 per MiB"),
                    HasSubstr("Too few samples")));
  const auto of_the_faults_alone =
      AllOf(HasSubstr("PAGE FAULTS  300 minor"), HasSubstr("Busiest"), Not(HasSubstr("per MiB")),
            Not(HasSubstr("Too few samples")));
  a.selection.sites = true;
  EXPECT_THAT(RenderText(trace.View(), options), of_the_faults_alone);
  a.selection.sites = false;
  a.some_threads = true;
  EXPECT_THAT(RenderText(trace.View(), options), of_the_faults_alone);
}

TEST(FaultsTextTest, SaysThatFaultsFollowTheHeapLater) {
  MadeUp trace;
  FaultDetails& details = trace.analysis.fault_details;
  details.known = true;
  details.source = format::FaultSource::kAllEvents;
  details.told.minor = details.counted.minor = trace.analysis.faults.minor = 1000;
  details.correlation.live_minor = {.known = true, .now = 0.1, .best = 0.9, .lag_ns = 40'000'000};
  details.correlation.allocated_minor = {.known = true, .now = 0.9, .best = 0.9, .lag_ns = 0};
  TextOptions options = Options(200, false);
  options.sections = {TextSection::kFaults};
  const std::string text = RenderText(trace.View(), options);
  EXPECT_THAT(text, HasSubstr("Minor faults follow the growth of the live heap 40.0 ms later (r = 0.90; "
                              "0.10 at the same time)"));
  EXPECT_THAT(text, Not(HasSubstr("Minor faults follow the bytes allocated")));
}

TEST(FaultsTextTest, SaysThatFaultsAreOfAllBlocksWhereSomeWereChosen) {
  MadeUp trace;
  FaultDetails& details = trace.analysis.fault_details;
  details.known = true;
  details.source = format::FaultSource::kAllEvents;
  details.told.minor = details.counted.minor = trace.analysis.faults.minor = 1000;
  TextOptions options = Options(80, false);
  options.sections = {TextSection::kFaults};
  constexpr absl::string_view kOfAll = "Of all blocks: which of them are of the selected ones is not known.";
  EXPECT_THAT(RenderText(trace.View(), options), Not(HasSubstr(kOfAll)));
  trace.analysis.selection.sizes.low = 64;
  const std::string text = RenderText(trace.View(), options);
  EXPECT_THAT(text, HasSubstr(kOfAll));
  ExpectFits(text, 80);
}

// The rings were full while the program touched its pages: who knows whose they were.
TEST(FaultsTextTest, OfFaultsThatWereLostNobodySaysThatThereWereNone) {
  MadeUp trace;
  FaultDetails& details = trace.analysis.fault_details;
  details.known = true;
  details.source = format::FaultSource::kAllEvents;
  details.told.minor = 1000;
  details.counted.minor = trace.analysis.faults.minor = 6000;
  const StackId stack = trace.Stack({{"main", "/work/touch.c", 6}});
  details.sites.push_back({.stack = stack, .faults = {1000, 0}, .blocks = 1, .first_time_ns = 7'000'000,
                           .last_time_ns = 35'000'000, .touchers = {{stack, {1000, 0}}}});
  trace.AddSite(stack, 1, 5 << 20, 1);
  const auto text = [&] { return RenderText(trace.View(), Options(200, false)); };
  trace.analysis.process.end = ProcessInfo::End::kSignal;
  EXPECT_THAT(text(), HasSubstr("; of the 1.97 s after that not all was seen"));
  trace.analysis.process.end = ProcessInfo::End::kExit;
  EXPECT_THAT(text(), HasSubstr("; none in the 1.97 s after that"));
  details.lost = 5000;
  details.last_lost_ns = 34'000'000;
  EXPECT_THAT(text(), HasSubstr("; none in the 1.97 s after that")) << "all were lost before";
  EXPECT_THAT(text(), HasSubstr("5,000 page faults were lost")) << "the summary knows";
  for (const uint64_t last : {uint64_t{400'000'000}, UINT64_MAX}) {
    details.last_lost_ns = last;
    EXPECT_THAT(text(), Not(HasSubstr("none in the")));
    EXPECT_THAT(text(), HasSubstr("; of what came in the 1.97 s after that some was lost"));
  }
}

TEST(FaultsTextTest, WhatWasNotCountedIsNotZero) {
  MadeUp trace;
  trace.analysis.faults.counted = false;
  trace.analysis.process.end = ProcessInfo::End::kCut;
  const std::string text = RenderText(trace.View(), Options(120, false));
  EXPECT_THAT(text, HasSubstr("Faults     not known"));
  EXPECT_THAT(text, Not(HasSubstr("0 minor")));
}

TEST(FaultsTextTest, AFewFaultsAreNoBurst) {
  MadeUp trace;
  trace.analysis.faults.minor = 2;
  for (uint64_t i = 1; i <= 200; ++i) {
    trace.analysis.timeline.push_back(
        {.time_ns = i * 10'000, .minor_faults = i > 80 && i <= 82 ? uint64_t{1} : 0});
  }
  TextOptions options = Options(80, false);
  options.sections = {TextSection::kFaults};
  EXPECT_THAT(RenderText(trace.View(), options), Not(HasSubstr("Busiest")));
}

}  // namespace
}  // namespace memtrace::report::render
