// What a scan found, in every format; and that without one nothing is claimed.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "report/cli/options.h"
#include "report/leak/leak_kinds.h"
#include "report/render/formats.h"
#include "report/render/text_report.h"
#include "tests/report/render/render_made_up.h"

namespace memtrace::report::render {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using nlohmann::json;

class Leaky : public MadeUp {
 public:
  explicit Leaky(bool scanned = true) {
    const StackId pair = Stack({{"MakePair", "/work/pair.c", 12}, {"main", "/work/pair.c", 30},
                                Libc("__libc_start_main")});
    const StackId cache = Stack({{"Remember", "/work/cache.c", 7}, {"main", "/work/pair.c", 31}});
    AddSite(pair, 2, 24, 2);
    AddSite(cache, 1, 1024, 1);
    if (!scanned) return;
    LeakScan scan;
    scan.number = 1;
    scan.time_ns = 1'870'000'000;
    scan.state = LeakScan::State::kDone;
    scan.totals[0] = {16, 1};
    scan.totals[1] = {32, 1};
    scan.totals[3] = {1024, 1};
    scan.by_heuristic[3] = {1024, 1};
    scan.notes = {"not scanned: 1 mapping, 4096 bytes: /dev/dri\033[31m"};
    LossRecord indirect{.kind = LeakKind::kIndirect, .stack = pair, .bytes = 32, .blocks = 1};
    LossRecord definite{.kind = LeakKind::kDefinite, .stack = pair, .bytes = 16, .blocks = 1,
                        .indirect_bytes = 32, .indirect_blocks = 1, .first_time_ns = 1'200'000,
                        .last_time_ns = 1'200'000};
    LossRecord reachable{.kind = LeakKind::kReachable, .stack = cache, .bytes = 1024, .blocks = 1,
                         .heuristic_blocks = 1};
    scan.records = {indirect, definite, reachable};
    analysis.leak_scans.push_back(scan);
  }
};

std::string Text(const ReportView& view, TextSection section = TextSection::kLeaks) {
  TextOptions options;
  options.style.width = 120;
  options.sections = {section};
  return RenderText(view, options);
}

json Json(const ReportView& view) {
  words::StringSink out;
  RenderJson(view, kAllRows, out);
  return json::parse(out.text());
}

TEST(LeakTextTest, AllThatWasLiveMayBeDeclaredNoLeaks) {
  Leaky trace;
  LeakScan& scan = trace.analysis.leak_scans[0];
  scan.records.clear();
  scan.totals = {};
  scan.ignored = {100, 1};
  EXPECT_THAT(Text(trace.View()), HasSubstr("none: the program declared all that was live to be no leaks, "
                                            "100 bytes in 1 block"));
  EXPECT_EQ(Json(trace.View())["leak_scans"][0]["ignored"]["bytes"], 100);
}

TEST(LeakTextTest, SummaryAndRecordsReadLikeMemchecks) {
  Leaky trace;
  const ReportView view = trace.View();
  const std::string text = Text(view);
  EXPECT_THAT(text, HasSubstr("LEAK SUMMARY  scan 1, at the exit, after the destructors, at 1.87 s"));
  EXPECT_THAT(text, HasSubstr("  definitely lost: 16 bytes in 1 block\n"
                              "  indirectly lost: 32 bytes in 1 block\n"
                              "    possibly lost: 0 bytes in 0 blocks\n"
                              "  still reachable: 1,024 bytes in 1 block\n"
                              "                   of which reachable via heuristic:\n"
                              "                     newarray: 1,024 bytes in 1 block"));
  EXPECT_THAT(text, HasSubstr("48 (16 direct, 32 indirect) bytes in 1 block is definitely lost, "
                              "malloc  record 2 of 3, at 1.20 ms"));
  EXPECT_THAT(text, HasSubstr("MakePair  pair.c:12"));
  EXPECT_THAT(text, HasSubstr("1 of 3: --show-leak-kinds=all"));
  EXPECT_THAT(text, Not(HasSubstr("Remember"))) << "definite and possible ones only";
  EXPECT_THAT(text, HasSubstr("! not scanned: 1 mapping"));
  EXPECT_THAT(text, Not(HasSubstr("\033"))) << "a name is no command to the terminal";
  EXPECT_THAT(Text(view, TextSection::kSummary),
              HasSubstr("16 bytes in 1 block definitely lost, 32 bytes in 1 block indirectly lost "
                        "at the exit"));
}

// Who reads one line reads of what is lost.
TEST(LeakTextTest, TheVerdictNamesWhatIsLost) {
  Leaky trace;
  EXPECT_THAT(Text(trace.View(), TextSection::kSummary),
              HasSubstr("Verdict    48 B lost for certain, 16 B of it directly; most: MakePair pair.c:12\n"
                        "  Program"));
  LeakScan& scan = trace.analysis.leak_scans[0];
  scan.reason = format::ScanReason::kRequest;
  scan.totals[1] = {};
  EXPECT_THAT(Text(trace.View(), TextSection::kSummary),
              HasSubstr("Verdict    16 B lost for certain, at scan 1; most: MakePair"));
  scan.totals[0] = {};
  EXPECT_THAT(Text(trace.View(), TextSection::kSummary), Not(HasSubstr("Verdict")));
}

TEST(LeakTextTest, WhatTheRuntimeKeepsIsNoLossOfTheProgram) {
  Leaky trace;
  LeakScan& scan = trace.analysis.leak_scans[0];
  scan.totals[0] = scan.totals[1] = {};
  scan.totals[2] = {912, 3};
  scan.of_runtime = {912, 3};
  scan.records.erase(scan.records.begin(), scan.records.begin() + 2);
  scan.records.push_back({.kind = LeakKind::kPossible, .stack = trace.Stack({Libc("allocate_dtv")}),
                          .function = format::AllocFunction::kCalloc, .bytes = 912, .blocks = 3,
                          .of_runtime = true});
  trace.AddSite(scan.records.back().stack, 3, 304, 3);
  ReportView view = trace.View();
  EXPECT_THAT(Text(view, TextSection::kSummary),
              HasSubstr("Lost       nothing at the exit; 912 bytes that look so are the runtime's own"));
  const std::string text = Text(view);
  EXPECT_THAT(text, HasSubstr("    possibly lost: 912 bytes in 3 blocks\n"
                              "                   of which the runtime's own: 912 bytes in 3 blocks\n"));
  TextOptions narrow;
  narrow.style.width = 60;
  narrow.sections = {TextSection::kLeaks};
  scan.of_runtime = {1656, 17};
  EXPECT_THAT(RenderText(view, narrow), HasSubstr("\n        of which the runtime's own: 1,656 bytes in 17 blocks\n"));
  scan.of_runtime = {912, 3};
  EXPECT_THAT(text, HasSubstr("0 of 2: "));
  EXPECT_THAT(text, Not(HasSubstr("allocate_dtv")));
  const json report = Json(view);
  EXPECT_EQ(report["leaks"][0]["of_runtime"], true);
  EXPECT_EQ(report["leaks"][1]["of_runtime"], false);
  EXPECT_EQ(report["leak_scans"][0]["of_runtime"]["bytes"], 912);
  ASSERT_TRUE(view.ChooseLeaks(0, ParseKinds("possible").value()).ok());
  EXPECT_THAT(Text(view), HasSubstr("are possibly lost (the runtime's own), calloc"));
}

TEST(LeakTextTest, SlabsOfGLibsSlicesAreSaidToBeSuch) {
  Leaky trace;
  EXPECT_THAT(Text(trace.View()), Not(HasSubstr("G_SLICE")));
  trace.analysis.leak_scans[0].by_heuristic[static_cast<size_t>(leak::Pointer::kGSlice)] = {1000, 1};
  EXPECT_THAT(Text(trace.View()), HasSubstr("gslice: 1,000 bytes in 1 block\n"));
  EXPECT_THAT(Text(trace.View()), HasSubstr("lie in slabs: one that is lost is not seen"));
}

TEST(LeakTextTest, SlabsAreSaidToHideSlices) {
  using format::AllocFunction;
  Leaky trace;
  const StackId sliced = trace.Stack({{"", "", 0, kPlugin}, {"g_slice_alloc", "", 0, kPlugin},
                                      {"g_list_prepend", "", 0, kPlugin}, {"main", "/work/pair.c", 3}});
  const StackId aligned = trace.Stack({{"Align", "/work/pair.c", 5}, {"main", "/work/pair.c", 9}});
  for (const StackId stack : {sliced, aligned}) trace.AddSite(stack, 1, 496, 1);
  LeakScan& scan = trace.analysis.leak_scans[0];
  scan.records.push_back({.kind = LeakKind::kReachable, .bytes = 496, .blocks = 1});
  const auto notes = [&] { return Json(trace.View())["leak_scans"][0]["notes"]; };
  const auto of = [&](StackId stack, AllocFunction function) {
    scan.records.back().stack = stack;
    scan.records.back().function = function;
  };
  of(aligned, AllocFunction::kPosixMemalign);
  EXPECT_THAT(Text(trace.View()), Not(HasSubstr("G_SLICE")));
  of(sliced, AllocFunction::kMalloc);
  EXPECT_THAT(Text(trace.View()), Not(HasSubstr("G_SLICE"))) << "as with G_SLICE=always-malloc";
  EXPECT_EQ(notes().size(), 1u);
  of(sliced, AllocFunction::kPosixMemalign);
  EXPECT_THAT(Text(trace.View()), HasSubstr("G_SLICE=always-malloc"));
  ASSERT_EQ(notes().size(), 2u);
  EXPECT_THAT(notes()[1].get<std::string>(), HasSubstr("G_SLICE=always-malloc"));
  // Known by both, they are told of once.
  scan.by_heuristic[static_cast<size_t>(leak::Pointer::kGSlice)] = {496, 1};
  EXPECT_EQ(notes().size(), 2u);
  scan.by_heuristic = {};
  scan.records.back().blocks = 0;
  EXPECT_THAT(Text(trace.View()), Not(HasSubstr("G_SLICE"))) << "none was live";
}

TEST(LeakTextTest, ArenasOfPymallocAreSaidToHideObjects) {
  Leaky trace;
  EXPECT_THAT(Text(trace.View()), Not(HasSubstr("PYTHONMALLOC")));
  trace.analysis.coverage.pymalloc = true;
  EXPECT_THAT(Text(trace.View()), HasSubstr("PYTHONMALLOC=malloc"));
  const json report = Json(trace.View());
  ASSERT_EQ(report["leak_scans"][0]["notes"].size(), 2u);
  EXPECT_THAT(report["leak_scans"][0]["notes"][1].get<std::string>(), HasSubstr("PYTHONMALLOC=malloc"));
  EXPECT_EQ(report["coverage"]["all_recorded"], true);
}

TEST(LeakTextTest, WhatPerlDoesNotFreeIsSaidToBeThat) {
  constexpr uint32_t kPerl = 4;
  Leaky trace;
  trace.AddModule(kPerl, "/usr/bin/perl5.36.0", 0x7f2000000000, format::kModulePermanent);
  const StackId kept = trace.Stack({{"Perl_more_bodies", "", 0, kPerl},
                                    {"perl_construct", "", 0, kPerl}, {"main", "", 0, kPerl}});
  trace.AddSite(kept, 1, 64, 1);
  LeakScan& scan = trace.analysis.leak_scans[0];
  scan.records.push_back({.kind = LeakKind::kReachable, .stack = kept, .bytes = 64, .blocks = 1});
  const auto notes = [&] { return Json(trace.View())["leak_scans"][0]["notes"]; };
  EXPECT_THAT(Text(trace.View()), Not(HasSubstr("PERL_DESTRUCT_LEVEL"))) << "nothing of it is lost";
  EXPECT_EQ(notes().size(), 1u);
  scan.records.back().kind = LeakKind::kPossible;
  EXPECT_THAT(Text(trace.View()), HasSubstr("PERL_DESTRUCT_LEVEL=2"));
  ASSERT_EQ(notes().size(), 2u);
  EXPECT_THAT(notes()[1].get<std::string>(), HasSubstr("PERL_DESTRUCT_LEVEL=2"));
  scan.records.back().suppressed = true;
  EXPECT_THAT(Text(trace.View()), Not(HasSubstr("PERL_DESTRUCT_LEVEL")));
}

// A function of that name in another program is not perl's.
TEST(LeakTextTest, OnlyPerlIsSaidToKeepWhatItsInterpreterHolds) {
  Leaky trace;
  const StackId stack = trace.Stack({{"perl_construct", "/work/pair.c", 3}, {"main", "/work/pair.c", 9}});
  trace.AddSite(stack, 1, 64, 1);
  trace.analysis.leak_scans[0].records.push_back(
      {.kind = LeakKind::kDefinite, .stack = stack, .bytes = 64, .blocks = 1});
  EXPECT_THAT(Text(trace.View()), Not(HasSubstr("PERL_DESTRUCT_LEVEL")));
}

TEST(LeakTextTest, TheUserChoosesKinds) {
  Leaky trace;
  ReportView view = trace.View();
  ASSERT_TRUE(view.ChooseLeaks(0, LeakKindSet::Of(LeakKind::kReachable)).ok());
  EXPECT_THAT(Text(view), HasSubstr("still reachable, malloc  record 3 of 3"));
  EXPECT_THAT(Text(view), Not(HasSubstr("MakePair")));
  EXPECT_FALSE(view.ChooseLeaks(2, {}).ok());
  EXPECT_TRUE(ParseKinds("definite,indirect").ok());
  EXPECT_EQ(*ParseKinds("all"), LeakKindSet::OfScans());
  EXPECT_FALSE(ParseKinds("lost").ok());
}

// `memtrace leaks` has no option for it, and asks for one scan.
TEST(LeakTextTest, AScanThatFailedSaysWhy) {
  Leaky trace;
  LeakScan failed;
  failed.number = 2;
  failed.state = LeakScan::State::kFailed;
  failed.failure = "/proc is not there";
  LeakScan cut = failed;
  cut.number = 3;
  cut.state = LeakScan::State::kCutShort;
  cut.failure = "its block 2 is not in the trace";
  trace.analysis.leak_scans.insert(trace.analysis.leak_scans.end(), {failed, cut});
  ReportView view = trace.View();
  EXPECT_EQ(view.ChooseLeaks(2, {}).message(), "the scan failed: /proc is not there");
  EXPECT_EQ(view.ChooseLeaks(3, {}).message(),
            "nothing is known of the scan: its block 2 is not in the trace");
  EXPECT_EQ(view.ChooseLeaks(4, {}).message(),
            "--scan: no finished scan 4 in the trace; there are: 1, 2 (/proc is not there), "
            "3 (its block 2 is not in the trace)");
}

TEST(LeakTextTest, NoScanIsNotNoLeaks) {
  Leaky trace(/*scanned=*/false);
  const std::string text = Text(trace.View());
  EXPECT_THAT(text, HasSubstr("UNFREED BLOCKS"));
  EXPECT_THAT(text, HasSubstr("No scan"));
  EXPECT_THAT(text, HasSubstr("nothing is known"));
  EXPECT_THAT(Text(trace.View(), TextSection::kSummary), HasSubstr("Lost       not known"));
  EXPECT_THAT(text, HasSubstr("MEMTRACE_LEAK_CHECK"));
  trace.analysis.process.exit_unseen = true;
  EXPECT_THAT(Text(trace.View()),
              testing::AllOf(HasSubstr("exit_group"), HasSubstr("C.exit()"),
                             Not(HasSubstr("MEMTRACE_LEAK_CHECK"))));
  trace.analysis.coverage.events_missing = true;
  EXPECT_THAT(Text(trace.View()), Not(HasSubstr("exit_group"))) << "the end may be among them";
  trace.analysis.process.end = ProcessInfo::End::kSignal;
  trace.analysis.process.end_signal = 9;
  EXPECT_THAT(Text(trace.View()), HasSubstr("killed by SIGKILL"));
}

TEST(LeakTextTest, AScanThatFailedTellsWhyAndNothingElse) {
  Leaky trace(/*scanned=*/false);
  LeakScan scan;
  scan.number = 1;
  scan.state = LeakScan::State::kFailed;
  scan.failure = "fork: no memory";
  trace.analysis.leak_scans.push_back(scan);
  EXPECT_THAT(Text(trace.View()),
              HasSubstr("scan 1: fork: no memory; nothing is known about reachability\n"));
  EXPECT_EQ(trace.View().leak_scan(), nullptr);
  const json report = Json(trace.View());
  EXPECT_EQ(report["leaks"][0]["kind"], "unfreed");
  EXPECT_TRUE(report["leak_scan"].is_null());
  EXPECT_EQ(report["leak_scans"][0]["state"], "failed");
  EXPECT_TRUE(report["leak_scans"][0]["totals"].is_null()) << "not known is not 0";
  EXPECT_THAT(report["no_leak_scan"], HasSubstr("no memory"));
}

TEST(LeakTextTest, TextAndDocumentSayInTheSameWordsWhenAScanWasMade) {
  Leaky trace;
  Analysis& analysis = trace.analysis;
  const auto when = [&](format::ScanReason reason, bool exit_at_once) {
    analysis.leak_scans[0].reason = reason;
    analysis.process.exit_at_once = exit_at_once;
    const std::string words = Json(trace.View())["leak_scans"][0]["when"];
    EXPECT_THAT(Text(trace.View()), HasSubstr("scan 1, " + words + ", at 1.87 s"));
    return words;
  };
  using format::ScanReason;
  EXPECT_EQ(when(ScanReason::kExitLate, false), "at the exit, after the destructors");
  EXPECT_EQ(when(ScanReason::kExitLate, true), "at the exit, which ran no destructors");
  EXPECT_EQ(when(ScanReason::kExitEarly, true), "at the exit, before the destructors");
  EXPECT_EQ(when(ScanReason::kRequest, false), "at the program's request");
  EXPECT_EQ(when(ScanReason::kOutside, false), "asked for from outside");
  EXPECT_EQ(when(static_cast<ScanReason>(9), false), "for a reason this version does not know");
}

TEST(LeakTextTest, AScanBeforeTheEndSaysSoAndTheUnfreedFollow) {
  Leaky trace;
  trace.analysis.leak_scans[0].reason = format::ScanReason::kRequest;
  trace.analysis.leak_scans[0].label = "after warm-up";
  const std::string text = Text(trace.View());
  EXPECT_THAT(text, HasSubstr("at the program's request (after warm-up)"));
  EXPECT_THAT(text, HasSubstr("the end of the program was not scanned"));
  EXPECT_THAT(text, HasSubstr("UNFREED BLOCKS"));
  EXPECT_THAT(text, HasSubstr("scan 1 above was at 1.87 s"));
  EXPECT_THAT(text, Not(HasSubstr("No scan"))) << "there was one";
}

// `memtrace leaks` was asked for what a scan finds: its blocks that were live later are another matter.
TEST(LeakTextTest, AScanAloneIsFollowedByNothing) {
  Leaky trace;
  trace.analysis.leak_scans[0].reason = format::ScanReason::kOutside;
  trace.analysis.range = {0, 1'900'000'000};
  TextOptions options;
  options.sections = {TextSection::kLeaks};
  EXPECT_THAT(RenderText(trace.View(), options), HasSubstr("BLOCKS LIVE AT THE END OF THE RANGE"));
  options.scan_alone = true;
  for (const LeakKindSet kinds : {LeakKindSet::Of(LeakKind::kDefinite), LeakKindSet()}) {
    ReportView view = trace.View();
    ASSERT_TRUE(view.ChooseLeaks(1, kinds, /*changes_alone=*/true).ok());
    const std::string text = RenderText(view, options);
    EXPECT_THAT(text, HasSubstr("LOSS RECORDS"));
    EXPECT_THAT(text, Not(HasSubstr("LIVE AT THE END")));
    EXPECT_THAT(text, Not(HasSubstr("Later")));
  }
}

TEST(LeakTextTest, HeadingsOfRecordsFitTheTerminal) {
  Leaky trace;
  LossRecord& record = trace.analysis.leak_scans[0].records[1];
  record.bytes = 16;
  record.indirect_bytes = 800;
  TextOptions options;
  options.style.width = 80;
  options.sections = {TextSection::kLeaks};
  EXPECT_THAT(RenderText(trace.View(), options),
              HasSubstr("  1  816 (16 direct, 800 indirect) bytes in 1 block is definitely lost, malloc\n"
                        "       record 2 of 3\n       MakePair"));
  record.bytes = 656;
  record.indirect_bytes = 29'492;
  EXPECT_THAT(RenderText(trace.View(), options),
              HasSubstr("  1  30,148 (656 direct, 29,492 indirect) bytes in 1 block is definitely lost\n"
                        "       malloc  record 2 of 3\n       MakePair"));
  record.bytes = 1'151'616;
  record.indirect_bytes = 2'409'384;
  record.blocks = 11'996;
  EXPECT_THAT(RenderText(trace.View(), options),
              HasSubstr("  1  3,561,000 (1,151,616 direct, 2,409,384 indirect) bytes in 11,996 blocks\n"
                        "       are definitely lost\n       malloc  record 2 of 3\n       MakePair"));
}

TEST(LeakTextTest, WasteIsNotKnownOfOtherAllocators) {
  Leaky trace;
  EXPECT_THAT(Text(trace.View(), TextSection::kSummary), HasSubstr("0 bytes usable but not asked for"));
  trace.analysis.process.allocator = format::AllocatorKind::kOther;
  EXPECT_THAT(Text(trace.View(), TextSection::kSummary),
              HasSubstr("Wasted     not known: the allocator is not glibc's"));
  const auto json = Json(trace.View());
  EXPECT_TRUE(json["totals"]["wasted_bytes"].is_null());
  ASSERT_FALSE(json["sites"].empty());
  for (const auto& site : json["sites"]) EXPECT_TRUE(site["wasted_bytes"].is_null());
  EXPECT_FALSE(CheckMeasure(trace.analysis, SiteMeasure::kWasted).ok());
}

TEST(LeakTextTest, DeltasAreAgainstTheScanBefore) {
  Leaky trace;
  LeakScan& scan = trace.analysis.leak_scans[0];
  scan.show = format::ScanShow::kIncreased;
  scan.records[1].before = {8, 1};
  scan.records[1].indirect_before = {32, 1};
  EXPECT_THAT(Text(trace.View()),
              HasSubstr("48 (+8) (16 (+8) direct, 32 (+0) indirect) bytes in 1 (+0) block"));
}

// What a scan was asked for is for the reader of a text. Who reads data sees by is_new what is new,
// and would take an empty list for all there is.
TEST(LeakTextTest, WhatIsNotNewIsNotShownUnlessKindsAreChosen) {
  Leaky trace;
  LeakScan& scan = trace.analysis.leak_scans[0];
  scan.show = format::ScanShow::kNew;
  for (LossRecord& record : scan.records) {
    record.before = {record.bytes, record.blocks};
    record.indirect_before = {record.indirect_bytes, record.indirect_blocks};
  }
  ReportView view = trace.View();
  EXPECT_THAT(Text(view),
              HasSubstr("0 of 3: the others are not new, --show-leak-kinds=all shows them\n"));
  EXPECT_EQ(WhyLossesAreHidden(view, 0),
            "the others are not new, --show-leak-kinds=all shows them");
  const json report = Json(view);
  ASSERT_EQ(report["leaks"].size(), 3u);
  EXPECT_EQ(report["leaks_total"], 3);
  EXPECT_EQ(report["leaks"][1]["is_new"], false);
  EXPECT_EQ(report["leaks"][1]["bytes_before"], 16);
  words::StringSink csv;
  RenderCsv(view, CsvTable::kLeaks, SortColumn::kTotal, kAllRows, csv);
  EXPECT_THAT(csv.text(), HasSubstr("definite,16,1,malloc,"));

  ASSERT_TRUE(view.ChooseLeaks(0, LeakKindSet::OfScans()).ok());
  EXPECT_THAT(Text(view), HasSubstr("LOSS RECORDS  3 of 3\n"));
  EXPECT_THAT(Text(view), HasSubstr("48 (+0) (16 (+0) direct, 32 (+0) indirect) bytes"));
  EXPECT_EQ(view.Losses(/*everything=*/false).size(), 3u);
  EXPECT_EQ(WhyLossesAreHidden(view, 3), "");
  ASSERT_TRUE(view.ChooseLeaks(0, LeakKindSet::Of(LeakKind::kDefinite)).ok());
  EXPECT_THAT(Text(view), HasSubstr("1 of 3: --show-leak-kinds=all shows every kind\n"));
  // Who asks for a scan and what it is to show has both.
  ASSERT_TRUE(view.ChooseLeaks(0, LeakKindSet::OfScans(), /*changes_alone=*/true).ok());
  EXPECT_THAT(Text(view), HasSubstr("0 of 3: the others are not new\n"));
}

TEST(LeakTextTest, OfSeveralScansTheLastFinishedCounts) {
  Leaky trace;
  LeakScan other = trace.analysis.leak_scans[0];
  other.number = 2;
  other.reason = format::ScanReason::kRequest;
  trace.analysis.leak_scans.push_back(other);
  EXPECT_EQ(trace.View().leak_scan()->number, 2u);
  ReportView view = trace.View();
  ASSERT_TRUE(view.ChooseLeaks(1, {}).ok());
  EXPECT_EQ(view.leak_scan()->number, 1u);
  trace.analysis.leak_scans[1].state = LeakScan::State::kCutShort;
  EXPECT_EQ(trace.View().leak_scan()->number, 1u);
}

TEST(LeakTextTest, AdvisesAnotherScanWhereThatCanBeAskedFor) {
  Leaky trace;
  EXPECT_THAT(Text(trace.View()), Not(HasSubstr("one of 1 scan")));
  trace.analysis.leak_scans.push_back(trace.analysis.leak_scans[0]);
  EXPECT_THAT(Text(trace.View()),
              HasSubstr("one of 2 scans of the trace: --scan N shows another\n"));
  TextOptions options;
  options.sections = {TextSection::kLeaks};
  options.scan_alone = true;
  const std::string text = RenderText(trace.View(), options);
  EXPECT_THAT(text, HasSubstr("one of 2 scans of the trace\n"));
  EXPECT_THAT(text, Not(HasSubstr("--scan")));
}

TEST(LeakJsonTest, HasTheRecordsAndTheScans) {
  Leaky trace;
  const json report = Json(trace.View());
  ASSERT_EQ(report["leaks"].size(), 3u);
  EXPECT_EQ(report["leaks"][0]["kind"], "reachable");
  EXPECT_EQ(report["leaks"][1]["kind"], "definite");
  EXPECT_EQ(report["leaks"][1]["indirect_bytes"], 32);
  EXPECT_EQ(report["leaks"][1]["record"], 2);
  EXPECT_EQ(report["leaks_total"], 3);
  EXPECT_EQ(report["leak_scan"], 1);
  EXPECT_TRUE(report["no_leak_scan"].is_null());
  const json& scan = report["leak_scans"][0];
  EXPECT_EQ(scan["reason"], "exit-late");
  EXPECT_EQ(scan["totals"]["definite"]["bytes"], 16);
  EXPECT_EQ(scan["totals"]["possible"]["blocks"], 0);
  EXPECT_EQ(scan["reachable_via_heuristic"]["newarray"]["bytes"], 1024);
  EXPECT_EQ(scan["records"], 3);
}

TEST(LeakCsvTest, HasARowForEachRecord) {
  Leaky trace;
  words::StringSink out;
  RenderCsv(trace.View(), CsvTable::kLeaks, SortColumn::kTotal, kAllRows, out);
  EXPECT_THAT(out.text(), HasSubstr("scan,record,indirect_bytes,indirect_blocks\r\n"));
  EXPECT_THAT(out.text(), HasSubstr("definite,16,1,malloc,"));
  EXPECT_THAT(out.text(), HasSubstr(",1,2,32,1\r\n"));
}

TEST(LeakOptionsTest, AreMemchecks) {
  ReportFlags flags;
  flags.leak_resolution = "med";
  flags.leader = "sequence";
  flags.heuristics = "newarray";
  flags.leak_kinds = "all";
  flags.scan = "3";
  const auto options = ParseReportFlags(flags);
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->analyze.leaks.resolution.frames, 4u);
  EXPECT_EQ(options->analyze.leaks.leader, leak::LeaderBy::kSequence);
  EXPECT_EQ(options->scan, 3u);
  for (const auto& bad : {ReportFlags{.scan = "0"}, ReportFlags{.leak_kinds = "x"},
                          ReportFlags{.leak_resolution = "all"}, ReportFlags{.heuristics = "no"},
                          ReportFlags{.leader = "me"}}) {
    EXPECT_FALSE(ParseReportFlags(bad).ok());
  }
}

}  // namespace
}  // namespace memtrace::report::render
