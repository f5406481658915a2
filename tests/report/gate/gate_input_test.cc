// What the gate reads of traces.

#include "report/gate/gate_input.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/files.h"
#include "tests/report/client_program.h"
#include "tests/report/trace_builder.h"
#include "tests/temp_dir.h"

namespace memtrace::report::gate {
namespace {

// Workers that give up the same rights do so at times of their own.
TEST(GateInputTest, NotesOfAProgramThatDifferInTheirTimesAreOne) {
  TempDir directory;
  std::vector<std::string> paths;
  const auto worker = [&](const char* executable, uint64_t at_ns) {
    TraceBuilder::Options options;
    options.executable = executable;
    options.trace_id = options.pid = static_cast<uint32_t>(paths.size() + 100);
    TraceBuilder trace(options);
    trace.Record([&](format::RecordEncoder& record) {
      record.Begin(format::RecordTag::kConfined);
      record.Number(static_cast<uint64_t>(format::Confinement::kPathLost));
      record.Number(trace.TicksAt(at_ns));
      record.Bytes("setuid");
      record.Number(4096);
      record.Number(8192);
      record.End();
    });
    trace.Thread(1, 100, "main").At(1000).Malloc(0x1010, 1);
    trace.End(0, 20'000'000);
    paths.push_back(directory / absl::StrCat(paths.size(), ".mtr"));
    ASSERT_TRUE(trace.WriteTo(paths.back()));
  };
  worker("/usr/bin/server", 2'000'000);
  worker("/usr/bin/server", 5'000'000);
  worker("/usr/bin/helper", 7'000'000);
  const auto set = FindTraces(paths);
  ASSERT_TRUE(set.ok()) << set.status();
  GatePolicy policy;
  policy.fail_on = LeakKindSet::Of(LeakKind::kUnfreed);
  TreeAnalysis tree;
  const GateInput input = ReadTraces(*set, policy, {}, [](double) {}, &tree);
  std::set<std::string> notes;
  for (const GateProcess& process : input.processes) {
    EXPECT_EQ(process.notes.size(), 1u) << process.no_evidence;
    notes.insert(process.notes.begin(), process.notes.end());
  }
  EXPECT_THAT(notes, testing::ElementsAre(
                         testing::StartsWith("helper: The program gave up rights by setuid at 0.007 s: the trace went on"),
                         testing::StartsWith("server: The program gave up rights by setuid: the trace went on")));
}

GateProcess ReadProcess(ClientProgram* program) {
  TempDir directory;
  WriteFile(directory / "app.mtr", program->Bytes());
  const auto set = FindTraces({directory / "app.mtr"});
  EXPECT_TRUE(set.ok()) << set.status();
  GatePolicy policy;
  policy.fail_on = LeakKindSet::Of(LeakKind::kUnfreed);
  TreeAnalysis tree;
  GateInput input = ReadTraces(*set, policy, {}, [](double) {}, &tree);
  EXPECT_EQ(input.processes.size(), 1u);
  return input.processes.empty() ? GateProcess() : input.processes[0];
}

// Also of a process that became another program, which says nothing of its children.
TEST(GateInputTest, ChildrenWithoutATraceAreMissingEvidence) {
  for (const format::EndReason end : {format::EndReason::kExit, format::EndReason::kExec}) {
    TempDir directory;
    format::StatusArea area = {};
    area.untraced_children = {3, ENOSPC};
    TraceBuilder trace;
    trace.Status(area);
    trace.Thread(1, 100, "main").At(1000).Malloc(0x1010, 1).Free(0x1010);
    trace.End(0, 20'000'000, end);
    ASSERT_TRUE(trace.WriteTo(directory / "app.mtr"));
    const auto set = FindTraces({directory / "app.mtr"});
    ASSERT_TRUE(set.ok()) << set.status();
    GatePolicy policy;
    policy.fail_on = LeakKindSet::Of(LeakKind::kUnfreed);
    TreeAnalysis tree;
    const GateInput input = ReadTraces(*set, policy, {}, [](double) {}, &tree);
    ASSERT_EQ(input.processes.size(), 1u);
    EXPECT_EQ(input.processes[0].no_evidence, "") << "it counts itself";
    EXPECT_THAT(input.processes[0].untraced_children,
                testing::StartsWith("3 forked children could not create a trace: No space left on "
                                    "device"));
    EXPECT_THAT(input.processes[0].notes, testing::IsEmpty()) << "once is enough";
    EXPECT_EQ(tree.untraced_children, 3u);
  }
}

TEST(GateInputTest, TheLastOfManyMarksIsKnown) {
  ClientProgram program;
  for (uint64_t i = 0; i < 12'000; ++i) {
    program.Phase(format::PhaseEdge::kMark, "turn");
    if (i >= 11'000) program.Malloc(0x10000 + i * 64, 8);
  }
  const GateProcess process = ReadProcess(&program);
  EXPECT_EQ(process.no_evidence, "");
  ASSERT_EQ(process.phases.size(), 2u);
  EXPECT_EQ(process.phases[0].live_bytes, 0u);
  EXPECT_EQ(process.phases[1].live_bytes, 999u * 8);
  EXPECT_FALSE(process.has_other_phases || process.has_other_marks);
  EXPECT_THAT(process.notes, testing::IsEmpty()) << "no list is shown, and the limit has all";
}

TEST(GateInputTest, MoreNamesThanAreToldApartAreKnownToBeThere) {
  ClientProgram program;
  for (int i = 0; i < 10'001; ++i) program.Phase(format::PhaseEdge::kMark, absl::StrCat("m", i));
  const GateProcess marks = ReadProcess(&program);
  EXPECT_EQ(marks.phases.size(), 10'000u);
  EXPECT_TRUE(marks.has_other_marks);
  EXPECT_FALSE(marks.has_other_phases);
  ClientProgram other;
  for (int i = 0; i < 10'001; ++i) {
    const std::string name = absl::StrCat("p", i);
    other.Phase(format::PhaseEdge::kBegin, name).Phase(format::PhaseEdge::kEnd, name);
  }
  const GateProcess phases = ReadProcess(&other);
  EXPECT_EQ(phases.phases.size(), 10'000u);
  EXPECT_TRUE(phases.has_other_phases);
  EXPECT_FALSE(phases.has_other_marks);
  EXPECT_THAT(phases.notes, testing::IsEmpty());
}

Site LiveBetween(uint64_t blocks, uint64_t first_ns, uint64_t last_ns) {
  Site site;
  site.live_blocks = blocks;
  site.live_first_time_ns = first_ns;
  site.live_last_time_ns = last_ns;
  return site;
}

// Exit handlers may free as much as they lose.
TEST(GateInputTest, WhatWasAllocatedBehindAnEarlyScanIsTold) {
  Analysis analysis;
  analysis.process.executable = "/opt/app";
  analysis.process.pid = 7;
  LeakScan scan;
  scan.reason = format::ScanReason::kExitEarly;
  scan.time_ns = 1000;
  const auto told = [&](std::vector<Site> sites, uint64_t judged) {
    analysis.sites = std::move(sites);
    analysis.totals.live_blocks = 0;
    for (const Site& site : analysis.sites) analysis.totals.live_blocks += site.live_blocks;
    scan.totals[static_cast<size_t>(LeakKind::kReachable)] = {judged * 8, judged};
    return WhatCameBehindTheScan(scan, analysis);
  };
  EXPECT_EQ(told({LiveBetween(3, 10, 1000)}, 3), "");
  EXPECT_EQ(told({LiveBetween(2, 10, 900)}, 3), "") << "one was freed";
  EXPECT_EQ(told({LiveBetween(1, 1001, 1001)}, 1),
            "app (7) was scanned before its exit handlers and destructors (exit-early), and 1 "
            "block allocated after that was not freed at its end");
  EXPECT_THAT(told({LiveBetween(2, 10, 20), LiveBetween(3, 1001, 1007)}, 9),
              testing::HasSubstr("and 3 blocks allocated after that were not freed"));
  EXPECT_THAT(told({LiveBetween(2, 10, 1007)}, 9),
              testing::HasSubstr("and 1 block allocated after that"));
  EXPECT_THAT(told({LiveBetween(5, 10, 1007)}, 9),
              testing::HasSubstr("and at least 1 block allocated after that"));
  EXPECT_THAT(told({LiveBetween(5, 10, 1007)}, 3),
              testing::HasSubstr("and at least 2 blocks allocated after that"));
  scan.reason = format::ScanReason::kExitLate;
  EXPECT_EQ(told({LiveBetween(1, 1001, 1001)}, 1), "");
  // One that an exit handler asked for, behind that at the exit.
  analysis.leak_scans.resize(2);
  analysis.leak_scans[0].state = analysis.leak_scans[1].state = LeakScan::State::kDone;
  analysis.leak_scans[0].reason = format::ScanReason::kExitEarly;
  scan.reason = analysis.leak_scans[1].reason = format::ScanReason::kRequest;
  EXPECT_EQ(told({LiveBetween(1, 1001, 1001)}, 1),
            "app (7) was last scanned on request, in what ran at its exit, and 1 block allocated "
            "after that was not freed at its end");
  analysis.leak_scans[0].reason = format::ScanReason::kRequest;
  EXPECT_EQ(told({LiveBetween(1, 1001, 1001)}, 1), "") << "WhatWasNotSeen() says that";
}

}  // namespace
}  // namespace memtrace::report::gate
