// What a program tells by memtrace.h, in the analysis: ignored blocks, phases, a stopped recording.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "report/analysis/coverage.h"
#include "report/model/phases.h"
#include "tests/report/client_program.h"

namespace memtrace::report {
namespace {

using format::ExtendedType;
using format::PhaseEdge;
using testing::HasSubstr;

std::vector<uint64_t> Ignored(const Analysis& a) {
  std::vector<uint64_t> addresses;
  for (const LiveBlock& block : a.live) {
    if (block.ignored) addresses.push_back(block.address);
  }
  return addresses;
}

TEST(IgnoredBlocksTest, ByAddressByInnerAddressAndByThread) {
  ClientProgram program;
  program.Malloc(0x10000, 64).Malloc(0x20000, 64).Malloc(0x30000, 64);
  program.Tell(ExtendedType::kIgnoreBlock, {0x10000}).Tell(ExtendedType::kIgnoreBlock, {0x20010});
  program.Tell(ExtendedType::kIgnoreBlock, {0x30040});  // one past its end
  program.Tell(ExtendedType::kLeaksDisabled, {1}).Malloc(0x40000, 64).BlockAlloc(0x500000, 1);
  program.Tell(ExtendedType::kLeaksDisabled, {0}).Malloc(0x50000, 64).BlockAlloc(0x600000, 9);
  program.Tell(ExtendedType::kIgnoreBlock, {0x600004});
  program.Malloc(0x60000, 64).Tell(ExtendedType::kIgnoreBlock, {0x60000}).Free(0x60000);
  program.Malloc(0x60000, 64);
  AnalyzeOptions options;
  options.keep_live_blocks = true;
  EXPECT_THAT(Ignored(program.Analyzed(options).analysis),
              testing::ElementsAre(0x10000, 0x20000, 0x40000, 0x500000, 0x600000));
}

TEST(StoppedRecordingTest, BlocksOfThatTimeAreInNoFigure) {
  ClientProgram program;
  program.Malloc(0x10000, 64).Malloc(0x20000, 64);
  program.Tell(ExtendedType::kRecordingStopped, {1, 0});
  program.Tick().Malloc(0x30000, 1000, format::kStoppedSlot);
  program.Tick().Malloc(0x40000, 1000, format::kStoppedSlot);
  program.Free(0x10000).Free(0x30000);
  program.Tell(ExtendedType::kRecordingStopped, {0, 0});
  program.Free(0x40000).Malloc(0x50000, 10);
  const AnalyzedTrace t = program.Analyzed();
  const Analysis& a = t.analysis;
  ExpectConsistent(a);
  EXPECT_EQ(a.totals.allocations, 3u);
  EXPECT_EQ(a.totals.live_bytes, 74u);
  EXPECT_EQ(a.totals.peak_live_bytes, 128u);
  EXPECT_EQ(a.totals.earlier_frees, 0u);
  EXPECT_EQ(a.coverage.unknown_frees, 0u);
  EXPECT_EQ(a.coverage.marked_stacks, 0u);
  EXPECT_EQ(a.coverage.stops, 1u);
  EXPECT_EQ(a.coverage.stopped_ns, 5000u);
  EXPECT_EQ(a.coverage.stopped_allocations, 2u);
  EXPECT_EQ(a.coverage.stopped_frees, 2u);
}

// What was allocated meanwhile may be lost: nobody looked. That no block is missing in the trace,
// which tells double frees from others, is as true as without.
TEST(StoppedRecordingTest, NotAllIsRecordedWhereSomethingWasAllocatedThen) {
  ClientProgram program;
  program.Malloc(0x10000, 64).Tell(ExtendedType::kRecordingStopped, {1, 0}).Free(0x10000);
  program.Tell(ExtendedType::kRecordingStopped, {0, 0});
  const AnalyzedTrace freed = program.Analyzed();
  EXPECT_EQ(freed.analysis.coverage.stops, 1u);
  EXPECT_TRUE(AllRecorded(freed.analysis.coverage));
  EXPECT_TRUE(StopsNote(freed.analysis.coverage).harmless);
  program.Tell(ExtendedType::kRecordingStopped, {1, 0});
  program.Tick().Malloc(0x30000, 1000, format::kStoppedSlot);
  program.Tell(ExtendedType::kRecordingStopped, {0, 0});
  const AnalyzedTrace allocated = program.Analyzed();
  EXPECT_FALSE(AllRecorded(allocated.analysis.coverage));
  EXPECT_FALSE(allocated.analysis.coverage.events_missing);
  EXPECT_TRUE(AllAllocationsSeen(allocated.analysis));
  EXPECT_FALSE(StopsNote(allocated.analysis.coverage).harmless);
  EXPECT_THAT(
      CoverageNotes(allocated.analysis),
      testing::Contains(testing::ContainsRegex("^recording stopped by the program 2 times for "
                                               ".*: 1 allocation then is in no figure$")));
}

TEST(LossTextsTest, TellAllThatATraceLacks) {
  Coverage coverage;
  coverage.stops = 1;
  coverage.interrupted = true;
  EXPECT_THAT(LossTexts(coverage), testing::IsEmpty()) << "that is told when it happens";
  coverage.dropped_events = 5213;
  coverage.recording_end_ns = 16'000'000;
  coverage.stopped_allocations = 2;
  EXPECT_THAT(LossTexts(coverage),
              testing::ElementsAre("5,213 events lost",
                                   "the recording ended before the program did, after 0.016 s",
                                   HasSubstr("2 allocations then are in no figure")));
  coverage = {};
  coverage.window_begin_ns = 2'000'000'000;
  EXPECT_THAT(LossTexts(coverage),
              testing::ElementsAre("the trace keeps the newest events only, from 2.000 s on"));
}

TEST(StoppedRecordingTest, WhatWasNeverStoppedHasNoNote) {
  ClientProgram program;
  program.Malloc(0x10000, 64);
  EXPECT_EQ(StopsNote(program.Analyzed().analysis.coverage).text, "");
}

// A fork child of a process that was stopped says so by its events alone.
TEST(StoppedRecordingTest, MayHaveBeenStoppedSinceTheBegin) {
  ClientProgram program;
  program.Tick().Malloc(0x10000, 1000, format::kStoppedSlot).Malloc(0x20000, 1000, format::kStoppedSlot);
  const AnalyzedTrace all = program.Analyzed();
  EXPECT_EQ(all.analysis.coverage.stops, 1u);
  EXPECT_EQ(all.analysis.coverage.stopped_allocations, 2u);
  EXPECT_GT(all.analysis.coverage.stopped_ns, 0u);
  program.Tell(ExtendedType::kRecordingStopped, {0, 0}).Malloc(0x30000, 10);
  const AnalyzedTrace part = program.Analyzed();
  EXPECT_EQ(part.analysis.coverage.stops, 1u);
  EXPECT_EQ(part.analysis.totals.allocations, 1u);
}

TEST(PhasesTest, TheLargestGrowthMayBeNothing) {
  ClientProgram program;
  program.Malloc(0x10000, 5).Phase(PhaseEdge::kBegin, "turn").Phase(PhaseEdge::kEnd, "turn");
  program.Phase(PhaseEdge::kBegin, "turn").Free(0x10000).Phase(PhaseEdge::kEnd, "turn");
  const AnalyzedTrace t = program.Analyzed();
  ASSERT_EQ(t.analysis.phases.size(), 1u);
  EXPECT_EQ(t.analysis.phases[0].growth_bytes, -5);
  EXPECT_EQ(t.analysis.phases[0].largest_growth_bytes, 0);
}

TEST(PhasesTest, CountWhatHappensInThem) {
  ClientProgram program;
  program.Malloc(0x10000, 100).Phase(PhaseEdge::kBegin, "load").Malloc(0x20000, 50);
  program.Phase(PhaseEdge::kBegin, "parse").Malloc(0x30000, 7).Phase(PhaseEdge::kMark, "half");
  program.Phase(PhaseEdge::kEnd, "parse").Free(0x10000).Phase(PhaseEdge::kEnd, "load");
  program.Phase(PhaseEdge::kBegin, "parse").Malloc(0x40000, 30).Phase(PhaseEdge::kEnd, "parse");
  program.Phase(PhaseEdge::kEnd, "never begun").Phase(PhaseEdge::kBegin, "open");
  program.Malloc(0x50000, 1);
  const AnalyzedTrace t = program.Analyzed();
  const Analysis& a = t.analysis;
  ASSERT_EQ(a.phases.size(), 3u);
  const Phase& load = a.phases[0];
  EXPECT_EQ(load.name, "load");
  EXPECT_EQ(load.times, 1u);
  EXPECT_EQ(load.first_begin.live_bytes, 100u);
  EXPECT_EQ(load.last_end.live_bytes, 57u);
  EXPECT_EQ(load.growth_bytes, -43);
  EXPECT_EQ(load.largest_growth_bytes, -43);
  EXPECT_EQ(load.growth_blocks, 1);
  EXPECT_EQ(load.allocations, 2u);
  EXPECT_EQ(load.frees, 1u);
  EXPECT_EQ(load.bytes_allocated, 57u);
  EXPECT_EQ(load.total_ns, 7000u);
  const Phase& parse = a.phases[1];
  EXPECT_EQ(parse.times, 2u);
  EXPECT_EQ(parse.growth_bytes, 37);
  EXPECT_EQ(parse.largest_growth_bytes, 30);
  EXPECT_EQ(parse.allocations, 2u);
  EXPECT_EQ(a.phases[2].open, 1u);
  EXPECT_EQ(a.phases[2].growth_bytes, 1);
  ASSERT_EQ(a.marks.size(), 1u);
  EXPECT_EQ(a.marks[0].name, "half");
  EXPECT_EQ(a.marks[0].live_bytes, 157u);
}

TEST(PhasesTest, NameInstants) {
  ClientProgram program;
  program.Phase(PhaseEdge::kBegin, "a").Phase(PhaseEdge::kBegin, "a").Phase(PhaseEdge::kEnd, "a");
  program.Phase(PhaseEdge::kMark, "m").Phase(PhaseEdge::kEnd, "a").Phase(PhaseEdge::kBegin, "b#2");
  auto reader = Read(program.Bytes());
  ASSERT_TRUE(reader.ok());
  const auto at = [&](const char* name, bool end) { return FindInstant(**reader, name, end); };
  EXPECT_EQ(*at("phase:a", false), 1000u);
  EXPECT_EQ(*at("phase:a", true), 5000u) << "the inner one ends first";
  EXPECT_EQ(*at("phase:a#2", false), 2000u);
  EXPECT_EQ(*at("phase:a#2", true), 3000u);
  EXPECT_EQ(*at("mark:m", false), 4000u);
  EXPECT_EQ(*at("mark:m", true), 4000u);
  EXPECT_EQ(*at("phase:b#2", false), 6000u);
  EXPECT_EQ(*at("phase:b#2", true), UINT64_MAX) << "it does not end";
  EXPECT_THAT(at("phase:m", false).status().message(),
              HasSubstr("has no 'phase:m'; there are: phase:a, mark:m, phase:b#2"));
  EXPECT_FALSE(at("phase:a#3", false).ok());
}

TEST(PhasesTest, SelectARange) {
  ClientProgram program;
  program.Phase(PhaseEdge::kBegin, "before").Phase(PhaseEdge::kMark, "early");
  program.Phase(PhaseEdge::kEnd, "before").Phase(PhaseEdge::kBegin, "all").Malloc(0x10000, 100);
  program.Phase(PhaseEdge::kBegin, "load").Malloc(0x20000, 50).Phase(PhaseEdge::kMark, "in it");
  program.Phase(PhaseEdge::kEnd, "load").Malloc(0x30000, 7);
  AnalyzeOptions options;
  options.from_name = options.to_name = "phase:load";
  const AnalyzedTrace t = program.Analyzed(options);
  EXPECT_EQ(t.analysis.totals.bytes_allocated, 50u);
  std::vector<std::string> names;  // of what has something of the range
  for (const auto& phase : t.analysis.phases) names.push_back(phase.name);
  EXPECT_THAT(names, testing::UnorderedElementsAre("all", "load"));
  ASSERT_EQ(t.analysis.marks.size(), 1u);
  EXPECT_EQ(t.analysis.marks[0].name, "in it");
}

// What ended before the range is none of its times.
TEST(PhasesTest, ArePartsOfARange) {
  ClientProgram program;
  program.Phase(PhaseEdge::kBegin, "turn").Malloc(0x10000, 1).Phase(PhaseEdge::kEnd, "turn");
  program.Phase(PhaseEdge::kBegin, "turn").Phase(PhaseEdge::kBegin, "turn");
  program.Phase(PhaseEdge::kEnd, "turn").Phase(PhaseEdge::kMark, "here");
  program.Malloc(0x20000, 50).Phase(PhaseEdge::kEnd, "turn");
  program.Phase(PhaseEdge::kBegin, "turn").Malloc(0x30000, 7).Phase(PhaseEdge::kEnd, "turn");
  AnalyzeOptions options;
  options.from_name = "mark:here";
  const AnalyzedTrace t = program.Analyzed(options);
  ASSERT_EQ(t.analysis.phases.size(), 1u);
  const Phase& turn = t.analysis.phases[0];
  EXPECT_EQ(turn.times, 2u) << "the outer one of the second two, and the last";
  EXPECT_EQ(turn.allocations, 2u);
  EXPECT_EQ(turn.bytes_allocated, 57u);
  EXPECT_EQ(turn.first_begin.time_ns, 4000u);
  EXPECT_EQ(turn.last_begin.time_ns, 10'000u);
  EXPECT_EQ(turn.first_end.time_ns, 9000u);
  EXPECT_EQ(turn.total_ns, 4000u) << "2 of the one's 5 are in the range";
}

// What is left out is counted, and a later begin has later ones.
TEST(PhasesTest, TheFirstTenThousandAreTold) {
  ClientProgram program;
  for (int i = 0; i < 12'000; ++i) program.Phase(PhaseEdge::kMark, std::to_string(i));
  for (int i = 0; i < 10'003; ++i) program.Phase(PhaseEdge::kBegin, std::to_string(i));
  const std::string bytes = program.Bytes();
  const AnalyzedTrace whole = Analyze(bytes);
  ASSERT_EQ(whole.analysis.marks.size(), 10'000u);
  EXPECT_EQ(whole.analysis.marks.back().name, "9999");
  EXPECT_EQ(whole.analysis.marks_left_out, 2000u);
  EXPECT_EQ(whole.analysis.named_marks.size(), 10'000u);
  EXPECT_EQ(whole.analysis.named_marks_left_out, 2000u);
  EXPECT_EQ(whole.analysis.phases.size(), 10'000u);
  EXPECT_EQ(whole.analysis.phases_left_out, 3u);
  const auto has_note = [&](const char* text) {
    return std::ranges::any_of(whole.analysis.coverage.notes, [&](const CoverageNote& note) {
      return note.text == text && note.harmless && note.of_lists;
    });
  };
  EXPECT_TRUE(has_note("2000 marks behind the first 10000 are not told: memtrace report --from "
                       "TIME has later ones."));
  EXPECT_TRUE(has_note("The program named more phases than are told apart: 3 of others are not "
                       "told."));
  AnalyzeOptions options;
  options.from_name = "mark:5000";
  const AnalyzedTrace later = program.Analyzed(options);
  ASSERT_EQ(later.analysis.marks.size(), 7000u);
  EXPECT_EQ(later.analysis.marks.front().name, "5000");
  EXPECT_EQ(later.analysis.marks_left_out, 0u);
  EXPECT_EQ(later.analysis.named_marks.size(), 7000u);
  EXPECT_EQ(later.analysis.named_marks_left_out, 0u);
  EXPECT_EQ(later.analysis.phases.size(), 10'000u) << "those are of the whole run";
  EXPECT_EQ(later.analysis.phases_left_out, 3u);
  options.from_name = "phase:10001";
  EXPECT_EQ(program.Analyzed(options).analysis.phases_left_out, 2u) << "one began before the range";
}

// Between the first and the last one is what grew.
TEST(PhasesTest, TheLastMarkOfANameIsKeptHoweverManyThereAre) {
  ClientProgram program;
  program.Malloc(0x10000, 100).Phase(PhaseEdge::kMark, "turn").Phase(PhaseEdge::kMark, "once");
  for (int i = 0; i < 12'000; ++i) program.Phase(PhaseEdge::kMark, "turn");
  const uint64_t middle = program.now();
  program.Phase(PhaseEdge::kMark, "turn").Malloc(0x20000, 7).Phase(PhaseEdge::kMark, "turn");
  const AnalyzedTrace whole = program.Analyzed();
  EXPECT_EQ(whole.analysis.marks_left_out, 2004u);
  EXPECT_EQ(whole.analysis.named_marks_left_out, 0u);
  ASSERT_EQ(whole.analysis.named_marks.size(), 2u);
  const NamedMarks& turn = whole.analysis.named_marks[0];
  EXPECT_EQ(turn.name, "turn");
  EXPECT_EQ(turn.times, 12'003u);
  EXPECT_EQ(turn.first.time_ns, 2000u);
  EXPECT_EQ(turn.first.live_bytes, 100u);
  EXPECT_EQ(turn.last.time_ns, program.now());
  EXPECT_EQ(turn.last.live_bytes, 107u);
  const NamedMarks& once = whole.analysis.named_marks[1];
  EXPECT_EQ(once.times, 1u);
  EXPECT_EQ(once.first.time_ns, once.last.time_ns);
  AnalyzeOptions options;
  options.range.from_ns = middle + 1;
  const AnalyzedTrace later = program.Analyzed(options);
  ASSERT_EQ(later.analysis.named_marks.size(), 1u);
  EXPECT_EQ(later.analysis.named_marks[0].times, 2u);
  EXPECT_EQ(later.analysis.named_marks[0].first.time_ns, middle + 1000);
}

}  // namespace
}  // namespace memtrace::report
