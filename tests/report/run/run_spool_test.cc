// All the traces of a run: who gets which name, what is left, what is said.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "report/run/closing_line.h"
#include "report/run/spool_follower.h"
#include "tests/report/run/run_processes.h"

namespace memtrace::report {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

// Is a RunningProgram that was `was` before an exec.
MATCHER_P2(RunsAfter, program, was, "") { return arg.program == program && arg.was == was; }
auto Runs(const char* program) { return RunsAfter(program, ""); }

class SpoolFollowerTest : public ::testing::Test {
 protected:
  SpoolFollowerTest() : spool_(*SpoolDirectory::Create(directory_ / "out.mtr")) {}
  std::string Raw(const std::string& program, uint32_t pid, uint64_t start) {
    return spool_.path() + "/" + RawName(program, pid, start);
  }
  SpoolFollowerOptions Options(uint32_t root_pid) {
    SpoolFollowerOptions options;
    options.run = {directory_ / "out.mtr", root_pid};
    return options;
  }
  TempDir directory_;
  SpoolDirectory spool_;
};

TEST_F(SpoolFollowerTest, NamesTheRootAndItsChildren) {
  const uint32_t root = EndedPid(), child = EndedPid();
  for (int i = 0; i < 2; ++i) {
    RawTrace(Raw("sort", child, 20 + i), child).AppendNote("child");
  }
  RawTrace(Raw("sh", root, 10), root).AppendNote("root");
  SpoolFollower follower(spool_, Options(root));
  follower.Start();
  const ProgramEnd end;
  const RunResult result = follower.Stop(&end);
  EXPECT_THAT(result.failures, IsEmpty());
  EXPECT_THAT(result.traces, SizeIs(3));
  EXPECT_TRUE(spool_.RemoveIfEmpty());
  const std::string pid = std::to_string(child);
  EXPECT_THAT(FilesIn(directory_), UnorderedElementsAre("out.mtr", "out.sort." + pid + ".mtr",
                                                        "out.sort." + pid + ".1.mtr"));
  EXPECT_THAT(PackedTrace::Read(directory_ / "out.mtr").notes, ElementsAre("root"));
  EXPECT_THAT(PackedTrace::Read(directory_ / "out.mtr").observed_end, SizeIs(6));
  EXPECT_THAT(PackedTrace::Read(directory_ / ("out.sort." + pid + ".mtr")).observed_end, IsEmpty());
}

TEST_F(SpoolFollowerTest, GivesTheNameToTheLastImageOfAnExecChain) {
  const uint32_t root = EndedPid();
  RawTrace second(Raw("app", root, 30), root), first(Raw("sh", root, 9), root);
  first.AppendEnd(format::EndReason::kExec);
  first.Close();
  second.AppendEnd(format::EndReason::kExit);
  second.Close();
  SpoolFollower follower(spool_, Options(root));
  ProgramEnd end;
  end.status = 3;
  const RunResult result = follower.Stop(&end);
  ASSERT_THAT(result.traces, SizeIs(2));
  EXPECT_EQ(result.traces[0].path, directory_ / ("out.sh." + std::to_string(root) + ".mtr"));
  EXPECT_FALSE(result.traces[0].main);
  EXPECT_EQ(result.traces[1].path, directory_ / "out.mtr");
  EXPECT_EQ(result.traces[1].program, "app");
  EXPECT_TRUE(result.traces[1].main);
  EXPECT_THAT(PackedTrace::Read(result.traces[0].path).observed_end, IsEmpty());
  EXPECT_EQ(PackedTrace::Read(result.traces[1].path).observed_end.at(1), 3u);
}

TEST_F(SpoolFollowerTest, LeavesAProcessThatStillRunsAndFinishesItLater) {
  const uint32_t root = EndedPid();
  Sleeper daemon;
  RawTrace root_trace(Raw("starter", root, 1), root);
  RawTrace trace(Raw("daemon", daemon.pid(), 2), daemon.pid());
  root_trace.Close();
  WriteMuch(&trace, 1, 30);
  {
    SpoolFollower follower(spool_, Options(root));
    follower.Start();
    const RunResult result = follower.Stop(nullptr);
    EXPECT_THAT(result.traces, SizeIs(1));
    EXPECT_THAT(result.still_running, ElementsAre(Pair(daemon.pid(), Runs("daemon"))));
    EXPECT_THAT(result.failures, IsEmpty());
  }
  EXPECT_FALSE(spool_.RemoveIfEmpty());
  WriteMuch(&trace, 31, 32);
  daemon.End();
  trace.Close();
  SpoolFollowerOptions options = Options(root);
  options.resume = true;
  SpoolFollower follower(spool_, options);
  const RunResult result = follower.Stop(nullptr);
  ASSERT_THAT(result.traces, SizeIs(1));
  EXPECT_TRUE(spool_.RemoveIfEmpty());
  EXPECT_EQ(PackedTrace::Read(result.traces[0].path).events.at(1), MuchWords(1, 32));
}

// Its trace has the name of what it was, and it has let go of that. A Sleeper runs this test.
TEST_F(SpoolFollowerTest, NamesWhatAProcessRunsAfterItsExec) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").filename();
  const uint32_t root = EndedPid();
  Sleeper process, failed;
  RawTrace(Raw("starter", root, 1), root).Close();
  RawTrace trace(Raw("was", process.pid(), 2), process.pid());
  trace.AppendEnd(format::EndReason::kExec);
  trace.Close();
  RawTrace still(Raw("is", failed.pid(), 3), failed.pid());  // open: the exec failed
  still.AppendEnd(format::EndReason::kExec);
  SpoolFollower follower(spool_, Options(root));
  const ProgramEnd end;
  const RunResult result = follower.Stop(&end);
  EXPECT_THAT(result.traces, SizeIs(1));
  EXPECT_THAT(result.still_running,
              UnorderedElementsAre(Pair(process.pid(), RunsAfter(self, "was")),
                                   Pair(failed.pid(), Runs("is"))));
}

// A daemon: the child that was forked begins a trace of its own at its first allocation.
TEST_F(SpoolFollowerTest, SeesTheTraceThatIsBegunWhileTheLastOneIsFinished) {
  const Sleeper daemon;
  const uint32_t root = EndedPid();
  RawTrace(Raw("starter", root, 1), root).Close();
  std::optional<RawTrace> trace;
  SpoolFollowerOptions options = Options(root);
  options.root_records = [&](bool all) {
    if (all) trace.emplace(Raw("daemon", daemon.pid(), 2), daemon.pid());
    return std::vector<uint8_t>();
  };
  SpoolFollower follower(spool_, options);
  const ProgramEnd end;
  const RunResult result = follower.Stop(&end);
  EXPECT_THAT(result.traces, SizeIs(1));
  EXPECT_THAT(result.still_running, ElementsAre(Pair(daemon.pid(), Runs("daemon"))));
  EXPECT_THAT(result.failures, IsEmpty());
  EXPECT_THAT(spool_.RawTraces(), ElementsAre(Raw("daemon", daemon.pid(), 2)));
}

TEST_F(SpoolFollowerTest, AsksForAllRecordsOnceHoweverLongTheTraceIsHeld) {
  const Sleeper holder;  // its trace is looked at again and again, as one that a child holds
  RawTrace root_trace(Raw("starter", holder.pid(), 1), holder.pid());
  SpoolFollowerOptions options = Options(holder.pid());
  int asked = 0, asked_afterwards = 0;
  options.root_records = [&](bool all) {
    (all ? asked : asked_afterwards) += all || asked != 0 ? 1 : 0;
    return std::vector<uint8_t>();
  };
  SpoolFollower follower(spool_, options);
  const ProgramEnd end;
  EXPECT_THAT(follower.Stop(&end).still_running, SizeIs(1));
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(asked_afterwards, 0);
}

TEST_F(SpoolFollowerTest, DropsChildrenWhenTheyAreNotFollowed) {
  const uint32_t root = EndedPid(), child = EndedPid();
  RawTrace(Raw("sh", root, 1), root).AppendNote("root");
  RawTrace(Raw("ls", child, 2), child).AppendNote("child");
  SpoolFollowerOptions options = Options(root);
  options.keep_children = false;
  SpoolFollower follower(spool_, options);
  EXPECT_THAT(follower.Stop(nullptr).traces, SizeIs(1));
  EXPECT_TRUE(spool_.RemoveIfEmpty());
}

TEST_F(SpoolFollowerTest, ClearsAwayATraceThatWasNeverBegun) {
  const uint32_t root = EndedPid();
  RawTrace(Raw("sh", root, 1), root).AppendNote("root");
  RawTrace(Raw("killed", EndedPid(), 2), 0, /*with_header=*/false).Close();
  Sleeper starting;
  RawTrace(Raw("starting", starting.pid(), 2), 0, /*with_header=*/false).Close();
  SpoolFollower follower(spool_, Options(root));
  const RunResult result = follower.Stop(nullptr);
  EXPECT_THAT(result.traces, SizeIs(1));
  EXPECT_THAT(result.still_running, ElementsAre(Pair(starting.pid(), Runs("starting"))));
  EXPECT_THAT(spool_.RawTraces(), ElementsAre(Raw("starting", starting.pid(), 2)));
}

TEST_F(SpoolFollowerTest, ReportsAFileThatCannotBePacked) {
  const uint32_t root = EndedPid();
  RawTrace(Raw("sh", root, 1), root).AppendNote("root");
  std::filesystem::create_directory(directory_ / "out.mtr");
  SpoolFollower follower(spool_, Options(root));
  const RunResult result = follower.Stop(nullptr);
  EXPECT_THAT(result.traces, IsEmpty());
  ASSERT_THAT(result.failures, SizeIs(1));
  EXPECT_THAT(result.failures[0], HasSubstr("out.mtr: Is a directory"));
  EXPECT_FALSE(spool_.RemoveIfEmpty()) << "the trace must still be there";
}

TEST(ClosingLineTest, NamesTheFileAndTheNextCommand) {
  RunResult result;
  FinishedTrace trace;
  trace.path = "my trace.mtr";
  trace.bytes = 1'300'000;
  trace.counts.allocations = 1'234'567;
  trace.main = true;
  result.traces = {trace};
  ProgramEnd end;
  EXPECT_EQ(ClosingLine(result, &end),
            "wrote my trace.mtr (1.24 MiB, 1,234,567 allocations); "
            "next: memtrace report 'my trace.mtr'");
  end.signaled = true;
  end.status = SIGSEGV;
  end.core_dumped = true;
  EXPECT_THAT(ClosingLine(result, &end), ::testing::StartsWith("ended by SIGSEGV (core dumped); "));
  result.traces[0].counts.dropped_events = 12;
  EXPECT_THAT(ClosingLine(result, &end), HasSubstr("; 12 events were lost;"));
  result.traces[0].counts.stopped_early = true;
  EXPECT_THAT(ClosingLine(result, &end), HasSubstr("; recording stopped before the program ended "
                                                   "(the report says why); 12 events were lost on "
                                                   "the way there;"));
  result.traces[0].counts.stopped_early = false;
  result.traces[0].counts.untraced_children = 2;
  EXPECT_THAT(ClosingLine(result, &end),
              HasSubstr("; 2 forked children could not create a trace (the report says why);"));
  trace.main = false;
  trace.path = "child.mtr";
  trace.counts.allocations = 1;
  result.traces.push_back(trace);
  EXPECT_THAT(ClosingLine(result, &end), HasSubstr("allocations) and child.mtr (1 allocation); "));
  EXPECT_THAT(ClosingLine(result, &end),
              EndsWith("next: memtrace report 'my trace.mtr' child.mtr"));
  trace.path = "busy.mtr";
  trace.counts.allocations = 99;
  result.traces.push_back(trace);
  EXPECT_THAT(ClosingLine(result, &end),
              HasSubstr(" and 2 more traces, the busiest busy.mtr (99 allocations); "));
}

// Who reads the first trace alone looks for leaks where the work was not done.
TEST(ClosingLineTest, TheNextCommandHasTheChildrenToo) {
  RunResult result;
  result.traces.resize(4);
  result.traces[0].path = "fw.mtr";
  result.traces[0].main = true;
  for (size_t i = 1; i < 4; ++i) result.traces[i].path = "fw.sh." + std::to_string(i) + ".mtr";
  EXPECT_THAT(ClosingLine(result, nullptr), EndsWith("next: memtrace report fw.mtr fw.*.mtr"));
  result.traces[2].path = "other";  // a name that was taken
  EXPECT_THAT(ClosingLine(result, nullptr),
              EndsWith("next: memtrace report fw.mtr fw.sh.1.mtr other fw.sh.3.mtr"));
  result.traces[0].path = "-a b.mtr";
  for (size_t i = 1; i < 4; ++i) result.traces[i].path = "-a b.sh." + std::to_string(i) + ".mtr";
  EXPECT_THAT(ClosingLine(result, nullptr), EndsWith("report './-a b.mtr' './-a b'.*.mtr"));
}

TEST(ClosingLineTest, NoPatternTakesInWhatAnotherRunLeft) {
  TempDir directory;
  RunResult result;
  result.traces.resize(4);
  result.traces[0].path = directory / "fw.mtr";
  result.traces[0].main = true;
  for (size_t i = 1; i < 4; ++i)
    result.traces[i].path = directory / ("fw.sh." + std::to_string(i) + ".mtr");
  for (const FinishedTrace& trace : result.traces) std::ofstream(trace.path) << "x";
  EXPECT_THAT(ClosingLine(result, nullptr),
              EndsWith(directory / "fw.mtr" + " " + (directory / "fw.*.mtr")));
  std::ofstream(directory / "fw.1.mtr") << "of an earlier one";
  EXPECT_THAT(ClosingLine(result, nullptr), EndsWith("fw.sh.1.mtr " + (directory / "fw.sh.2.mtr") +
                                                     " " + (directory / "fw.sh.3.mtr")));
}

}  // namespace
}  // namespace memtrace::report
