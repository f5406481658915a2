// memtrace import ftrace: lines in every shape, the trace that comes of them, what is missing.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "format/imported.h"
#include "report/analysis/analyzer.h"
#include "report/analysis/coverage.h"
#include "report/import/ftrace_import.h"
#include "report/import/ftrace_line.h"
#include "report/import/kernel_symbols.h"
#include "report/names/site_symbols.h"
#include "report/render/formats.h"
#include "report/render/text_report.h"
#include "report/render/view.h"
#include "tests/temp_dir.h"

namespace memtrace::report::import {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::HasSubstr;
using Kind = FtraceLine::Kind;

TEST(FtraceLineTest, ReadsLinesOfTheTraceFile) {
  const FtraceLine line = ParseFtraceLine(
      "     kworker/0:1-12      [002] d..1.  1234.567890: kmalloc: "
      "call_site=alloc_pipe_info+0x4a/0x210 ptr=00000000abcdef12 bytes_req=100 bytes_alloc=128 "
      "gfp_flags=GFP_KERNEL|__GFP_ZERO node=-1 accounted=false");
  EXPECT_EQ(line.kind, Kind::kAlloc) << line.problem;
  EXPECT_EQ(line.comm, "kworker/0:1");
  EXPECT_EQ(line.tid, 12u);
  EXPECT_EQ(line.time_ns, 1'234'567'890'000u);
  EXPECT_EQ(line.function, format::kKmalloc);
  EXPECT_EQ(line.symbol, "alloc_pipe_info");
  EXPECT_EQ(line.symbol_module, "");
  EXPECT_EQ(line.call_site, 0x4au);
  EXPECT_EQ(line.address, 0xabcdef12u);
  EXPECT_EQ(line.requested_bytes, 100u);
  EXPECT_EQ(line.allocated_bytes, 128u);
}

TEST(FtraceLineTest, ReadsLinesOfTraceCmd) {
  const FtraceLine line = ParseFtraceLine(
      "            bash-1234  [001]  5.000001: kmem_cache_alloc_node: (__alloc_skb+0x8f) "
      "call_site=ffffffff8170f2cf ptr=0xffff888003a4c000 bytes_req=224 bytes_alloc=256 "
      "gfp_flags=GFP_KERNEL node=0");
  EXPECT_EQ(line.kind, Kind::kAlloc) << line.problem;
  EXPECT_EQ(line.function, format::kKmemCacheAllocNode);
  EXPECT_EQ(line.call_site, 0xffffffff8170f2cfu);
  EXPECT_EQ(line.symbol, "");
  EXPECT_EQ(line.caller, "__alloc_skb");
  EXPECT_EQ(line.caller_offset, 0x8fu);
  EXPECT_EQ(line.address, 0xffff888003a4c000u);
  EXPECT_EQ(line.time_ns, 5'000'001'000u);
}

TEST(FtraceLineTest, ReadsFreesModulesProcessesAndNanoseconds) {
  FtraceLine line = ParseFtraceLine(
      "a-b c-7 (   1234) [000] .... 12.123456789: kfree: call_site=f+0x1/0x2 [ext4] ptr=00000000ab");
  EXPECT_EQ(line.kind, Kind::kFree) << line.problem;
  EXPECT_EQ(line.comm, "a-b c");
  EXPECT_EQ(line.tid, 7u);
  EXPECT_EQ(line.time_ns, 12'123'456'789u);
  line = ParseFtraceLine("<...>-7 (-----) [000] .... 12.5: kmalloc_node: call_site=f+0x1/0x2 [ext4] "
                         "ptr=0xab bytes_req=1 bytes_alloc=8 gfp_flags=0 node=1");
  EXPECT_EQ(line.kind, Kind::kAlloc) << line.problem;
  EXPECT_EQ(line.symbol_module, "ext4");
  EXPECT_EQ(line.function, format::kKmallocNode);
  line = ParseFtraceLine("x-7 [000] 1.0: kmem_cache_free: call_site=f+0x1/0x2 ptr=0xab name=dentry");
  EXPECT_EQ(line.kind, Kind::kFree) << line.problem;
  line = ParseFtraceLine("x-7 [000] 1.0: kmalloc: call_site=0xff ptr=(null) bytes_req=9 bytes_alloc=0 ");
  EXPECT_EQ(line.kind, Kind::kAlloc);
  EXPECT_EQ(line.address, 0u);
}

TEST(FtraceLineTest, KnowsWhatSaysThatEventsAreMissing) {
  FtraceLine line = ParseFtraceLine("CPU:3 [LOST 123 EVENTS]");
  EXPECT_EQ(line.kind, Kind::kLost);
  EXPECT_EQ(line.cpu, 3u);
  EXPECT_EQ(line.lost, 123u);
  line = ParseFtraceLine("CPU:0 [77 EVENTS DROPPED]");
  EXPECT_EQ(line.kind, Kind::kLost);
  EXPECT_EQ(line.lost, 77u);
  line = ParseFtraceLine("CPU:0 [EVENTS DROPPED]");
  EXPECT_EQ(line.kind, Kind::kLost);
  EXPECT_EQ(line.lost, 0u);
  line = ParseFtraceLine("# entries-in-buffer/entries-written: 205/305   #P:4");
  EXPECT_EQ(line.kind, Kind::kWritten);
  EXPECT_EQ(line.lost, 100u);
}

TEST(FtraceLineTest, PassesOverWhatIsNoEvent) {
  for (const char* text : {"", "   ", "# tracer: nop", "#", "cpus=4", "version = 6", "CPU 2 is empty",
                           "#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION"}) {
    EXPECT_EQ(ParseFtraceLine(text).kind, Kind::kNothing) << text;
  }
  EXPECT_EQ(ParseFtraceLine("x-7 [000] 1.0: sched_switch: prev_comm=kmalloc: ptr=0x1").kind,
            Kind::kOtherEvent);
}

TEST(FtraceLineTest, WhatIsBadIsBad) {
  for (const char* text :
       {"hello", "x-7", "x-7 [000]", "x-7 [000] 1.0", "x-7 [000] 1.0: kmalloc:",
        "x-7 [000] 1.0: kmalloc: call_site=f ptr=0x1 bytes_req=1",
        "x-7 [000] 1.0: kmalloc: call_site=f ptr=0x1 bytes_req=-1 bytes_alloc=8",
        "x-7 [000] 1.0: kmalloc: call_site= ptr=0x1 bytes_req=1 bytes_alloc=8",
        "x-7 [000] 1.0: kmalloc: call_site=f+zz ptr=0x1 bytes_req=1 bytes_alloc=8",
        "x-7 [000] 1.0: kfree: call_site=f+0x1", "x-7 [000] 1.0: kfree: call_site=f ptr=zz",
        "x-7 [000] 1.0: kfree: call_site=f ptr=0x11112222333344445",
        "x-99999999999 [000] 1.0: kfree: ptr=0x1", "x-7 [000] 99999999999.0: kfree: ptr=0x1",
        "x-7 [000] 1.1234567890: kfree: ptr=0x1", "CPU:x [LOST 1 EVENTS]"}) {
    const FtraceLine line = ParseFtraceLine(text);
    EXPECT_EQ(line.kind, Kind::kBad) << text;
    EXPECT_NE(std::string(line.problem), "") << text;
  }
}

TEST(FtraceLineTest, ATimeThatIsNotInSecondsIsSaidToBe) {
  for (const std::string event : {"kmalloc: call_site=f+0x1/0x2 ptr=0x1 bytes_req=8 bytes_alloc=8", "kfree: ptr=0x1",
                                  "kmem_cache_free: ptr=0x1 name=dentry"}) {
    const FtraceLine line = ParseFtraceLine("x-7     [000] ..... 123456789: " + event);
    EXPECT_EQ(line.kind, Kind::kBad);
    EXPECT_THAT(std::string(line.problem), HasSubstr("record with another trace_clock"));
  }
}

class ImportTest : public ::testing::Test {
 protected:

  std::string File(const std::string& name, const std::string& text) {
    std::ofstream(directory_ / name) << text;
    return directory_ / name;
  }
  std::string Path(const std::string& name) { return directory_ / name; }

  void Import(const std::string& log, const std::string& map = "") {
    FtraceImportOptions options{File("log.txt", log), {}, Path("log.mtr")};
    if (!map.empty()) options.system_maps = {File("System.map", map)};
    const auto result = ImportFtrace(options);
    ASSERT_TRUE(result.ok()) << result.status();
    result_ = *result;
    AnalyzeOptions analyze;
    analyze.keep_live_blocks = true;
    auto trace = AnalyzeTrace(Path("log.mtr"), analyze);
    ASSERT_TRUE(trace.ok()) << trace.status();
    trace_ = *std::move(trace);
    symbols_ = std::make_unique<SiteSymbols>(
        trace_.analysis, *trace_.stacks,
        [](const symbolizer::Module& module, std::span<const symbolizer::Address> asked) {
          symbolizer::ModuleResult result;
          result.state = symbolizer::ModuleState::kNotFound;
          result.frames.resize(asked.size());
          EXPECT_EQ(module.path, "[kernel]");  // a module with names needs no symbolizer
          return result;
        });
  }

  // "kmalloc alloc_pipe_info [kernel]" -> the site.
  std::map<std::string, Site> Sites() {
    std::map<std::string, Site> sites;
    const auto view = render::ReportView::Create(trace_.analysis, *symbols_, "");
    for (const Site& site : trace_.analysis.sites) {
      std::string key(render::FunctionName(site.function));
      for (const Frame* frame : view->Frames(site.stack)) {
        absl::StrAppend(&key, " ", render::FrameName(*frame), " ", frame->module);
      }
      sites[key] = site;
    }
    return sites;
  }

  TempDir directory_;
  FtraceImportResult result_;
  AnalyzedTrace trace_;
  std::unique_ptr<SiteSymbols> symbols_;
};

constexpr char kTraceFile[] =
    "# tracer: nop\n"
    "#\n"
    "# entries-in-buffer/entries-written: 8/8   #P:2\n"
    "#\n"
    "#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION\n"
    "            bash-100     [000] .....   100.000000: kmalloc: call_site=alloc_pipe_info+0x4a/0x210 ptr=000000001000 bytes_req=100 bytes_alloc=128 gfp_flags=GFP_KERNEL\n"
    "            bash-100     [000] .....   100.000001: kmem_cache_alloc: call_site=ext4_alloc_inode+0x1b/0x150 [ext4] ptr=000000002000 bytes_req=1000 bytes_alloc=1024 gfp_flags=GFP_KERNEL\n"
    "   kworker/u4:0-7        [001] d.s1.   100.000001: kfree: call_site=free_pipe_info+0x5/0x20 ptr=000000001000\n"
    "   kworker/u4:0-7        [001] .....   100.500000: kmalloc: call_site=alloc_pipe_info+0x4a/0x210 ptr=000000001000 bytes_req=60 bytes_alloc=64 gfp_flags=GFP_KERNEL\n"
    "            bash-100     [000] .....   101.000000: sched_switch: x\n"
    "            bash-100     [000] .....   101.000000: kmalloc: call_site=zero+0x1/0x2 ptr=0000000000000010 bytes_req=0 bytes_alloc=0 gfp_flags=GFP_KERNEL\n"
    "            bash-100     [000] .....   101.000000: kmalloc: call_site=fails+0x1/0x2 ptr=(null) bytes_req=8192 bytes_alloc=0 gfp_flags=GFP_KERNEL\n"
    "            bash-100     [000] .....   102.000000: kfree: call_site=older+0x1/0x2 ptr=000000009000\n";

// That is no news of the page faults of what ran.
TEST_F(ImportTest, TheTextSaysThatFaultsAreNotInTheLog) {
  Import(kTraceFile);
  const auto view = render::ReportView::Create(trace_.analysis, *symbols_, "");
  render::TextOptions options;
  options.sections = {render::TextSection::kFaults};
  EXPECT_THAT(render::RenderText(*view, options), HasSubstr("PAGE FAULTS  not in the log\n"));
}

// A log has no start by the wall clock, no end and no faults; but the waste.
TEST_F(ImportTest, WhatALogDoesNotSayIsNull) {
  Import(kTraceFile);
  const auto view = render::ReportView::Create(trace_.analysis, *symbols_, "");
  words::StringSink sink;
  render::RenderJson(*view, 10, sink);
  const auto report = nlohmann::json::parse(sink.text());
  for (const char* key : {"start_time", "end", "exit_status"}) {
    EXPECT_TRUE(report.at("process").at(key).is_null()) << key;
  }
  for (const char* key : {"source", "minor", "major"}) {
    EXPECT_TRUE(report.at("faults").at(key).is_null()) << key;
  }
  ASSERT_FALSE(report.at("timeline").at("points").empty());
  for (const auto& point : report.at("timeline").at("points")) {
    for (const char* key : {"minor_faults", "major_faults"}) {
      EXPECT_TRUE(point.at(key).is_null()) << key;
    }
  }
  EXPECT_EQ(report.at("totals").at("wasted_bytes"), 28 + 24 + 4);
}

TEST_F(ImportTest, ALogBecomesTheModelOfAProgram) {
  Import(kTraceFile);
  const Totals& totals = trace_.analysis.totals;
  EXPECT_EQ(totals.allocations, 3u);
  EXPECT_EQ(totals.frees, 1u);
  EXPECT_EQ(totals.bytes_allocated, 1160u);
  EXPECT_EQ(totals.live_bytes, 1060u);
  EXPECT_EQ(totals.live_blocks, 2u);
  EXPECT_EQ(totals.peak_live_bytes, 1100u);
  EXPECT_EQ(totals.wasted_bytes, 28u + 24 + 4);
  EXPECT_EQ(totals.failed_allocations, 1u);
  EXPECT_EQ(trace_.analysis.coverage.unknown_frees, 1u);
  EXPECT_EQ(trace_.analysis.coverage.unordered_events, 0u);
  EXPECT_EQ(trace_.analysis.coverage.dropped_events, 0u);
  EXPECT_FALSE(trace_.analysis.coverage.truncated);
  EXPECT_EQ(trace_.analysis.process.duration_ns, 2'000'000'000u);
  EXPECT_EQ(result_.other_events, 1u);
  EXPECT_EQ(result_.bad_lines, 0u);
  EXPECT_EQ(result_.allocations, totals.allocations);
  EXPECT_EQ(result_.failed, totals.failed_allocations);
  EXPECT_EQ(result_.frees, totals.frees + trace_.analysis.coverage.unknown_frees);
  EXPECT_EQ(result_.no_blocks, 1u);

  const std::map<std::string, Site> sites = Sites();
  ASSERT_EQ(sites.size(), 2u);
  const Site& pipe = sites.at("kmalloc alloc_pipe_info [kernel]");
  EXPECT_EQ(pipe.allocations, 2u);
  EXPECT_EQ(pipe.frees, 1u);
  EXPECT_EQ(pipe.freed_by_other_thread, 1u);
  EXPECT_EQ(pipe.live_bytes, 60u);
  EXPECT_EQ(pipe.wasted_bytes, 32u);
  EXPECT_EQ(sites.at("kmem_cache_alloc ext4_alloc_inode [ext4]").live_wasted_bytes, 24u);

  ASSERT_EQ(trace_.analysis.threads.size(), 2u);
  EXPECT_EQ(trace_.analysis.threads[0].name, "bash");
  EXPECT_EQ(trace_.analysis.threads[0].tid, 100u);
  EXPECT_EQ(trace_.analysis.threads[1].name, "kworker/u4:0");
}

TEST_F(ImportTest, AddressesGetNamesFromASystemMap) {
  const std::string map =
      "ffffffff81000000 T _stext\n"
      "ffffffff81001000 T first\n"
      "ffffffff81001100 t second\n"
      "ffffffff81002000 T _etext\n"
      "ffffffff82000000 D some_data\n"
      "ffffffffc0001000 t in_module\t[ext4]\n";
  const auto event = [](const char* call_site, int i) {
    return absl::StrFormat("x-1  [000]  1.%06d: kmalloc: call_site=%s ptr=0xffff88800000%04x "
                           "bytes_req=%d bytes_alloc=64\n",
                           i, call_site, 0x1000 + 16 * i, i);
  };
  Import(event("ffffffff81001010", 1) + event("0xffffffff810010ff", 2) +
             event("ffffffff81001100", 4) + event("ffffffff82000000", 8) +
             event("ffffffffc0001020", 16) + event("second+0x10/0x80", 32),
         map);
  const std::map<std::string, Site> sites = Sites();
  std::map<std::string, uint64_t> bytes;
  for (const auto& [name, site] : sites) bytes[name] += site.bytes_allocated;
  EXPECT_EQ(trace_.analysis.totals.bytes_allocated, 63u);
  EXPECT_EQ(bytes.at("kmalloc in_module [ext4]"), 16u);
  EXPECT_EQ(bytes.at("kmalloc [kernel]+0xffffffff82000000 [kernel]"), 8u);
  EXPECT_EQ(result_.unnamed_call_sites, 1u);
  EXPECT_THAT(CoverageNotes(trace_.analysis), Contains(HasSubstr("KASLR")));
  uint64_t first = 0, second = 0;
  for (const Site& site : trace_.analysis.sites) {
    const auto view = render::ReportView::Create(trace_.analysis, *symbols_, "");
    const std::string name = view->CallerText(site.stack);
    if (absl::StartsWith(name, "first")) first += site.bytes_allocated;
    if (absl::StartsWith(name, "second")) second += site.bytes_allocated;
  }
  EXPECT_EQ(first, 3u);
  EXPECT_EQ(second, 36u);
}

// What trace-cmd knew of the address; a map that knows it comes first.
TEST_F(ImportTest, AddressesGetTheNamesThatTraceCmdFound) {
  const std::string log =
      "x-1  [000]  1.000001: kmalloc: (do_work+0x1c) call_site=ffffffff81001010 ptr=0xffff888000001000 "
      "bytes_req=1 bytes_alloc=64\n"
      "x-1  [000]  1.000002: kmalloc: (do_more) call_site=ffffffff81005010 ptr=0xffff888000002000 "
      "bytes_req=2 bytes_alloc=64\n";
  Import(log);
  EXPECT_EQ(Sites().count("kmalloc do_work [kernel]"), 1u);
  EXPECT_EQ(Sites().count("kmalloc do_more [kernel]"), 1u);
  EXPECT_EQ(result_.unnamed_call_sites, 0u);
  Import(log, "ffffffff81000000 T _stext\r\nffffffff81001000 T first\r\nffffffff81002000 T _etext\r\n");
  EXPECT_EQ(Sites().count("kmalloc first [kernel]"), 1u);
  EXPECT_EQ(Sites().count("kmalloc do_more [kernel]"), 1u);
}

TEST_F(ImportTest, LossesAreCountedAndSaid) {
  const std::string event =
      "x-1  [000]  7.250000: kfree: call_site=f+0x1/0x2 ptr=0x1000\n";
  Import("# entries-in-buffer/entries-written: 1/6  #P:1\n" + event +
         "CPU:2 [LOST 30 EVENTS]\n" + event + "CPU:1 [EVENTS DROPPED]\n" + event);
  EXPECT_EQ(result_.lost_events, 31u);
  EXPECT_EQ(trace_.analysis.coverage.dropped_events, 31u);
  EXPECT_THAT(CoverageNotes(trace_.analysis),
              Contains("The log lost 30 events of processor 2 after 7.250000 s of its clock."));
  EXPECT_THAT(CoverageNotes(trace_.analysis),
              Contains(HasSubstr("it does not say how many, of processor 1")));
  EXPECT_THAT(CoverageNotes(trace_.analysis),
              Contains("The log has 5 events less than were written: its buffer was full."));
}

// The notes of an import are no losses: those are counted.
TEST_F(ImportTest, AllOfALogIsRecordedUnlessItLacksSomething) {
  const std::string event = "x-1  [000]  7.250000: kfree: call_site=f+0x1/0x2 ptr=0x1000\n";
  const std::string unnamed =
      "x-1  [000]  7.3: kmalloc: call_site=ffffffff81000000 ptr=0x2000 bytes_req=8 bytes_alloc=8\n";
  for (const std::string& whole : {std::string(kTraceFile), event + unnamed}) {
    Import(whole);
    EXPECT_FALSE(trace_.analysis.coverage.notes.empty());
    EXPECT_TRUE(AllRecorded(trace_.analysis.coverage)) << whole;
  }
  for (const std::string lacks : {"# entries-in-buffer/entries-written: 1/6  #P:1\n", "CPU:2 [LOST 30 EVENTS]\n",
                                  "CPU:1 [EVENTS DROPPED]\n", "what is this\n"}) {
    Import(lacks + event);
    EXPECT_FALSE(AllRecorded(trace_.analysis.coverage)) << lacks;
  }
}

TEST_F(ImportTest, AsManyLossesAsALogLikesAreSome) {
  const std::string event = "x-1  [000]  7.250000: kfree: call_site=f+0x1/0x2 ptr=0x1000\n";
  for (const std::string many : {"9223372036854775808", "18446744073709551615"}) {
    const std::string loss = "CPU:0 [LOST " + many + " EVENTS]\n";
    Import(event + loss + loss + event);
    EXPECT_EQ(trace_.analysis.coverage.dropped_events, uint64_t{INT64_MAX});
    EXPECT_FALSE(result_.lost_more);
    const std::string written = "# entries-in-buffer/entries-written: 0/" + many + "  #P:1\n";
    Import(written + written + event);
    EXPECT_EQ(trace_.analysis.coverage.dropped_events, uint64_t{INT64_MAX});
  }
  Import(event + "CPU:1 [EVENTS DROPPED]\n" + event);
  EXPECT_TRUE(result_.lost_more);
}

// A second free within a microsecond of another thread's, and an address that is given out again before it is freed.
TEST_F(ImportTest, TheOrderOfTheLinesIsBelieved) {
  Import("x-1  [000]  1.000000: kmalloc: call_site=f+0x1/0x2 ptr=0x1000 bytes_req=8 bytes_alloc=8\n"
         "y-3  [001]  1.000000: kfree: call_site=g+0x1/0x2 ptr=0x1000\n"
         "x-1  [000]  1.000000: kfree: call_site=g+0x1/0x2 ptr=0x1000\n"
         "z-2  [000]  1.000001: kmalloc: call_site=f+0x1/0x2 ptr=0x1000 bytes_req=8 bytes_alloc=8\n"
         "x-1  [000]  1.000001: kmalloc: call_site=f+0x1/0x2 ptr=0x1000 bytes_req=8 bytes_alloc=8\n"
         "x-1  [000]  1.000002: kfree: call_site=g+0x1/0x2 ptr=0x1000\n");
  EXPECT_EQ(trace_.analysis.coverage.unordered_events, 0u);
  EXPECT_EQ(trace_.analysis.coverage.unknown_frees, 1u);
  EXPECT_EQ(trace_.analysis.coverage.unseen_frees, 1u);
}

TEST_F(ImportTest, BadLinesAreCountedAndTheFirstIsNamed) {
  Import("x-1  [000]  1.0: kfree: call_site=f+0x1/0x2 ptr=0x1000\n"
         "\n"
         "what is \x1b[31mthis\n"
         "x-1  [000]  1.0: kmalloc: call_site=f+0x1/0x2\n");
  EXPECT_EQ(result_.bad_lines, 2u);
  EXPECT_EQ(result_.first_bad, "line 3: it is no event of ftrace's: what is \\x1b[31mthis");
  EXPECT_THAT(CoverageNotes(trace_.analysis),
              Contains(HasSubstr("2 lines of the log were not understood, the first: line 3: ")));
}

TEST_F(ImportTest, WhatCannotBeIsNoEvent) {
  const std::string good =
      "x-1  [000]  1.0: kmalloc: call_site=f+0x1/0x2 ptr=0x1000 bytes_req=8 bytes_alloc=8\n";
  for (const std::string bytes : {"bytes_req=18446744073709551615 bytes_alloc=8", "bytes_req=16 bytes_alloc=8",
                                  "bytes_req=8 bytes_alloc=281474976710656"}) {
    Import(good + "x-1  [000]  1.0: kmalloc: call_site=f+0x1/0x2 ptr=0x2000 " + bytes + "\n");
    EXPECT_EQ(result_.allocations, 1u) << bytes;
    EXPECT_EQ(result_.bad_lines, 1u) << bytes;
    EXPECT_TRUE(trace_.analysis.coverage.events_missing);
  }
  Import(good + "x-1  [000]  1.0: kmalloc: call_site=f+0x1/0x2 ptr=(null) bytes_req=18446744073709551615 bytes_alloc=0\n");
  EXPECT_EQ(result_.failed, 1u);
  EXPECT_EQ(result_.bad_lines, 0u);
  // Cut within a number, perhaps.
  Import(good + good.substr(0, good.size() - 1));
  EXPECT_EQ(result_.allocations, 1u);
  EXPECT_THAT(result_.first_bad, HasSubstr("the log ends in it"));
}

TEST_F(ImportTest, TimeThatGoesBackKeepsTheOrderOfTheLines) {
  Import("x-1  [000]  9.0: kmalloc: call_site=f+0x1/0x2 ptr=0x1000 bytes_req=8 bytes_alloc=8\n"
         "y-2  [001]  2.0: kfree: call_site=f+0x1/0x2 ptr=0x1000\n"
         "x-1  [000]  9.0: kmalloc: call_site=f+0x1/0x2 ptr=0x1000 bytes_req=8 bytes_alloc=8\n");
  EXPECT_EQ(trace_.analysis.totals.frees, 1u);
  EXPECT_EQ(trace_.analysis.totals.live_blocks, 1u);
  EXPECT_EQ(trace_.analysis.coverage.unordered_events, 0u);
  EXPECT_THAT(CoverageNotes(trace_.analysis),
              Contains("The time of the log goes back 1 time: it is taken in the order of its "
                       "lines."));
}

// Other events say how long the log was: what stopped early did not grow to its end.
TEST_F(ImportTest, TheLogIsAsLongAsItsLinesSay) {
  Import("x-1  [000]  1.0: sched_switch: prev_comm=x\n"
         "x-1  [000]  2.0: kmalloc: call_site=f+0x1/0x2 ptr=0x1000 bytes_req=8 bytes_alloc=8\n"
         "x-1  [000]  6.0: sched_switch: prev_comm=x\n");
  EXPECT_EQ(trace_.analysis.process.duration_ns, 5'000'000'000u);
  EXPECT_EQ(trace_.analysis.sites[0].first_time_ns, 1'000'000'000u);
}

TEST_F(ImportTest, WhatCannotBeReadIsAnError) {
  const auto error = [&](const FtraceImportOptions& options) {
    const auto result = ImportFtrace(options);
    EXPECT_FALSE(fs::exists(Path("out.mtr")));
    return result.ok() ? std::string("ok") : std::string(result.status().message());
  };
  const std::string good =
      File("good.txt", "x-1  [000]  1.0: kfree: call_site=f+0x1/0x2 ptr=0x1000\n");
  const std::string out = Path("out.mtr");
  EXPECT_THAT(error({Path("missing"), {}, out}), HasSubstr("missing: No such file"));
  EXPECT_THAT(error({File("text", "hello\n"), {}, out}),
              HasSubstr("has no event of kmem in 1 line; line 1: it is no event of ftrace's: "
                        "hello; record some with"));
  EXPECT_THAT(error({File("empty", ""), {}, out}), HasSubstr("has no event of kmem in 0 lines"));
  EXPECT_THAT(error({good, {Path("no.map")}, out}), HasSubstr("no.map: No such file"));
  EXPECT_THAT(error({good, {File("bad.map", "ffffffff81000000 T\n")}, out}),
              HasSubstr("line 1 is not \"ADDRESS TYPE NAME\""));
  EXPECT_THAT(error({good, {File("zero.map", "0000000000000000 T f\n")}, out}),
              HasSubstr("every address in it is 0; copy /proc/kallsyms as root"));
  EXPECT_THAT(error({good, {File("data.map", "ffffffff81000000 D d\n")}, out}),
              HasSubstr("has no functions"));
  EXPECT_THAT(error({good, {}, Path("none/out.mtr")}), HasSubstr("cannot write"));
}

// Whatever is in a log, the import ends, and what it writes can be read.
TEST_F(ImportTest, HostileLogsDoNoHarm) {
  std::mt19937 random(1);
  const std::string good = kTraceFile;
  for (int round = 0; round < 200; ++round) {
    std::string log = good;
    for (int change = 0; change < 30; ++change) {
      const size_t at = random() % log.size();
      switch (random() % 3) {
        case 0: log[at] = static_cast<char>(random()); break;
        case 1: log.erase(at, random() % 20); break;
        case 2: log.insert(at, log.substr(random() % log.size(), random() % 40)); break;
      }
    }
    const auto result = ImportFtrace({File("hostile", log), {}, Path("hostile.mtr")});
    if (!result.ok()) continue;
    const auto trace = AnalyzeTrace(Path("hostile.mtr"), {});
    ASSERT_TRUE(trace.ok()) << trace.status();
    EXPECT_EQ(trace->analysis.coverage.damage, "");
  }
}

TEST_F(ImportTest, AFileWithoutLineEndsIsOneBadLine) {
  FtraceImportOptions options{File("long", std::string(10 << 20, 'x')), {}, Path("out.mtr")};
  EXPECT_THAT(std::string(ImportFtrace(options).status().message()),
              HasSubstr("has no event of kmem in 1 line;"));
}

// A large log against a simple model of it: totals, sites, and that order is kept where many
// events have one time.
TEST_F(ImportTest, ALargeLogIsTheModelOfItsLines) {
  std::mt19937_64 random(7);
  struct Block {
    uint64_t bytes;
    int site;
  };
  std::map<uint64_t, Block> live;
  std::map<int, std::pair<uint64_t, uint64_t>> sites;  // live bytes, allocations
  uint64_t live_bytes = 0, peak = 0, wasted = 0, allocations = 0, frees = 0;
  std::string log;
  uint64_t now_us = 5'000'000;
  for (int i = 0; i < 200'000; ++i) {
    now_us += random() % 8 == 0;
    const std::string head = absl::StrFormat("task-%d  [%03d]  %d.%06d: ", random() % 50, i % 4,
                                             now_us / 1'000'000, now_us % 1'000'000);
    const uint64_t address = 0xffff888000000000 + 64 * (random() % 5000);
    const auto at = live.find(address);
    if (at != live.end()) {
      ++frees;
      live_bytes -= at->second.bytes;
      sites[at->second.site].first -= at->second.bytes;
      live.erase(at);
      absl::StrAppendFormat(&log, "%skfree: call_site=free_it+0x5/0x10 ptr=0x%x\n", head, address);
      continue;
    }
    const uint64_t bytes = 1 + random() % 300, rounded = (bytes + 63) & ~uint64_t{63};
    const int site = static_cast<int>(random() % 100);
    ++allocations;
    wasted += rounded - bytes;
    live[address] = {bytes, site};
    live_bytes += bytes;
    peak = std::max(peak, live_bytes);
    sites[site].first += bytes;
    ++sites[site].second;
    absl::StrAppendFormat(&log,
                          "%skmalloc: call_site=function_%d+0x%x/0x100 ptr=0x%x bytes_req=%d "
                          "bytes_alloc=%d gfp_flags=GFP_KERNEL\n",
                          head, site, site + 1, address, bytes, rounded);
  }
  Import(log);
  const Totals& totals = trace_.analysis.totals;
  EXPECT_EQ(totals.allocations, allocations);
  EXPECT_EQ(totals.frees, frees);
  EXPECT_EQ(totals.live_bytes, live_bytes);
  EXPECT_EQ(totals.live_blocks, live.size());
  EXPECT_EQ(totals.peak_live_bytes, peak);
  EXPECT_EQ(totals.wasted_bytes, wasted);
  EXPECT_EQ(trace_.analysis.coverage.unordered_events, 0u);
  EXPECT_EQ(trace_.analysis.coverage.unknown_frees, 0u);
  EXPECT_EQ(trace_.analysis.threads.size(), 50u);
  const std::map<std::string, Site> found = Sites();
  ASSERT_EQ(found.size(), sites.size());
  for (const auto& [number, sums] : sites) {
    const Site& site = found.at(absl::StrCat("kmalloc function_", number, " [kernel]"));
    EXPECT_EQ(site.live_bytes, sums.first) << number;
    EXPECT_EQ(site.allocations, sums.second) << number;
  }
}

}  // namespace
}  // namespace memtrace::report::import
