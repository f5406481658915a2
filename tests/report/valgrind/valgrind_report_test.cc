// memcheck's text and XML: word for word what Valgrind 3.19 writes about the same leaks, and
// readable by what reads Valgrind's.

#include "report/leak/leak_kinds.h"
#include "report/render/valgrind_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include "report/leak/heuristics.h"
#include "report/render/valgrind_losses.h"
#include "report/valgrind/comparison.h"
#include "report/valgrind/valgrind_run.h"
#include "tests/report/valgrind/valgrind_made_up.h"

namespace memtrace::report::render {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::string Text(MadeUp& made_up, ValgrindStyle style = {}, const std::string& match = "") {
  const ReportView view = made_up.View(match);
  style.version = "1.2.3";
  words::StringSink out;
  EXPECT_TRUE(RenderValgrindText(view, CollectLosses(view, {}), style, out).ok());
  return out.text();
}

std::string Xml(MadeUp& made_up, ValgrindStyle style = {}, const std::string& match = "") {
  const ReportView view = made_up.View(match);
  style.version = "1.2.3";
  style.tool_command = {"memtrace", "report"};
  words::StringSink out;
  EXPECT_TRUE(RenderValgrindXml(view, CollectLosses(view, {}), style, out).ok());
  return out.text();
}

TEST(ValgrindLossesTest, AreSmallestFirstAndOfEqualOnesTheReachableFirst) {
  MadeUpLeaks made_up;
  const ReportView view = made_up.View();
  const LossList list = CollectLosses(view, {});
  ASSERT_EQ(list.losses.size(), 5u);
  EXPECT_EQ(list.losses[0].kind, LeakKind::kReachable);
  EXPECT_EQ(list.losses[1].kind, LeakKind::kPossible);
  EXPECT_EQ(list.losses[2].kind, LeakKind::kIndirect);
  EXPECT_EQ(list.losses[3].total_bytes(), 192u);
  EXPECT_EQ(list.losses[4].bytes, 1000u);
}

TEST(ValgrindLossesTest, StacksBeginWithWhatAllocatesAndEndWithMain) {
  MadeUpLeaks made_up;
  const ReportView view = made_up.View();
  const LossList list = CollectLosses(view, {});
  const std::vector<LossFrame>& node = list.losses[3].stack;
  ASSERT_EQ(node.size(), 4u);
  EXPECT_EQ(node[0].function, "malloc");
  EXPECT_EQ(node[0].object, "/usr/lib/libmemtrace.so");
  EXPECT_EQ(node[1].directory, "/src");
  EXPECT_EQ(node[1].file, "tree.cc");
  EXPECT_EQ(node[1].ip, 0x400000u + 0x1000 - 1);  // before the return address
  EXPECT_EQ(node[1].offset, 0x1000u);
  EXPECT_FALSE(node[0].offset.has_value());
  EXPECT_EQ(node[3].function, "main");
  const std::vector<LossFrame>& table = list.losses[4].stack;
  ASSERT_EQ(table.size(), 4u);
  EXPECT_EQ(table[0].function, "operator new(unsigned long)");
  EXPECT_EQ(table[1].ip, table[2].ip);  // inlined
}

std::vector<std::string> FunctionsShown(const std::vector<Step>& steps,
                                        const LossOptions& options = {}) {
  MadeUp made_up;
  made_up.AddSite(made_up.Stack(steps), 1, 8, 1);
  const ReportView view = made_up.View();
  const LossList list = CollectLosses(view, options);
  std::vector<std::string> functions;
  for (const Loss& loss : list.losses) {
    EXPECT_FALSE(loss.cut);
    for (const LossFrame& frame : loss.stack) functions.push_back(frame.function);
  }
  return functions;
}

// As Valgrind 3.19 showed them.
TEST(ValgrindLossesTest, StacksWithoutMainEndWithTheFirstFrameBelowIt) {
  const Step nameless = {"", "", 0};
  EXPECT_THAT(FunctionsShown({nameless, nameless, Libc("__libc_start_call_main"),
                              Libc("__libc_start_main_impl"), nameless}),
              ElementsAre("malloc", "", "", "(below main)"));
  EXPECT_THAT(FunctionsShown({{"AtExit", "a.c", 1}, Libc("exit"), Libc("__libc_start_call_main"),
                              Libc("__libc_start_main_impl"), {"_start", "", 0}}),
              ElementsAre("malloc", "AtExit", "exit", "(below main)"));
  EXPECT_THAT(FunctionsShown({{"Construct", "a.c", 1},
                              {"call_init", "libc-start.c", 145, kLibc, true},
                              Libc("__libc_start_main_impl"), {"_start", "", 0}}),
              ElementsAre("malloc", "Construct", "call_init", "__libc_start_main_impl",
                          "(below main)"));
  EXPECT_THAT(FunctionsShown({{"f", "a.c", 1}, {"main", "a.c", 2}, Libc("__libc_start_call_main")}),
              ElementsAre("malloc", "f", "main"));
}

TEST(ValgrindLossesTest, AllFramesBelowMainAreShownWhereTheyAreAskedFor) {
  const LossOptions all = {.below_main = true};
  EXPECT_THAT(FunctionsShown({{"f", "a.c", 1}, {"main", "a.c", 2}, Libc("__libc_start_call_main"),
                              Libc("__libc_start_main_impl"), {"_start", "", 0}}, all),
              ElementsAre("malloc", "f", "main", "__libc_start_call_main",
                          "__libc_start_main_impl", "_start"));
}

TEST(ValgrindLossesTest, NumCallersCountsAddressesAndMergesWhatLooksTheSame) {
  MadeUp made_up;
  const StackId a = made_up.Stack({{"f", "a.c", 1}, {"g", "a.c", 2}, {"main", "a.c", 3}});
  const StackId b = made_up.Stack({{"f", "a.c", 1}, {"g", "a.c", 2}, {"main", "a.c", 4}});
  made_up.raw(b)[0] = made_up.raw(a)[0];
  made_up.raw(b)[1] = made_up.raw(a)[1];
  made_up.AddSite(a, 1, 8, 1);
  made_up.AddSite(b, 1, 8, 1);
  const ReportView view = made_up.View();
  EXPECT_EQ(CollectLosses(view, {}).losses.size(), 2u);
  const LossList cut = CollectLosses(view, {.callers = 3});
  ASSERT_EQ(cut.losses.size(), 1u);
  EXPECT_EQ(cut.losses[0].stack.size(), 3u);
  EXPECT_TRUE(cut.losses[0].cut);
  EXPECT_EQ(cut.losses[0].blocks, 2u);
  EXPECT_EQ(CollectLosses(view, {.resolution = LeakResolution::kLow}).losses.size(), 1u);
  EXPECT_EQ(CollectLosses(view, {.resolution = LeakResolution::kMed}).losses.size(), 2u);
}

// Plugins of one source, loaded in turn.
TEST(ValgrindLossesTest, ModulesAtOneAddressAreToldApart) {
  MadeUp made_up;
  made_up.AddModule(4, "/work/plugin2.so", 0x7f1000000000, 0);
  const StackId a = made_up.Stack({{"plug", "p.c", 1, kPlugin}, {"main", "a.c", 3}});
  const StackId b = made_up.Stack({{"plug", "p.c", 1, 4}, {"main", "a.c", 3}});
  made_up.raw(b)[0].pc = made_up.raw(a)[0].pc;
  made_up.raw(b)[1] = made_up.raw(a)[1];
  made_up.AddSite(a, 1, 8, 1);
  made_up.AddSite(b, 1, 9, 1);
  const ReportView view = made_up.View();
  const LossList list = CollectLosses(view, {});
  ASSERT_EQ(list.losses.size(), 2u);
  EXPECT_EQ(list.losses[0].stack[1].ip, list.losses[1].stack[1].ip);
  EXPECT_EQ(list.losses[0].stack[1].object, "/work/plugin.so");
  EXPECT_EQ(list.losses[1].stack[1].object, "/work/plugin2.so");
}

TEST(ValgrindTextTest, IsWhatMemcheckWrites) {
  MadeUpLeaks made_up;
  EXPECT_EQ(Text(made_up),
            "==42== Memtrace 1.2.3, a heap tracer: leaks by memcheck's rules\n"
            "==42== Command: ./app --fast two words\n"
            "==42== \n"
            "==42== \n"
            "==42== HEAP SUMMARY:\n"
            "==42==     in use at exit: 1,224 bytes in 9 blocks\n"
            "==42==   total heap usage: 115 allocs, 106 frees, 6,920 bytes allocated\n"
            "==42== \n"
            "==42== 16 bytes in 1 blocks are still reachable in loss record 1 of 5\n"
            "==42==    at 0x7F2000000000: malloc (in /usr/lib/libmemtrace.so)\n"
            "==42==    by 0x40106F: Cache::Get() (cache.cc:30)\n"
            "==42==    by 0x40107F: main (main.cc:11)\n"
            "==42== \n"
            "==42== 16 bytes in 1 blocks are possibly lost in loss record 2 of 5\n"
            "==42==    at 0x7F2000000000: malloc (in /usr/lib/libmemtrace.so)\n"
            "==42==    by 0x40106F: Cache::Get() (cache.cc:30)\n"
            "==42==    by 0x40107F: main (main.cc:11)\n"
            "==42== \n"
            "==42== 96 bytes in 3 blocks are indirectly lost in loss record 3 of 5\n"
            "==42==    at 0x7F2000000000: malloc (in /usr/lib/libmemtrace.so)\n"
            "==42==    by 0x400FFF: MakeNode(int) (tree.cc:6)\n"
            "==42==    by 0x40100F: Lose() (tree.cc:8)\n"
            "==42==    by 0x40101F: main (main.cc:9)\n"
            "==42== \n"
            "==42== 192 (96 direct, 96 indirect) bytes in 3 blocks are definitely lost in loss "
            "record 4 of 5\n"
            "==42==    at 0x7F2000000000: malloc (in /usr/lib/libmemtrace.so)\n"
            "==42==    by 0x400FFF: MakeNode(int) (tree.cc:6)\n"
            "==42==    by 0x40100F: Lose() (tree.cc:8)\n"
            "==42==    by 0x40101F: main (main.cc:9)\n"
            "==42== \n"
            "==42== 1,000 bytes in 1 blocks are definitely lost in loss record 5 of 5\n"
            "==42==    at 0x7F000000103F: operator new(unsigned long) (in "
            "/lib/x86_64-linux-gnu/libc.so.6)\n"
            "==42==    by 0x40104F: Inlined<int>::Make() (tree.h:7)\n"
            "==42==    by 0x40104F: Table::Grow(unsigned int) (a<b>&c.cc:17)\n"
            "==42==    by 0x40105F: main (main.cc:10)\n"
            "==42== \n"
            "==42== LEAK SUMMARY:\n"
            "==42==    definitely lost: 1,096 bytes in 4 blocks\n"
            "==42==    indirectly lost: 96 bytes in 3 blocks\n"
            "==42==      possibly lost: 16 bytes in 1 blocks\n"
            "==42==    still reachable: 16 bytes in 1 blocks\n"
            "==42==         suppressed: 0 bytes in 0 blocks\n"
            "==42== \n"
            "==42== ERROR SUMMARY: 3 errors from 3 contexts (suppressed: 0 from 0)\n");
}

TEST(ValgrindTextTest, HeuristicsAreInMemchecksColumns) {
  MadeUpLeaks made_up;
  LeakScan& scan = made_up.analysis.leak_scans[0];
  scan.by_heuristic[static_cast<size_t>(leak::Pointer::kStdString)] = {45, 1};
  scan.by_heuristic[static_cast<size_t>(leak::Pointer::kMultipleInheritance)] = {1032, 2};
  EXPECT_THAT(
      Text(made_up),
      HasSubstr("==42==    still reachable: 16 bytes in 1 blocks\n"
                "==42==                       of which reachable via heuristic:\n"
                "==42==                         stdstring          : 45 bytes in 1 blocks\n"
                "==42==                         multipleinheritance: 1,032 bytes in 2 blocks\n"
                "==42==         suppressed: 0 bytes in 0 blocks\n"));
}

TEST(ValgrindTextTest, QuietIsTheRecordsAlone) {
  MadeUpLeaks made_up;
  ValgrindStyle style;
  style.verbosity = 0;
  style.show = LeakKindSet::Default();
  const std::string text = Text(made_up, style);
  EXPECT_THAT(text, HasSubstr("are possibly lost in loss record 2 of 5"));
  EXPECT_THAT(text, Not(HasSubstr("reachable")));
  EXPECT_THAT(text, Not(HasSubstr("SUMMARY")));
  EXPECT_EQ(text.substr(0, 8), "==42== 1");
}

TEST(ValgrindTextTest, SaysWhatIsNotShown) {
  MadeUpLeaks made_up;
  ValgrindStyle style;
  style.show = LeakKindSet::Default();
  EXPECT_THAT(Text(made_up, style),
              HasSubstr("==42== Reachable blocks (those to which a pointer was found) are not "
                        "shown.\n==42== To see them, rerun with: --leak-check=full "
                        "--show-leak-kinds=all\n"));
  style.leak_check = ValgrindStyle::LeakCheck::kSummary;
  const std::string summary = Text(made_up, style);
  EXPECT_THAT(summary, HasSubstr("Rerun with --leak-check=full to see details of leaked memory"));
  EXPECT_THAT(summary, Not(HasSubstr("loss record")));
  EXPECT_THAT(summary, HasSubstr("ERROR SUMMARY: 0 errors"));
}

TEST(ValgrindTextTest, NothingLeftIsSaidAsMemcheckSaysIt) {
  MadeUp made_up;
  made_up.analysis.leak_scans.emplace_back();
  made_up.analysis.leak_scans.back().state = LeakScan::State::kDone;
  EXPECT_THAT(Text(made_up),
              HasSubstr("==42== All heap blocks were freed -- no leaks are possible\n"));
}

TEST(ValgrindTextTest, NothingLeftOfWhatWasRecordedIsNoAllClear) {
  MadeUp made_up;
  made_up.analysis.leak_scans.emplace_back();
  made_up.analysis.leak_scans.back().state = LeakScan::State::kDone;
  Coverage& coverage = made_up.analysis.coverage;
  coverage.stops = 2;
  coverage.stopped_ns = 5'000'000;
  EXPECT_THAT(Text(made_up), HasSubstr("no leaks are possible"));
  coverage.stopped_allocations = 1000;
  const std::string said =
      "Note: recording stopped by the program 2 times for 5.00 ms: 1,000 allocations then are in "
      "no figure";
  const std::string text = Text(made_up);
  EXPECT_THAT(text, Not(HasSubstr("no leaks are possible")));
  EXPECT_THAT(text, HasSubstr("definitely lost: 0 bytes in 0 blocks"));
  EXPECT_THAT(text, HasSubstr("==42== " + said + "\n"));
  EXPECT_THAT(Xml(made_up), HasSubstr("  <line>" + said + "</line>\n"));
  coverage = {};
  coverage.recording_end_ns = 1'000'000;
  EXPECT_THAT(Text(made_up), Not(HasSubstr("no leaks are possible")));
}

// Of the rest of the blocks any may be lost.
TEST(ValgrindTextTest, NothingLeftOfWhatWasAskedForIsNoAllClear) {
  const auto nothing = [](const std::function<void(Analysis*)>& select, const std::string& match) {
    MadeUp made_up;
    made_up.analysis.leak_scans.emplace_back();
    made_up.analysis.leak_scans.back().state = LeakScan::State::kDone;
    select(&made_up.analysis);
    const std::string text = Text(made_up, {}, match);
    EXPECT_THAT(text, Not(HasSubstr("no leaks are possible")));
    EXPECT_THAT(text, HasSubstr("definitely lost: 0 bytes in 0 blocks"));
    return text + Xml(made_up, {}, match);
  };
  const auto says = [](const std::string& what) {
    return testing::AllOf(HasSubstr("==42== Note: Only " + what + "\n"),
                          HasSubstr("  <line>Note: Only " + what + "</line>\n"));
  };
  EXPECT_THAT(nothing([](Analysis* a) { a->selection.sites = true; }, "nosuch"), says("sites that match /nosuch/: 0"));
  EXPECT_THAT(nothing([](Analysis* a) { a->only_thread = "worker"; }, ""),
              says("blocks that threads called worker allocated"));
  EXPECT_THAT(nothing([](Analysis* a) { a->selection.sizes = {4096, UINT64_MAX}; }, ""),
              says("blocks of 4.00 KiB and more"));
  EXPECT_THAT(nothing([](Analysis* a) { a->range.from_ns = 1'000'000'000; }, ""),
              says("blocks allocated from 1.00 s to 2.00 s"));
}

TEST(ValgrindTextTest, NoScanIsNoReport) {
  MadeUpLeaks made_up;
  made_up.analysis.leak_scans.clear();
  const ReportView view = made_up.View();
  const LossList list = CollectLosses(view, {});
  ASSERT_EQ(list.losses.size(), 3u);
  EXPECT_EQ(list.losses[0].kind, LeakKind::kUnfreed);
  words::StringSink out;
  const absl::Status text = RenderValgrindText(view, list, {}, out);
  EXPECT_FALSE(text.ok());
  EXPECT_THAT(std::string(text.message()), HasSubstr("was not scanned"));
  EXPECT_FALSE(RenderValgrindXml(view, list, {}, out).ok());
  EXPECT_EQ(out.text(), "");

  made_up.analysis.leak_scans.emplace_back();
  made_up.analysis.leak_scans.back().state = LeakScan::State::kFailed;
  made_up.analysis.leak_scans.back().failure = "fork: Cannot allocate memory";
  EXPECT_THAT(std::string(RenderValgrindXml(view, list, {}, out).message()),
              HasSubstr("fork: Cannot allocate memory"));
}

// It has what is known, and none of its readers takes it for a program without leaks.
TEST(ValgrindXmlTest, OfAProgramThatASignalEndedHasTheErrorsAndTheSignal) {
  MadeUpLeaks made_up;
  made_up.analysis.leak_scans.clear();
  made_up.analysis.process.end = ProcessInfo::End::kSignal;
  made_up.analysis.process.end_signal = SIGABRT;
  ValgrindStyle style;
  FreeError error;
  error.times = 2;
  error.stack = {LossFrame{.function = "free"}};
  error.block = "Address 0x4a44040 is 0 bytes inside a block of size 8 free'd";
  style.free_errors = {error};
  words::StringSink out;
  RenderValgrindXmlWithoutLeaks(made_up.View(), style, out);
  const std::string& xml = out.text();
  EXPECT_THAT(xml, HasSubstr("  <line>Note: the leaks are not known: its memory was not scanned, "
                             "so nothing is known of what is lost: the program was killed by "
                             "SIGABRT before it could be scanned</line>\n"));
  EXPECT_THAT(xml, HasSubstr("<kind>InvalidFree</kind>"));
  EXPECT_THAT(xml, HasSubstr("<fatal_signal>\n  <tid>1</tid>\n  <signo>6</signo>\n"
                             "  <signame>SIGABRT</signame>\n</fatal_signal>\n"));
  EXPECT_THAT(xml, HasSubstr("    <count>2</count>\n    <unique>0x0</unique>\n"));
  EXPECT_THAT(xml, Not(HasSubstr("FINISHED")));
  const auto run = valgrind::ParseValgrindXml(xml);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->other_errors, 1u);
  EXPECT_EQ(run->damage, "the program had not ended when it was written");
  EXPECT_THAT(Xml(made_up, {.leak_check = ValgrindStyle::LeakCheck::kNo}),
              HasSubstr("<signame>SIGABRT</signame>"));
}

TEST(ValgrindXmlTest, IsNotWrittenWhereNothingIsKnown) {
  MadeUpLeaks made_up;
  made_up.analysis.leak_scans.clear();
  ValgrindStyle style;
  words::StringSink out;
  RenderValgrindXmlWithoutLeaks(made_up.View(), style, out);
  style.free_errors.resize(1);
  style.free_errors[0].suppressed = true;
  RenderValgrindXmlWithoutLeaks(made_up.View(), style, out);
  EXPECT_EQ(out.text(), "");
  style.free_errors[0].suppressed = false;
  RenderValgrindXmlWithoutLeaks(made_up.View(), style, out);
  EXPECT_THAT(out.text(), HasSubstr("<kind>InvalidFree</kind>"));
  EXPECT_THAT(out.text(), Not(HasSubstr("fatal_signal")));
}

TEST(ValgrindXmlTest, SaysThatTheProgramWasReplaced) {
  MadeUpLeaks made_up;
  made_up.analysis.leak_scans.clear();
  made_up.analysis.process.end = ProcessInfo::End::kExec;
  words::StringSink out;
  RenderValgrindXmlWithoutLeaks(made_up.View(), {.why_unknown = "it became <b>"}, out);
  EXPECT_THAT(out.text(),
              HasSubstr("  <line>Note: the leaks are not known: it became &lt;b&gt;</line>\n"));
  EXPECT_THAT(out.text(), Not(HasSubstr("FINISHED")));
  EXPECT_TRUE(valgrind::ParseValgrindXml(out.text()).ok());
}

TEST(ValgrindXmlTest, HasTheElementsOfProtocolFourInTheirOrder) {
  MadeUpLeaks made_up;
  const std::string xml = Xml(made_up);
  size_t at = 0;
  for (const char* part :
       {"<?xml version=\"1.0\"?>", "<valgrindoutput>", "<protocolversion>4</protocolversion>",
        "<protocoltool>memcheck</protocoltool>", "<preamble>", "</preamble>", "<pid>42</pid>",
        "<ppid>0</ppid>", "<tool>memcheck</tool>", "<args>", "<vargv>", "<exe>memtrace</exe>",
        "<argv>", "<exe>./app</exe>", "<arg>two words</arg>", "<state>RUNNING</state>",
        "<time>00:00:00:00.000 </time>", "<state>FINISHED</state>", "<time>00:00:00:02.000 </time>",
        "<error>", "<unique>0x0</unique>", "<tid>1</tid>", "<kind>Leak_StillReachable</kind>",
        "<xwhat>", "<text>16 bytes in 1 blocks are still reachable in loss record 1 of 5</text>",
        "<leakedbytes>16</leakedbytes>", "<leakedblocks>1</leakedblocks>", "<stack>", "<frame>",
        "<ip>0x7F2000000000</ip>", "<obj>/usr/lib/libmemtrace.so</obj>", "<fn>malloc</fn>",
        "<fn>Cache::Get()</fn>", "<dir>/src</dir>", "<file>cache.cc</file>", "<line>30</line>",
        "</stack>", "</error>", "<leakedbytes>192</leakedbytes>", "<leakedblocks>3</leakedblocks>",
        "<file>a&lt;b&gt;&amp;c.cc</file>", "<errorcounts>", "</errorcounts>", "<suppcounts>",
        "</suppcounts>", "</valgrindoutput>"}) {
    const size_t found = xml.find(part, at);
    ASSERT_NE(found, xml.npos) << part << " after " << xml.substr(0, at);
    at = found;
  }
}

TEST(ValgrindXmlTest, HasTheSuppressionsThatWereAskedFor) {
  MadeUpLeaks made_up;
  const ReportView view = made_up.View();
  ValgrindStyle style;
  style.show = LeakKindSet::OfScans();
  style.suppression_for = [](const Loss&) {
    return "{\n   <a name>\n   Memcheck:Leak\n   match-leak-kinds: definite\n   fun:malloc\n   obj:/lib/a]]>b.so\n   ...\n}\n";
  };
  words::StringSink out;
  ASSERT_TRUE(RenderValgrindXml(view, CollectLosses(view, {}), style, out).ok());
  const std::string& xml = out.text();
  EXPECT_THAT(xml, testing::HasSubstr("  <suppression>\n    <sname>&lt;a name&gt;</sname>\n    <skind>Memcheck:Leak</skind>\n"
                                      "    <skaux>match-leak-kinds: definite</skaux>\n"
                                      "    <sframe> <fun>malloc</fun> </sframe>\n"
                                      "    <sframe> <obj>/lib/a]]&gt;b.so</obj> </sframe>\n"));
  const auto run = valgrind::ParseValgrindXml(xml);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->damage, "");
  EXPECT_EQ(run->losses.size(), 5u);
}

TEST(ValgrindXmlTest, NamesFromATraceCannotBreakIt) {
  MadeUpLeaks made_up;
  made_up.analysis.process.command = {"</exe>\x01<error>", std::string("\xff\x1b[31m")};
  const auto run = valgrind::ParseValgrindXml(Xml(made_up));
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->damage, "");
  EXPECT_EQ(run->losses.size(), 5u);
  EXPECT_EQ(run->command[0], "</exe>\\x01<error>");
}

TEST(ValgrindXmlTest, IsReadBackAsTheSameLeaks) {
  MadeUpLeaks made_up;
  const auto run = valgrind::ParseValgrindXml(Xml(made_up));
  ASSERT_TRUE(run.ok()) << run.status();
  const ReportView view = made_up.View();
  LossList list = CollectLosses(view, {});
  for (Loss& loss : list.losses) {
    for (LossFrame& frame : loss.stack) {  // what is not in the XML
      frame.inlined = false;
      frame.offset = std::nullopt;
    }
  }
  ASSERT_EQ(run->losses.size(), list.losses.size());
  for (size_t i = 0; i < list.losses.size(); ++i) {
    EXPECT_EQ(run->losses[i].kind, list.losses[i].kind);
    EXPECT_EQ(run->losses[i].bytes, list.losses[i].bytes);
    EXPECT_EQ(run->losses[i].indirect_bytes, list.losses[i].indirect_bytes);
    EXPECT_EQ(run->losses[i].blocks, list.losses[i].blocks);
    EXPECT_EQ(run->losses[i].stack, list.losses[i].stack);
  }
  const valgrind::Comparison comparison = valgrind::Compare(made_up.analysis, list, *run);
  EXPECT_EQ(comparison.differences(), 0u);
  EXPECT_EQ(comparison.counts[0], 3u);  // stacks
}

// A program from Debian that reads Valgrind's XML: Test::Valgrind's own parser and reports.
constexpr char kPerl[] = R"(
use strict; use warnings;
use Test::Valgrind::Parser::XML::Twig;
use Test::Valgrind::Tool::memcheck;
package Session; my @reports;
sub report_class { 'Test::Valgrind::Tool::memcheck::Report' }
sub report { push @reports, $_[1] }
sub tool { bless {}, 'Tool' }
package main;
my $parser = Test::Valgrind::Parser::XML::Twig->new;
my $session = bless {}, 'Session';
$parser->_session($session);
open my $file, '<', $ARGV[0] or die;
$parser->parse($session, $file);
for my $report (@reports) {
  my $data = $report->data;
  printf "%s %d %d %d %s\n", $report->kind, $data->{leakedbytes}, $data->{leakedblocks},
    scalar @{$data->{stack}}, $data->{stack}[1][2];
}
)";

TEST(ValgrindXmlTest, PerlsTestValgrindReadsIt) {
  if (std::system("perl -MTest::Valgrind::Parser::XML::Twig -e 1 2>/dev/null") != 0) {
    GTEST_SKIP() << "libtest-valgrind-perl is not installed";
  }
  MadeUpLeaks made_up;
  const std::filesystem::path directory =
      std::filesystem::path(testing::TempDir()) / ("valgrind_xml_" + std::to_string(getpid()));
  std::filesystem::create_directories(directory);
  std::ofstream(directory / "app.xml") << Xml(made_up);
  std::ofstream(directory / "read.pl") << kPerl;
  const std::string in = directory.string();
  const int status = std::system(
      ("perl " + in + "/read.pl " + in + "/app.xml > " + in + "/out 2> " + in + "/err").c_str());
  std::ostringstream out, err;
  out << std::ifstream(directory / "out").rdbuf();
  err << std::ifstream(directory / "err").rdbuf();
  std::filesystem::remove_all(directory);
  EXPECT_EQ(status, 0) << err.str();
  EXPECT_EQ(out.str(),
            "Leak_StillReachable 16 1 3 Cache::Get()\n"
            "Leak_PossiblyLost 16 1 3 Cache::Get()\n"
            "Leak_IndirectlyLost 96 3 4 MakeNode(int)\n"
            "Leak_DefinitelyLost 192 3 4 MakeNode(int)\n"
            "Leak_DefinitelyLost 1000 1 4 Inlined<int>::Make()\n");
}

}  // namespace
}  // namespace memtrace::report::render
