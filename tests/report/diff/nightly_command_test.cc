// `memtrace diff` and `memtrace trend` as a user runs them: exit statuses, files, directories.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "tests/artifact/packaging_shell.h"
#include "tests/report/scan_builder.h"
#include "tests/report/trace_builder.h"

namespace memtrace::report {
namespace {

using packaging::CommandResult;
using packaging::Shell;
using testing::HasSubstr;

class NightlyCommandTest : public testing::Test {
 protected:
  // A trace of one site that keeps so many blocks of 100 bytes. With a scan at its end, and one that
  // was asked for before, they are definitely lost.
  std::string Trace(const std::string& name, int blocks, int64_t pid = 4242, bool scanned = false,
                    int night = 1, uint64_t sample_bytes = 0) {
    TraceBuilder::Options options;
    options.stamp_rule = format::StampRule::kChangeOfOwner;
    options.pid = static_cast<uint32_t>(pid);
    options.trace_id = static_cast<uint64_t>(pid);
    options.sample_bytes = sample_bytes;
    options.start_realtime_ns += static_cast<uint64_t>(night) * 86'400'000'000'000;
    TraceBuilder trace(options);
    auto& main = trace.Thread(1, 4242, "main");
    main.At(1000).Node(1, 0x401000);
    for (int i = 0; i < blocks; ++i) main.Malloc(0x10010 + static_cast<uint64_t>(i) * 0x100, 100, 1);
    main.At(500000000);
    if (scanned) {
      ScanBuilder(1, trace.TicksAt(520000000), format::ScanReason::kRequest).Done().AddTo(&trace);
      ScanBuilder(2, trace.TicksAt(600000000)).Done().AddTo(&trace);
    }
    trace.End(0, 1000000000);
    const std::string path = directory_ / name;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    EXPECT_TRUE(trace.WriteTo(path));
    return path;
  }
  static CommandResult Memtrace(const std::string& arguments) {
    return Shell(absl::StrCat("LC_ALL=C.UTF-8 '" MEMTRACE_BUILD_DIR "/bin/memtrace' ", arguments));
  }
  std::string path(const std::string& name) const { return directory_ / name; }

  TempDir directory_;
};

// An imported log has no start by the wall clock: it was told as of 1970.
TEST_F(NightlyCommandTest, LogsHaveNoDateInReportsOfSeveral) {
  std::string traces;
  for (const char* name : {"a", "b"}) {
    std::ofstream(path(name)) << "# tracer: nop\n"
                                 " bash-100 [000] ..... 100.000000: kmalloc: call_site=alloc_pipe_info+0x4a/0x210 "
                                 "ptr=000000001000 bytes_req=100 bytes_alloc=128 gfp_flags=GFP_KERNEL\n";
    const std::string trace = path(absl::StrCat(name, ".mtr"));
    ASSERT_EQ(Memtrace(absl::StrCat("import ftrace ", path(name), " -o ", trace)).exit_status, 0);
    absl::StrAppend(&traces, " ", trace);
  }
  const CommandResult text = Memtrace(absl::StrCat("report", traces));
  EXPECT_EQ(text.exit_status, 0) << text.output;
  EXPECT_EQ(text.output.find("1970"), std::string::npos) << text.output;
  const CommandResult json = Memtrace(absl::StrCat("report --format json", traces));
  EXPECT_THAT(json.output, HasSubstr("\"start_time\":null")) << json.output;
}

// Beside a process it begins no run of fifty years.
TEST_F(NightlyCommandTest, LogsBesideProcessesDoNotBeginTheRun) {
  Trace("night/program.mtr", 3, 1);
  std::ofstream(path("log")) << "# tracer: nop\n"
                                " bash-100 [000] ..... 100.000000: kmalloc: call_site=alloc_pipe_info+0x4a/0x210 "
                                "ptr=000000001000 bytes_req=100 bytes_alloc=128 gfp_flags=GFP_KERNEL\n";
  ASSERT_EQ(Memtrace(absl::StrCat("import ftrace ", path("log"), " -o ", path("night/log.mtr"))).exit_status, 0);
  const CommandResult result =
      Memtrace(absl::StrCat("diff --format json ", path("night"), " ", path("night")));
  ASSERT_EQ(result.exit_status, 0) << result.output;
  const auto run = nlohmann::json::parse(result.output).at("old");
  EXPECT_EQ(run.at("processes"), 2);
  EXPECT_LT(run.at("duration_s"), 100.0);
  EXPECT_TRUE(run.at("start_time").is_string()) << run;
  EXPECT_EQ(run.at("end"), "exit 0") << run;
  // So that the same night is known when it comes again.
  const std::string add = absl::StrCat("trend --add ", path("night"), " ", path("history"));
  ASSERT_EQ(Memtrace(add).exit_status, 0);
  const CommandResult again = Memtrace(add);
  EXPECT_EQ(again.exit_status, 2) << again.output;
  EXPECT_THAT(again.output, HasSubstr("is a night of"));
}

TEST_F(NightlyCommandTest, DiffExitsByWhatItFinds) {
  const std::string before = Trace("old.mtr", 3), after = Trace("new.mtr", 5);
  CommandResult result = Memtrace(absl::StrCat("diff ", before, " ", after));
  EXPECT_EQ(result.exit_status, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("+200 B"));
  EXPECT_EQ(Memtrace(absl::StrCat("diff --exit-code ", before, " ", after)).exit_status, 1);
  EXPECT_EQ(Memtrace(absl::StrCat("diff --exit-code ", after, " ", before)).exit_status, 0);
  EXPECT_EQ(Memtrace(absl::StrCat("diff --exit-code --min 201 ", before, " ", after)).exit_status, 0);
  EXPECT_EQ(Memtrace(absl::StrCat("diff --exit-code --per allocation ", before, " ", after)).exit_status, 0);
  EXPECT_EQ(Memtrace(absl::StrCat("diff --exit-code --per second ", before, " ", after)).exit_status, 1);
  for (const std::string& wrong : {absl::StrCat("diff ", before, " ", path("nothing.mtr")),
                                  absl::StrCat("diff ", before), absl::StrCat("diff --by x ", before, " ", after),
                                  absl::StrCat("diff --per x ", before, " ", after),
                                  absl::StrCat("diff --format valgrind ", before, " ", after),
                                  absl::StrCat("diff --by definite ", before, " ", after),
                                  absl::StrCat("diff -o ", after, " ", before, " ", after)}) {
    result = Memtrace(wrong);
    EXPECT_EQ(result.exit_status, 2) << wrong << "\n" << result.output;
    EXPECT_THAT(result.output, HasSubstr("memtrace: ")) << wrong;
  }
}

// Filters are those of a report, of each run; times and blocks are of one process.
TEST_F(NightlyCommandTest, DiffOfAPart) {
  const std::string before = Trace("old.mtr", 3), after = Trace("new.mtr", 5);
  const auto diff = [&](const std::string& options) {
    const CommandResult result = Memtrace(absl::StrCat("diff --format json ", before, " ", after, " ", options));
    EXPECT_EQ(result.exit_status, 0) << result.output;
    return nlohmann::json::parse(result.output);
  };
  nlohmann::json json = diff("--size 101..");
  EXPECT_EQ(json["new"]["totals"]["allocations"], 0) << json;
  EXPECT_EQ(json["new"]["only"][0], "blocks of 101 B and more");
  EXPECT_EQ(json["counts"]["grown"], 0);
  json = diff("--size ..100 --age ..1s");
  EXPECT_EQ(json["new"]["totals"]["allocations"], 5) << json;
  EXPECT_EQ(json["counts"]["grown"], 1);
  EXPECT_EQ(diff("--age 2s..")["counts"]["grown"], 0);
  // All blocks come at the start: half a second has them.
  json = diff("--to 50% --per second --by allocated");
  EXPECT_EQ(json["old"]["totals"]["allocations"], 3) << json;
  EXPECT_DOUBLE_EQ(json["sites"][0]["new"].get<double>(), 1000) << json;
  EXPECT_EQ(diff("--from 50%")["new"]["totals"]["allocations"], 0);
  EXPECT_EQ(diff("--at 50%")["new"]["totals"]["live_bytes"], 500);
  json = diff("--module none");
  EXPECT_EQ(json["new"]["totals"]["allocations"], 5) << "the figures of the runs are of all: " << json;
  EXPECT_EQ(json["only"][0], "sites that have a frame of module /none/");
  EXPECT_EQ(json["module"], "none");
  EXPECT_EQ(json["sites_total"], 0);
  const std::string text = Memtrace(absl::StrCat("diff ", before, " ", after, " --thread main --from 0.1")).output;
  EXPECT_THAT(text, HasSubstr("only blocks allocated from 100 ms to 1.00 s"));
  EXPECT_THAT(text, HasSubstr("only blocks that threads called main allocated"));

  EXPECT_THAT(Memtrace(absl::StrCat("diff ", before, " ", after, " --at 50% --by definite")).output,
              HasSubstr("or not within the range that was asked for"));

  // A scan in the middle is not that of the end.
  const std::string scanned = Trace("scanned.mtr", 3, 7, /*scanned=*/true);
  EXPECT_EQ(Memtrace(absl::StrCat("diff --by definite ", scanned, " ", scanned, " --at 55%")).exit_status, 2);

  Trace("run/a.mtr", 3, 1);
  for (const char* option : {"--from 1%", "--at 1s", "--thread main", "--size 1", "--lifetime 1s..", "--age 1s.."}) {
    const CommandResult refused = Memtrace(absl::StrCat("diff ", path("run"), " ", after, " ", option));
    EXPECT_EQ(refused.exit_status, 2) << option;
    EXPECT_THAT(refused.output, HasSubstr("is for one trace on each side")) << option;
  }
  EXPECT_EQ(Memtrace(absl::StrCat("diff ", path("run"), " ", after, " --file x --module x")).exit_status, 0);
  EXPECT_THAT(Memtrace(absl::StrCat("diff ", before, " ", after, " --function '('")).output,
              HasSubstr("--function: "));
}

TEST_F(NightlyCommandTest, DiffTakesDirectories) {
  Trace("old/a.mtr", 3, 11);
  Trace("old/b.mtr", 3, 12);
  Trace("new/a.mtr", 3, 13);
  Trace("new/b.mtr", 4, 14);
  const CommandResult result =
      Memtrace(absl::StrCat("diff --exit-code ", path("old"), " ", path("new"), " --format csv"));
  EXPECT_EQ(result.exit_status, 1) << result.output;
  EXPECT_THAT(result.output, HasSubstr(",600,700,100,"));
  std::ofstream(path("old/c.mtr")) << "not a trace";
  const CommandResult skipped = Memtrace(absl::StrCat("diff ", path("old"), " ", path("old")));
  EXPECT_EQ(skipped.exit_status, 2) << "not all was compared";
  EXPECT_THAT(skipped.output, HasSubstr("memtrace: skipped "));
}

// One process of each run is a sample, which has none of these blocks.
TEST_F(NightlyCommandTest, WhatAFullTraceHasIsNoChanceBesideASample) {
  for (const auto& [run, blocks] : {std::pair("old", 100), {"new", 1000}}) {
    Trace(absl::StrCat(run, "/full.mtr"), blocks, 1);
    Trace(absl::StrCat(run, "/sample.mtr"), 0, 2, false, 1, 4096);
  }
  for (const char* by : {"live", "peak", "allocated", "allocations"}) {
    const CommandResult diff = Memtrace(absl::StrCat("diff --color never --exit-code --by ", by, " '", path("old"),
                                                     "' '", path("new"), "'"));
    EXPECT_EQ(diff.exit_status, 1) << by << diff.output;
    EXPECT_THAT(diff.output, HasSubstr("GROWN")) << by;
  }
}

// What the other process has is a part of the estimate, and so of its interval.
TEST_F(NightlyCommandTest, AnIntervalBesideAFullTraceHoldsItsEstimate) {
  const std::string all = Trace("all.mtr", 50, 11), some = Trace("some.mtr", 5, 12, false, 1, /*sample_bytes=*/512);
  const CommandResult result = Memtrace(absl::StrCat("report --format json ", all, " ", some));
  ASSERT_EQ(result.exit_status, 0) << result.output;
  const auto json = nlohmann::json::parse(result.output);
  const auto& site = json.at("executables").at(0).at("sites").at(0);
  EXPECT_GT(site.at("bytes_allocated").get<uint64_t>(), 5000u);
  EXPECT_GE(site.at("bytes_allocated_low").get<uint64_t>(), 5000u + 500u);
  EXPECT_LE(site.at("bytes_allocated_low"), site.at("bytes_allocated"));
  EXPECT_GE(site.at("bytes_allocated_high"), site.at("bytes_allocated"));
  const CommandResult text = Memtrace(absl::StrCat("report ", all, " ", some));
  EXPECT_THAT(text.output, testing::ContainsRegex("\n +50 +4\\.88K")) << text.output;
}

TEST_F(NightlyCommandTest, DiffTakesDirectoriesByLeakKind) {
  Trace("old/a.mtr", 3, 11, /*scanned=*/true);
  Trace("old/b.mtr", 3, 12, /*scanned=*/true);
  Trace("new/a.mtr", 3, 13, /*scanned=*/true);
  Trace("new/b.mtr", 4, 14, /*scanned=*/true);
  const std::string command =
      absl::StrCat("diff --by definite --exit-code ", path("old"), " ", path("new"), " --format csv");
  const CommandResult result = Memtrace(command);
  EXPECT_EQ(result.exit_status, 1) << result.output;
  EXPECT_THAT(result.output, HasSubstr(",600,700,100,"));
  EXPECT_EQ(Memtrace(absl::StrCat("diff --by reachable --exit-code ", path("old"), " ", path("new")))
                .exit_status, 0);
  // One process that was not scanned leaves the whole unknown.
  Trace("new/c.mtr", 1, 15);
  const CommandResult unknown = Memtrace(command);
  EXPECT_EQ(unknown.exit_status, 2) << unknown.output;
  EXPECT_THAT(unknown.output, HasSubstr("was not scanned at its end"));
  EXPECT_EQ(Memtrace(absl::StrCat("diff ", path("old"), " ", path("new"))).exit_status, 0);
}

TEST_F(NightlyCommandTest, TrendTellsTheLeakThatGrowsNightByNight) {
  const std::string history = path("history");
  CommandResult result = Memtrace("trend " + history);
  EXPECT_EQ(result.exit_status, 2) << result.output;
  for (int night = 1; night <= 5; ++night) {
    const std::string trace = Trace(absl::StrCat("night", night, ".mtr"), 2 * night, 4242, false, night);
    result = Memtrace(absl::StrCat("trend --add --label n", night, " ", trace, " ", history));
    ASSERT_EQ(result.exit_status, 0) << result.output;
    EXPECT_EQ(result.output, "");
    if (night == 4) {
      EXPECT_EQ(Memtrace("trend " + history).exit_status, 0);
      EXPECT_EQ(Memtrace("trend --exit-code " + history).exit_status, 2) << "too few nights";
    }
  }
  // Neither a night a second time nor a part of one, which would end the growth.
  result = Memtrace(absl::StrCat("trend --add --label again ", path("night3.mtr"), " ", history));
  EXPECT_EQ(result.exit_status, 2) << result.output;
  EXPECT_THAT(result.output, HasSubstr("is a night of"));
  const std::string cut = Trace("cut.mtr", 2, 4242, false, 6);
  std::filesystem::resize_file(cut, std::filesystem::file_size(cut) - 40);
  result = Memtrace(absl::StrCat("trend --add ", cut, " ", history));
  EXPECT_EQ(result.exit_status, 2) << result.output;
  EXPECT_THAT(result.output, HasSubstr("the night was not added"));
  result = Memtrace(absl::StrCat("diff --exit-code ", path("night3.mtr"), " ", cut));
  EXPECT_EQ(result.exit_status, 2) << result.output;
  EXPECT_THAT(result.output, HasSubstr("that no site grew is not shown by it"));
  EXPECT_EQ(Memtrace(absl::StrCat("diff ", path("night3.mtr"), " ", cut)).exit_status, 0);

  result = Memtrace("trend --exit-code " + history);
  EXPECT_EQ(result.exit_status, 1) << result.output;
  EXPECT_THAT(result.output, HasSubstr("GROWING  1 site"));
  EXPECT_THAT(result.output, HasSubstr("+200 B"));
  EXPECT_THAT(result.output, HasSubstr("(n5)"));
  EXPECT_EQ(Memtrace("trend --exit-code --min 1000 " + history).exit_status, 0);
  EXPECT_EQ(Memtrace("trend --exit-code --per allocation " + history).exit_status, 0);
  for (const std::string& wrong : {"trend --by x " + history, "trend --chance 0 " + history,
                                  "trend --add " + history, "trend " + history + " " + history,
                                  "trend -o " + history + "/history.jsonl " + history}) {
    EXPECT_EQ(Memtrace(wrong).exit_status, 2) << wrong;
  }
}

TEST_F(NightlyCommandTest, OfADirectoryWhatIsNoTraceIsLeftOutAndOneThatIsCutIsNot) {
  const std::string history = path("history"), lines = path("history/history.jsonl");
  Trace("night/whole.mtr", 3, 1);
  std::ofstream(path("night/empty.mtr")).flush();
  CommandResult result = Memtrace(absl::StrCat("trend --add ", path("night"), " ", history));
  EXPECT_EQ(result.exit_status, 2) << result.output;
  EXPECT_THAT(result.output, HasSubstr("skipped " + path("night/empty.mtr") + ": is empty: "));
  EXPECT_TRUE(std::filesystem::exists(lines)) << result.output;
  Trace("next/whole.mtr", 3, 1, false, 2);
  const std::string cut = Trace("next/cut.mtr", 3, 2, false, 2);
  std::filesystem::resize_file(cut, std::filesystem::file_size(cut) - 150);  // of 512
  const auto before = std::filesystem::file_size(lines);
  result = Memtrace(absl::StrCat("trend --add ", path("next"), " ", history));
  EXPECT_EQ(result.exit_status, 2) << result.output;
  EXPECT_THAT(result.output, HasSubstr("the night was not added"));
  EXPECT_EQ(std::filesystem::file_size(lines), before);
}

}  // namespace
}  // namespace memtrace::report
