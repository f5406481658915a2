// Verdicts: what fails the gate, what does not, and when there is no answer.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/gate/judge.h"
#include "report/leak/leak_kinds.h"
#include "tests/report/gate/gate_made_up.h"

namespace memtrace::report::gate {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(JudgeTest, NothingLostIsClean) {
  MadeUpGate gate;
  gate.AddProcess("app");
  EXPECT_EQ(gate.Judge().exit_code(), 0);
}

TEST(JudgeTest, NoProcessIsNoEvidence) {
  MadeUpGate gate;
  EXPECT_EQ(gate.Judge().exit_code(), 2);
}

TEST(JudgeTest, ADefiniteLeakFailsAndAPossibleOneIsReported) {
  MadeUpGate gate;
  const uint32_t app = gate.AddProcess("app");
  gate.AddLeak(app, LeakKind::kPossible, gate.Stack("Maybe"), 500, 5);
  EXPECT_EQ(gate.Judge().exit_code(), 0);
  EXPECT_EQ(gate.result.leaks.front().verdict, Verdict::kReported);
  gate.AddLeak(app, LeakKind::kDefinite, gate.Stack("Lost"), 48, 3);
  EXPECT_EQ(gate.Judge().exit_code(), 1);
  ASSERT_THAT(gate.result.leaks, SizeIs(2));
  EXPECT_EQ(gate.result.leaks[0].kind, LeakKind::kDefinite) << "gated ones come first";
  EXPECT_EQ(gate.result.leaks[0].verdict, Verdict::kNew);
  gate.policy.fail_on = LeakKindSet::Of(LeakKind::kPossible);
  EXPECT_EQ(gate.Judge().leaks.front().kind, LeakKind::kPossible);
}

// The head of a list is a few bytes, and all of the list is lost with it.
TEST(JudgeTest, TheLeakThatMostIsLostWithComesFirst) {
  MadeUpGate gate;
  const uint32_t app = gate.AddProcess("app");
  gate.AddLeak(app, LeakKind::kDefinite, gate.Stack("Block"), 2000, 1);
  gate.AddLeak(app, LeakKind::kDefinite, gate.Stack("List"), 16, 1, {5'000'000, 1000});
  gate.Judge();
  ASSERT_THAT(gate.result.leaks, SizeIs(2));
  EXPECT_EQ(gate.result.leaks[0].total.bytes, 16u);
  EXPECT_EQ(gate.result.leaks[1].total.bytes, 2000u);
}

TEST(JudgeTest, WhatIsSuppressedIsCountedAndForgiven) {
  MadeUpGate gate;
  const uint32_t app = gate.AddProcess("app");
  gate.AddLeak(app, LeakKind::kDefinite, gate.Stack("Lost"), 48, 3);
  gate.AddLeak(app, LeakKind::kDefinite, gate.Stack("Other"), 10, 1);
  ASSERT_TRUE(gate.suppressions.Add("leak:Lost\nleak:Unused\n", "s").ok());
  EXPECT_EQ(gate.Judge().exit_code(), 1);
  EXPECT_THAT(gate.result.leaks, SizeIs(1));
  EXPECT_EQ(gate.result.suppressed.bytes, 48u);
  EXPECT_EQ(gate.result.suppressed.blocks, 3u);
  EXPECT_EQ(gate.result.totals[static_cast<size_t>(LeakKind::kDefinite)].bytes, 10u);
  EXPECT_EQ(gate.suppressions.all()[0].bytes, 48u);
  EXPECT_EQ(gate.suppressions.all()[0].records, 1u);
  EXPECT_EQ(gate.suppressions.all()[1].records, 0u);
}

TEST(JudgeTest, WhatIsSuppressedIsInNoTotal) {
  MadeUpGate gate;
  const uint32_t app = gate.AddProcess("app");
  gate.AddLeak(app, LeakKind::kDefinite, gate.Stack("Lost"), 48, 3);
  gate.AddLeak(app, LeakKind::kDefinite, gate.Stack("Other"), 10, 1);
  gate.input.processes[app].totals[static_cast<size_t>(LeakKind::kUnfreed)] = {70, 6};
  ASSERT_TRUE(gate.suppressions.Add("leak:Lost\n", "s").ok());
  gate.Judge();
  EXPECT_EQ(gate.result.totals[static_cast<size_t>(LeakKind::kUnfreed)].bytes, 22u);
  EXPECT_EQ(gate.result.totals[static_cast<size_t>(LeakKind::kUnfreed)].blocks, 3u);
}

TEST(JudgeTest, TheSameLeakInManyProcessesIsOneOfItsLargest) {
  MadeUpGate gate;
  const StackId lost = gate.Stack("Lost", 10), moved = gate.Stack("Lost", 20);
  for (const uint64_t blocks : {1, 4, 2}) {
    const uint32_t process = gate.AddProcess("app");
    gate.AddLeak(process, LeakKind::kDefinite, lost, blocks * 10, blocks);
    gate.AddLeak(process, LeakKind::kDefinite, moved, 5, 1);
  }
  gate.Judge();
  ASSERT_THAT(gate.result.leaks, SizeIs(1)) << "a line is not part of a fingerprint";
  const GateLeak& leak = gate.result.leaks.front();
  EXPECT_EQ(leak.total.bytes, 85u);
  EXPECT_EQ(leak.total.blocks, 10u);
  EXPECT_EQ(leak.most.bytes, 45u);
  EXPECT_EQ(leak.most.blocks, 5u);
  EXPECT_EQ(leak.processes, 3u);
  EXPECT_EQ(leak.stacks, 2u);
  EXPECT_EQ(leak.stack, lost);
  ASSERT_THAT(leak.by_stack, SizeIs(2));
  EXPECT_EQ(leak.by_stack[1].first, moved);
  EXPECT_EQ(leak.by_stack[1].second.bytes, 15u);
  const auto places = LeakPlaces(gate.Report(), leak);
  ASSERT_THAT(places, SizeIs(2));
  EXPECT_THAT(places[0].first, HasSubstr("Lost.c:10"));
  EXPECT_THAT(places[1].first, HasSubstr("Lost.c:20"));
  EXPECT_EQ(places[1].second.blocks, 3u);
  // The new line of a leak that is known is on the log.
  EXPECT_THAT(RenderGateText(gate.Report()), HasSubstr("15 bytes in 3 blocks at Lost  src/Lost.c:20"));
}

TEST(JudgeTest, ABaselineSaysNewGrownWithinAndFixed) {
  MadeUpGate gate;
  const uint32_t app = gate.AddProcess("app");
  const StackId stack = gate.Stack("Lost");
  gate.AddLeak(app, LeakKind::kDefinite, stack, 100, 4);
  gate.AcceptAll();
  EXPECT_EQ(gate.Judge().exit_code(), 0);
  EXPECT_EQ(gate.result.leaks.front().verdict, Verdict::kWithin);

  gate.input.losses.front().direct = {101, 4};
  EXPECT_EQ(gate.Judge().exit_code(), 1);
  EXPECT_EQ(gate.result.leaks.front().verdict, Verdict::kGrown);
  gate.policy.tolerance = {.bytes = 0, .percent = 10};
  EXPECT_EQ(gate.Judge().exit_code(), 0);
  gate.policy.tolerance = {};
  gate.input.losses.front().direct = {100, 5};
  EXPECT_EQ(gate.Judge().exit_code(), 1) << "more blocks, as many bytes";

  gate.input.losses.front().direct = {50, 2};
  gate.AddLeak(app, LeakKind::kDefinite, gate.Stack("Another"), 1, 1);
  EXPECT_EQ(gate.Judge().exit_code(), 1);
  EXPECT_EQ(gate.result.leaks.front().verdict, Verdict::kNew);
  EXPECT_EQ(gate.result.leaks.back().verdict, Verdict::kWithin);

  gate.input.losses.clear();
  EXPECT_EQ(gate.Judge().exit_code(), 0);
  ASSERT_THAT(gate.result.fixed, SizeIs(1));
  EXPECT_THAT(gate.result.fixed.front().caller, HasSubstr("Lost"));
}

// Which of the blocks of a list is its first depends on where they lie.
TEST(JudgeTest, AsLongAsNoMoreIsLostNothingHasGrown) {
  MadeUpGate gate;
  const uint32_t app = gate.AddProcess("app");
  const StackId stack = gate.Stack("Lost");
  gate.AddLeak(app, LeakKind::kDefinite, stack, 40, 4);
  gate.AddLeak(app, LeakKind::kIndirect, stack, 60, 6);
  gate.AcceptAll();
  EXPECT_EQ(gate.baseline.entries().front().lost.bytes, 100u);
  gate.input.losses[0].direct = {50, 5};
  gate.input.losses[1].direct = {50, 5};
  EXPECT_EQ(gate.Judge().exit_code(), 0);
  gate.input.losses[1].direct = {60, 6};
  EXPECT_EQ(gate.Judge().exit_code(), 1);
  EXPECT_EQ(gate.result.leaks.front().verdict, Verdict::kGrown);
  // A leak with nothing behind it has no such line.
  MadeUpGate plain;
  plain.AddLeak(plain.AddProcess("app"), LeakKind::kDefinite, plain.Stack("Lost"), 40, 4);
  plain.AcceptAll();
  EXPECT_EQ(plain.baseline.entries().front().lost.blocks, 0u);
}

// The other block of the ring leads now.
TEST(JudgeTest, WhatIsLostWithAnotherOneIsNotFixed) {
  MadeUpGate gate;
  const uint32_t app = gate.AddProcess("app");
  const StackId stack = gate.Stack("Lost");
  gate.AddLeak(app, LeakKind::kDefinite, stack, 40, 4);
  gate.AcceptAll();
  gate.input.losses.front().kind = LeakKind::kIndirect;
  gate.AddLeak(app, LeakKind::kDefinite, gate.Stack("Other"), 60, 4);
  EXPECT_EQ(gate.Judge().exit_code(), 1);
  EXPECT_THAT(gate.result.fixed, IsEmpty());
}

TEST(JudgeTest, MoreProcessesAreNoGrowth) {
  MadeUpGate gate;
  const StackId stack = gate.Stack("Lost");
  gate.AddLeak(gate.AddProcess("app"), LeakKind::kDefinite, stack, 100, 4);
  gate.AcceptAll();
  gate.AddLeak(gate.AddProcess("app"), LeakKind::kDefinite, stack, 100, 4);
  EXPECT_EQ(gate.Judge().exit_code(), 0);
}

TEST(JudgeTest, OfAProgramThatDidNotRunNothingIsFixed) {
  MadeUpGate gate;
  gate.AddLeak(gate.AddProcess("app"), LeakKind::kDefinite, gate.Stack("Lost"), 100, 4);
  gate.AcceptAll();
  MadeUpGate other;
  other.AddProcess("other");
  other.policy.has_baseline = true;
  other.baseline = gate.baseline;
  EXPECT_EQ(other.Judge().exit_code(), 0);
  EXPECT_THAT(other.result.fixed, IsEmpty());
}

TEST(JudgeTest, AnAcceptanceExpires) {
  MadeUpGate gate;
  gate.AddLeak(gate.AddProcess("app"), LeakKind::kDefinite, gate.Stack("Lost"), 100, 4);
  gate.AcceptAll();
  BaselineEntry entry = gate.baseline.entries().front();
  entry.until = "2026-11-22";
  gate.baseline = *Baseline::Parse(BaselineLine(entry), "known");
  EXPECT_EQ(gate.Judge().exit_code(), 0) << "the day is the last";
  gate.policy.today = "2026-11-23";
  EXPECT_EQ(gate.Judge().exit_code(), 1);
  EXPECT_EQ(gate.result.leaks.front().verdict, Verdict::kExpired);
}

TEST(JudgeTest, WithoutEvidenceThereIsNoAnswer) {
  MadeUpGate gate;
  gate.AddProcess("app");
  const uint32_t killed = gate.AddProcess("killed");
  gate.input.processes[killed].no_evidence = "no leak scan";
  gate.AddLeak(killed, LeakKind::kDefinite, gate.Stack("Lost"), 100, 4);
  EXPECT_EQ(gate.Judge().exit_code(), 2);
  EXPECT_THAT(gate.result.leaks, IsEmpty()) << "what it says is not believed";
  EXPECT_THAT(MissingParts(gate.result), ElementsAre("killed.2.mtr: no leak scan"));
  gate.policy.missing_evidence_fails = false;
  EXPECT_EQ(gate.Judge().exit_code(), 0);
  gate.input.processes[0].no_evidence = "as well";
  EXPECT_EQ(gate.Judge().exit_code(), 2) << "nothing at all is left";
}

TEST(JudgeTest, AFindingStandsWhateverElseIsNotKnown) {
  MadeUpGate gate;
  gate.AddLeak(gate.AddProcess("app"), LeakKind::kDefinite, gate.Stack("Lost"), 1, 1);
  gate.input.unreadable.push_back({"b.mtr", "not a trace"});
  EXPECT_EQ(gate.Judge().exit_code(), 1);
  gate.input.losses.clear();
  EXPECT_EQ(gate.Judge().exit_code(), 2);
}

TEST(JudgeTest, AProgramThatOnlyBecameAnotherProvesNothing) {
  MadeUpGate gate;
  const uint32_t shell = gate.AddProcess("sh");
  gate.input.processes[shell].replaced = true;
  gate.input.processes[shell].scanned = false;
  EXPECT_EQ(gate.Judge().exit_code(), 2);
  gate.AddProcess("app");
  EXPECT_EQ(gate.Judge().exit_code(), 0);
}

TEST(JudgeTest, ABudgetIsForEachProcess) {
  MadeUpGate gate;
  for (const uint64_t bytes : {60, 70}) {
    const uint32_t process = gate.AddProcess("app");
    gate.AddLeak(process, LeakKind::kDefinite, gate.Stack("Lost"), bytes, 1);
    gate.AddLeak(process, LeakKind::kIndirect, gate.Stack("Under"), 10, 1);
    gate.AddLeak(process, LeakKind::kReachable, gate.Stack("Kept"), 1000, 1);
  }
  gate.policy.max_leaked = {{"", 80}};
  EXPECT_EQ(gate.Judge().exit_code(), 0);
  EXPECT_EQ(gate.result.leaks.front().verdict, Verdict::kBudget);
  gate.policy.max_leaked = {{"", 79}};
  EXPECT_EQ(gate.Judge().exit_code(), 1);
  ASSERT_THAT(gate.result.excesses, SizeIs(1));
  EXPECT_EQ(gate.result.excesses.front().value, 80u);
  EXPECT_EQ(gate.result.excesses.front().pid, 42u);
  EXPECT_EQ(gate.result.excesses.front().processes, 1u);
}

// A block that is lost is among those that were not freed: it counts once.
TEST(JudgeTest, ABudgetCountsABlockOnceAndNeedsNoKinds) {
  MadeUpGate gate;
  const uint32_t process = gate.AddProcess("app");
  gate.AddLeak(process, LeakKind::kDefinite, gate.Stack("Lost"), 60, 1);
  gate.AddLeak(process, LeakKind::kIndirect, gate.Stack("Under"), 10, 1);
  gate.policy.max_leaked = {{"", 69}};
  gate.policy.fail_on = LeakKindSet();
  EXPECT_EQ(gate.Judge().exit_code(), 1);
  ASSERT_THAT(gate.result.excesses, SizeIs(1));
  EXPECT_EQ(gate.result.excesses.front().value, 70u);
  gate.AddLeak(process, LeakKind::kUnfreed, gate.Stack("Lost"), 60, 1);
  gate.AddLeak(process, LeakKind::kUnfreed, gate.Stack("Under"), 10, 1);
  gate.policy.fail_on = LeakKindSet::Of(LeakKind::kDefinite).With(LeakKind::kUnfreed);
  EXPECT_EQ(gate.Judge().exit_code(), 1);
  ASSERT_THAT(gate.result.excesses, SizeIs(1));
  EXPECT_EQ(gate.result.excesses.front().value, 70u);
  gate.input.processes[process].replaced = true;  // and has freed nothing
  gate.Judge();
  EXPECT_EQ(gate.result.excesses.front().value, 70u);
}

TEST(JudgeTest, ABudgetOfOneProgramIsNoneForOthers) {
  MadeUpGate gate;
  gate.AddLeak(gate.AddProcess("app"), LeakKind::kDefinite, gate.Stack("Lost"), 60, 1);
  gate.policy.max_leaked = {{"server", 1000}};
  EXPECT_EQ(gate.Judge().exit_code(), 1);
  EXPECT_EQ(gate.result.leaks.front().verdict, Verdict::kNew);
  gate.AddProcess("server");
  gate.policy.max_leaked = {{"server", 1000}, {"app", 60}};
  EXPECT_EQ(gate.Judge().exit_code(), 0);
  gate.policy.max_leaked = {{"server", 1000}, {"", 60}};
  EXPECT_EQ(gate.Judge().exit_code(), 0);
}

// A test program that got another name would have no limit any more.
TEST(JudgeTest, ALimitOfAProgramThatDidNotRunIsMissingEvidence) {
  MadeUpGate gate;
  const uint32_t app = gate.AddProcess("app");
  gate.input.processes[app].called_as = "application";
  for (const char* name : {"app", "application"}) {
    gate.policy.max_peak = gate.policy.max_leaked = gate.policy.max_allocations = {{name, 1}};
    gate.policy.max_invalid_frees = gate.policy.max_mismatched_frees = {{}, {name, 1}};
    EXPECT_EQ(gate.Judge().exit_code(), 0) << name;
  }
  gate.policy.max_peak = gate.policy.max_leaked = gate.policy.max_allocations = {{"ap", 1}, {"ap", 2}};
  gate.policy.max_invalid_frees = gate.policy.max_mismatched_frees = {{}, {"ap", 1}};
  EXPECT_EQ(gate.Judge().exit_code(), 2);
  const std::string why = " ap=...: no process of that name was looked at";
  EXPECT_THAT(MissingParts(gate.result),
              ElementsAre("--max-leaked" + why, "--max-peak" + why, "--max-allocations" + why,
                          "--max-invalid-frees" + why, "--max-mismatched-frees" + why));
  gate.policy.missing_evidence_fails = false;
  EXPECT_EQ(gate.Judge().exit_code(), 0);
  EXPECT_EQ(gate.result.missing_evidence.size(), 5u);
}

ProcessEnds Ended(uint32_t process, bool invalid, StackId from, StackId to, BlockEnds::By by, uint64_t times) {
  return {process, invalid, {from, to, format::AllocFunction::kMalloc, by, times}};
}

TEST(JudgeTest, OtherProgramsThanThoseThatAreJudgedTakeNoPart) {
  MadeUpGate gate;
  const uint32_t shell = gate.AddProcess("sh"), app = gate.AddProcess("app"), perl = gate.AddProcess("perl"),
                 unknown = gate.AddProcess(""), server = gate.AddProcess("redis-check-rdb");
  gate.AddProcess("sh");
  gate.input.processes[shell].no_evidence = "it was killed";
  gate.input.processes[perl].not_seen = "its end";
  gate.input.processes[perl].peak_bytes = 1000;
  gate.input.processes[perl].notes = {"of perl"};
  gate.input.processes[server].called_as = "redis-server";
  gate.AddLeak(app, LeakKind::kPossible, gate.Stack("Mine"), 5, 1);
  gate.AddLeak(perl, LeakKind::kDefinite, gate.Stack("NotMine"), 60, 1);
  gate.AddLeak(server, LeakKind::kPossible, gate.Stack("Served"), 7, 1);
  const StackId make = gate.Stack("Make"), drop = gate.Stack("Drop");
  gate.input.ends = {Ended(perl, true, make, drop, BlockEnds::By::kFree, 2),
                     Ended(server, true, make, drop, BlockEnds::By::kFree, 1)};
  gate.policy.max_peak = {{"", 999}};
  gate.policy.max_invalid_frees = {{"", 1}};
  gate.policy.programs = {"a*", "redis-server"};
  LeaveOutOthers(gate.policy, &gate.input);
  EXPECT_EQ(gate.Judge().exit_code(), 0);
  EXPECT_EQ(gate.result.processes, 3u) << "whose nobody knows is kept";
  EXPECT_THAT(gate.result.programs, ElementsAre("", "app", "redis-check-rdb"));
  EXPECT_EQ(gate.result.other_processes, 3u);
  EXPECT_EQ(gate.result.other_programs, 2u);
  EXPECT_THAT(gate.result.notes, IsEmpty());
  ASSERT_THAT(gate.result.leaks, SizeIs(2));
  EXPECT_EQ(gate.result.leaks[0].program, "redis-check-rdb");
  EXPECT_EQ(gate.result.leaks[1].program, "app");
  gate.policy.max_invalid_frees = {{"", 0}};
  EXPECT_EQ(gate.Judge().exit_code(), 1) << "the server's";
  gate.policy.max_invalid_frees = {{"", 1}};
  gate.input.processes[unknown - 2].no_evidence = "it was killed before it had written who it is";
  EXPECT_EQ(gate.Judge().exit_code(), 2);
}

TEST(JudgeTest, APatternThatNoProgramHasIsMissingEvidence) {
  MadeUpGate gate;
  gate.AddProcess("app");
  gate.policy.programs = {"app", "test_*"};
  EXPECT_EQ(gate.Judge().exit_code(), 2);
  EXPECT_THAT(MissingParts(gate.result),
              ElementsAre("--programs test_*: no process of that name was looked at"));
  // Another took its place before it was looked at.
  GateProcess& replaced = gate.input.processes[gate.AddProcess("test_run")];
  replaced.scanned = false;
  replaced.replaced = true;
  EXPECT_EQ(gate.Judge().exit_code(), 2);
  replaced.scanned = true;
  EXPECT_EQ(gate.Judge().exit_code(), 0);
  replaced.scanned = false;
  gate.policy.missing_evidence_fails = false;
  EXPECT_EQ(gate.Judge().exit_code(), 0);
}

// What a program had allocated went when another took its place: it holds none to a limit of leaks.
TEST(JudgeTest, ALimitOfWhatAProgramLeakedIsNotHeldByOneThatWasReplaced) {
  MadeUpGate gate;
  gate.AddProcess("app");
  GateProcess& starter = gate.input.processes[gate.AddProcess("starter")];
  starter.scanned = false;
  starter.replaced = true;
  gate.policy.max_peak = {{"starter", 1}};
  EXPECT_EQ(gate.Judge().exit_code(), 0);
  gate.policy.max_leaked = {{"starter", 1}};
  EXPECT_EQ(gate.Judge().exit_code(), 2);
}

TEST(JudgeTest, WhatWasNotSeenOfAProcessIsMissing) {
  MadeUpGate gate;
  const uint32_t process = gate.AddProcess("app");
  EXPECT_EQ(gate.Judge().exit_code(), 0);
  gate.input.processes[process].not_seen = "its end";
  EXPECT_EQ(gate.Judge().exit_code(), 2);
  gate.policy.missing_evidence_fails = false;
  EXPECT_EQ(gate.Judge().exit_code(), 0);
  gate.AddLeak(process, LeakKind::kDefinite, gate.Stack("Lost"), 60, 1);
  EXPECT_EQ(gate.Judge().exit_code(), 1) << "what is seen of it counts";
}

// Whatever is asked, and whatever else is not known.
TEST(JudgeTest, ForkedChildrenWithoutATraceAreMissing) {
  MadeUpGate gate;
  const uint32_t process = gate.AddProcess("app");
  gate.input.processes[process].untraced_children = "1 forked child could not create a trace";
  EXPECT_EQ(gate.Judge().exit_code(), 2);
  EXPECT_THAT(MissingParts(gate.result),
              ElementsAre("app.1.mtr: 1 forked child could not create a trace"));
  gate.input.processes[process].no_evidence = "it was killed";
  gate.Judge();
  EXPECT_THAT(gate.result.missing_evidence, SizeIs(2));
  gate.input.processes[process].no_evidence.clear();
  gate.policy.fail_on = LeakKindSet();
  gate.policy.max_peak = {{"", 1 << 30}};
  EXPECT_EQ(gate.Judge().exit_code(), 2);
  gate.policy.missing_evidence_fails = false;
  EXPECT_EQ(gate.Judge().exit_code(), 0);
}

TEST(JudgeTest, ALimitOfAProgramReplacesTheGeneralOne) {
  MadeUpGate gate;
  gate.input.processes.reserve(2);
  gate.input.processes[gate.AddProcess("small")].peak_bytes = 100;
  gate.input.processes[gate.AddProcess("large")].peak_bytes = 1000;
  gate.policy.max_peak = {{"", 100}, {"large", 1000}};
  EXPECT_EQ(gate.Judge().exit_code(), 0);
  gate.policy.max_peak = {{"", 100}, {"large", 999}};
  EXPECT_EQ(gate.Judge().exit_code(), 1);
  EXPECT_EQ(gate.result.excesses.front().program, "large");
  gate.policy.max_peak = {};
  gate.input.processes[0].allocations = 7;
  gate.policy.max_allocations = {{"", 6}};
  EXPECT_EQ(gate.Judge().exit_code(), 1);
  EXPECT_THAT(ExcessText(gate.result.excesses.front()), HasSubstr("7 allocations, at most 6"));
}

TEST(JudgeTest, NoInvalidFreeIsAllowedWhereNothingIsSaid) {
  MadeUpGate gate;
  const uint32_t app = gate.AddProcess("app");
  gate.input.ends = {Ended(app, true, gate.Stack("Make"), gate.Stack("Drop"), BlockEnds::By::kFree, 2)};
  EXPECT_EQ(gate.Judge().exit_code(), 1);
  EXPECT_EQ(ExcessName(gate.result.excesses.front().what), "invalid-frees");
  EXPECT_THAT(ExcessText(gate.result.excesses.front()), HasSubstr("2 invalid frees, at most 0"));
  EXPECT_THAT(FreePlaces(gate.Report(), gate.result.excesses.front()),
              ElementsAre("malloc at Make src/Make.c:10, free at Drop src/Drop.c:10, 2 times"));
  gate.policy.max_invalid_frees = {{"", 0}, {"app", 2}};
  EXPECT_EQ(gate.Judge().exit_code(), 0);
  gate.policy.max_invalid_frees = {{"", 0}};
  gate.input.processes[app].no_evidence = "it was killed";
  EXPECT_EQ(gate.Judge().exit_code(), 1) << "it was one all the same";
  ASSERT_TRUE(gate.suppressions.Add("{\n   known\n   Memcheck:Free\n   fun:free\n   fun:Drop\n}\n", "s").ok());
  EXPECT_EQ(gate.Judge().exit_code(), 2);
  EXPECT_EQ(gate.suppressions.all()[0].records, 2u);
}

TEST(JudgeTest, GrowthIsFromTheFirstMarkToTheLast) {
  MadeUpGate gate;
  gate.input.processes[gate.AddProcess("app")].phases = {
      {"turn", 1, 100}, {"done", 2, 500}, {"turn", 3, 130}, {"turn", 4, 140}};
  gate.policy.max_growth = {{"", "turn", "turn", 40}};
  EXPECT_EQ(gate.Judge().exit_code(), 0);
  gate.policy.max_growth = {{"", "turn", "turn", 39}};
  EXPECT_EQ(gate.Judge().exit_code(), 1);
  EXPECT_EQ(gate.result.excesses.front().value, 40u);
  gate.policy.max_growth = {{"", "done", "turn", 0}};
  EXPECT_EQ(gate.Judge().exit_code(), 0) << "it shrank";
  gate.policy.max_growth = {{"", "done", "absent", 0}};
  EXPECT_EQ(gate.Judge().exit_code(), 2) << "what was not measured is not within a limit";
  gate.policy.max_growth = {{"", "turn", "turn", 39}, {"app", "turn", "turn", 40}};
  EXPECT_EQ(gate.Judge().exit_code(), 0) << "its own limit is in place of the general one";
  gate.policy.max_growth = {{"other", "turn", "turn", 39}};
  EXPECT_EQ(gate.Judge().exit_code(), 2) << "no process of it passed there";
}

TEST(JudgeTest, AGrowthBetweenNamesThatAreNotToldApartIsNotKnown) {
  MadeUpGate gate;
  const uint32_t app = gate.AddProcess("app");
  gate.input.processes[app].phases = {{"turn", 1, 100}, {"turn", 2, 100}};
  gate.input.processes[app].has_other_marks = true;
  gate.policy.max_growth = {{"", "turn", "turn", 0}};
  EXPECT_EQ(gate.Judge().exit_code(), 0) << "these are told";
  gate.policy.max_growth = {{"", "turn", "m12000", 0}};
  const auto reason = [&] {
    EXPECT_EQ(gate.Judge().exit_code(), 2);
    EXPECT_EQ(gate.result.missing_evidence.size(), 1u);
    return gate.result.missing_evidence.empty() ? "" : gate.result.missing_evidence[0].why;
  };
  EXPECT_EQ(reason(),
            "--max-growth turn..m12000: whether app (41) came to m12000 is not known: it gave its "
            "marks more names than are told apart");
  gate.policy.max_growth = {{"app", "m1", "m2", 0}};
  gate.input.processes[app].has_other_phases = true;
  EXPECT_EQ(reason(),
            "--max-growth app=m1..m2: whether app (41) came to m1 and m2 is not known: it gave its "
            "phases and marks more names than are told apart");
  // That another process came to both says nothing of it.
  gate.input.processes[gate.AddProcess("other")].phases = {{"m1", 1, 100}, {"m2", 2, 100}};
  gate.policy.max_growth = {{"", "m1", "m2", 0}};
  EXPECT_THAT(reason(), HasSubstr("whether app (41) came to m1 and m2 is not known"));
  gate.policy.max_growth = {{"other", "m1", "m2", 0}};
  EXPECT_EQ(gate.Judge().exit_code(), 0);
  gate.input.processes[gate.AddProcess("app")].has_other_marks = true;
  gate.policy.max_growth = {{"", "m2", "m1", 0}, {"app", "m2", "m1", 0}};
  EXPECT_THAT(reason(), HasSubstr("more names than are told apart (and 1 more)"));
}

TEST(JudgeTest, WhatPerlDoesNotFreeHasANote) {
  constexpr uint32_t kPerl = 4;
  MadeUpGate gate;
  gate.made_up.AddModule(kPerl, "/usr/bin/perl", 0x7f2000000000, format::kModulePermanent);
  const uint32_t process = gate.AddProcess("perl");
  gate.AddLeak(process, LeakKind::kDefinite, gate.Stack("Parse"), 10, 1);
  EXPECT_THAT(gate.Judge().notes, testing::Not(testing::Contains(HasSubstr("PERL_DESTRUCT_LEVEL"))));
  const StackId kept =
      gate.made_up.Stack({{"Perl_more_sv", "", 0, kPerl}, {"perl_construct", "", 0, kPerl}});
  gate.made_up.AddSite(kept, 1, 1, 0);
  gate.AddLeak(process, LeakKind::kDefinite, kept, 10, 1);
  EXPECT_THAT(gate.Judge().notes, testing::Contains(HasSubstr("PERL_DESTRUCT_LEVEL=2")));
  gate.AcceptAll();
  EXPECT_THAT(gate.Judge().notes, testing::Not(testing::Contains(HasSubstr("PERL_DESTRUCT_LEVEL"))))
      << "it fails nothing";
}

// What has no leak may have some that nobody sees.
TEST(JudgeTest, AllocatorsThatHideLeaksHaveNotes) {
  using format::AllocFunction;
  MadeUpGate gate;
  const uint32_t app = gate.AddProcess("app"), python = gate.AddProcess("python3.11");
  const StackId sliced = gate.made_up.Stack(
      {{"", "", 0, kPlugin}, {"g_slice_alloc", "", 0, kPlugin}, {"main", "/work/main.c", 3}});
  gate.made_up.AddSite(sliced, 1, 1, 0);
  gate.AddLeak(app, LeakKind::kReachable, sliced, 496, 1);
  gate.AddLeak(app, LeakKind::kReachable, gate.Stack("Align"), 496, 1);
  gate.input.losses.back().function = AllocFunction::kPosixMemalign;
  const auto of_slices = testing::Contains(HasSubstr("G_SLICE=always-malloc"));
  const auto of_python = testing::Contains(HasSubstr("PYTHONMALLOC=malloc"));
  EXPECT_THAT(gate.Judge().notes, AllOf(testing::Not(of_slices), testing::Not(of_python)))
      << "this slice is of malloc, and that is none";
  gate.input.losses.front().function = AllocFunction::kPosixMemalign;
  EXPECT_EQ(gate.Judge().exit_code(), 0);
  EXPECT_THAT(gate.result.notes, AllOf(of_slices, testing::Not(of_python)));
  gate.input.processes[python].pymalloc = true;
  EXPECT_EQ(gate.Judge().exit_code(), 0);
  EXPECT_THAT(gate.result.notes, AllOf(of_slices, of_python));
  gate.input.processes[python].no_evidence = "it was not scanned";
  EXPECT_THAT(gate.Judge().notes, AllOf(of_slices, testing::Not(of_python)));
  gate.policy.fail_on = LeakKindSet();
  EXPECT_THAT(gate.Judge().notes, AllOf(testing::Not(of_slices), testing::Not(of_python)))
      << "no scan was asked for";
}

Analysis Ended(ProcessInfo::End end) {
  Analysis analysis;
  analysis.process.end = end;
  return analysis;
}

TEST(EvidenceTest, ADefiniteAnswerNeedsACompleteScan) {
  const GatePolicy policy;
  Analysis analysis = Ended(ProcessInfo::End::kExit);
  EXPECT_THAT(WhyNoEvidence(analysis, policy), HasSubstr("no leak scan: an imported log has none"));
  analysis.process.start_realtime_ns = 1;
  EXPECT_THAT(WhyNoEvidence(analysis, policy), HasSubstr("no leak scan: MEMTRACE_LEAK_CHECK=off"));
  analysis.leak_scans.emplace_back();
  EXPECT_THAT(WhyNoEvidence(analysis, policy), HasSubstr("cut short"));
  analysis.leak_scans.back().state = LeakScan::State::kFailed;
  analysis.leak_scans.back().failure = "fork: no memory";
  EXPECT_THAT(WhyNoEvidence(analysis, policy), HasSubstr("failed: fork: no memory"));
  analysis.leak_scans.back().state = LeakScan::State::kDone;
  EXPECT_EQ(WhyNoEvidence(analysis, policy), "");
  analysis.totals.live_blocks = 3;
  EXPECT_THAT(WhyNoEvidence(analysis, policy), HasSubstr("judged no block"));
  analysis.leak_scans.back().totals[static_cast<size_t>(LeakKind::kReachable)] = {8, 1};
  EXPECT_EQ(WhyNoEvidence(analysis, policy), "");
  analysis.leak_scans.emplace_back();
  EXPECT_NE(WhyNoEvidence(analysis, policy), "") << "the last one did not end";
}

TEST(EvidenceTest, AnEndThatCouldNotBeScannedHasItsCauseAndItsCure) {
  const GatePolicy policy;
  Analysis analysis = Ended(ProcessInfo::End::kExit);
  analysis.process.start_realtime_ns = 1;
  analysis.process.exit_unseen = true;
  EXPECT_EQ(WhyNoEvidence(analysis, policy),
            "no leak scan: it ended in a way that the library does not see, most likely by a raw "
            "exit_group as Go's runtime makes, and was not scanned then: let it end by libc's "
            "exit(), in Go C.exit()");
  Analysis asked = analysis;
  LeakScan& scan = asked.leak_scans.emplace_back();
  scan.state = LeakScan::State::kDone;
  scan.reason = format::ScanReason::kRequest;
  EXPECT_EQ(WhyNoEvidence(asked, policy), "");
  EXPECT_THAT(WhatWasNotSeen(asked, policy), HasSubstr("in Go C.exit()"));
  Analysis full = analysis;
  full.coverage.recording_end_ns = 1'000'000'000;
  EXPECT_THAT(WhyNoEvidence(full, policy), HasSubstr("the recording stopped"));
  analysis.process.end = ProcessInfo::End::kCut;
  analysis.process.exit_unseen = false;
  EXPECT_THAT(WhyNoEvidence(analysis, policy), HasSubstr("raw exit_group")) << "nobody saw it";
}

TEST(EvidenceTest, WithoutItsEndNothingIsUnfreed) {
  GatePolicy policy;
  policy.fail_on = LeakKindSet::Of(LeakKind::kUnfreed);
  EXPECT_EQ(WhyNoEvidence(Ended(ProcessInfo::End::kExit), policy), "");
  EXPECT_THAT(WhyNoEvidence(Ended(ProcessInfo::End::kCut), policy), HasSubstr("killed"));
  Analysis analysis = Ended(ProcessInfo::End::kSignal);
  analysis.process.end_signal = 11;
  EXPECT_THAT(WhyNoEvidence(analysis, policy), HasSubstr("SIGSEGV"));
  Analysis at_once = Ended(ProcessInfo::End::kCut);
  at_once.process.has_record = false;
  EXPECT_THAT(WhyNoEvidence(at_once, GatePolicy()),
              HasSubstr("no leak scan: it was killed before it had written who it is"));
}

TEST(EvidenceTest, LimitsAloneNeedNoScan) {
  GatePolicy policy;
  policy.fail_on = LeakKindSet();
  policy.max_peak = {{"", 1}};
  EXPECT_EQ(WhyNoEvidence(Ended(ProcessInfo::End::kSignal), policy), "");
  policy.max_leaked = {{"", 1}};
  EXPECT_THAT(WhyNoEvidence(Ended(ProcessInfo::End::kExit), policy), HasSubstr("no leak scan"));
}

TEST(EvidenceTest, MissingEventsProveNothing) {
  GatePolicy policy;
  policy.fail_on = LeakKindSet::Of(LeakKind::kUnfreed);
  const auto why = [&](auto change) {
    Analysis analysis = Ended(ProcessInfo::End::kExit);
    change(analysis);
    return WhyNoEvidence(analysis, policy);
  };
  EXPECT_THAT(why([](Analysis& a) {
                a.process.start_realtime_ns = 1;
                a.coverage.dropped_events = 2;
              }),
              HasSubstr("2 events could not be written"));
  EXPECT_THAT(why([](Analysis& a) { a.coverage.dropped_events = 2; }),
              HasSubstr("2 events are missing in the log"))
      << "an imported one";
  EXPECT_THAT(why([](Analysis& a) { a.coverage.damage = "byte 12"; }), HasSubstr("byte 12"));
  EXPECT_THAT(why([](Analysis& a) { a.coverage.lost_blocks = 1; }), HasSubstr("missing"));
  EXPECT_THAT(why([](Analysis& a) { a.coverage.window_begin_ns = 1; }), HasSubstr("newest"));
  EXPECT_THAT(why([](Analysis& a) { a.process.sample_bytes = 512; }), HasSubstr("sample"));
  EXPECT_THAT(why([](Analysis& a) { a.coverage.unseen_allocators.push_back({"app", "", {}}); }),
              HasSubstr("a malloc of its own"));
  // Whatever else is missing.
  EXPECT_THAT(why([](Analysis& a) { a.coverage.events_missing = true; }),
              HasSubstr("lines of the log were not understood"));
  EXPECT_THAT(why([](Analysis& a) {
                a.process.start_realtime_ns = 1;
                a.coverage.events_missing = true;
              }),
              HasSubstr("not in the trace"));
  EXPECT_EQ(why([](Analysis&) {}), "");
}

}  // namespace
}  // namespace memtrace::report::gate
