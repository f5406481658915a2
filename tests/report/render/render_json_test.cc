#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "report/render/formats.h"
#include "report/render/growing.h"
#include "tests/report/render/render_made_up.h"

namespace memtrace::report::render {
namespace {

using nlohmann::json;

json Rendered(const ReportView& view, size_t top = kAllRows) {
  words::StringSink sink;
  RenderJson(view, top, sink);
  return json::parse(sink.text());
}

void ExpectKeys(const json& object, const std::vector<std::string>& keys) {
  for (const std::string& key : keys) EXPECT_TRUE(object.contains(key)) << key;
}

MadeUp& Filled(MadeUp& trace) {
  const StackId stack = trace.Stack({{"inner", "a.h", 3, kApp, true}, {"leak", "/work/a.c", 9},
                                     Libc("__libc_start_main")});
  trace.AddSite(stack, 3, 100, 2);
  trace.analysis.timeline.push_back({.time_ns = 1'000'000'000, .live_bytes = 200});
  trace.analysis.timeline_interval_ns = 1'000'000'000;
  trace.analysis.threads.push_back({.tid = 42, .name = "main"});
  trace.analysis.mappings.push_back(
      {.kind = MappingSite::Kind::kHeapGrowth, .stack = stack, .calls = 1, .bytes = 135168});
  trace.analysis.sizes.allocations[7] = 3;
  return trace;
}

TEST(JsonTest, HasEveryKeyOfTheSchema) {
  MadeUp trace;
  const json report = Rendered(Filled(trace).View());
  EXPECT_EQ(report["schema"], "memtrace-report/1");
  ExpectKeys(report, {"process", "coverage", "totals", "leaks", "sites", "timeline", "faults"});
  ExpectKeys(report["process"],
             {"pid", "command", "command_line", "executable", "build_id", "start_time", "end"});
  ExpectKeys(report["coverage"],
             {"events", "dropped_events", "recovered_events", "unordered_events", "marked_stacks",
              "cross_checked", "cross_check_differences", "tool_memory_bytes", "notes"});
  ExpectKeys(report["totals"],
             {"allocations", "frees", "bytes_allocated", "live_bytes", "live_blocks",
              "peak_live_bytes", "peak_time_s", "wasted_bytes", "temporary_allocations"});
  ExpectKeys(report["leaks"][0], {"kind", "bytes", "blocks", "fingerprint", "first_time_s",
                                  "last_time_s", "stack"});
  ExpectKeys(report["sites"][0],
             {"allocations", "frees", "bytes_allocated", "live_bytes", "live_blocks", "peak_bytes",
              "temporary", "wasted_bytes", "growth", "resident_bytes", "minor_faults",
              "major_faults", "stack"});
  ExpectKeys(report["timeline"], {"interval_s", "points"});
  ExpectKeys(report["timeline"]["points"][0],
             {"time_s", "live_bytes", "live_blocks", "allocations", "frees", "rss_bytes",
              "minor_faults", "major_faults"});
  ExpectKeys(report["faults"], {"source", "minor", "major", "attributed_minor", "tool_minor",
                                "correlation", "thrash"});
  ExpectKeys(report["faults"]["correlation"],
             {"live_bytes_vs_minor", "allocated_bytes_vs_minor", "words"});
}

// What a page shows for them.
TEST(JsonTest, HasWordsForItsOwnKeys) {
  MadeUp trace;
  FaultDetails& details = trace.analysis.fault_details;
  details.known = true;
  details.source = format::FaultSource::kUserEvents;
  RssBridge end;
  trace.analysis.resident.bridges = {end};
  const json report = Rendered(Filled(trace).View());
  EXPECT_EQ(report["leak_kinds"][report["leaks"][0]["kind"].get<std::string>()], "not freed");
  EXPECT_EQ(report["leak_kinds"]["definite"], "definitely lost");
  EXPECT_EQ(report["leak_kinds"].size(), kLeakKinds);
  const auto expect_words = [](const json& of, const json& words) {
    EXPECT_GT(of.size(), 0u);
    EXPECT_EQ(of.size(), words.size());
    for (const auto& [key, value] : of.items()) EXPECT_NE(words.value(key, ""), "") << key;
  };
  expect_words(report["faults"]["by_memory"], report["faults"]["memory_kinds"]);
  expect_words(report["resident"][0]["parts"], report["resident_parts"]);
}

// Which of a site's blocks have the faults and the pages is not known.
TEST(JsonTest, PagesAndFaultsAreOfAllBlocksOfASiteOrNotKnown) {
  MadeUp trace;
  Filled(trace);
  const Site& site = trace.analysis.sites.front();
  FaultSite faults;
  faults.stack = site.stack;
  faults.function = site.function;
  faults.faults.minor = 3;
  trace.analysis.fault_details.known = true;
  trace.analysis.fault_details.source = format::FaultSource::kUserEvents;
  trace.analysis.fault_details.sites = {faults};
  RssBridge end;
  ResidentSite resident;
  resident.stack = site.stack;
  resident.function = site.function;
  resident.resident_bytes = 4096;
  end.sites = {resident};
  trace.analysis.resident.bridges = {end};
  const auto told = [&](const char* key) {
    const json report = Rendered(trace.View());
    for (const json& one : report["sites"]) {
      if (one["stack"] == report["faults"]["sites"][0]["stack"]) return one[key];
    }
    return json("no such site");
  };
  EXPECT_EQ(told("minor_faults"), 3);
  EXPECT_EQ(told("resident_bytes"), 4096);
  trace.analysis.range.from_ns = 1;
  EXPECT_EQ(told("minor_faults"), 3) << "they have a time";
  EXPECT_TRUE(told("resident_bytes").is_null());
  trace.analysis.range = {};
  trace.analysis.selection.sizes.low = 64;
  for (const char* key : {"minor_faults", "major_faults", "resident_bytes", "untouched_bytes", "pinned_bytes"}) {
    EXPECT_TRUE(told(key).is_null()) << key;
  }
  words::StringSink csv;
  RenderCsv(trace.View(), CsvTable::kSites, SortColumn::kTotal, kAllRows, csv);
  EXPECT_NE(csv.text().find(",,,\r\n"), std::string::npos);
}

TEST(JsonTest, OfAPartOfARunOnlyTheFaultsThatWereSeenAreKnown) {
  MadeUp trace;
  FaultDetails& details = trace.analysis.fault_details;
  details.known = true;
  details.source = format::FaultSource::kUserEvents;
  details.told.minor = 1053;
  const auto account = [&] { return Rendered(trace.View())["faults"]["account"]; };
  for (const char* key : {"counted", "before", "not_seen"}) {
    EXPECT_EQ(account()[key]["minor"], 0) << key;
  }
  trace.analysis.range.from_ns = 1;
  EXPECT_EQ(account()["seen"]["minor"], 1053);
  for (const char* key : {"counted", "before", "not_seen"}) {
    EXPECT_TRUE(account()[key].is_null()) << key;
  }
  EXPECT_EQ(account()["lost"], 0) << "none was in all the run";
  details.last_lost_ns = 2;
  EXPECT_TRUE(account()["lost"].is_null());
}

TEST(JsonTest, SitesWithFaultsAndPagesAreThoseThatMatch) {
  MadeUp trace;
  FaultSite faults;
  FaultMapping mapping;
  ResidentSite resident;
  RssBridge end;
  FaultDetails& details = trace.analysis.fault_details;
  details.known = true;
  details.source = format::FaultSource::kUserEvents;
  for (const char* function : {"other", "mine", "mine_too"}) {
    faults.stack = mapping.stack = resident.stack = trace.Stack({{function, "/work/a.c", 9}});
    trace.AddSite(faults.stack, 1, 100, 1);
    details.sites.push_back(faults);
    details.mappings.push_back(mapping);
    end.sites.push_back(resident);
  }
  trace.analysis.resident.bridges = {end};
  const auto first = [&](const char* match, size_t top, size_t sites) {
    const json report = Rendered(trace.View(match), top);
    EXPECT_EQ(report["faults"]["sites"].size(), sites);
    EXPECT_EQ(report["faults"]["mappings"].size(), sites);
    EXPECT_EQ(report["resident"][0]["sites"].size(), sites);
    return report["faults"]["sites"][0]["stack"][0]["function"].get<std::string>();
  };
  EXPECT_EQ(first("", kAllRows, 3), "other");
  EXPECT_EQ(first("^mine", kAllRows, 2), "mine");
  EXPECT_EQ(first("^mine", 1, 1), "mine") << "those that do not match are none of the top";
  EXPECT_EQ(first("_too", kAllRows, 1), "mine_too");
}

TEST(JsonTest, SitesAreInTheOrderThatWasAskedFor) {
  MadeUp trace;
  Filled(trace);
  const auto first = [&](SortColumn sort) {
    words::StringSink sink;
    RenderJson(trace.View(), 1, sink, nullptr, sort);
    return json::parse(sink.text())["sites"][0];
  };
  uint64_t most_live = 0, most_frees = 0;
  for (const Site& site : trace.analysis.sites) {
    most_live = std::max(most_live, site.live_bytes);
    most_frees = std::max(most_frees, site.frees);
  }
  EXPECT_EQ(first(SortColumn::kLive)["live_bytes"], most_live);
  EXPECT_EQ(first(SortColumn::kFrees)["frees"], most_frees);
}

TEST(JsonTest, TheBuildIdIsTheExecutables) {
  MadeUp trace;
  EXPECT_EQ(Rendered(trace.View())["process"]["build_id"], "00112233");
  trace.analysis.process.build_id.clear();
  trace.analysis.modules[kApp - 1].build_id = std::string("\x01\xab\xff", 3);
  EXPECT_EQ(Rendered(trace.View())["process"]["build_id"], "01abff");
}

TEST(JsonTest, TellsWhetherTheProcessExitedAtOnce) {
  MadeUp trace;
  EXPECT_EQ(Rendered(trace.View())["process"]["exit_at_once"], false);
  trace.analysis.process.exit_at_once = true;
  EXPECT_EQ(Rendered(trace.View())["process"]["exit_at_once"], true);
}

TEST(JsonTest, AnEmptyTraceIsValidToo) {
  MadeUp trace;
  const json report = Rendered(trace.View());
  EXPECT_EQ(report["leaks"], json::array());
  EXPECT_EQ(report["sites"], json::array());
  EXPECT_EQ(report["timeline"]["points"], json::array());
}

TEST(JsonTest, LeaksSayWhatWasFound) {
  MadeUp trace;
  const json leak = Rendered(Filled(trace).View())["leaks"][0];
  EXPECT_EQ(leak["kind"], "unfreed");
  EXPECT_EQ(leak["bytes"], 200);
  EXPECT_EQ(leak["blocks"], 2);
  EXPECT_EQ(leak["fingerprint"].get<std::string>().size(), 16u);
  EXPECT_EQ(leak["first_time_s"], 0.1);
}

TEST(JsonTest, UnknownPartsOfAFrameAreAbsent) {
  MadeUp trace;
  const json stack = Rendered(Filled(trace).View())["leaks"][0]["stack"];
  ASSERT_EQ(stack.size(), 3u);
  EXPECT_EQ(stack[0], (json{{"function", "inner"}, {"module", "/work/app"}, {"offset", 0x1000},
                            {"file", "a.h"}, {"line", 3}, {"inlined", true}}));
  EXPECT_EQ(stack[1]["inlined"], false);
  EXPECT_EQ(stack[2]["function"], "__libc_start_main");
  EXPECT_FALSE(stack[2].contains("file"));
  EXPECT_FALSE(stack[2].contains("line"));
}

TEST(JsonTest, WhatIsNotKnownIsNullAndNotZero) {
  MadeUp trace;
  const json report = Rendered(Filled(trace).View());
  EXPECT_TRUE(report["sites"][0]["growth_rate"].is_null());
  EXPECT_TRUE(report["shutdown_s"].is_null());
  EXPECT_TRUE(report["sites"][0]["minor_faults"].is_null());
  EXPECT_TRUE(report["faults"]["attributed_minor"].is_null());
  EXPECT_TRUE(report["faults"]["correlation"]["live_bytes_vs_minor"].is_null());
  EXPECT_TRUE(report["timeline"]["points"][0]["rss_bytes"].is_null());
  EXPECT_EQ(report["timeline"]["points"][0]["minor_faults"], 0) << "they were counted";
  trace.analysis.faults.counted = false;
  const json cut = Rendered(trace.View());
  for (const char* key : {"minor_faults", "major_faults"}) {
    EXPECT_TRUE(cut["timeline"]["points"][0][key].is_null()) << key;
  }
}

TEST(JsonTest, FaultsGoWithNoHeapThatIsOfSomeBlocks) {
  MadeUp trace;
  EXPECT_EQ(Rendered(Filled(trace).View())["faults"]["correlation"]["words"].size(), 1u);
  trace.analysis.selection.sizes.low = 100;
  const json correlation = Rendered(trace.View())["faults"]["correlation"];
  EXPECT_EQ(correlation["words"], json::array());
  EXPECT_TRUE(correlation["lagged"].is_null());
}

// The class of 1.8 s goes on to 2.1, the run to 2.
TEST(JsonTest, NoBlockLivedLongerThanTheRun) {
  MadeUp trace;
  Filled(trace);
  LifetimeHistogram lifetimes;
  for (int i = 0; i < 100; ++i) lifetimes.Add(1'800'000'000);
  trace.analysis.sites.front().lifetimes = SiteLifetimes::Of(lifetimes.freed);
  ASSERT_GT(lifetimes.Quantile(0.99), 2e9);
  const json report = Rendered(trace.View());
  for (const json& told : {report["lifetimes"], report["sites"][0]["lifetime"]}) {
    EXPECT_EQ(told["blocks"], 100);
    EXPECT_EQ(told["p99_s"], 2.0);
    EXPECT_LT(told["p50_s"], 1.9);
  }
}

TEST(JsonTest, WhatGrowsHasRates) {
  MadeUp trace;
  Filled(trace);
  Growth& growth = trace.analysis.sites[0].growth;
  growth.verdict = Growth::Verdict::kGrowing;
  growth.held_until_exit = true;
  growth.bytes_per_s = 1000;
  growth.bytes_per_s_low = 900;
  growth.bytes_per_s_high = 1100;
  growth.blocks_per_s = 10;
  growth.bytes_per_allocation = 0.5;
  growth.confidence = 0.99;
  trace.analysis.shutdown_ns = 1'500'000'000;
  const json report = Rendered(trace.View());
  size_t growing = 0;
  for (const json& site : report["sites"]) {
    if (site["growth"] != "growing") {
      EXPECT_TRUE(site["growth"].is_null()) << "nobody judged it";
      continue;
    }
    ++growing;
    EXPECT_EQ(site["held_until_exit"], true);
    EXPECT_EQ(site["growth_rate"],
              (json{{"bytes_per_s", 1000.0}, {"bytes_per_s_low", 900.0},
                    {"bytes_per_s_high", 1100.0}, {"blocks_per_s", 10.0},
                    {"bytes_per_allocation", 0.5}, {"confidence", 0.99}}));
  }
  EXPECT_EQ(growing, 1u);
  EXPECT_EQ(report["shutdown_s"], 1.5);
}

// One unit everywhere: a function and line, whatever called it.
TEST(JsonTest, GrowingCallersAreThoseOfTheHeadline) {
  MadeUp trace;
  const auto add = [&](uint32_t line, const char* outer, double bytes_per_s, double low) {
    Site& site = trace.AddSite(trace.Stack({{"Work(int)", "/work/a.cc", line}, {outer, "/work/b.cc", 1}}), 10, 100, 5);
    site.growth = {.verdict = Growth::Verdict::kGrowing, .bytes_per_s = bytes_per_s, .bytes_per_s_low = low};
  };
  add(24, "main", 100, 90);
  add(24, "Again", 60, 50);
  add(25, "main", 300, 200);
  add(26, "main", 10, -1);  // nobody knows
  const json report = Rendered(trace.View());
  ASSERT_EQ(report["growing"].size(), 3u);
  EXPECT_EQ(report["growing"][0]["caller"], "Work(int) /work/a.cc:25");
  EXPECT_EQ(report["growing"][1]["bytes_per_s"], 160.0);
  EXPECT_EQ(report["growing"][1]["sites"], 2);
  EXPECT_EQ(report["growing"][1]["in_verdict"], true);
  EXPECT_EQ(report["growing"][2]["in_verdict"], false);
  EXPECT_EQ(GrowingVerdict(trace.View(), {}),
            "2 call sites grow without end, by 460 B/s; most: Work(int) a.cc:25");
  trace.analysis.process.duration_ns = 405'000'000;
  EXPECT_EQ(GrowingVerdict(trace.View(), {}),
            "2 call sites rose until the end of a short run, by 460 B/s; most: Work(int) a.cc:25");
}

// The page says the same by these.
TEST(JsonTest, SaysWhetherARunIsShortAndInvalidFreesAreCertain) {
  MadeUp trace;
  ProcessInfo& process = trace.analysis.process;
  process.duration_ns = 2'000'000'000;
  EXPECT_EQ(Rendered(trace.View())["process"]["short_run"], false);
  process.exit_work_ns = 1;
  EXPECT_EQ(Rendered(trace.View())["process"]["short_run"], true);
  EXPECT_EQ(Rendered(trace.View())["invalid_frees"]["certain"], true);
  trace.analysis.coverage.unseen_frees = 1;
  std::vector<InvalidFree>& stories = trace.analysis.invalid_frees.stories;
  stories.push_back({.kind = InvalidFree::Kind::kInsideLive});
  EXPECT_EQ(Rendered(trace.View())["invalid_frees"]["certain"], true);
  stories.push_back({.kind = InvalidFree::Kind::kFreedBefore});
  EXPECT_EQ(Rendered(trace.View())["invalid_frees"]["certain"], false);
}

TEST(JsonTest, HostileNamesStayStrings) {
  MadeUp trace;
  const std::string hostile = "\xff\xfe\"}],\n\x1b[2J</script>\\";
  trace.AddSite(trace.Stack({{hostile, hostile, 1}}), 1, 10, 1);
  trace.analysis.process.command = {hostile};
  trace.analysis.threads.push_back({.tid = 1, .name = hostile});
  trace.analysis.coverage.notes.push_back({hostile});
  words::StringSink sink;
  RenderJson(trace.View(), kAllRows, sink);
  for (const char c : sink.text()) EXPECT_TRUE(c == '\n' || (c & 0x80) || c >= 0x20);
  const json report = json::parse(sink.text());
  EXPECT_EQ(report["leaks"][0]["stack"][0]["function"],
            "\xef\xbf\xbd\xef\xbf\xbd\"}],\n\x1b[2J</script>\\");
}

TEST(JsonTest, HasTheCommandAsTheTextHasIt) {
  MadeUp trace;
  trace.analysis.process.command = {"./app", "a b", "", "it's", "\xff\n", "soft\u00adhyphen"};
  EXPECT_EQ(Rendered(trace.View())["process"]["command_line"],
            "./app 'a b' '' 'it'\\''s' $'\\xff\\x0a' 'soft\u00adhyphen'");
  trace.analysis.process.command.clear();
  EXPECT_EQ(Rendered(trace.View())["process"]["command_line"], "");
}

TEST(JsonTest, TopBoundsTheLists) {
  MadeUp trace;
  for (uint32_t i = 1; i <= 5; ++i) trace.AddSite(trace.Stack({{"f", "f.c", i}}), 1, i * 10, 1);
  const json report = Rendered(trace.View(), 2);
  ASSERT_EQ(report["leaks"].size(), 2u);
  EXPECT_EQ(report["leaks"][0]["bytes"], 50) << "the largest";
  EXPECT_EQ(report["sites"].size(), 2u);
  EXPECT_EQ(report["leaks_total"], 5) << "what was left out is said";
  EXPECT_EQ(report["sites_total"], 5);
}

}  // namespace
}  // namespace memtrace::report::render
